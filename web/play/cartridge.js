/** The emulator and the game's ROM, fetched when they are first wanted; where the site has no ROM, the visitor's. */
import { download } from '../download.js';
import { AppError } from '../wire.js';

/** @typedef {import('../types.d.ts').Site} Site */
/** @typedef {(loaded: number, total: number) => void} OnLoaded bytes */

export class Cartridge {
  #site;
  #base;
  /** @type {Uint8Array | null} */
  #rom = null;
  /** @type {Uint8Array | null} */
  #wasm = null;

  /** @param {Site} site @param {URL} base */
  constructor(site, base) {
    this.#site = site;
    this.#base = base;
  }

  /** Whether the visitor has to bring a ROM first. */
  get lacksRom() {
    return this.#site.rom_path === null && this.#rom === null;
  }

  /** Takes the visitor's ROM; null forgets it. @param {Uint8Array | null} rom */
  set rom(rom) {
    this.#rom = rom;
  }

  /** How many bytes the first game loads, before they are compressed. */
  get bytes() {
    return this.#bytesOf(this.#site.ale_path) + (this.#site.rom_path === null ? 0 : this.#bytesOf(this.#site.rom_path));
  }

  /**
   * @param {OnLoaded} [onLoaded]
   * @returns {Promise<{wasm: Uint8Array, rom: Uint8Array}>}
   */
  async load(onLoaded) {
    const [wasm, rom] = await Promise.all([this.#wasm ?? this.#fetch(this.#site.ale_path, onLoaded), this.bring()]);
    this.#wasm = wasm;
    return { wasm, rom };
  }

  /** @returns {Promise<Uint8Array>} the ROM */
  async bring() {
    if (this.#rom === null && this.#site.rom_path !== null) this.#rom = await this.#fetch(this.#site.rom_path);
    if (this.#rom === null) throw new AppError('NoRom', 'this site holds no ROM of the game', 'Choose your ROM file first, where the game is played.');
    return this.#rom;
  }

  /** @param {string} path */
  #bytesOf(path) {
    return this.#site.files.find((file) => file.path === path)?.bytes ?? 0;
  }

  /** @param {string} path @param {OnLoaded} [onLoaded] */
  #fetch(path, onLoaded) {
    const bytes = this.#bytesOf(path);
    return download({ url: new URL(path, this.#base).href, bytes }, (loaded) => onLoaded?.(loaded, bytes));
  }
}
