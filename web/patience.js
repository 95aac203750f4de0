/** Waits so long for a sign of life, and no longer. */

/** A page that was frozen hears first that time has passed, and then what has come meanwhile. */
const GRACE_MS = 1_000;

export class Patience {
  #onEnd;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** @param {() => void} onEnd called when there was no sign in time */
  constructor(onEnd) {
    this.#onEnd = onEnd;
  }

  /** Waits from now on. @param {number} ms */
  begin(ms) {
    this.end();
    this.#timer = setTimeout(() => {
      this.#timer = setTimeout(this.#onEnd, GRACE_MS);
    }, ms);
  }

  /** Waits no more. */
  end() {
    clearTimeout(this.#timer);
  }
}
