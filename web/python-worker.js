/**
 * The Python worker: boots Pyodide, hands it the bridge, and answers the page.
 */
import { Bridge } from './bridge.js';
import { insist, partsOf } from './download.js';
import { OutputBuffer } from './output-buffer.js';
import { AgentBoard } from './play/agent-board.js';
import { painterFor } from './play/painter.js';
import { AppError, Peer, transfer } from './wire.js';

/** @typedef {import('./types.d.ts').Site} Site */

const PACKAGES = ['pyapp'];
/** What `pyapp.browser.page` fetches before it is ready. */
const STATES = ['fixtures/states.npz', 'fixtures/stress.npz'];

/** @type {any} Python's `pyapp.browser.page.Page` */
let python = null;
/** @type {Bridge} */
let bridge;

/** @type {any} its `agent`, held for good */
let agentSide = null;
/** @type {AgentBoard | null} */
let board = null;

/** @type {any} its `repl`, held for good */
let replSide = null;
/** A byte that stops Python, and one with how many typed texts run. @type {Uint8Array | null} */
let signals = null;
/** @type {any} Emscripten's file system, in which Python lives */
let files = null;

/** @type {any} its `bench`, held for good */
let benchSide = null;

function repl() {
  replSide ??= booted().repl;
  return replSide;
}

/**
 * Runs what a person or a program has typed.
 * @param {() => Promise<string>} work
 */
async function typed(work) {
  // An interrupt from before would hit this, which nobody has stopped yet.
  if (signals) {
    Atomics.store(signals, 0, 0);
    Atomics.add(signals, 1, 1);
  }
  try {
    return JSON.parse(await work());
  } finally {
    if (signals) {
      Atomics.sub(signals, 1, 1);
      Atomics.store(signals, 0, 0);
    }
    output.flush();
  }
}

function agent() {
  agentSide ??= booted().agent;
  return agentSide;
}

function booted() {
  if (!python) throw new AppError('NotReady', 'Python is still starting', 'Wait until the page says ready.');
  return python;
}

const page = new Peer(/** @type {any} */ (self), {
  /**
   * @param {Site} site
   * @param {string} base the folder of the site's version
   * @param {SharedArrayBuffer | null} shared two bytes: a 2 in the first stops Python that runs, the second counts typed texts that run
   */
  async boot(site, base, shared) {
    const siteBase = new URL(base);
    bridge = new Bridge(page, site, siteBase);
    const parts = partsOf(site, siteBase, site.pyodide_path, site.lock_path, ...site.boot_wheels);
    const pyodide = await stage('Python', sizeOf(parts), () => insist(() => loadPython(site, siteBase), parts));
    files = pyodide.FS;
    if (shared) {
      signals = new Uint8Array(shared);
      pyodide.setInterruptBuffer(signals);
    }
    await stage('packages', 0, () => insist(() => loadPackages(pyodide), parts));
    const Page = await stage('import', 0, async () => pyodide.pyimport('pyapp.browser.page').Page);
    const made = Page(bridge);
    Page.destroy();
    // Its model is on the way when this is done: nobody needs it before something is asked.
    await stage('states', sizeOf(partsOf(site, siteBase, ...STATES)), async () => unwrap(await made.load()));
    python = made;
  },

  /**
   * @param {string} question check, explain, sweep, tune, tournament, placement or locate
   * @param {object} settings
   * @returns {Promise<object>} the report
   */
  async ask(question, settings) {
    return unwrap(await booted().ask(question, JSON.stringify(settings))).report;
  },

  cancel() {
    booted().cancel();
  },

  /** @param {boolean} on whether the tournament that runs is held */
  pause(on) {
    booted().pause(on);
  },

  /**
   * @param {'load' | 'drop' | 'take_cases' | 'make_cases' | 'allow' | 'read' | 'fix'} verb what is done to the visitor's own model
   * @param {unknown[]} args
   */
  async bench(verb, args) {
    benchSide ??= booted().bench;
    const answer = await benchSide[verb](...args);
    return answer === undefined ? undefined : unwrap(answer);
  },

  /** What shows the fault that was found last: a model and its cases as files; null where there is none. */
  reproducer() {
    return booted().reproducer() ?? null;
  },

  /** @param {object} report what was found before Python was started anew */
  adopt(report) {
    booted().adopt(JSON.stringify(report));
  },

  /** @param {string} text @returns {object} the report in it, validated */
  readReport(text) {
    return unwrap(booted().read_report(text)).report;
  },

  /** @param {object} report @param {string} form json, csv or markdown @returns {string} */
  exportReport(report, form) {
    return unwrap(booted().export_report(JSON.stringify(report), form)).text;
  },

  /** @param {object} report @param {string} engine @returns {Promise<{json: string, module: string}>} */
  async recipe(report, engine) {
    return unwrap(await booted().recipe(JSON.stringify(report), engine));
  },

  /**
   * @param {object} report
   * @returns {{topic: string, tone: string, text: string}[]} what it means, in sentences
   */
  summarize(report) {
    return JSON.parse(booted().summarize(JSON.stringify(report)));
  },

  /** @param {object} report @returns {import('./types.d.ts').Verdict} */
  verdict(report) {
    return JSON.parse(booted().verdict(JSON.stringify(report)));
  },

  /**
   * @param {string} source
   * @returns {Promise<{repr?: string | null, traceback?: string}>}
   */
  async evaluate(source) {
    return typed(() => repl().evaluate(source));
  },

  /**
   * @param {string} source
   * @param {string} filename as tracebacks name it
   * @returns {Promise<{shown?: any, traceback?: string}>}
   */
  async run(source, filename) {
    return typed(() => repl().run(source, filename));
  },

  /**
   * @param {string} source
   * @param {string} filename
   * @returns {Promise<{value?: unknown, traceback?: string}>}
   */
  async runPlain(source, filename) {
    return typed(() => repl().run_plain(source, filename));
  },

  /** @param {string} source @returns {'complete' | 'incomplete' | 'syntax-error'} */
  status(source) {
    return repl().status(source);
  },

  /** @param {string} source the text up to the cursor @returns {{words: string[], start: number}} */
  complete(source) {
    return JSON.parse(repl().complete(source));
  },

  /** @returns {{name: string, type: string, summary: string}[]} */
  variables() {
    return JSON.parse(repl().variables());
  },

  /** @returns {{name: string, signature: string, doc: string}[]} */
  reference() {
    return JSON.parse(repl().reference());
  },

  /** @param {string} name @param {ArrayBuffer} bytes */
  writeFile(name, bytes) {
    booted();
    files.writeFile(name.replaceAll('/', '_'), new Uint8Array(bytes));
  },

  /** @param {string} name */
  readFile(name) {
    booted();
    /** @type {Uint8Array} */
    const bytes = files.readFile(name);
    return transfer(bytes, [/** @type {ArrayBuffer} */ (bytes.buffer)]);
  },

  /** @returns {string[]} the newest first */
  listFiles() {
    booted();
    /** @type {{name: string, mode: number, mtime: Date}[]} */
    const found = files.readdir('.').map((/** @type {string} */ name) => ({ name, ...files.stat(name) }));
    const newest = found.filter(({ mode }) => files.isFile(mode)).sort((a, b) => Number(b.mtime) - Number(a.mtime));
    return newest.map(({ name }) => name);
  },

  /** Answers as soon as Python does not run. */
  ping() {},

  /** Cancels what was typed and awaits something. */
  stop() {
    // What the interrupt was for has ended; it would hit whatever runs next.
    if (signals) Atomics.store(signals, 0, 0);
    repl().stop();
  },

  /**
   * Gives the agent a board to be shown on; null where the page draws what is sent to it.
   * @param {OffscreenCanvas | null} canvas
   * @param {OffscreenCanvas | null} seen
   */
  agentAttach(canvas, seen) {
    const sending = (/** @type {string} */ name) => (/** @type {ArrayBuffer} */ frame) => page.emit(name, frame, [frame]);
    board?.end();
    board = new AgentBoard(painterFor(canvas, sending('agent-frame')), painterFor(seen, sending('agent-seen')), () => bridge.hidden_count());
    agent().attach(board);
  },

  /** @param {object} settings @returns {Promise<void>} */
  async agentStart(settings) {
    unwrap(await agent().start(JSON.stringify(settings)));
  },

  /**
   * @param {'engine' | 'restart' | 'step' | 'stop'} command what takes a while
   * @param {unknown[]} args
   */
  async agentAsk(command, args) {
    unwrap(await agent()[command](...args));
  },

  /**
   * @param {'pause' | 'resume' | 'speed' | 'count_anew'} command what is done at once
   * @param {unknown[]} args
   */
  agentTell(command, args) {
    agent()[command](...args);
  },

  /** Frames shown and missed, and the longest wait for one in milliseconds. */
  agentCounts() {
    return board && { shown: board.shown, missed: board.missed, gap: board.gap };
  },

  /** @param {boolean} wanted whether to draw what the agent sees */
  agentSees(wanted) {
    if (board) board.wanted = wanted;
    if (wanted) agent().look();
  },

  /** @returns {object[]} the report's loop section */
  loopSection() {
    return JSON.parse(agent().loop_section());
  },

  /**
   * The newest frame of a state, 84 x 84 grey bytes.
   * @param {string} suite
   * @param {number} index
   */
  picture(suite, index) {
    const frame = booted().picture(suite, index);
    try {
      const bytes = /** @type {Uint8Array} */ (frame.toJs());
      return transfer(bytes, [/** @type {ArrayBuffer} */ (bytes.buffer)]);
    } finally {
      frame.destroy();
    }
  },
});
const output = new OutputBuffer((lines) => page.emit('output', lines));
page.onEvent = (name, data) => bridge.receive(name, data);

/** @param {string} json */
function unwrap(json) {
  const answer = JSON.parse(json);
  if (answer.error) throw new AppError(answer.error.name, answer.error.message, answer.error.remedy);
  return answer;
}

/** @param {import('./download.js').Part[]} parts */
function sizeOf(parts) {
  return parts.reduce((sum, { bytes = 0 }) => sum + bytes, 0);
}

/**
 * Tells the page of one stage of the boot, before and after.
 * @template T
 * @param {string} name
 * @param {number} bytes how much it loads
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
async function stage(name, bytes, work) {
  const start = performance.now();
  page.emit('boot', { name, bytes, ms: null });
  const value = await work();
  page.emit('boot', { name, bytes, ms: performance.now() - start });
  return value;
}

/** @param {Site} site @param {URL} base */
async function loadPython(site, base) {
  const indexURL = new URL(site.pyodide_path, base);
  const { loadPyodide } = await import(new URL('pyodide.mjs', indexURL).href);
  return loadPyodide({
    indexURL: indexURL.href,
    lockFileURL: new URL(site.lock_path, base).href,
    // Named here, wheels come while Python itself is still on its way.
    packages: PACKAGES,
    stdout: (/** @type {string} */ text) => output.add('stdout', text),
    stderr: (/** @type {string} */ text) => output.add('stderr', text),
  });
}

/** @param {any} pyodide */
async function loadPackages(pyodide) {
  /** @type {string[]} */
  const problems = [];
  // They are there; where a download failed, this is the second attempt, and says why.
  await pyodide.loadPackage(PACKAGES, {
    messageCallback: () => {},
    errorCallback: (/** @type {string} */ text) => problems.push(text),
  });
  // loadPackage does not reject when a download fails.
  for (const name of ['pyapp', 'numpy']) {
    if (!pyodide.loadedPackages[name]) {
      throw new AppError('PackageFailed', `the package ${name} could not be loaded: ${problems.join(' ')}`, 'Check the connection and reload.');
    }
  }
}
