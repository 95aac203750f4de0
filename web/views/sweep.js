import { h, milliseconds, scientific, table, warningList } from './dom.js';
import { charted, chartWidth, engineColor, MARGIN, plain, plotting } from './plots.js';
import { paragraph } from './sentences.js';

/** While a sweep runs its plot follows it this often; drawing takes time from the engines. */
const REFRESH_MS = 1_000;

/** From which batch on: a log-log plot for each width, the crossovers, and every point as a table. */
export class SweepView {
  #root;
  /** @type {Map<string, any>} entries by engine, width and batch */
  #points = new Map();
  /** @type {any[]} */
  #crossovers = [];
  /** @type {Map<string, any>} */
  #variants = new Map();
  /** @type {import('./sentences.js').Sentence[]} */
  #sentences = [];
  #width = h('select', { 'aria-label': 'Width of the network' });
  #perState = h('input', { type: 'checkbox', checked: true });
  #chart = h('figure');
  #drawn = 0;
  #last = 0;

  /** @param {HTMLElement} root */
  constructor(root) {
    this.#root = root;
    this.#width.addEventListener('change', () => this.#draw());
    this.#perState.addEventListener('change', () => this.#draw());
    let width = 0;
    new ResizeObserver(() => {
      if (this.#points.size && width !== chartWidth(root)) this.#draw();
      width = chartWidth(root);
    }).observe(root);
  }

  clear() {
    this.#points.clear();
    this.#crossovers = [];
    this.#variants.clear();
    this.#sentences = [];
    this.#root.replaceChildren();
  }

  /** @param {any} entry a `SweepEntry` of the report */
  add(entry) {
    this.#points.set(`${entry.engine} ${entry.width} ${entry.batch}`, entry);
    const widths = [...new Set([...this.#points.values()].map(({ width }) => width))].sort((a, b) => a - b);
    if (this.#width.options.length !== widths.length) {
      const chosen = this.#width.value || '1';
      this.#width.replaceChildren(...widths.map((width) => h('option', { value: width, selected: String(width) === chosen }, `×${width}`)));
    }
    this.#follow();
  }

  /** @param {any} entry a `PrecisionEntry` of the report */
  addVariant(entry) {
    this.#variants.set(entry.engine, entry);
    this.#follow();
  }

  /** Draws what there is; called once a sweep has ended, however it ended. */
  finish() {
    if (this.#points.size || this.#variants.size) this.#draw();
  }

  #follow() {
    if (performance.now() - this.#last >= REFRESH_MS) this.#draw();
  }

  /** @param {any[]} crossovers @param {import('./sentences.js').Sentence[]} sentences */
  say(crossovers, sentences) {
    this.#crossovers = crossovers;
    this.#sentences = sentences;
    this.finish();
  }

  async #draw() {
    const turn = ++this.#drawn;
    this.#last = performance.now();
    const points = [...this.#points.values()];
    const engines = [...new Set(points.map(({ engine }) => engine))];
    const shown = points.filter(({ width, p50_ms }) => width === Number(this.#width.value) && p50_ms !== null);
    const chart = shown.length ? await charted(curves(shown, engines, this.#perState.checked, chartWidth(this.#root))) : null;
    if (turn !== this.#drawn) return;
    const legend = h('ul', { class: 'legend' }, ...engines.map((engine, i) => h('li', { class: `engine-${i % 6}` }, engine)));
    const controls = h('p', { class: 'controls' }, h('label', {}, 'Network ', this.#width), h('label', {}, this.#perState, ' time of one state, not of a run'));
    this.#chart.replaceChildren(h('figcaption', {}, 'Median time by batch size; both axes are logarithmic'), legend, chart ?? h('p', { class: 'empty' }, 'Nothing was measured at this width.'));
    const compared = this.#crossovers.filter(({ answer }) => answer !== 'none');
    const warnings = [...new Set(points.flatMap(({ engine, warnings: own }) => own.map((/** @type {string} */ text) => `${engine}: ${text}`)))];
    this.#root.replaceChildren(
      ...this.#sentences.map(paragraph),
      ...(points.length ? [controls, this.#chart] : []),
      ...(compared.length ? [table('Where one overtakes the other', ['', 'network', 'overtakes at batch', '95 % interval', 'sizes compared'], compared.map(crossoverRow))] : []),
      ...(this.#variants.size ? [h('h3', {}, 'Fewer bits'), table('Variants of the model with fewer bits', ['', 'agree', 'max |dQ|', 'P50', 'P95', 'time ÷ float32', ''], [...this.#variants.values()].map(variantRow))] : []),
      h('details', {}, h('summary', {}, 'Every point'), table('Every point', ['', 'network', 'batch', 'P50', 'P95', 'P50 a state', 'n', 'agree', 'max |dQ|', ''], points.map(pointRow))),
      ...(warnings.length ? [warningList(warnings)] : []),
    );
  }
}

/** @param {any} entry @returns {(Node | string)[]} */
function crossoverRow({ numerator, denominator, width, answer, batch, low, high, first, last, points }) {
  const at = { crosses: () => batch.toFixed(1), already: () => `already at ${first}`, 'not-within': () => `not within ${last}` }[/** @type {string} */ (answer)];
  const bound = (/** @type {number | null} */ value) => (value === null ? '…' : value.toFixed(1));
  return [`${numerator} over ${denominator}`, `×${width}`, at ? at() : answer, answer === 'crosses' ? `${bound(low)} to ${bound(high)}` : '–', String(points)];
}

/** @param {any} entry @returns {(Node | string)[]} */
function variantRow({ engine, agree, cases, max_abs_diff, p50_ms, p95_ms, ratio, low, high, changes_action, reason }) {
  const agreement = cases ? `${agree} of ${cases}` : '–';
  const speed = ratio === null ? '–' : `${ratio.toFixed(2)} (${low.toFixed(2)}–${high.toFixed(2)})`;
  const why = reason ?? (changes_action ? 'changes an action' : '');
  const times = [scientific(max_abs_diff), milliseconds(p50_ms), milliseconds(p95_ms), speed];
  return [engine, changes_action ? h('mark', {}, agreement) : agreement, ...times, h('span', { class: 'why' }, why)];
}

/** @param {any} entry @returns {(Node | string)[]} */
function pointRow({ engine, width, batch, p50_ms, p95_ms, per_state_ms, runs, agree, cases, passed, max_abs_diff, reason }) {
  const agreement = cases ? `${agree} of ${cases}` : '–';
  return [
    engine, `×${width}`, String(batch), milliseconds(p50_ms), milliseconds(p95_ms), milliseconds(per_state_ms), String(runs),
    cases && !passed ? h('mark', {}, agreement) : agreement, scientific(max_abs_diff), h('span', { class: 'why' }, reason ?? ''),
  ];
}

/** @param {any[]} points @param {string[]} engines @param {boolean} perState @param {number} width */
async function curves(points, engines, perState, width) {
  const { axisX, axisY, dot, gridY, line, plot } = await plotting();
  const y = perState ? 'per_state_ms' : 'p50_ms';
  const batches = [...new Set(points.map(({ batch }) => batch))].sort((a, b) => a - b);
  const sorted = points.toSorted((a, b) => a.batch - b.batch);
  return plain(
    plot({
      width,
      height: 300,
      marginLeft: MARGIN.left,
      marginRight: MARGIN.right,
      marginBottom: 40,
      x: { type: 'log', base: 2, label: 'states in a batch', domain: batches.length > 1 ? [batches[0], batches[batches.length - 1]] : [batches[0] / 2, batches[0] * 2] },
      y: { type: 'log', label: perState ? 'ms a state' : 'ms a run' },
      color: { domain: engines, range: engines.map((_, i) => engineColor(i)) },
      marks: [
        gridY(),
        axisX(batches, { text: String }),
        axisY({ tickFormat: '~g', ticks: 6 }),
        line(sorted, { x: 'batch', y, z: 'engine', stroke: 'engine', strokeWidth: 2 }),
        dot(sorted, { x: 'batch', y, fill: 'engine', r: 3.5, title: (/** @type {any} */ one) => `${one.engine}, batch ${one.batch}: ${one[y].toPrecision(3)} ms` }),
      ],
    }),
    'Median time by batch size, by engine',
  );
}
