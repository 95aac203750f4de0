import { h, milliseconds, table, warningList } from './dom.js';

/** The race: each engine's percentiles, its samples in run order, and the ratios with their intervals. */
export class FasterView {
  #root;
  #results = h('div');
  #sentences = h('div');
  /** @type {Map<string, any>} */
  #lanes = new Map();

  /** @param {HTMLElement} root */
  constructor(root) {
    this.#root = root;
  }

  clear() {
    this.#lanes.clear();
    this.#results.replaceChildren();
    this.#sentences.replaceChildren();
    this.#root.replaceChildren(this.#sentences, this.#results);
  }

  /** @param {any} lane a `RaceEntry` of the report, finished or not */
  add(lane) {
    this.#lanes.set(lane.engine, lane);
    const lanes = [...this.#lanes.values()];
    const rows = lanes.map((entry) => [
      entry.engine,
      h('strong', {}, milliseconds(entry.p50_ms)),
      h('strong', {}, milliseconds(entry.p95_ms)),
      milliseconds(entry.mean_ms),
      milliseconds(entry.min_ms),
      milliseconds(entry.max_ms),
      String(entry.runs),
      `${(entry.clock_step_ms * 1000).toFixed(0)} µs`,
    ]);
    this.#results.replaceChildren(
      table('Time of one run', ['', 'P50', 'P95', 'mean', 'min', 'max', 'n', 'clock step'], rows),
      ...lanes.filter(({ samples_ms }) => samples_ms.length).map(strip),
      ...lanes.filter(({ warnings }) => warnings.length).map((entry) => h('div', { class: 'trouble' }, h('h3', {}, entry.engine), warningList(entry.warnings))),
    );
  }

  /** @param {any[]} ratios `RatioEntry` of the report */
  showRatios(ratios) {
    this.#sentences.replaceChildren(...ratios.map(sentence));
  }
}

/** @param {any} ratio */
function sentence(ratio) {
  const { numerator, denominator, p50, low, high, p95, reason, warnings } = ratio;
  if (p50 === null) {
    return h('p', { class: 'ratio none' }, `${numerator} / ${denominator}: no ratio. ${reason}.`);
  }
  const interval = `95 % interval ${low.toFixed(2)} to ${high.toFixed(2)}`;
  const text = `Here ${numerator} takes ${p50.toFixed(2)} times as long as ${denominator} at the median (${interval}), ${p95.toFixed(2)} times at P95.`;
  return h('p', { class: 'ratio' }, text, ...warnings.map((/** @type {string} */ warning) => ` But ${warning}.`));
}

/** One engine's samples in run order, so that drift is visible. @param {any} lane */
function strip(lane) {
  const width = 600;
  const height = 48;
  const top = lane.p95_ms * 1.5;
  const points = lane.samples_ms.map((/** @type {number} */ ms, /** @type {number} */ i) => {
    const x = ((i + 0.5) / lane.samples_ms.length) * width;
    return [x, height - (Math.min(ms, top) / top) * height];
  });
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
  svg.setAttribute('role', 'img');
  svg.setAttribute('aria-label', `${lane.engine}: ${lane.samples_ms.length} runs in order, 0 to ${milliseconds(top)}`);
  for (const [x, y] of points) {
    const dot = document.createElementNS('http://www.w3.org/2000/svg', 'circle');
    dot.setAttribute('cx', x.toFixed(1));
    dot.setAttribute('cy', y.toFixed(1));
    dot.setAttribute('r', '2');
    svg.append(dot);
  }
  const figure = h('figure', { class: 'strip' }, h('figcaption', {}, `${lane.engine}, in run order, 0 to ${milliseconds(top)}`));
  figure.append(svg);
  return figure;
}
