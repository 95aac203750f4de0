/**
 * The page's side of Python: starts its worker, serves what Python asks of the page, and passes on what it tells.
 */
import { EngineHost } from './engine-host.js';
import { Peer, transfer } from './wire.js';

/** @typedef {import('./types.d.ts').Site} Site */

export class PythonHost {
  #peer;
  #site;
  #base;
  /** @type {Record<string, (data: any) => void>} */
  #listeners = {};

  /** @param {Site} site @param {URL} base the site's root */
  constructor(site, base) {
    this.#site = site;
    this.#base = base;
    const worker = new Worker(new URL('./python-worker.js', import.meta.url), { type: 'module', name: 'python' });
    const engines = new EngineHost(new URL(site.ort_path, base), (id, error) => this.#peer.emit('engine-lost', { id, error }));
    this.#peer = new Peer(worker, {
      startEngine(/** @type {string} */ name) {
        const started = engines.start(name);
        return transfer(started, [started.port]);
      },
      endEngine: (/** @type {number} */ id) => engines.end(id),
    });
    this.#peer.onEvent = (name, data) => this.#listeners[name]?.(data);
    worker.addEventListener('error', (event) => this.#listeners.crash?.(event.message || 'its worker failed to load'));
    document.addEventListener('visibilitychange', () => this.#peer.emit('visibility', { hidden: document.hidden }));
  }

  /**
   * @param {'boot' | 'output' | 'progress' | 'section' | 'crash'} event
   * @param {(data: any) => void} listener
   */
  on(event, listener) {
    this.#listeners[event] = listener;
  }

  async boot() {
    await this.#peer.call('boot', [this.#site, this.#base.href]);
    this.#peer.emit('visibility', { hidden: document.hidden });
  }

  /** @param {object} settings @returns {Promise<any>} the report */
  check(settings) {
    return this.#peer.call('check', [settings]);
  }

  cancel() {
    return this.#peer.call('cancel', []);
  }

  /** @param {string} text @returns {Promise<any>} the report in it, validated */
  readReport(text) {
    return this.#peer.call('readReport', [text]);
  }

  /** @param {object} report @param {'json' | 'csv' | 'markdown'} form @returns {Promise<string>} */
  exportReport(report, form) {
    return this.#peer.call('exportReport', [report, form]);
  }

  /** @param {object} report @returns {Promise<{topic: string, tone: string, text: string}[]>} what it means, in sentences */
  summarize(report) {
    return this.#peer.call('summarize', [report]);
  }

  /** @param {string} source @returns {Promise<{repr?: string | null, traceback?: string}>} */
  evaluate(source) {
    return this.#peer.call('evaluate', [source]);
  }

  /** @param {string} suite @param {number} index @returns {Promise<Uint8Array>} */
  picture(suite, index) {
    return this.#peer.call('picture', [suite, index]);
  }
}
