/** The emulator and the game's ROM, fetched when they are first wanted; where the site has no ROM, the visitor's. */
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
  async #fetch(path, onLoaded) {
    try {
      const response = await fetch(new URL(path, this.#base));
      if (!response.ok) throw new AppError('DownloadFailed', `${path} could not be loaded: the server answered ${response.status}`, 'Is the site complete? Build it again with `make build`.');
      return await read(response, (loaded) => onLoaded?.(loaded, this.#bytesOf(path)));
    } catch (error) {
      if (error instanceof AppError) throw error;
      throw new AppError('DownloadFailed', `${path} could not be loaded: ${error instanceof Error ? error.message : error}`, 'Check the connection and press Start again.');
    }
  }
}

/**
 * @param {Response} response
 * @param {(loaded: number) => void} onLoaded
 */
async function read(response, onLoaded) {
  const chunks = [];
  let loaded = 0;
  const reader = /** @type {ReadableStream<Uint8Array<ArrayBuffer>>} */ (response.body).getReader();
  for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
    if (!value) continue;
    chunks.push(value);
    onLoaded((loaded += value.length));
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}
