/**
 * Keeps a game's pace: says at each tick of the display how many frames are due, and counts those that came too late.
 *
 * The console's 60 frames a second and the display's are two clocks. A frame is due at the tick that is nearest to its time, and the
 * schedule follows the display by up to 2 %, so that a display of 59.9 Hz does not drop a frame every ten seconds. A faster display ticks
 * in between; its ticks are measured, for a frame that came half a frame early each time would make the game run fast.
 */

export const FRAMES_PER_SECOND = 60;
const FOLLOW = 0.02;
/** How much a new tick's length counts beside those before. */
const NEW_TICK = 0.1;

export class Pacer {
  #period = 1000 / FRAMES_PER_SECOND;
  /** @type {number | null} when the next frame should be shown; null while the clock stands */
  #next = null;
  /** @type {number | null} */
  #last = null;
  /** @type {number | null} the last tick's time */
  #ticked = null;
  /** How long the display's ticks are. */
  #tick = 1000 / FRAMES_PER_SECOND;
  /** Frames that were shown. */
  shown = 0;
  /** Frames that were due at a tick that had nothing to show, or had to show a later one. */
  missed = 0;
  /** The longest time between two shown frames, in milliseconds. */
  gap = 0;

  /** @param {number} [speed] times the console's own */
  constructor(speed = 1) {
    this.speed = speed;
  }

  /** @param {number} speed times the console's own */
  set speed(speed) {
    this.#period = 1000 / FRAMES_PER_SECOND / speed;
  }

  /** Stops the clock: what passes until the next tick is no lateness. */
  stop() {
    this.#next = null;
    this.#last = null;
    this.#ticked = null;
  }

  /** Whether no frame has been due since the clock was stopped. */
  get stands() {
    return this.#next === null;
  }

  /**
   * @param {number} now the tick's time, in milliseconds
   * @returns {number} how many frames are due
   */
  due(now) {
    if (this.#ticked !== null) this.#tick += NEW_TICK * (Math.min(now - this.#ticked, this.#period) - this.#tick);
    this.#ticked = now;
    this.#next ??= now;
    const early = Math.min(this.#tick, this.#period) / 2;
    return Math.max(0, Math.floor((now + early - this.#next) / this.#period) + 1);
  }

  /**
   * Tells what came of the frames that were due: `ready` of them could be played, and the last one of these was shown.
   * @param {number} now the tick's time
   * @param {number} due at least 1
   * @param {number} ready 0 … due
   */
  played(now, due, ready) {
    this.missed += due - Math.min(ready, 1);
    if (ready > 0) {
      this.shown++;
      if (this.#last !== null) this.gap = Math.max(this.gap, now - this.#last);
      this.#last = now;
    }
    const late = now - (/** @type {number} */ (this.#next) + (due - 1) * this.#period);
    const most = FOLLOW * this.#period;
    // With nothing to show, time goes on without the game.
    this.#next = ready < due ? now + this.#period : now - late + this.#period + Math.min(most, Math.max(-most, late / 10));
  }

  /** Begins counting anew. */
  reset() {
    this.shown = 0;
    this.missed = 0;
    this.gap = 0;
    this.#last = null;
  }
}
