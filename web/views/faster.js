import { cumulative, histogram, inOrder } from './charts.js';
import { h, milliseconds, table, warningList } from './dom.js';
import { charted, chartWidth } from './plots.js';
import { paragraph } from './sentences.js';

/** While a race runs the table follows it this often; drawing takes time from the engines. */
const REFRESH_MS = 500;

/** The race: each engine's percentiles, the distributions on one axis, and every sample on demand. */
export class FasterView {
  #root;
  #results = h('div');
  #sentences = h('div');
  #charts = h('div', { class: 'charts' });
  #order = h('details', {}, h('summary', {}, 'Every run in order, to see drift'));
  #orderChart = h('div');
  /** @type {Map<string, any>} */
  #lanes = new Map();
  #last = 0;
  #drawn = 0;
  #drawnWidth = 0;
  /** @type {string[]} engines in the order in which they were opened */
  #engines = [];

  /** @param {HTMLElement} root */
  constructor(root) {
    this.#root = root;
    new ResizeObserver(() => {
      if (this.#charts.hasChildNodes() && this.#width() !== this.#drawnWidth) this.finish();
    }).observe(root);
    this.#order.append(this.#orderChart);
    this.#order.addEventListener('toggle', () => this.#drawOrder());
  }

  clear() {
    this.#lanes.clear();
    this.#engines = [];
    this.#last = 0;
    this.#drawn++;
    for (const part of [this.#sentences, this.#results, this.#charts, this.#orderChart]) part.replaceChildren();
    this.#order.hidden = true;
    this.#root.replaceChildren(this.#sentences, this.#results, this.#charts, this.#order);
  }

  /** Tells of an engine before it races, so that colours and rows do not follow the luck of the draw. @param {string} name */
  expect(name) {
    if (!this.#engines.includes(name)) this.#engines.push(name);
  }

  /** @param {any} lane a `RaceEntry` of the report, finished or not */
  add(lane) {
    this.#lanes.set(lane.engine, lane);
    if (performance.now() - this.#last < REFRESH_MS) return;
    this.#last = performance.now();
    this.#tabulate();
  }

  /** Says the ratios. @param {import('./sentences.js').Sentence[]} ratios */
  say(ratios) {
    this.#sentences.replaceChildren(...ratios.map(paragraph));
  }

  /** Draws what there is; called once the race has ended, however it ended. */
  async finish() {
    this.#tabulate();
    const lanes = this.#timed();
    const turn = ++this.#drawn;
    if (!lanes.length) return;
    const width = this.#width();
    this.#drawnWidth = width;
    const charts = [
      h('figure', {}, h('figcaption', {}, 'All runs of all engines: the further left, the faster'), legend(lanes), await charted(cumulative(lanes, width))),
      h('figure', {}, h('figcaption', {}, 'How often each time came'), await charted(histogram(lanes, width))),
    ];
    if (turn !== this.#drawn) return; // a newer check has begun meanwhile
    this.#charts.replaceChildren(...charts);
    this.#order.hidden = false;
    this.#drawOrder();
  }

  #width() {
    return chartWidth(this.#root);
  }

  #inOrder() {
    const place = (/** @type {any} */ lane) => this.#engines.indexOf(lane.engine);
    return [...this.#lanes.values()].sort((a, b) => place(a) - place(b));
  }

  #timed() {
    return this.#inOrder().filter(({ samples_ms }) => samples_ms.length);
  }

  async #drawOrder() {
    const lanes = this.#timed();
    if (this.#order.open && lanes.length) this.#orderChart.replaceChildren(await charted(inOrder(lanes, this.#width())));
  }

  #tabulate() {
    const lanes = this.#inOrder();
    if (!lanes.length) return;
    this.#results.replaceChildren(
      table('Time of one run', ['', 'P50', 'P95', 'mean', 'min', 'max', 'n', 'outliers', 'clock step'], lanes.map(row)),
      ...trouble(lanes),
    );
  }
}

/** @param {any} lane @returns {(Node | string)[]} */
function row(lane) {
  return [
    lane.engine,
    h('strong', {}, milliseconds(lane.p50_ms)),
    h('strong', {}, milliseconds(lane.p95_ms)),
    milliseconds(lane.mean_ms),
    milliseconds(lane.min_ms),
    milliseconds(lane.max_ms),
    String(lane.runs),
    String(lane.outliers),
    `${(lane.clock_step_ms * 1000).toFixed(0)} µs`,
  ];
}

/** @param {any[]} lanes @returns {Node[]} a list of all their warnings, if there are any */
function trouble(lanes) {
  const warnings = lanes.flatMap(({ engine, warnings }) => warnings.map((/** @type {string} */ text) => `${engine}: ${text}`));
  return warnings.length ? [warningList(warnings)] : [];
}

/** @param {any[]} lanes */
function legend(lanes) {
  return h('ul', { class: 'legend' }, ...lanes.map(({ engine }, i) => h('li', { class: `engine-${i % 6}` }, engine)));
}
