/**
 * The page's side of the engines: it creates their workers, watches over them and ends them. It never talks to one:
 * whoever asked for the engine gets the port.
 */
import { insist, MODULES, partsOf } from './download.js';
import { Patience } from './patience.js';
import { suspect } from './update.js';
import { AppError, toWireError } from './wire.js';

/** @typedef {import('./types.d.ts').WireError} WireError */
/** @typedef {{worker: Worker, name: string, patience: Patience, busy: {verb: string, limitMs: number}, ended: AbortController, loaded: boolean}} Hosted */

export class EngineHost {
  #ortBase;
  /** Of onnxruntime-web. */
  #files;
  #modules;
  #onLost;
  #nextId = 1;
  /** @type {Map<number, Hosted>} */
  #engines = new Map();

  /**
   * @param {import('./types.d.ts').Site} site
   * @param {URL} base the folder of the site's version
   * @param {(id: number, error: WireError) => void} onLost called when an engine ends that nobody asked to end
   */
  constructor(site, base, onLost) {
    this.#ortBase = new URL(site.ort_path, base);
    this.#files = partsOf(site, base, site.ort_path);
    this.#modules = partsOf(site, base, MODULES);
    this.#onLost = onLost;
  }

  /**
   * @param {string} name the engine's, for messages
   * @returns {{id: number, port: MessagePort}}
   */
  start(name) {
    const id = this.#nextId++;
    const worker = new Worker(new URL('./engine-worker.js', import.meta.url), { type: 'module', name });
    /** @type {Hosted} */
    const hosted = { worker, name, patience: new Patience(() => this.#lose(id, timeout(hosted))), busy: { verb: '', limitMs: 0 }, ended: new AbortController(), loaded: false };
    this.#engines.set(id, hosted);
    worker.addEventListener('message', ({ data }) => this.#watch(hosted, data));
    // A worker says something as soon as it has loaded.
    const loaded = new Promise((resolve, reject) => {
      worker.addEventListener('message', resolve, { once: true });
      worker.addEventListener('error', (event) => {
        event.preventDefault();
        const error = new AppError('EngineCrashed', `engine ${name} stopped: ${event.message || 'its worker failed to load'}`, 'Run the check again; reload the page if it happens twice.');
        reject(error);
        if (hosted.loaded) this.#lose(id, error);
      });
    });
    insist(() => loaded, this.#modules, hosted.ended.signal).then(
      () => (hosted.loaded = true),
      (error) => this.#lose(id, error),
    );
    const { port1, port2 } = new MessageChannel();
    worker.postMessage({ port: port1, ortBase: this.#ortBase.href, files: this.#files }, [port1]);
    return { id, port: port2 };
  }

  /** @param {number} id */
  end(id) {
    const hosted = this.#engines.get(id);
    if (!hosted) return;
    hosted.patience.end();
    hosted.ended.abort();
    hosted.worker.terminate();
    this.#engines.delete(id);
  }

  endAll() {
    for (const id of [...this.#engines.keys()]) this.end(id);
  }

  /** How many engines are running. */
  get size() {
    return this.#engines.size;
  }

  /**
   * @param {Hosted} hosted
   * @param {{busy: string | null, limitMs: number}} report
   */
  #watch(hosted, { busy, limitMs }) {
    hosted.patience.end();
    if (!busy) return;
    hosted.busy = { verb: busy, limitMs };
    hosted.patience.begin(limitMs);
  }

  /** @param {number} id @param {unknown} error */
  #lose(id, error) {
    if (!this.#engines.has(id)) return;
    this.end(id);
    this.#onLost(id, toWireError(error));
    void suspect();
  }
}

/** @param {Hosted} hosted */
function timeout({ name, busy }) {
  return new AppError('EngineTimeout', `engine ${name} did not finish "${busy.verb}" within ${(busy.limitMs / 1000).toFixed(1)} s and was ended`, 'Run the check without it, or give it a longer limit.');
}
