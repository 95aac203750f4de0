/**
 * On a host that cannot send the headers of isolation (GitHub Pages), a service worker of the same origin adds them to every
 * answer; the page has to be loaded once more for that. Where it does not help, the page goes on without.
 */

const LIMIT_MS = 5_000;
/** Is kept while the page is loaded once more, so that it cannot happen again and again. */
const TRIED = 'pyapp-isolating';

/**
 * @param {URL} root the site's root
 * @returns {Promise<boolean>} whether the page is being loaded once more
 */
export async function isolate(root) {
  const workers = navigator.serviceWorker;
  try {
    if (globalThis.crossOriginIsolated) {
      sessionStorage.removeItem(TRIED);
      return false;
    }
    // A page within another one is isolated only if that is.
    if (!workers || globalThis.top !== globalThis.self || sessionStorage.getItem(TRIED)) return false;
    sessionStorage.setItem(TRIED, 'yes');
    // One that is there was passed over, by a reload that asks for everything anew.
    const known = await workers.getRegistration(root);
    if (!known?.active) await workers.register(new URL('service-worker.js?isolate', root));
    const active = await Promise.race([workers.ready, new Promise((resolve) => setTimeout(resolve, LIMIT_MS, null))]);
    if (active) location.reload();
    return Boolean(active);
  } catch {
    return false;
  }
}
