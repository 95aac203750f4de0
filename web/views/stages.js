import { h, milliseconds, table, warningList } from './dom.js';
import { charted, chartWidth, MARGIN, plain, plotting } from './plots.js';
import { paragraph } from './sentences.js';

/** In the order in which a run goes through them; the colours are the engines'. */
const STAGES = ['upload', 'dispatch', 'compute', 'wait', 'readback'];
const ROW = 46;

/** Where the time of a run goes: stacked bars, one an engine, and the same as a table. */
export class StagesView {
  #root;
  /** @type {any[]} */
  #entries = [];
  /** @type {import('./sentences.js').Sentence[]} */
  #sentences = [];
  #drawn = 0;

  /** @param {HTMLElement} root */
  constructor(root) {
    this.#root = root;
    let width = 0;
    new ResizeObserver(() => {
      if (this.#entries.length && width !== chartWidth(root)) this.#draw();
      width = chartWidth(root);
    }).observe(root);
  }

  clear() {
    this.#entries = [];
    this.#sentences = [];
    this.#root.replaceChildren();
  }

  /** @param {any} entry a `StagesEntry` of the report */
  add(entry) {
    this.#entries.push(entry);
    this.#draw();
  }

  /** @param {import('./sentences.js').Sentence[]} sentences */
  say(sentences) {
    this.#sentences = sentences;
    if (this.#entries.length) this.#draw();
  }

  async #draw() {
    const turn = ++this.#drawn;
    const chart = await charted(bars(this.#entries, chartWidth(this.#root)));
    if (turn !== this.#drawn || !this.#entries.length) return;
    const shown = STAGES.filter((stage) => this.#entries.some(({ stages }) => stages.some((/** @type {any} */ one) => one.stage === stage)));
    const legend = h('ul', { class: 'legend' }, ...shown.map((stage) => h('li', { class: `engine-${STAGES.indexOf(stage)}` }, stage)));
    const warnings = this.#entries.flatMap(({ engine, warnings: own }) => own.map((/** @type {string} */ text) => `${engine}: ${text}`));
    this.#root.replaceChildren(
      ...this.#sentences.map(paragraph),
      h('figure', {}, h('figcaption', {}, 'Stages of one run at the median; the line is a whole run, timed without looking into it'), legend, chart),
      table('Stages of one run', ['', ...shown, 'sum', 'whole run', 'floor'], this.#entries.map((entry) => row(entry, shown))),
      h('p', { class: 'note' }, ...this.#entries.map(({ engine, compute_from }, i) => `${i ? '; ' : 'Compute: '}${engine} from ${compute_from}`), '. The floor is an empty dispatch and its readback on the same device.'),
      ...(warnings.length ? [warningList(warnings)] : []),
    );
  }
}

/** @param {any} entry @param {string[]} shown @returns {(Node | string)[]} */
function row({ engine, stages, sum_ms, total_ms, floor_ms }, shown) {
  const times = shown.map((stage) => milliseconds(stages.find((/** @type {any} */ one) => one.stage === stage)?.p50_ms ?? null));
  return [engine, ...times, milliseconds(sum_ms), h('strong', {}, milliseconds(total_ms)), milliseconds(floor_ms)];
}

/** @param {any[]} entries @param {number} width */
async function bars(entries, width) {
  const { axisX, barX, gridX, plot, text, tickX } = await plotting();
  const stages = entries.flatMap(({ engine, stages: own }) => own.map((/** @type {any} */ one) => ({ engine, ...one })));
  const engines = entries.map(({ engine }) => engine);
  const y = { domain: engines, axis: /** @type {null} */ (null), padding: 0.45 };
  return plain(
    plot({
      width,
      height: ROW * entries.length + 50,
      marginLeft: 8,
      marginRight: MARGIN.right,
      marginBottom: 40,
      x: { label: 'ms', domain: [0, 1.06 * Math.max(...entries.map(({ sum_ms, total_ms }) => Math.max(sum_ms, total_ms)))] },
      y,
      color: { domain: STAGES, range: STAGES.map((_, i) => `var(--engine-${i})`) },
      marks: [
        gridX(),
        axisX({ ticks: Math.floor(width / 90) }),
        barX(stages, { x: 'p50_ms', y: 'engine', z: 'stage', fill: 'stage', order: STAGES, title: (/** @type {any} */ one) => `${one.engine}, ${one.stage}: ${one.p50_ms.toPrecision(3)} ms` }),
        tickX(entries, { x: 'total_ms', y: 'engine', stroke: 'currentColor', strokeWidth: 2 }),
        text(entries, { y: 'engine', text: 'engine', frameAnchor: 'left', dy: -20, fontSize: 12, fontWeight: 600 }),
      ],
    }),
    'How the time of one run is made up, by engine',
  );
}
