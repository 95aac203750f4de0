/** Lines that Python prints, collected: a loop that prints would send the page more messages than it can take. */

/** @typedef {{stream: 'stdout' | 'stderr', text: string}} Output one or more lines */

const EVERY_MS = 50;

export class OutputBuffer {
  #send;
  /** @type {Output[]} */
  #waiting = [];
  #sent = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** @param {(output: Output[]) => void} send */
  constructor(send) {
    this.#send = send;
  }

  /** @param {'stdout' | 'stderr'} stream @param {string} text */
  add(stream, text) {
    const last = this.#waiting.at(-1);
    if (last?.stream === stream) last.text += `\n${text}`;
    else this.#waiting.push({ stream, text });
    // While Python runs no timer does, so that the clock is looked at here too.
    if (performance.now() - this.#sent >= EVERY_MS) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), EVERY_MS);
  }

  flush() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sent = performance.now();
    if (!this.#waiting.length) return;
    this.#send(this.#waiting);
    this.#waiting = [];
  }
}
