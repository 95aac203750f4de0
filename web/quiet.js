/** While the page boots or measures, its service worker fetches nothing: it waits for the same lock. */

const QUIET = 'pyapp quiet';
/** @type {(() => void) | null} */
let release = null;

/** @param {boolean} wanted */
export function setQuiet(wanted) {
  if (!wanted) {
    release?.();
    release = null;
  } else if (!release) {
    // Not waited for: whoever asks for it later, waits.
    const over = new Promise((/** @type {(value: void) => void} */ resolve) => (release = resolve));
    void navigator.locks?.request(QUIET, () => over);
  }
}
