/** Two reports side by side. */
import { toWireError } from '../wire.js';
import { between, fixed, h, milliseconds, scientific, table } from './dom.js';
import { when } from './report-file.js';
import { CRITERIA, statusOf } from './verdict.js';

/** @typedef {{report: any, name: string}} Named */
/** @typedef {[string, (report: any) => unknown]} Line a label, and what a report says under it */
/** @typedef {(Node | string)[]} Row */
/** @typedef {import('../types.d.ts').Verdict} Verdict */

const NONE = '–';

/** What makes a machine another one, as far as a browser tells. @type {Line[]} */
const MACHINE = [
  ['browser', ({ environment }) => environment.user_agent],
  ['platform', ({ environment }) => environment.platform],
  ['processors', ({ environment }) => environment.cores],
  ['memory, GiB', ({ environment }) => environment.memory_gib],
  ['isolated', ({ environment }) => environment.cross_origin_isolated],
  ['adapter', adapterOf],
];

/** @type {Line[]} */
const SETTINGS = [
  ['model', ({ environment }) => environment.model_sha256.slice(0, 12)],
  ['measured runs', ({ settings }) => settings.runs],
  ['warm-up runs', ({ settings }) => settings.warmup],
  ['seed', ({ settings }) => settings.seed],
];

/**
 * @param {Named} first
 * @param {Named} second
 * @param {(report: any) => Promise<Verdict>} judge
 * @returns {HTMLElement} the verdicts come into it when they are there
 */
export function comparison(first, second, judge) {
  const reports = [first.report, second.report];
  const names = first.name === second.name ? [`${first.name} (1)`, `${second.name} (2)`] : [first.name, second.name];
  return h(
    'div',
    { class: 'compare' },
    h('h3', { tabindex: -1 }, 'Two reports side by side'),
    ...cautions(reports).map((text) => h('p', { class: 'sentence' }, text)),
    h('h4', {}, 'Where and what'),
    table('Where and what, in two reports', ['', ...names], environment(reports)),
    h('h4', {}, 'Answers'),
    table('Answers in two reports', ['', ...names], answers(reports)),
    h('h4', {}, 'Times'),
    table('Times in two reports', ['', ...names, 'change'], times(reports)),
    h('h4', {}, 'Games'),
    gamePart(names, games(reports)),
    h('h4', {}, 'Verdicts'),
    verdictPart(names, Promise.all(reports.map(judge))),
  );
}

/** @param {string[]} names @param {Row[]} rows */
function gamePart(names, rows) {
  return rows.length ? table('Games in two reports', ['', ...names], rows) : h('p', { class: 'empty' }, 'Neither report has whole games.');
}

/** @param {string[]} names @param {Promise<Verdict[]>} coming */
function verdictPart(names, coming) {
  const root = h('div', {}, h('p', { class: 'note' }, 'Asking Python …'));
  coming.then(
    (verdicts) => root.replaceChildren(table('Verdicts of two reports', ['', ...names], judged(verdicts))),
    (error) => root.replaceChildren(h('p', { class: 'error' }, toWireError(error).message)),
  );
  return root;
}

/** @param {Verdict[]} verdicts @returns {Row[]} */
function judged(verdicts) {
  const engines = union(verdicts, ({ lines }) => lines.map((/** @type {any} */ { engine }) => engine));
  return [
    marked(verdicts, ['verdict', ({ sentence }) => sentence]),
    ...engines.flatMap((name) => CRITERIA.map((criterion) => marked(verdicts, [`${name}: ${criterion}`, ({ lines }) => statusOf(lines, name, criterion)]))),
  ];
}

/** @param {any[]} reports @returns {Row[]} */
function games(reports) {
  const engines = union(reports, ({ tournament }) => tournament.map((/** @type {any} */ { engine }) => engine));
  return engines.flatMap((name) => {
    const of = (/** @type {(entry: any) => unknown} */ said) => (/** @type {any} */ { tournament }) => {
      const entry = tournament.find((/** @type {any} */ { engine }) => engine === name);
      return entry && said(entry);
    };
    return [
      marked(reports, [`${name}: games`, of(({ games: played, epsilon }) => `${played}, epsilon ${epsilon}`)]),
      marked(reports, [`${name}: mean score`, of(({ mean, low, high }) => (mean === null ? null : `${fixed(mean)} (${between(low, high)})`))]),
      marked(reports, [`${name}: departures`, of(({ departures, compared }) => `${departures} of ${compared}`)]),
    ];
  });
}

/** What must not be concluded. @param {any[]} reports @returns {string[]} */
function cautions(reports) {
  const machine = MACHINE.filter(([, of]) => differ(reports, of)).map(([label]) => label);
  const about = machine.length
    ? `The two come from different machines or browsers (${machine.join(', ')}), so a change of times does not say that an engine became faster or slower.`
    : 'Both come from the same kind of machine and browser, but not from one race: what else the machine did may explain a change of times.';
  return differ(reports, SETTINGS[0][1]) ? [about, 'They are about different models.'] : [about];
}

/** @param {any[]} reports @returns {Row[]} */
function environment(reports) {
  const software = union(reports, ({ environment: { versions } }) => Object.keys(versions));
  const versions = software.map((name) => /** @type {Line} */ ([name, ({ environment: { versions } }) => versions[name]]));
  return [['when', ...reports.map(({ environment: { created } }) => when(created))], ...[...MACHINE, ...SETTINGS, ...versions].map((line) => marked(reports, line))];
}

/** @param {any[]} reports @returns {Row[]} */
function answers(reports) {
  const pairs = union(reports, ({ parity }) => parity.map((/** @type {any} */ { suite, engine }) => `${suite} on ${engine}`));
  return pairs.flatMap((pair) => {
    const entry = (/** @type {any} */ { parity }) => parity.find((/** @type {any} */ { suite, engine }) => `${suite} on ${engine}` === pair);
    return [
      marked(reports, [`${pair}: actions agree`, (report) => entry(report) && `${entry(report).agree} / ${entry(report).cases}`]),
      marked(reports, [`${pair}: max |ΔQ|`, (report) => entry(report) && scientific(entry(report).max_abs_diff)]),
    ];
  });
}

/** @param {any[]} reports @returns {Row[]} */
function times(reports) {
  const engines = union(reports, ({ engines }) => engines.map((/** @type {any} */ { name }) => name));
  const ratios = union(reports, ({ ratios }) => ratios.map(pairOf));
  return [
    ...engines.flatMap((name) => {
      const lane = (/** @type {any} */ { race }) => race.find((/** @type {any} */ { engine }) => engine === name);
      return [timed(`${name}: P50`, reports.map(lane), 'p50_ms', milliseconds), timed(`${name}: P95`, reports.map(lane), 'p95_ms', milliseconds)];
    }),
    ...ratios.flatMap((pair) => {
      const found = reports.map(({ ratios }) => ratios.find((/** @type {any} */ ratio) => pairOf(ratio) === pair));
      return [timed(`${pair}: at P50`, found, 'p50', times2), timed(`${pair}: at P95`, found, 'p95', times2)];
    }),
  ];
}

/**
 * A row of two numbers and their ratio; a number that its report does not vouch for is shown, but not compared.
 * @param {string} label
 * @param {any[]} entries sections of the two reports, undefined where there is none
 * @param {string} key
 * @param {(value: number | null) => string} format
 * @returns {Row}
 */
function timed(label, entries, key, format) {
  const values = entries.map((entry) => entry?.[key] ?? null);
  const cells = entries.map((entry, i) => (entry && values[i] !== null && !entry.valid ? `${format(values[i])} (not valid)` : format(values[i])));
  const comparable = entries.every((entry, i) => entry?.valid && values[i] > 0);
  return [label, ...cells, comparable ? times2(values[1] / values[0]) : NONE];
}

/** @param {number | null} ratio */
function times2(ratio) {
  return ratio === null ? NONE : `${ratio.toFixed(2)} ×`;
}

/** A row whose values are marked where they differ. @param {any[]} reports @param {Line} line @returns {Row} */
function marked(reports, [label, of]) {
  const values = reports.map((report) => text(of(report)));
  return [label, ...values.map((value) => (differ(reports, of) ? h('mark', {}, value) : value))];
}

/** @param {any[]} reports @param {(report: any) => unknown} of */
function differ([first, second], of) {
  return text(of(first)) !== text(of(second));
}

/** @param {unknown} value */
function text(value) {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return String(value ?? NONE);
}

/** @param {any[]} reports @param {(report: any) => string[]} of @returns {string[]} what either has, once */
function union(reports, of) {
  return [...new Set(reports.flatMap(of))];
}

/** @param {any} ratio */
function pairOf({ numerator, denominator }) {
  return `${numerator} / ${denominator}`;
}

/** @param {any} report */
function adapterOf({ engines }) {
  const adapter = engines.map((/** @type {any} */ { actual }) => actual?.adapter).find(Boolean);
  if (!adapter) return 'none';
  const names = [adapter.vendor, adapter.architecture, adapter.description].filter(Boolean).join(' ');
  return adapter.software ? `${names} (software)` : names;
}
