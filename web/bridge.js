/**
 * The bridge: all of JavaScript that Python sees, as one small set of verbs. Python's half, with the same names, is
 * `pyapp/browser/bridge.py`.
 */
import { AppError, Peer } from './wire.js';

/** @typedef {import('./types.d.ts').WireError} WireError */

/** An engine as Python holds it: a port to its worker. */
class EngineHandle {
  #peer;
  #end;

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

  end() {
    this.#peer.lose(new AppError('EngineEnded', 'the engine has been closed', 'Open it again.'));
    this.#end();
  }
}

/** The verbs, for one Python worker. */
export class Bridge {
  #page;
  #site;
  #siteBase;
  /** @type {Map<number, Peer>} */
  #engines = new Map();
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
    const peer = new Peer(port);
    this.#engines.set(id, peer);
    return new EngineHandle(peer, () => {
      this.#engines.delete(id);
      this.#page.call('endEngine', [id]);
    });
  }

  /**
   * A file of the site.
   * @param {string} path relative to the site's root
   * @returns {Promise<Uint8Array>}
   */
  async fetch(path) {
    const response = await fetch(new URL(path, this.#siteBase)).catch((error) => {
      throw new AppError('DownloadFailed', `${path} could not be loaded: ${error.message}`, 'Check the connection and reload.');
    });
    if (!response.ok) {
      throw new AppError('DownloadFailed', `${path} could not be loaded: the server answered ${response.status}`, 'Is the site complete? Build it again with `make build`.');
    }
    return new Uint8Array(await response.arrayBuffer());
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
