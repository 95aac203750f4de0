/**
 * The page's side of Python: starts its worker, serves what Python asks of the page, and passes on what it tells.
 */
import { insist, MODULES, partsOf } from './download.js';
import { EngineHost } from './engine-host.js';
import { setQuiet } from './quiet.js';
import { AppError, Peer, transfer } from './wire.js';

/** @typedef {import('./types.d.ts').Site} Site */
/** @typedef {'check' | 'explain' | 'sweep' | 'tune' | 'tournament' | 'placement' | 'locate'} Question */

/** What Pyodide takes for Ctrl-C. */
const INTERRUPT = 2;
/** After so long without an answer, Python is not waiting for something but computing. */
const PING_MS = 60;
/** Who was interrupted or cancelled is left alone for so long, to end in peace, before it is asked again. */
const AGAIN_MS = 500;
/** What was typed has so long to heed before its worker is ended. */
const HEED_MS = 1_700;

export class PythonHost {
  /** @type {Peer} */
  #peer;
  /** @type {Worker} */
  #worker;
  #site;
  #base;
  #engines;
  /** A byte that stops Python which runs, and one with how many typed texts run; there are none without shared memory. */
  #signals = globalThis.crossOriginIsolated ? new Uint8Array(new SharedArrayBuffer(2)) : null;
  /** Whether it has started: before, who waits for that hears of its end. */
  #booted = false;
  /** What was typed and has not ended. @type {Set<Promise<unknown>>} */
  #typed = new Set();
  /** @type {Record<string, (data: any) => void>} */
  #listeners = {};
  /** What was told before anybody listened. @type {Record<string, any[]>} */
  #untold = {};
  /** Asked for Breakout's ROM, where the site has none. @type {() => Promise<Uint8Array>} */
  askRom = async () => {
    throw new AppError('NoRom', 'this site holds no ROM of the game', 'Choose a ROM file where the game is played.');
  };

  /** @param {Site} site @param {URL} base the folder of the site's version */
  constructor(site, base) {
    this.#site = site;
    this.#base = base;
    this.#engines = new EngineHost(site, base, (id, error) => this.#peer.emit('engine-lost', { id, error }));
    [this.#worker, this.#peer] = this.#start();
    document.addEventListener('visibilitychange', () => this.#peer.emit('visibility', { hidden: document.hidden }));
  }

  /** @returns {[Worker, Peer]} */
  #start() {
    const worker = new Worker(new URL('./python-worker.js', import.meta.url), { type: 'module', name: 'python' });
    const peer = new Peer(worker, {
      startEngine: (/** @type {string} */ name) => {
        const started = this.#engines.start(name);
        return transfer(started, [started.port]);
      },
      endEngine: (/** @type {number} */ id) => this.#engines.end(id),
      askRom: () => this.askRom(),
    });
    peer.onEvent = (name, data) => this.#tell(name, data);
    worker.addEventListener('error', (event) => {
      const error = new AppError('PythonCrashed', `Python stopped: ${event.message || 'its worker failed to load'}`, 'Reload the page.');
      peer.lose(error);
      if (this.#booted) this.#tell('crash', error);
    });
    return [worker, peer];
  }

  /**
   * @param {'boot' | 'output' | 'progress' | 'section' | 'crash' | 'agent' | 'loop' | 'agent-frame' | 'agent-seen' | 'restart' | 'booted' | 'typed'} event
   * @param {(data: any) => void} listener
   */
  on(event, listener) {
    this.#listeners[event] = listener;
    for (const data of this.#untold[event] ?? []) listener(data);
    delete this.#untold[event];
  }

  /** @param {string} event @param {any} data */
  #tell(event, data) {
    const listener = this.#listeners[event];
    if (listener) listener(data);
    else (this.#untold[event] ??= []).push(data);
  }

  async boot() {
    this.#booted = false;
    const booting = this.#peer.call('boot', [this.#site, this.#base.href, this.#signals?.buffer ?? null]);
    const loaded = insist(() => this.#peer.call('ping', []), partsOf(this.#site, this.#base, MODULES));
    // Where a module did not come, that says more than that the worker has ended.
    await Promise.all([loaded, booting.catch((error) => loaded.then(() => Promise.reject(error)))]);
    this.#booted = true;
    this.#peer.emit('visibility', { hidden: document.hidden });
  }

  /** Ends Python and its engines, and boots it again: names and what is asked are gone. */
  async restart() {
    this.#worker.terminate();
    this.#peer.lose(new AppError('PythonRestarted', 'Python was restarted', 'Its variables are gone; run again what made them.'));
    this.#engines.endAll();
    this.#signals?.fill(0);
    this.#listeners.restart?.(null);
    [this.#worker, this.#peer] = this.#start();
    try {
      await this.boot();
    } catch (error) {
      this.#listeners.crash?.(error);
      throw error;
    }
    this.#listeners.booted?.(null);
  }

  /** Tells Python of a report that it has forgotten. @param {any} report @returns {Promise<void>} */
  adopt(report) {
    return this.#peer.call('adopt', [report]);
  }

  /**
   * Stops what was typed: an interrupt where Python computes, a cancel where it waits, and the end of its worker where neither helps.
   *
   * An interrupt hits whatever Python runs, so it is only for Python that does not answer while something typed runs. What was typed
   * may begin late or compute between two waits, so it is asked again.
   * @returns {Promise<boolean>} whether Python had to be ended
   */
  async stop() {
    const typed = Promise.allSettled(this.#typed);
    const end = performance.now() + HEED_MS;
    while (performance.now() < end) {
      const answers = await soon(this.#peer.call('ping', []), PING_MS);
      if (!answers && this.#signals && Atomics.load(this.#signals, 1)) Atomics.store(this.#signals, 0, INTERRUPT);
      this.#peer.call('stop', []).catch(() => {});
      if (await soon(typed, Math.min(AGAIN_MS, end - performance.now()))) return false;
    }
    await this.restart();
    return true;
  }

  /** Whether something that was typed has not ended. */
  get types() {
    return this.#typed.size > 0;
  }

  /** @template T @param {Promise<T>} answer @returns {Promise<T>} */
  #watched(answer) {
    this.#typed.add(answer);
    setQuiet(answer, true);
    const ended = () => {
      this.#typed.delete(answer);
      setQuiet(answer, false);
      this.#tell('typed', null);
    };
    answer.then(ended, ended);
    return answer;
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

  /** @param {boolean} on whether the tournament that runs is held @returns {Promise<void>} */
  pause(on) {
    return this.#peer.call('pause', [on]);
  }

  /**
   * Does something to the visitor's own model.
   * @param {string} verb of Python's `Workbench`
   * @param {...unknown} args
   * @returns {Promise<any>}
   */
  bench(verb, ...args) {
    return this.#peer.call('bench', [verb, args]);
  }

  /** @returns {Promise<{name: string, model: Uint8Array, cases: Uint8Array} | null>} what shows the fault that was found last */
  reproducer() {
    return this.#peer.call('reproducer', []);
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

  /** @param {object} report @returns {Promise<import('./types.d.ts').Verdict>} which engine to ship, and why */
  verdict(report) {
    return this.#peer.call('verdict', [report]);
  }

  /** @param {string} source @returns {Promise<{repr?: string | null, traceback?: string}>} */
  evaluate(source) {
    return this.#watched(this.#peer.call('evaluate', [source]));
  }

  /**
   * Runs what a person has typed.
   * @param {string} source
   * @param {string} filename as tracebacks name it
   * @returns {Promise<{shown?: any, traceback?: string}>}
   */
  run(source, filename) {
    return this.#watched(this.#peer.call('run', [source, filename]));
  }

  /**
   * Runs what a program has typed; its value comes as plain data.
   * @param {string} source
   * @param {string} filename
   * @returns {Promise<{value?: unknown, traceback?: string}>}
   */
  runPlain(source, filename) {
    return this.#watched(this.#peer.call('runPlain', [source, filename]));
  }

  /** @param {string} source @returns {Promise<'complete' | 'incomplete' | 'syntax-error'>} */
  status(source) {
    return this.#peer.call('status', [source]);
  }

  /** @param {string} source the text up to the cursor @returns {Promise<{words: string[], start: number}>} */
  complete(source) {
    return this.#peer.call('complete', [source]);
  }

  /** @returns {Promise<{name: string, signature: string, doc: string}[]>} the public API */
  reference() {
    return this.#peer.call('reference', []);
  }

  /** Writes a file into Python's folder. @param {string} name @param {ArrayBuffer} bytes @returns {Promise<void>} */
  writeFile(name, bytes) {
    return this.#peer.call('writeFile', [name, bytes], [bytes]);
  }

  /** @param {string} name @returns {Promise<Uint8Array>} */
  readFile(name) {
    return this.#peer.call('readFile', [name]);
  }

  /** @returns {Promise<string[]>} names of the files in Python's folder, the newest first */
  listFiles() {
    return this.#peer.call('listFiles', []);
  }

  /** @returns {Promise<{name: string, type: string, summary: string}[]>} */
  variables() {
    return this.#peer.call('variables', []);
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

/** @param {Promise<unknown>} answer @param {number} ms @returns {Promise<boolean>} whether it came in time, however it ended */
async function soon(answer, ms) {
  const settled = answer.then(
    () => true,
    () => true,
  );
  return Promise.race([settled, new Promise((/** @type {(value: boolean) => void} */ resolve) => setTimeout(resolve, ms, false))]);
}
