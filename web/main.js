/**
 * The page: boots Python, runs the check on a click, shows results as they come.
 *
 * `globalThis.pyappPage` is the same for programs (the command line and the tests drive it through Selenium).
 */
import { PythonHost } from './python-host.js';
import { Results } from './results.js';
import { readSettings } from './settings.js';
import { AppError, toWireError } from './wire.js';
import { BootView } from './views/boot.js';
import { ComparedView } from './views/compared.js';
import { ConsoleView } from './views/console.js';
import { byId } from './views/dom.js';
import { PlayView } from './views/play.js';
import { ProgressView } from './views/progress.js';
import { ReportView } from './views/report.js';
import { SettingsView } from './views/settings.js';

/** @typedef {'booting' | 'ready' | 'running' | 'failed'} State */

const runButton = /** @type {HTMLButtonElement} */ (byId('run'));
const cancelButton = /** @type {HTMLButtonElement} */ (byId('cancel'));
const { settings, unknown } = readSettings(new URLSearchParams(location.search));

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
  /** @type {(settings: object) => Promise<void>} */
  check: notReady,
  /** @type {() => Promise<void>} */
  cancel: notReady,
  /** @type {(source: string) => Promise<{repr?: string | null, traceback?: string}>} */
  evaluate: notReady,
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
  cancelButton.hidden = state !== 'running';
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

async function main() {
  const base = new URL('.', import.meta.url);
  const boot = new BootView(byId('boot'));
  const response = await fetch(new URL('site.json', base));
  if (!response.ok) throw new AppError('IncompleteSite', `site.json answered ${response.status}`, 'Build the site with `make build`.');
  const site = await response.json();
  const python = new PythonHost(site, base);
  const progress = new ProgressView(byId('progress'));
  const results = new Results(python);
  const form = new SettingsView(byId('settings'), settings);
  const reports = new ReportView(byId('report'), python, results);
  const play = new PlayView(byId('play'), python, site, base);
  let stale = false;
  const console_ = new ConsoleView(byId('console'), (source) => python.evaluate(source));

  python.on('boot', (stage) => boot.show(stage));
  python.on('output', ({ stream, text }) => console_.print(text, stream));
  python.on('crash', (message) => {
    fail(new AppError('PythonCrashed', `Python stopped: ${message}`, 'Reload the page.'));
    play.lose();
  });
  python.on('progress', (json) => {
    publicPage.progress = JSON.parse(json);
    progress.show(/** @type {any} */ (publicPage.progress));
  });
  python.on('section', (json) => {
    const { name, section } = JSON.parse(json);
    // Only now is it sure that the new check runs: until then the last one's results stay.
    if (stale) {
      results.clear();
      reports.checkBegins();
    }
    stale = false;
    results.add(name, section);
  });

  /** @param {object} wanted */
  async function check(wanted) {
    clearError();
    setState('running');
    reports.busy = true;
    play.checks(true);
    progress.start();
    stale = true;
    try {
      const report = await python.check(wanted);
      await results.finish(report);
      reports.take(report);
      publicPage.report = report;
      play.learn(report.engines);
    } catch (error) {
      if (!stale) await results.finish(null);
      showError(error);
    } finally {
      progress.stop();
      reports.busy = false;
      play.checks(false);
      setState('ready');
    }
  }

  play.onLoop = (loop) => {
    if (!publicPage.report || reports.busy) return;
    publicPage.report = { ...publicPage.report, loop };
    reports.take(publicPage.report);
  };

  await python.boot();
  Object.assign(publicPage, {
    check,
    cancel: () => python.cancel(),
    evaluate: (/** @type {string} */ source) => python.evaluate(source),
  });
  runButton.addEventListener('click', () => check(form.settings));
  cancelButton.addEventListener('click', () => python.cancel());
  if (unknown.length) {
    showError(new AppError('UnknownSetting', `the address has settings that this page does not know: ${unknown.join(', ')}`, 'Known are runs, warmup, seed, engines and threads.'));
  }
  boot.finish();
  new ComparedView(byId('compared'), (suite, index) => python.picture(suite, index)).show('states', 60);
  console_.enable();
  reports.busy = false;
  play.enable();
  publicPage.play = play;
  setState('ready');
}

/** @param {unknown} error */
function fail(error) {
  showError(error);
  setState('failed');
}

setState('booting');
main().catch(fail);
