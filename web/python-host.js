/**
 * The page's side of Python: starts its worker, serves what Python asks of the page, and passes on what it tells.
 */
import { EngineHost } from './engine-host.js';
import { AppError, Peer, transfer } from './wire.js';

/** @typedef {import('./types.d.ts').Site} Site */
/** @typedef {'check' | 'explain' | 'sweep' | 'tune'} Question */

export class PythonHost {
  #peer;
  #site;
  #base;
  /** @type {Record<string, (data: any) => void>} */
  #listeners = {};
  /** Asked for Breakout's ROM, where the site has none. @type {() => Promise<Uint8Array>} */
  askRom = async () => {
    throw new AppError('NoRom', 'this site holds no ROM of the game', 'Choose a ROM file where the game is played.');
  };

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
      askRom: () => this.askRom(),
    });
    this.#peer.onEvent = (name, data) => this.#listeners[name]?.(data);
    worker.addEventListener('error', (event) => this.#listeners.crash?.(event.message || 'its worker failed to load'));
    document.addEventListener('visibilitychange', () => this.#peer.emit('visibility', { hidden: document.hidden }));
  }

  /**
   * @param {'boot' | 'output' | 'progress' | 'section' | 'crash' | 'agent' | 'loop' | 'agent-frame' | 'agent-seen'} event
   * @param {(data: any) => void} listener
   */
  on(event, listener) {
    this.#listeners[event] = listener;
  }

  async boot() {
    await this.#peer.call('boot', [this.#site, this.#base.href]);
    this.#peer.emit('visibility', { hidden: document.hidden });
  }

  /**
   * @param {Question} question
   * @param {object} settings
   * @returns {Promise<any>} the report
   */
  ask(question, settings) {
    return this.#peer.call('ask', [question, settings]);
  }

  /**
   * @param {any} report the one that the engine is from
   * @param {string} engine
   * @returns {Promise<{json: string, module: string}>} its recipe, as data and as a JavaScript module
   */
  recipe(report, engine) {
    return this.#peer.call('recipe', [report, engine]);
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

  /**
   * @param {OffscreenCanvas | null} canvas
   * @param {OffscreenCanvas | null} seen
   * @returns {Promise<void>}
   */
  agentAttach(canvas, seen) {
    return this.#peer.call('agentAttach', [canvas, seen], [canvas, seen].filter((one) => one !== null));
  }

  /** @param {object} settings `PlaySettings` of `pyapp/browser/play.py` @returns {Promise<void>} */
  agentStart(settings) {
    return this.#peer.call('agentStart', [settings]);
  }

  /** @param {'engine' | 'restart' | 'step' | 'stop'} command @param {...unknown} args @returns {Promise<void>} */
  agentAsk(command, ...args) {
    return this.#peer.call('agentAsk', [command, args]);
  }

  /** @param {'pause' | 'resume' | 'speed' | 'count_anew'} command @param {...unknown} args @returns {Promise<void>} */
  agentTell(command, ...args) {
    return this.#peer.call('agentTell', [command, args]);
  }

  /** @returns {Promise<any>} frames shown and missed on the agent's board, and the longest wait for one */
  agentCounts() {
    return this.#peer.call('agentCounts', []);
  }

  /** @param {boolean} wanted @returns {Promise<void>} */
  agentSees(wanted) {
    return this.#peer.call('agentSees', [wanted]);
  }

  /** @returns {Promise<object[]>} the report's loop section */
  loopSection() {
    return this.#peer.call('loopSection', []);
  }

  /** @param {string} suite @param {number} index @returns {Promise<Uint8Array>} */
  picture(suite, index) {
    return this.#peer.call('picture', [suite, index]);
  }
}
