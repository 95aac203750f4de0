/**
 * The bridge: all of JavaScript that Python sees, as one small set of verbs. Python's half, with the same names, is
 * `pyapp/browser/bridge.py`.
 */
import { download, insist, MODULES, partsOf } from './download.js';
import { hasLanes, Lane } from './lane.js';
import { AppError, Peer } from './wire.js';

/** @typedef {import('./types.d.ts').WireError} WireError */

const LANE_LIMIT_MS = 10_000;

/** An engine as Python holds it: a port to its worker. */
class EngineHandle {
  #peer;
  #end;
  /** @type {Lane | null} */
  #lane = null;

  /** @param {Peer} peer @param {() => void} end */
  constructor(peer, end) {
    this.#peer = peer;
    this.#end = end;
  }

  /**
   * @param {string} verb
   * @param {number} limitMs when the page's watchdog may end the engine
   * @param {unknown[]} args
   */
  call(verb, limitMs, args) {
    return this.#peer.call(verb, [limitMs, ...args], buffersOf(args));
  }

  /**
   * Opens a fast lane to the engine.
   * @param {string} input its name
   * @param {number[]} dims float32
   * @param {number} outputBytes
   * @returns {Promise<Lane | undefined>} undefined where the browser has none
   */
  async lane(input, dims, outputBytes) {
    if (!hasLanes()) return undefined;
    const lane = new Lane(dims.reduce((product, size) => product * size, 1) * Float32Array.BYTES_PER_ELEMENT, outputBytes);
    await this.#peer.call('lane', [LANE_LIMIT_MS, lane.buffer, input, { type: 'float32', dims }]);
    this.#lane = lane;
    return lane;
  }

  /** Fails what is asked and what will be asked: the engine is gone. @param {AppError} error */
  lose(error) {
    this.#peer.lose(error);
    this.#lane?.lose(error);
  }

  end() {
    this.lose(new AppError('EngineEnded', 'the engine has been closed', 'Open it again.'));
    this.#end();
  }
}

/** @typedef {{ale: import('./ale.js').Ale, open: (sticky: number, seed: number) => import('./ale.js').Game}} Emulator */

/** The verbs, for one Python worker. */
export class Bridge {
  #page;
  #site;
  #siteBase;
  /** @type {Map<number, EngineHandle>} */
  #engines = new Map();
  /** @type {Promise<Emulator> | null} */
  #cartridge = null;
  #hiddenCount = 0;
  #hidden = false;

  /**
   * @param {Peer} page
   * @param {import('./types.d.ts').Site} site
   * @param {URL} siteBase
   */
  constructor(page, site, siteBase) {
    this.#page = page;
    this.#site = site;
    this.#siteBase = siteBase;
  }

  /**
   * Starts an engine's worker.
   * @param {string} name
   */
  async start_engine(name) {
    const { id, port } = await this.#page.call('startEngine', [name]);
    const engine = new EngineHandle(new Peer(port), () => {
      this.#engines.delete(id);
      this.#page.call('endEngine', [id]);
    });
    this.#engines.set(id, engine);
    return engine;
  }

  /**
   * A file of the site.
   * @param {string} path relative to the folder of the site's version
   * @returns {Promise<Uint8Array>}
   */
  fetch(path) {
    const bytes = this.#site.files.find((file) => file.path === path)?.bytes;
    return download({ url: new URL(path, this.#siteBase).href, bytes });
  }

  /**
   * The emulator with Breakout's ROM, loaded once, and again after it has crashed.
   * @returns {Promise<Emulator>}
   */
  async cartridge() {
    if (this.#cartridge && (await this.#cartridge).ale.crashed) this.#cartridge = null;
    this.#cartridge ??= this.#loadCartridge().catch((error) => {
      this.#cartridge = null; // so that the next one may try again
      throw error;
    });
    return this.#cartridge;
  }

  async #loadCartridge() {
    const module = insist(() => import('./ale.js'), partsOf(this.#site, this.#siteBase, MODULES));
    const [{ loadAle }, wasm, rom] = await Promise.all([module, this.fetch(this.#site.ale_path), this.#rom()]);
    const ale = await loadAle(wasm);
    return { ale, open: (/** @type {number} */ sticky, /** @type {number} */ seed) => ale.open(rom, sticky, seed) };
  }

  /** @returns {Promise<Uint8Array>} the site's ROM, or the visitor's where the site has none */
  #rom() {
    return this.#site.rom_path === null ? this.#page.call('askRom', []) : this.fetch(this.#site.rom_path);
  }

  /** What this browser is, as plain data. */
  environment() {
    const uaData = /** @type {any} */ (navigator).userAgentData;
    return {
      user_agent: navigator.userAgent,
      platform: uaData?.platform ?? '',
      cores: navigator.hardwareConcurrency ?? 1,
      memory_gib: /** @type {any} */ (navigator).deviceMemory ?? null,
      cross_origin_isolated: globalThis.crossOriginIsolated,
      secure_context: globalThis.isSecureContext,
      webgpu: 'gpu' in navigator,
      jspi: 'Suspending' in WebAssembly,
      onnxruntime_web: this.#site.onnxruntime_web,
      pyodide: this.#site.pyodide,
    };
  }

  /**
   * Tells the page something.
   * @param {string} name
   * @param {string} json
   */
  emit(name, json) {
    this.#page.emit(name, json);
  }

  /** How often the tab has been hidden so far, counting a hidden spell that lasts. */
  hidden_count() {
    return this.#hiddenCount;
  }

  /** Whether the tab is hidden now. */
  hidden() {
    return this.#hidden;
  }

  /**
   * News from the page.
   * @param {string} name
   * @param {any} data
   */
  receive(name, data) {
    if (name === 'engine-lost') {
      const { name: kind, message, remedy } = /** @type {WireError} */ (data.error);
      this.#engines.get(data.id)?.lose(new AppError(kind, message, remedy));
      this.#engines.delete(data.id);
    } else if (name === 'visibility') {
      this.#hidden = data.hidden;
      if (data.hidden) this.#hiddenCount++;
    }
  }
}

/**
 * The buffers of all typed arrays in a call's arguments. Python made each one for this call, so they can all move.
 * @param {unknown} value
 * @returns {ArrayBuffer[]}
 */
function buffersOf(value) {
  if (ArrayBuffer.isView(value)) return [/** @type {ArrayBuffer} */ (value.buffer)];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(buffersOf);
}
