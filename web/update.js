/**
 * Tells the visitor of a new version. The files of a version lie in a folder of their own, so those that this page has not
 * loaded yet are gone with it, and are never taken from another one.
 *
 * It imports nothing: it has to run when other modules are missing.
 */

/** @typedef {PerformanceResourceTiming & {responseStatus?: number}} Loaded */

/** A boot that takes longer is looked into, again and again. */
const PATIENCE_MS = 10_000;

const base = new URL('.', import.meta.url);
const place = /** @type {HTMLElement} */ (document.getElementById('update'));
/** Whether it is finding out, or knows. */
let looking = false;

/**
 * Offers to reload, without doing it: what was typed and measured is the visitor's.
 * @param {string} text
 * @param {() => void} [reload]
 */
export function offer(text, reload = () => location.reload()) {
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = 'Reload';
  button.addEventListener('click', reload);
  place.replaceChildren(`${text} `, button);
}

/** Something went wrong: finds out whether that is because this version is not there any more. */
export async function suspect() {
  if (looking) return;
  looking = true;
  // What a cache has kept says nothing of the site.
  const answer = await fetch(new URL('site.json', base), { cache: 'no-store' }).catch(() => null);
  if (answer?.status !== 404) {
    looking = false;
    return;
  }
  offer('This site was updated while this page was open, and files of the page’s version are gone. Reload for the new version.');
}

/** @param {PerformanceEntryList} entries */
function look(entries) {
  const failed = (/** @type {Loaded} */ { name, responseStatus }) => (responseStatus ?? 0) >= 400 && name.startsWith(location.origin);
  if (/** @type {Loaded[]} */ (entries).some(failed)) void suspect();
}

document.getElementById('stuck')?.remove();
// Python may wait for ever for a wheel that is gone.
const waiting = setInterval(() => {
  if (['ready', 'running'].includes(document.documentElement.dataset.state ?? '')) clearInterval(waiting);
  else void suspect();
}, PATIENCE_MS);
// The page's modules, styles and workers, those that failed before this ran as well; what Python and engines miss is told by them.
new PerformanceObserver((list) => look(list.getEntries())).observe({ type: 'resource', buffered: true });
