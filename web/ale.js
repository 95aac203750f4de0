/**
 * The Arcade Learning Environment: Breakout's emulator as a WebAssembly module (`native/ale/`, GPL-2.0-only). It runs in a
 * worker, a page and Node.js alike, and Python calls the same methods through Pyodide.
 *
 * Nothing here waits. Arrays that a game returns are views on the module's memory: they hold until the next call of any
 * game of the module, which may overwrite or move them. Whoever keeps one copies it. A refused argument changes nothing.
 */
import { BAD_ROM, MAX_ROM, badRom, failed, quoted, seedOf } from './ale-checks.js';
import { Game } from './ale-game.js';
import { Wasi } from './wasi.js';
import { AppError } from './wire.js';

export { Game };

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
