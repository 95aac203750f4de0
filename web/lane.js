/**
 * The fast lane between an engine and whoever asks it one question after another, as a game does: one input and one output
 * in shared memory. A message there and back costs as much as half a run of the worked example, the lane a tenth of one.
 *
 * The asker's thread stands still for the first few milliseconds of a run, because being woken by the event loop takes longer
 * than most runs do; a run that takes longer is awaited.
 */

const ASKED = 0;
const ANSWERED = 1;
const FAILED = 2;
/** Index of the engine's own time, as a float64. */
const COMPUTE = 2;
const HEADER_BYTES = 64;
/** How long the asker's thread may stand still: a quarter of a frame. */
const STILL_MS = 4;
/** How long the engine's thread stands still after an answer: a game that is played as fast as it goes asks again within that. */
const LINGER_MS = 2;

export function hasLanes() {
  return globalThis.crossOriginIsolated && 'waitAsync' in Atomics;
}

/** The asker's end. */
export class Lane {
  #control;
  #times;
  /** @type {Error | null} */
  #lost = null;

  /** @param {number} inputBytes @param {number} outputBytes */
  constructor(inputBytes, outputBytes) {
    this.buffer = new SharedArrayBuffer(HEADER_BYTES + aligned(inputBytes) + outputBytes);
    this.#control = new Int32Array(this.buffer, 0, 4);
    this.#times = new Float64Array(this.buffer, 0, 3);
    /** Where the question goes. */
    this.input = new Uint8Array(this.buffer, HEADER_BYTES, inputBytes);
    /** Where the answer is. */
    this.output = new Uint8Array(this.buffer, HEADER_BYTES + aligned(inputBytes), outputBytes);
  }

  /** Asks what is in `input`, and does not wait for the answer. */
  ask() {
    Atomics.add(this.#control, ASKED, 1);
    Atomics.notify(this.#control, ASKED);
  }

  /**
   * Waits for the answer.
   * @param {number} limitMs how long it may take
   * @returns {Promise<boolean> | boolean} whether there was an answer in time; a promise if it takes a while
   * @throws what `lose` was given, now or later
   */
  answer(limitMs) {
    if (this.#lost) throw this.#lost;
    const control = this.#control;
    const question = Atomics.load(control, ASKED);
    Atomics.wait(control, ANSWERED, question - 1, STILL_MS);
    return Atomics.load(control, ANSWERED) === question || this.#waitFor(question, performance.now() + limitMs);
  }

  /** Fails the question that is open and all later ones: the engine is gone. @param {Error} error */
  lose(error) {
    this.#lost = error;
    Atomics.notify(this.#control, ANSWERED);
  }

  /** Whether a question is open: there is room for one. */
  get busy() {
    return Atomics.load(this.#control, ASKED) !== Atomics.load(this.#control, ANSWERED);
  }

  /** Whether the engine threw; ask it by message to hear what. */
  get failed() {
    return this.#control[FAILED] !== 0;
  }

  /** The engine's own time for the last answer, in milliseconds. */
  get compute_ms() {
    return this.#times[COMPUTE];
  }

  /** @param {number} question @param {number} deadline */
  async #waitFor(question, deadline) {
    const control = this.#control;
    while (Atomics.load(control, ANSWERED) !== question) {
      if (this.#lost) throw this.#lost;
      const left = deadline - performance.now();
      if (left <= 0) return false;
      await waitAsync(control, ANSWERED, question - 1, left);
    }
    return true;
  }
}

/**
 * The engine's end: answers for as long as the worker lives.
 * @param {SharedArrayBuffer} buffer
 * @param {number} inputBytes
 * @param {(input: ArrayBuffer) => Promise<{output: ArrayBufferView, compute_ms: number}>} answer
 */
export async function serveLane(buffer, inputBytes, answer) {
  const control = new Int32Array(buffer, 0, 4);
  const times = new Float64Array(buffer, 0, 3);
  const input = new Uint8Array(buffer, HEADER_BYTES, inputBytes);
  const output = new Uint8Array(buffer, HEADER_BYTES + aligned(inputBytes));
  const copy = new Uint8Array(inputBytes); // not every consumer takes shared memory
  for (let answered = 0; ; ) {
    if (Atomics.wait(control, ASKED, answered, answered ? LINGER_MS : 0) === 'timed-out') await waitAsync(control, ASKED, answered);
    const question = Atomics.load(control, ASKED);
    if (question === answered) continue;
    copy.set(input);
    try {
      const { output: found, compute_ms } = await answer(copy.buffer);
      output.set(new Uint8Array(found.buffer, found.byteOffset, found.byteLength));
      times[COMPUTE] = compute_ms;
      control[FAILED] = 0;
    } catch {
      control[FAILED] = 1; // an error with its message does not fit in here
    }
    answered = question;
    Atomics.store(control, ANSWERED, question);
    Atomics.notify(control, ANSWERED);
  }
}

/**
 * @param {Int32Array} control
 * @param {number} index
 * @param {number} value to wait for the end of
 * @param {number} [limitMs]
 */
async function waitAsync(control, index, value, limitMs) {
  await /** @type {any} */ (Atomics).waitAsync(control, index, value, limitMs).value;
}

/** @param {number} bytes so that what follows can be a view of any type */
function aligned(bytes) {
  return Math.ceil(bytes / 8) * 8;
}
