/** While the page boots, measures, plays or runs what was typed, its service worker fetches nothing: it waits for the same lock. */

const QUIET = 'pyapp-quiet';
/** @type {Set<unknown>} */
const reasons = new Set();
/** @type {(() => void) | null} */
let release = null;

/** @param {unknown} reason who needs it @param {boolean} wanted */
export function setQuiet(reason, wanted) {
  if (wanted) reasons.add(reason);
  else reasons.delete(reason);
  if (reasons.size && !release) {
    // Not waited for: whoever asks for the lock later, waits.
    const over = new Promise((/** @type {(value: void) => void} */ resolve) => (release = resolve));
    void navigator.locks?.request(QUIET, () => over);
  } else if (!reasons.size) {
    release?.();
    release = null;
  }
}

/** Whether nobody needs it. */
export function isIdle() {
  return reasons.size === 0;
}
