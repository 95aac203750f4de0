/**
 * The Arcade Learning Environment: Breakout's emulator as a WebAssembly module (`native/ale/`, GPL-2.0-only). It runs in a
 * worker, a page and Node.js alike, and Python calls the same methods through Pyodide.
 *
 * Nothing here waits. Arrays that a game returns are views on the module's memory: they hold until the next call of any
 * game of the module, which may overwrite or move them. Whoever keeps one copies it. A refused argument changes nothing.
 */
import { AppError } from './wire.js';

const PIXELS = 210 * 160;
const SMALL = 84 * 84;
const RAM = 128;
const MAX_ROM = 512 * 1024;
const MAX_SEED = 2 ** 31 - 1;

/** The emulator's numbers for NOOP, FIRE, RIGHT and LEFT; it knows others, which mean nothing in Breakout. */
const LEGAL = [0, 1, 3, 4];

/** What the C++ answers, `Status` in `native/ale/api.h`. */
const BAD_ROM = -2;
const BAD_SIZE = -7;
const BAD_STATE = -8;
const CANNOT_START = -9;

/**
 * @typedef {object} Exports what the module has, `native/ale/api.h`; pointers and handles are numbers
 * @property {WebAssembly.Memory} memory
 * @property {() => void} _initialize
 * @property {(size: number) => number} ale_allocate
 * @property {(pointer: number) => void} ale_free
 * @property {(rom: number, size: number) => number} ale_md5
 * @property {() => number} ale_wanted_md5
 * @property {(rom: number, size: number, sticky: number, seed: number) => number} ale_open
 * @property {(handle: number) => void} ale_close
 * @property {(handle: number, seed: number) => number} ale_load
 * @property {(handle: number) => number} ale_reset
 * @property {(handle: number, action: number, frames: number) => number} ale_play
 * @property {(handle: number) => number} ale_look
 * @property {(handle: number) => number} ale_reward
 * @property {(handle: number) => number} ale_played
 * @property {(handle: number) => number} ale_lives
 * @property {(handle: number) => number} ale_over
 * @property {(handle: number) => number} ale_frame
 * @property {(handle: number) => number} ale_episode_frame
 * @property {(handle: number) => number} ale_screens
 * @property {(handle: number) => number} ale_small
 * @property {(handle: number) => number} ale_ram
 * @property {(handle: number) => number} ale_screen
 * @property {(handle: number, index: number) => number} ale_paint
 * @property {() => number} ale_frames_kept
 * @property {(handle: number, rng: number) => number} ale_state_size
 * @property {(handle: number, rng: number) => number} ale_save
 * @property {(handle: number, state: number, size: number, rng: number) => number} ale_restore
 */

/**
 * Loads the emulator.
 * @param {BufferSource | Response | WebAssembly.Module} source the module's bytes, the answer that brings them, or the module compiled
 * @returns {Promise<Ale>}
 */
export async function loadAle(source) {
  const wasi = new Wasi();
  /** @type {WebAssembly.Instance} */
  let instance;
  try {
    const bytes = source instanceof Response ? await source.arrayBuffer() : source;
    const module = bytes instanceof WebAssembly.Module ? bytes : await WebAssembly.compile(bytes);
    instance = await WebAssembly.instantiate(module, { wasi_snapshot_preview1: wasi.imports(module) });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new AppError('BadModule', `the emulator could not be loaded: ${why}`, 'Reload the page; if it stays so, build the site again with `make build`.');
  }
  return new Ale(instance, wasi);
}

/** The module, with any number of games in it. */
export class Ale {
  #exports;
  #wasi;
  /** @type {AppError | null} */
  #crash = null;

  /** @param {WebAssembly.Instance} instance @param {Wasi} wasi */
  constructor(instance, wasi) {
    this.#exports = /** @type {Exports} */ (/** @type {unknown} */ (instance.exports));
    this.#wasi = wasi;
    wasi.memory = this.#exports.memory;
    this.run((exports) => exports._initialize());
  }

  /**
   * Starts a game.
   * @param {Uint8Array} rom Breakout's
   * @param {number} sticky chance, per frame, that the emulator repeats the previous action instead; in [0, 1]
   * @param {number} seed 0 … 2^31 - 1, or -1 for one of the browser's random numbers
   */
  open(rom, sticky, seed) {
    if (!(ArrayBuffer.isView(rom) && rom instanceof Uint8Array)) throw badRom('it is no Uint8Array');
    if (rom.length > MAX_ROM) throw badRom(`it has ${rom.length} bytes`);
    if (!(typeof sticky === 'number' && sticky >= 0 && sticky <= 1)) {
      throw new AppError('BadSticky', `the probability of repeating an action is ${quoted(sticky)}, not in [0, 1]`, 'Use 0 for none, 0.25 as is customary.');
    }
    const start = seedOf(seed);
    const handle = this.lend(rom, (exports, pointer) => {
      const opened = exports.ale_open(pointer, rom.length, sticky, start);
      if (opened !== BAD_ROM) return opened;
      const found = this.text(exports.ale_md5(pointer, rom.length));
      throw badRom(`it has ${rom.length} bytes with the MD5 ${found}, not ${this.text(exports.ale_wanted_md5())}`);
    });
    if (handle < 0) throw failed(handle);
    return new Game(this, handle);
  }

  /** Bytes of memory that the module takes. */
  get bytes() {
    return this.#exports.memory.buffer.byteLength;
  }

  /** Whether the module has crashed: then load another one. */
  get crashed() {
    return this.#crash !== null;
  }

  /**
   * For `Game`: calls the module. A trap leaves its memory in an unknown state, so it is not called again after one.
   * @template T
   * @param {(exports: Exports) => T} work
   * @returns {T}
   */
  run(work) {
    if (this.#crash) throw this.#crash;
    try {
      return work(this.#exports);
    } catch (error) {
      if (error instanceof AppError) throw error;
      const why = [error instanceof Error ? error.message : String(error), this.#wasi.said].filter(Boolean).join('; ');
      this.#crash = new AppError('AleCrashed', `the emulator crashed: ${why}`, 'Reload the game; states that were saved before can be restored.');
      throw this.#crash;
    }
  }

  /**
   * For `Game`: calls the module with a copy of some bytes.
   * @template T
   * @param {Uint8Array} bytes
   * @param {(exports: Exports, pointer: number) => T} work
   * @returns {T}
   */
  lend(bytes, work) {
    return this.run((exports) => {
      const pointer = exports.ale_allocate(bytes.length);
      if (pointer === 0) throw new AppError('NoMemory', `the emulator has no memory left for ${bytes.length} bytes`, 'Close other games.');
      this.view(pointer, bytes.length).set(bytes);
      try {
        return work(exports, pointer);
      } finally {
        exports.ale_free(pointer);
      }
    });
  }

  /**
   * For `Game`: a part of the memory, as it is now.
   * @param {number} pointer
   * @param {number} length
   */
  view(pointer, length) {
    return new Uint8Array(this.#exports.memory.buffer, pointer, length);
  }

  /** @param {number} pointer of a C string @returns {string} */
  text(pointer) {
    const bytes = new Uint8Array(this.#exports.memory.buffer, pointer);
    return String.fromCharCode(...bytes.subarray(0, bytes.indexOf(0)));
  }
}

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
    if (status === BAD_STATE || status === BAD_SIZE) {
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

/** The few calls of WASI that the C and C++ libraries make. There are no files, no clock that matters, and no environment. */
class Wasi {
  /** @type {WebAssembly.Memory | null} set once the module is there */
  memory = null;
  /** What the module wrote last; a crash quotes it. */
  said = '';

  /** @param {WebAssembly.Module} module @returns {Record<string, (...args: any[]) => unknown>} */
  imports(module) {
    /** @type {Record<string, (...args: any[]) => unknown>} */
    const known = {
      fd_write: (/** @type {number} */ _file, /** @type {number} */ parts, /** @type {number} */ count, /** @type {number} */ written) => this.#write(parts, count, written),
      proc_exit: (/** @type {number} */ code) => {
        throw new Error(`it exited with ${code}`);
      },
      environ_sizes_get: (/** @type {number} */ count, /** @type {number} */ bytes) => {
        this.#words().setUint32(count, 0, true);
        this.#words().setUint32(bytes, 0, true);
        return 0;
      },
      environ_get: () => 0,
    };
    const refused = () => 52; // ENOSYS
    return Object.fromEntries(WebAssembly.Module.imports(module).map(({ name }) => [name, known[name] ?? refused]));
  }

  #words() {
    return new DataView(/** @type {WebAssembly.Memory} */ (this.memory).buffer);
  }

  /** @param {number} parts @param {number} count @param {number} written */
  #write(parts, count, written) {
    const words = this.#words();
    let total = 0;
    for (let part = parts; part < parts + 8 * count; part += 8) {
      const bytes = new Uint8Array(words.buffer, words.getUint32(part, true), words.getUint32(part + 4, true));
      const text = new TextDecoder().decode(bytes.slice()).trim(); // a copy: decoders refuse shared memory
      if (text) this.said = text;
      total += bytes.length;
    }
    words.setUint32(written, total, true);
    return 0;
  }
}

/** @param {number} seed @returns {number} */
function seedOf(seed) {
  if (seed === -1) return crypto.getRandomValues(new Uint32Array(1))[0] >>> 1;
  if (Number.isInteger(seed) && seed >= 0 && seed <= MAX_SEED) return seed;
  throw new AppError('BadSeed', `the seed ${quoted(seed)} is no integer from 0 to ${MAX_SEED}`, 'Use one of these, or -1 for a random one.');
}

/** @param {string} why */
function badRom(why) {
  return new AppError('BadRom', `this is not the ROM of Breakout: ${why}`, 'Choose breakout.bin as the Python package ale-py 0.12.1 holds it.');
}

/** @param {number} status that no argument can be blamed for */
function failed(status) {
  const why = status === CANNOT_START ? 'it refuses the cartridge' : `it answered ${status}`;
  return new AppError('AleFailed', `the emulator could not do it: ${why}`, 'Reload the page.');
}

/** @param {unknown} value @returns {string} */
function quoted(value) {
  return typeof value === 'string' ? JSON.stringify(value) : String(value);
}
