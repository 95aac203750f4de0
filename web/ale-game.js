/**
 * One game in the emulator's module. See `ale.js` for how long its arrays hold.
 */
import { BAD_STATE, LEGAL, MAX_SEED, failed, quoted, seedOf } from './ale-checks.js';
import { AppError } from './wire.js';

/** @typedef {import('./ale.js').Ale} Ale */
/** @typedef {import('./ale.js').Exports} Exports */

const PIXELS = 210 * 160;
const SMALL = 84 * 84;
const RAM = 128;

/** One game of Breakout. */
export class Game {
  #ale;
  #handle;

  /** @param {Ale} ale @param {number} handle */
  constructor(ale, handle) {
    this.#ale = ale;
    this.#handle = handle;
  }

  /**
   * Seeds the random generator and loads the ROM again, since the emulator reads its seed at no other time. A game has
   * then started.
   * @param {number} seed 0 … 2^31 - 1, or -1 for one of the browser's random numbers
   */
  load(seed) {
    const start = seedOf(seed);
    this.#do((exports, handle) => exports.ale_load(handle, start));
  }

  /** Starts a game; the random generator goes on. */
  reset() {
    this.#do((exports, handle) => exports.ale_reset(handle));
  }

  /**
   * Plays one action for some frames, or until the game is over; `played` says for how many. The grey screens of the last
   * two of these frames become `screens()`; the frame that ends a game is not looked at, and what was seen before stays.
   * @param {number} action 0 NOOP, 1 FIRE, 3 RIGHT, 4 LEFT
   * @param {number} frames at least 1
   * @returns {number} points won
   */
  play(action, frames) {
    if (!LEGAL.includes(action)) {
      throw new AppError('BadAction', `the action ${quoted(action)} is none of ${LEGAL.join(', ')} (NOOP, FIRE, RIGHT, LEFT)`, 'Choose one of these.');
    }
    if (!Number.isInteger(frames) || frames < 1 || frames > MAX_SEED) {
      throw new AppError('BadFrames', `${quoted(frames)} is no number of frames to play`, 'Play at least one frame.');
    }
    this.#do((exports, handle) => exports.ale_play(handle, action, frames));
    return this.#get((exports, handle) => exports.ale_reward(handle));
  }

  /** Looks at the present screen alone: it becomes the last one, and black the one before. What a new game begins with. */
  look() {
    this.#do((exports, handle) => exports.ale_look(handle));
  }

  /** Frames that the last `play` really played; 0 after a start or a restore. */
  get played() {
    return this.#get((exports, handle) => exports.ale_played(handle));
  }

  /**
   * The pooled screen as the model sees it: 84 x 84 grey bytes, each the average of the area that it covers.
   * @returns {Uint8Array}
   */
  small() {
    return this.#view((exports, handle) => exports.ale_small(handle), SMALL);
  }

  /**
   * Two grey screens of 210 x 160, one after the other: that of the frame before the last, and `pooled()`.
   * @returns {Uint8Array}
   */
  screens() {
    return this.#view((exports, handle) => exports.ale_screens(handle), 2 * PIXELS);
  }

  /**
   * The brighter of the last two frames, pixel by pixel: 210 x 160 grey bytes. After `look`, the present screen.
   * @returns {Uint8Array}
   */
  pooled() {
    return this.screens().subarray(PIXELS);
  }

  /**
   * A frame of the last `play` in colour, for an `ImageData` of 160 x 210. The last 16 are kept.
   * @param {number} index 0 … `played` - 1
   * @returns {Uint8ClampedArray<ArrayBuffer>}
   */
  paint(index) {
    const pointer = this.#get((exports, handle) => (Number.isInteger(index) ? exports.ale_paint(handle, index) : 0));
    if (pointer !== 0) return this.#colours(pointer);
    const kept = this.#get((exports) => exports.ale_frames_kept());
    const range = this.played === 0 ? 'none was played' : `there are ${Math.max(0, this.played - kept)} to ${this.played - 1}`;
    throw new AppError('BadFrame', `there is no frame ${quoted(index)} of the last play: ${range}`, 'Paint a frame that was played, or screen().');
  }

  /**
   * The present screen in colour. After a restore, and until the next frame, it is still the one of before.
   * @returns {Uint8ClampedArray<ArrayBuffer>} RGBA, 160 x 210
   */
  screen() {
    return this.#colours(this.#get((exports, handle) => exports.ale_screen(handle)));
  }

  /** The console's memory. @returns {Uint8Array} 128 bytes */
  ram() {
    return this.#view((exports, handle) => exports.ale_ram(handle), RAM);
  }

  /** Lives left, 5 at the start. */
  get lives() {
    return this.#get((exports, handle) => exports.ale_lives(handle));
  }

  /** Whether the last life is lost. */
  get over() {
    return this.#get((exports, handle) => exports.ale_over(handle)) !== 0;
  }

  /** Frames since the ROM was loaded. */
  get frame() {
    return this.#get((exports, handle) => exports.ale_frame(handle));
  }

  /** Frames since the game's start. */
  get episode() {
    return this.#get((exports, handle) => exports.ale_episode_frame(handle));
  }

  /**
   * The emulator's state, for `restore`; always of the same size. The screens are no part of it, nor is the previous
   * action: with sticky actions the first frame after a restore may repeat another one than it would have.
   * @param {boolean} rng with the random generator, so that sticky actions are drawn again as before
   * @returns {Uint8Array} a copy
   */
  save(rng) {
    const size = this.#get((exports, handle) => exports.ale_state_size(handle, Number(rng)));
    return this.#view((exports, handle) => exports.ale_save(handle, Number(rng)), size).slice();
  }

  /**
   * Goes back to a state of this module, of any of its games.
   * @param {Uint8Array} bytes from `save`
   * @param {boolean} rng as it was saved
   */
  restore(bytes, rng) {
    const kind = rng ? 'with the random generator' : 'without the random generator';
    const size = this.#get((exports, handle) => exports.ale_state_size(handle, Number(rng)));
    if (!(bytes instanceof Uint8Array) || bytes.length !== size) {
      const found = bytes instanceof Uint8Array ? `${bytes.length} bytes` : quoted(bytes);
      throw new AppError('BadState', `a state ${kind} has ${size} bytes, this is ${found}`, 'Restore what save() gave, and as it was saved.');
    }
    const status = this.#ale.lend(bytes, (exports, pointer) => exports.ale_restore(this.#open(), pointer, size, Number(rng)));
    if (status === BAD_STATE) {
      throw new AppError('BadState', `these ${size} bytes are no state ${kind}, or are damaged`, 'Restore what save() gave, and as it was saved.');
    }
    if (status < 0) throw failed(status);
  }

  /** Frees the game. Closing twice is harmless. */
  close() {
    const handle = this.#handle;
    this.#handle = 0;
    if (handle && !this.#ale.crashed) this.#ale.run((exports) => exports.ale_close(handle));
  }

  #open() {
    if (this.#handle === 0) throw new AppError('GameClosed', 'this game has been closed', 'Open another one.');
    return this.#handle;
  }

  /** @param {(exports: Exports, handle: number) => number} call that answers with a number */
  #get(call) {
    const handle = this.#open();
    return this.#ale.run((exports) => call(exports, handle));
  }

  /** @param {(exports: Exports, handle: number) => number} call that answers with a status */
  #do(call) {
    const status = this.#get(call);
    if (status < 0) throw failed(status);
  }

  /** @param {(exports: Exports, handle: number) => number} call that answers with a pointer @param {number} length */
  #view(call, length) {
    return this.#ale.view(this.#get(call), length);
  }

  /** @param {number} pointer */
  #colours(pointer) {
    const { buffer, byteOffset, length } = this.#ale.view(pointer, 4 * PIXELS);
    return new Uint8ClampedArray(buffer, byteOffset, length);
  }
}
