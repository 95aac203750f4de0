/**
 * The agent's board: draws its game at the console's pace. It lives in Python's worker; Python hands it the frames of each decision, at
 * most one decision ahead, so that a decision that takes a while is not seen.
 */
import { Pacer } from './pacer.js';
import { everyTick, HEIGHT, WIDTH } from './painter.js';

/** @typedef {import('./painter.js').Painter} Painter */
/** @typedef {import('../ale.js').Game} Game */

/** Python may decide again as soon as so many frames wait: those of one decision. */
const AHEAD = 4;
/** At full speed the worker has to let messages and the display have their turn so often. */
const TURN_MS = 1000 / 60;
/** What the agent sees: four frames, two by two as one reads, with a gap between them. */
const SIDE = 84;
const STACK = 4;
const GAP = 2;
const SEEN_SIDE = 2 * SIDE + GAP;
const GAP_GREY = 112;

export class AgentBoard {
  #painter;
  #seen;
  #hiddenCount;
  #pacer = new Pacer();
  #speed = 1;
  #held = true;
  #hides = 0;
  /** @type {Uint8ClampedArray[]} frames that wait to be shown, oldest first */
  #queue = [];
  /** @type {Uint8ClampedArray[]} buffers that can be used again */
  #spare = [];
  /** @type {(() => void) | null} */
  #release = null;
  #drawn = 0;
  #turned = 0;
  #turn = new MessageChannel();
  #picture = new Uint8ClampedArray(4 * SEEN_SIDE * SEEN_SIDE);
  #end;
  /** Whether the page shows what the agent sees. */
  wanted = false;

  /**
   * @param {Painter} painter of the game
   * @param {Painter} seen of what the agent sees, 170 x 170
   * @param {() => number} hiddenCount how often the tab has been hidden
   */
  constructor(painter, seen, hiddenCount) {
    this.#painter = painter;
    this.#seen = seen;
    this.#hiddenCount = hiddenCount;
    this.#picture.fill(GAP_GREY);
    for (let alpha = 3; alpha < this.#picture.length; alpha += 4) this.#picture[alpha] = 255;
    this.#end = everyTick((now) => this.#tick(now));
  }

  /**
   * Queues the frames of a game's last play.
   * @param {Game} game
   * @param {number} played how many there are
   * @returns {number} the milliseconds that this took
   */
  show(game, played) {
    const start = performance.now();
    const onlyLast = this.#speed === 0 || this.#held;
    // What nobody will see is not kept: the display may not tick for a long time.
    if (onlyLast) this.#spare.push(...this.#queue.splice(0));
    for (let index = onlyLast ? Math.max(0, played - 1) : 0; index < played; index++) {
      const frame = this.#spare.pop() ?? new Uint8ClampedArray(4 * WIDTH * HEIGHT);
      frame.set(game.paint(index));
      this.#queue.push(frame);
    }
    if (this.#held) this.#drawAll();
    return performance.now() - start;
  }

  /**
   * Draws what the agent sees.
   * @param {Uint8Array} stack four frames of 84 x 84, oldest first
   * @returns {number} the milliseconds that this took
   */
  see(stack) {
    const start = performance.now();
    for (let frame = 0, from = 0; frame < STACK; frame++) {
      const left = (frame % 2) * (SIDE + GAP);
      const top = Math.floor(frame / 2) * (SIDE + GAP);
      for (let row = top; row < top + SIDE; row++) {
        let to = 4 * (row * SEEN_SIDE + left);
        for (let column = 0; column < SIDE; column++, to += 4) {
          const grey = stack[from++];
          this.#picture[to] = this.#picture[to + 1] = this.#picture[to + 2] = grey;
        }
      }
    }
    this.#seen.draw(this.#picture);
    return performance.now() - start;
  }

  /** What to await before the next decision; undefined where there is no need to wait. @returns {Promise<void> | undefined} */
  wait() {
    if (this.#speed === 0) {
      if (performance.now() - this.#turned < TURN_MS) return undefined;
      return new Promise((resolve) => {
        this.#turn.port1.onmessage = () => {
          this.#turned = performance.now();
          resolve();
        };
        this.#turn.port2.postMessage(null);
      });
    }
    if (this.#queue.length <= AHEAD) return undefined;
    return new Promise((resolve) => {
      this.#release = resolve;
    });
  }

  /** The milliseconds that putting frames on the canvas took since the last call. */
  draw_ms() {
    const drawn = this.#drawn;
    this.#drawn = 0;
    return drawn;
  }

  /** @param {number} speed 1 or 2 times the console's own; 0: as fast as possible */
  pace(speed) {
    this.#speed = speed;
    this.#pacer.stop();
    if (speed > 0) this.#pacer.speed = speed;
    else this.#drawAll();
  }

  /** Stops the clock, or starts it again. @param {boolean} on */
  hold(on) {
    this.#held = on;
    this.#pacer.stop();
    if (on) this.#drawAll();
  }

  /** Forgets the frames that wait. */
  clear() {
    this.#spare.push(...this.#queue.splice(0));
    this.#go();
  }

  /** Stops drawing: another board has taken this one's place. */
  end() {
    this.#end();
    this.#go();
    // A port that listens is never collected, and it would hold this board with its canvases.
    this.#turn.port1.close();
  }

  get shown() {
    return this.#pacer.shown;
  }

  get missed() {
    return this.#pacer.missed;
  }

  get gap() {
    return this.#pacer.gap;
  }

  reset_counts() {
    this.#pacer.reset();
  }

  /** @param {number} now */
  #tick(now) {
    if (this.#held) return;
    if (this.#hides !== this.#hiddenCount()) {
      this.#hides = this.#hiddenCount();
      this.#pacer.stop();
    }
    // Before the first frame nothing is late.
    if (this.#queue.length === 0 && this.#pacer.stands) return;
    // At full speed every tick shows what there is, and nothing is due at a certain time.
    const due = this.#speed === 0 ? 1 : this.#pacer.due(now);
    if (due === 0) return;
    const ready = this.#speed === 0 ? this.#queue.length : Math.min(due, this.#queue.length);
    this.#draw(ready);
    if (this.#speed > 0) this.#pacer.played(now, due, ready);
    if (this.#queue.length <= AHEAD) this.#go();
  }

  #drawAll() {
    this.#draw(this.#queue.length);
    this.#go();
  }

  /** Takes so many frames and draws the last of them. @param {number} count */
  #draw(count) {
    if (count === 0) return;
    const start = performance.now();
    const frames = this.#queue.splice(0, count);
    this.#painter.draw(frames[count - 1]);
    this.#spare.push(...frames);
    this.#drawn += performance.now() - start;
  }

  #go() {
    this.#release?.();
    this.#release = null;
  }
}
