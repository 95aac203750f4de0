/** The emulator and the game's ROM, fetched when they are first wanted; where the site has no ROM, the visitor's. */
import { AppError } from '../wire.js';

/** @typedef {import('../types.d.ts').Site} Site */

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

  /** @returns {Promise<{wasm: Uint8Array, rom: Uint8Array}>} */
  async load() {
    const [wasm, rom] = await Promise.all([this.#wasm ?? this.#fetch(this.#site.ale_path), this.bring()]);
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
  async #fetch(path) {
    const response = await fetch(new URL(path, this.#base)).catch((error) => {
      throw new AppError('DownloadFailed', `${path} could not be loaded: ${error.message}`, 'Check the connection and press Start again.');
    });
    if (!response.ok) throw new AppError('DownloadFailed', `${path} could not be loaded: the server answered ${response.status}`, 'Is the site complete? Build it again with `make build`.');
    return new Uint8Array(await response.arrayBuffer());
  }
}
