/**
 * The page: boots Python, runs the check on a click, shows results as they come.
 *
 * `globalThis.pyappPage` is the same for programs (the command line and the tests drive it through Selenium).
 */
import { PythonHost } from './python-host.js';
import { Results } from './results.js';
import { readSettings } from './settings.js';
import { Store } from './store.js';
import { AppError, toWireError } from './wire.js';
import { BootView } from './views/boot.js';
import { ComparedView } from './views/compared.js';
import { byId, h } from './views/dom.js';
import { drawer } from './views/drawer.js';
import { PlayView } from './views/play.js';
import { PythonView } from './views/python.js';
import { ProgressView } from './views/progress.js';
import { QuestionView } from './views/question.js';
import { ReportView } from './views/report.js';
import { SettingsView } from './views/settings.js';

/** @typedef {'booting' | 'ready' | 'running' | 'failed'} State */
/** @typedef {import('./python-host.js').Question} Question */

const runButton = /** @type {HTMLButtonElement} */ (byId('run'));
const cancelButton = /** @type {HTMLButtonElement} */ (byId('cancel'));
const { settings, unknown } = readSettings(new URLSearchParams(location.search));

/** The engines of the question that the page began with. */
const QUESTION = ['wasm-1', 'webgpu-stock'];

/** Messages with output that are kept for programs. */
const KEPT_OUTPUT = 10_000;

/** What programs can see; the methods are set once Python is ready. */
const publicPage = {
  /** @type {State} */
  state: 'booting',
  /** @type {{stage: string, done: number, total: number} | null} */
  progress: null,
  /** @type {object | null} the last report */
  report: null,
  /** @type {import('./types.d.ts').WireError | null} */
  error: null,
  /** @type {PlayView | null} the game */
  play: null,
  /** What Python has printed, until somebody empties it. @type {{stream: string, text: string}[]} */
  printed: [],
  /** @type {(question: Question, settings: object) => Promise<void>} */
  ask: notReady,
  /** @type {(settings: object) => Promise<void>} */
  check: notReady,
  /** @type {() => Promise<void>} */
  cancel: notReady,
  /** @type {(source: string) => Promise<{repr?: string | null, traceback?: string}>} */
  evaluate: notReady,
  /** @type {(source: string, filename: string) => Promise<{value?: unknown, traceback?: string}>} */
  runPlain: notReady,
  /** @type {() => Promise<boolean>} */
  stop: notReady,
  /** @type {() => Promise<void>} */
  restart: notReady,
};
Object.assign(globalThis, { pyappPage: publicPage });

/** @returns {Promise<never>} */
async function notReady() {
  throw new AppError('NotReady', 'the page is still booting', 'Wait until pyappPage.state is "ready".');
}

/** @param {State} state */
function setState(state) {
  publicPage.state = state;
  document.documentElement.dataset.state = state;
  runButton.disabled = state !== 'ready';
}

/** @param {unknown} thrown */
function showError(thrown) {
  publicPage.error = toWireError(thrown);
  const { message, remedy } = publicPage.error;
  byId('error').textContent = remedy ? `${message}. ${remedy}` : message;
  byId('error').hidden = false;
}

function clearError() {
  publicPage.error = null;
  byId('error').hidden = true;
}

/** Where the check is asked: its controls are in the page from the start. */
class CheckPlace {
  #progress = new ProgressView(byId('progress'));
  /** Its button follows the page's state. */
  ready = false;

  start() {
    cancelButton.hidden = false;
    this.#progress.start();
  }

  stop() {
    cancelButton.hidden = true;
    this.#progress.stop();
  }

  /** @param {{stage: string, done: number, total: number}} progress */
  show(progress) {
    this.#progress.show(progress);
  }

  /** @param {unknown} thrown */
  fail(thrown) {
    showError(thrown);
  }
}

async function main() {
  const base = new URL('.', import.meta.url);
  const boot = new BootView(byId('boot'));
  const response = await fetch(new URL('site.json', base));
  if (!response.ok) throw new AppError('IncompleteSite', `site.json answered ${response.status}`, 'Build the site with `make build`.');
  const site = await response.json();
  const python = new PythonHost(site, base);
  const form = new SettingsView(byId('settings'), settings);
  const results = new Results(python, {
    check: (engine) => void ask('check', { ...form.settings, engines: [...new Set([...QUESTION, engine])] }).then(() => byId('faster-title').scrollIntoView()),
    play: (engine) => play.use(engine),
    write: (engine) => python.recipe(results.report, engine),
  });
  const reports = new ReportView(byId('report'), python, results);
  const play = new PlayView(byId('play'), python, site, base);
  /** @type {Question | null} what is being asked and has not shown anything yet */
  let begun = null;
  let restarting = false;
  drawer(byId('python-section'), byId('python-drawer'));
  const store = new Store();
  const typed = new PythonView(byId('console'), python, base, store);
  const cancel = () => void python.cancel();
  const places = {
    check: new CheckPlace(),
    explain: new QuestionView(byId('explain'), 'Explain', () => ask('explain', { engines: form.settings.engines }), cancel),
    sweep: new QuestionView(byId('sweep-ask'), 'Sweep', () => ask('sweep', { engines: form.settings.engines, seed: form.settings.seed }), cancel),
    tune: new QuestionView(byId('tune-ask'), 'Tune', () => ask('tune', { precision: allowsPrecision.checked, seed: form.settings.seed }), cancel),
  };
  const allowsPrecision = h('input', { type: 'checkbox', id: 'tune-precision' });
  byId('tune-ask').prepend(h('label', { class: 'controls' }, allowsPrecision, 'Variants in fewer bits may win too'));
  /** @type {Pick<QuestionView, 'start' | 'stop' | 'show' | 'fail'>} */
  let asked = places.check;

  python.on('boot', (stage) => boot.show(stage));
  python.on('output', (output) => {
    typed.print(output);
    publicPage.printed.push(...output);
    publicPage.printed.splice(0, publicPage.printed.length - KEPT_OUTPUT);
  });
  python.on('crash', (message) => {
    fail(new AppError('PythonCrashed', `Python stopped: ${message}`, 'Reload the page.'));
    play.lose();
  });
  python.on('restart', () => {
    restarting = true;
    setState('booting');
    typed.restarted();
    play.lose();
    boot.again();
  });
  python.on('booted', () => {
    restarting = false;
    if (publicPage.report) python.adopt(publicPage.report);
    ready();
  });

  function ready() {
    boot.finish();
    typed.ready = true;
    play.enable();
    occupy(false);
  }

  python.on('progress', (json) => {
    publicPage.progress = JSON.parse(json);
    asked.show(/** @type {any} */ (publicPage.progress));
  });
  python.on('section', (json) => {
    const { name, section } = JSON.parse(json);
    // Only now is it sure that it is being answered: until then the last results stay.
    if (begun === 'check') {
      results.clear();
      reports.checkBegins();
    } else if (begun) results.begin(begun);
    begun = null;
    // Engines that a further question has opened are told of when it has ended: they may be known already.
    if (asked === places.check || name !== 'engines') results.add(name, section);
  });

  /** @param {boolean} busy */
  function occupy(busy) {
    if (restarting) return; // whatever was asked has failed, and nothing can be asked yet
    setState(busy ? 'running' : 'ready');
    reports.busy = busy;
    play.checks(busy);
    for (const place of Object.values(places)) place.ready = !busy;
  }

  /** @param {Question} question @param {object} wanted its settings */
  async function ask(question, wanted) {
    clearError();
    asked = places[question];
    occupy(true);
    asked.start();
    begun = question;
    try {
      if (question !== 'check') await reports.showOwn();
      const report = await python.ask(question, wanted);
      for (const entry of question === 'check' ? [] : report.engines) results.add('engines', entry);
      await results.finish(report);
      keep(report);
      if (question === 'tune') places.tune.label = 'Tune';
    } catch (error) {
      publicPage.error = toWireError(error);
      if (!begun) await results.finish(null);
      if (question === 'tune' && publicPage.error.name === 'Cancelled') places.tune.label = 'Resume';
      asked.fail(error);
    } finally {
      begun = null;
      asked.stop();
      occupy(false);
    }
  }

  /** @param {any} report what this page has found so far */
  function keep(report) {
    reports.take(report);
    publicPage.report = report;
    play.learn(report.engines);
    store.write('report', report);
  }

  /** Goes on with what this page had found when it was last open. @param {any} report */
  async function recall(report) {
    const valid = await python.readReport(JSON.stringify(report));
    await python.adopt(valid);
    await results.show(valid);
    keep(valid);
  }

  play.onLoop = (loop) => {
    if (!publicPage.report || reports.busy) return;
    keep({ ...publicPage.report, loop });
  };

  await python.boot();
  Object.assign(publicPage, {
    ask,
    check: (/** @type {object} */ wanted) => ask('check', wanted),
    cancel: () => python.cancel(),
    evaluate: (/** @type {string} */ source) => python.evaluate(source),
    runPlain: (/** @type {string} */ source, /** @type {string} */ filename) => python.runPlain(source, filename),
    stop: () => python.stop(),
    restart: () => python.restart(),
  });
  runButton.addEventListener('click', () => ask('check', form.settings));
  cancelButton.addEventListener('click', cancel);
  if (unknown.length) {
    showError(new AppError('UnknownSetting', `the address has settings that this page does not know: ${unknown.join(', ')}`, 'Known are runs, warmup, seed, engines and threads.'));
  }
  new ComparedView(byId('compared'), (suite, index) => python.picture(suite, index)).show('states', 60);
  publicPage.play = play;
  ready();
  const last = await store.read('report');
  if (last && !publicPage.report) reports.offerLast(() => recall(last));
}

/** @param {unknown} error */
function fail(error) {
  showError(error);
  setState('failed');
}

setState('booting');
main().catch(fail);
