/**
 * The page: boots Python, asks it on a click, shows results as they come.
 */
import { Asking } from './asking.js';
import { base, early, root } from './early.js';
import { publicPage } from './public-page.js';
import { isIdle, setQuiet } from './quiet.js';
import { Results } from './results.js';
import { LANGUAGES } from './language.js';
import { readSettings } from './settings.js';
import { Store } from './store.js';
import { AppError, toWireError } from './wire.js';
import { BootView } from './views/boot.js';
import { ComparedView } from './views/compared.js';
import { byId, h } from './views/dom.js';
import { drawer } from './views/drawer.js';
import { save } from './views/report-file.js';
import { GamesAsk } from './views/games-ask.js';
import { languageChoice } from './views/language-choice.js';
import { licences } from './views/licences.js';
import { ModelView } from './views/model.js';
import { PauseButton } from './views/pause.js';
import { PlayView } from './views/play.js';
import { PythonView } from './views/python.js';
import { Place } from './views/place.js';
import { question } from './views/question.js';
import { ReportView } from './views/report.js';
import { SettingsView } from './views/settings.js';

/** The engines of the question that the page began with. */
const QUESTION = ['wasm-1', 'webgpu-stock'];

/** The engines in which something may go wrong. */
const SUSPECTS = ['webgpu-stock', 'webgpu-fast', 'wasm-2'];

/** What is asked at once, as by programs, comes before the page is kept for later. */
const IDLE_MS = 3_000;

/** Messages with output that are kept for programs. */
const KEPT_OUTPUT = 10_000;

/** The check's controls are in the page from the start. */
const check = new Place({
  ask: /** @type {HTMLButtonElement} */ (byId('run')),
  cancel: /** @type {HTMLButtonElement} */ (byId('cancel')),
  progress: byId('progress'),
  error: byId('error'),
});

/** @param {import('./public-page.js').State} state */
function setState(state) {
  publicPage.state = state;
  setQuiet('page', state === 'booting' || state === 'running');
  document.documentElement.dataset.state = state;
}

async function main() {
  const { settings, language, unknown } = readSettings(new URLSearchParams(location.search));
  const boot = new BootView(byId('boot'));
  const { site, python, booted } = await early;
  const store = new Store();
  const form = new SettingsView(byId('settings'), settings);
  const results = new Results(python, {
    check: (engine) => void asking.ask('check', { ...form.settings, engines: [...new Set([...QUESTION, engine])] }).then(() => byId('faster-title').scrollIntoView()),
    play: (engine) => play.use(engine),
    write: (engine) => python.recipe(results.report, engine),
  }, saveFault);
  const reports = new ReportView(byId('report'), python, results);
  const play = new PlayView(byId('play'), python, site, base);
  const model = new ModelView(byId('own-model'), python, { during: (work) => asking.during(work), changed: showModel });
  const typed = new PythonView(byId('console'), python, base, store);
  drawer(byId('python-section'), byId('python-drawer'));

  const cancel = () => void python.cancel();
  const allowsPrecision = h('input', { type: 'checkbox', id: 'tune-precision' });
  const games = new GamesAsk();
  const strict = h('input', { type: 'checkbox', id: 'placement-strict' });
  const suspect = h('select', { id: 'locate-engine' }, ...SUSPECTS.map((name) => h('option', { value: name }, name)));
  const places = {
    check,
    explain: question(byId('explain'), 'Explain', () => asking.ask('explain', { engines: form.settings.engines }), cancel),
    sweep: question(byId('sweep-ask'), 'Sweep', () => asking.ask('sweep', { engines: form.settings.engines, seed: form.settings.seed }), cancel),
    tune: question(byId('tune-ask'), 'Tune', () => asking.ask('tune', { precision: allowsPrecision.checked, seed: form.settings.seed }), cancel),
    placement: question(byId('placement-ask'), 'Look', () => asking.ask('placement', { engines: form.settings.engines, strict: strict.checked }), cancel),
    locate: question(byId('locate-ask'), 'Find it', () => asking.ask('locate', { engine: suspect.value }), cancel),
    tournament: question(byId('tournament-ask'), 'Play', () => asking.ask('tournament', games.settings(form.settings)), cancel, new PauseButton((on) => python.pause(on))),
  };
  const nameGames = () => (places.tournament.label = games.goesOn(games.settings(form.settings)) ? 'Go on' : 'Play');
  byId('tournament-ask').prepend(games.root);
  for (const part of [games.root, byId('settings')]) part.addEventListener('change', nameGames);
  byId('placement-ask').prepend(h('label', { class: 'controls' }, strict, 'Strict: no node may run on the CPU of an engine that was asked for a GPU'));
  byId('locate-ask').prepend(h('label', { class: 'controls' }, 'Engine, against wasm-1', suspect));
  byId('tune-ask').prepend(h('label', { class: 'controls' }, allowsPrecision, 'Variants in fewer bits may win too'));
  const asking = new Asking({
    python,
    results,
    reports,
    play,
    store,
    places,
    model,
    onState: setState,
    goesOn: (asked, wanted) => asked === 'tournament' && games.goesOn(wanted),
    onEnd: (asked, wanted, error) => {
      // A search that was cancelled goes on from where it was.
      if (asked === 'tune') places.tune.label = error?.name === 'Cancelled' ? 'Resume' : 'Tune';
      if (asked !== 'tournament') return;
      games.end(wanted, error ? [] : publicPage.report.tournament);
      nameGames();
    },
  });

  python.on('boot', (stage) => boot.show(stage));
  python.on('output', (output) => {
    typed.print(output);
    publicPage.printed.push(...output);
    publicPage.printed.splice(0, publicPage.printed.length - KEPT_OUTPUT);
  });
  python.on('crash', (error) => {
    fail(error);
    play.lose();
  });
  python.on('restart', () => {
    asking.down();
    typed.restarted();
    play.lose();
    games.end(null, []);
    nameGames();
    boot.again();
  });
  python.on('booted', async () => {
    await model.restore().catch((error) => model.fail(error));
    if (publicPage.report) await python.adopt(publicPage.report);
    play.regain();
    ready();
  });
  play.onLoop = (loop) => {
    // What the agent does has nothing to do with a visitor's own model.
    if (publicPage.report && !publicPage.model && !reports.busy) asking.keep({ ...publicPage.report, loop });
  };

  /** @param {any} own what Python says of the visitor's own model; null: the worked example */
  function showModel(own) {
    byId('example').hidden = own !== null;
    byId('tournament-section').hidden = own !== null;
    publicPage.model = own;
    asking.forget();
  }

  async function saveFault() {
    const found = await python.reproducer();
    if (!found) return;
    save(`${found.name}.onnx`, 'application/octet-stream', /** @type {BlobPart} */ (found.model));
    save(`${found.name}.npz`, 'application/zip', /** @type {BlobPart} */ (found.cases));
  }

  function ready() {
    boot.finish();
    typed.ready = true;
    asking.up();
  }

  await booted;
  Object.assign(publicPage, {
    ask: asking.ask.bind(asking),
    check: (/** @type {object} */ wanted) => asking.ask('check', wanted),
    cancel: () => python.cancel(),
    pause: (/** @type {boolean} */ on) => python.pause(on),
    evaluate: (/** @type {string} */ source) => python.evaluate(source),
    runPlain: (/** @type {string} */ source, /** @type {string} */ filename) => python.runPlain(source, filename),
    stop: () => python.stop(),
    restart: () => python.restart(),
    changeModel: (/** @type {string} */ verb, /** @type {any} */ settings) => model.change(verb, settings),
    reproducer: async () => {
      const found = await python.reproducer();
      return found && { model: base64(found.model), cases: base64(found.cases) };
    },
    play,
  });
  check.onClick(() => asking.ask('check', form.settings), cancel);
  if (unknown.length) {
    fault(new AppError('UnknownSetting', `the address has settings that this page does not know: ${unknown.join(', ')}`, 'Known are runs, warmup, seed, engines, threads and lang.'));
  } else if (language !== null && !LANGUAGES.some((known) => known === language)) {
    fault(new AppError('UnknownLanguage', `the address asks for the language "${language}", which this page does not speak`, `Use one of lang=${LANGUAGES.join(', lang=')}.`));
  }
  new ComparedView(byId('compared'), (suite, index) => python.picture(suite, index)).show('states', 60);
  play.enable();
  ready();
  void whenIdle().then(async () => (await import('./offline.js')).keepOffline(byId('offline'), root));
  const last = await store.read('report');
  // What was found about a model that is not here any more is no beginning to go on from.
  if (last && !last.model && !publicPage.report) reports.offerLast(() => asking.recall(last));
}

/** Nobody is waiting for an answer, and hasn't been for a while. */
async function whenIdle() {
  do await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
  while (!isIdle());
}

/** @param {unknown} thrown */
function fault(thrown) {
  publicPage.error = toWireError(thrown);
  check.fail(thrown);
}

/** @param {Uint8Array} bytes */
function base64(bytes) {
  let text = '';
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(text);
}

languageChoice();
licences(byId('licences'), base);
setState('booting');
main().catch(fail);

/** @param {unknown} thrown */
function fail(thrown) {
  fault(thrown);
  check.ready = false;
  setState('failed');
}
