/** Has the site kept for use without a network, and tells when a newer version of it is kept. */
import { offer, suspect } from './update.js';

/** Whether somebody here has asked for the new version. */
let wanted = false;

/**
 * @param {HTMLElement} place where it is said what became of it
 * @param {URL} root the site's root
 */
export async function keepOffline(place, root) {
  const workers = navigator.serviceWorker;
  const failed = (/** @type {string} */ reason) => {
    place.textContent = `This page is not kept for use without a network: ${reason}.`;
  };
  const kept = () => {
    place.textContent = 'This page is kept in this browser and works without a network.';
  };
  if (!workers) return failed('this browser does not do it here');
  if (/** @type {any} */ (navigator).connection?.saveData) return failed('this browser saves data');
  workers.addEventListener('controllerchange', () => {
    if (wanted) location.reload();
    // In another tab somebody has asked for it.
    else void suspect();
  });
  try {
    const registration = await workers.register(new URL('service-worker.js', root));
    // Where an older version is kept, that one stays.
    workers.addEventListener('message', ({ data }) => data?.notKept && !keeps(registration.active) && failed(data.notKept));
    if (keeps(registration.active)) kept();
    follow(registration, registration.waiting ?? registration.installing, kept);
    registration.addEventListener('updatefound', () => follow(registration, registration.installing, kept));
  } catch (error) {
    failed(/** @type {Error} */ (error).message.replace(/\.$/, ''));
  }
}

/** @param {ServiceWorker | null} worker */
function keeps(worker) {
  return worker !== null && !worker.scriptURL.endsWith('?isolate');
}

/**
 * @param {ServiceWorkerRegistration} registration
 * @param {ServiceWorker | null} worker one that is not active yet
 * @param {() => void} kept
 */
function follow(registration, worker, kept) {
  if (!worker) return;
  const look = () => {
    if (worker.state === 'activated') kept();
    if (worker.state === 'installed' && keeps(registration.active)) {
      offer('A new version of this page is there.', () => {
        wanted = true;
        worker.postMessage('activate');
      });
    }
  };
  worker.addEventListener('statechange', look);
  look();
}
