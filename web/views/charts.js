/** Charts of timings. Observable Plot is loaded with the first one, so that it costs the boot nothing. */
import { shorten, timeAxis } from './axis.js';
import { common, MARGIN, plain, plotting } from './plots.js';

/** @typedef {{engine: string, samples_ms: number[], p50_ms: number, p95_ms: number, blocks: number[]}} Lane */

const HEIGHT = { distribution: 260, histogram: 90, order: 110 };
// Ticks' texts are given: with only a format, a logarithmic axis leaves out what it thinks is too much.

/** Above each row, for its engine's name. */
const NAME_HEIGHT = 20;
const NAME_FONT = '600 12px system-ui, sans-serif';
const BINS = 60;

/**
 * How many runs took at most so long: every engine on one axis, with P50 and P95 marked.
 * @param {Lane[]} lanes
 * @param {number} width
 */
export async function cumulative(lanes, width) {
  const { axisX, axisY, dot, gridY, line, plot, ruleX } = await plotting();
  const steps = lanes.flatMap(({ engine, samples_ms }) => {
    const sorted = samples_ms.toSorted((a, b) => a - b);
    return sorted.map((ms, i) => ({ engine, ms, share: (i + 1) / sorted.length }));
  });
  const marks = lanes.flatMap(({ engine, p50_ms, p95_ms }) => [
    { engine, ms: p50_ms, share: 0.5, label: 'P50' },
    { engine, ms: p95_ms, share: 0.95, label: 'P95' },
  ]);
  const { type, domain, ticks, label } = timeAxis(times(lanes), inner(width));
  return plain(
    plot({
      ...common(lanes, width),
      height: HEIGHT.distribution,
      x: { type, domain, label: `time of one run, ${label}` },
      y: { domain: [0, 1], label: 'share of runs that took at most this long' },
      marks: [
        gridY(),
        axisX(ticks, { text: String }),
        axisY({ tickFormat: '.0%' }),
        ruleX(marks, { x: 'ms', stroke: 'engine', strokeDasharray: '2 4', strokeOpacity: 0.5 }),
        line(steps, { x: 'ms', y: 'share', stroke: 'engine', curve: 'step-after', strokeWidth: 2 }),
        dot(marks, { x: 'ms', y: 'share', fill: 'engine', r: 4.5, title: (/** @type {any} */ m) => `${m.engine} ${m.label} ${m.ms.toPrecision(3)} ms` }),
      ],
    }),
    'How many runs took at most so long, by engine',
  );
}

/**
 * How often a run took so long, one row an engine, all on the same axis.
 * @param {Lane[]} lanes
 * @param {number} width
 */
export async function histogram(lanes, width) {
  const { axisX, binX, plot, rectY, ruleX, ruleY, text } = await plotting();
  const samples = lanes.flatMap(({ engine, samples_ms }) => samples_ms.map((ms) => ({ engine, ms })));
  const { type, domain, ticks, label } = timeAxis(times(lanes), inner(width));
  const [low, high] = domain;
  const place = (/** @type {number} */ share) => (type === 'log' ? low * (high / low) ** share : low + (high - low) * share);
  const thresholds = Array.from({ length: BINS + 1 }, (_, i) => place(i / BINS));
  /** @type {any} the types of binX forget the facets */
  const bins = { x: { value: 'ms', thresholds }, fy: 'engine', fill: 'engine' };
  const marks = lanes.flatMap(({ engine, p50_ms, p95_ms }) => [p50_ms, p95_ms].map((ms) => ({ engine, ms })));
  return plain(
    plot({
      ...common(lanes, width),
      ...rows(lanes, HEIGHT.histogram),
      x: { type, domain, label: `time of one run, ${label}; the lines are P50 and P95` },
      y: { axis: null, insetTop: NAME_HEIGHT },
      marks: [
        axisX(ticks, { text: String }),
        rectY(samples, binX({ y: 'count' }, bins)),
        ruleX(marks, { x: 'ms', fy: 'engine', stroke: 'currentColor', strokeDasharray: '2 3', insetTop: NAME_HEIGHT }),
        ruleY([0]),
        text(lanes, names(width)),
      ],
    }),
    'How often a run took so long, by engine',
  );
}

/**
 * Every sample in run order, so that drift is visible; upright lines part the rounds.
 * @param {Lane[]} lanes
 * @param {number} width
 */
export async function inOrder(lanes, width) {
  const { axisY, dot, plot, ruleX, text } = await plotting();
  const samples = lanes.flatMap(({ engine, samples_ms }) => samples_ms.map((ms, run) => ({ engine, ms, run: run + 1 })));
  const rounds = lanes.flatMap(({ engine, blocks }) => {
    let run = 0.5;
    return blocks.slice(0, -1).map((length) => ({ engine, run: (run += length) }));
  });
  const { type, domain, ticks, label } = timeAxis(times(lanes), 0);
  return plain(
    plot({
      ...common(lanes, width),
      ...rows(lanes, HEIGHT.order),
      x: { label: 'run', domain: [0.5, Math.max(...lanes.map(({ samples_ms }) => samples_ms.length)) + 0.5] },
      y: { type, domain, label, insetTop: NAME_HEIGHT },
      marks: [
        axisY(ticks, { text: String }),
        ruleX(rounds, { x: 'run', fy: 'engine', strokeOpacity: 0.15, insetTop: NAME_HEIGHT }),
        dot(samples, { x: 'run', y: 'ms', fy: 'engine', fill: 'engine', r: 2 }),
        text(lanes, names(width)),
      ],
    }),
    'Every run in order, by engine',
  );
}

/** @param {Lane[]} lanes @returns {number[]} all that must be on the axis */
function times(lanes) {
  return lanes.flatMap(({ samples_ms, p50_ms, p95_ms }) => [...samples_ms, p50_ms, p95_ms]);
}

/** @param {number} width @returns {number} without the margins */
function inner(width) {
  return width - MARGIN.left - MARGIN.right;
}

/** One row for each engine, in their order. @param {Lane[]} lanes @param {number} height of a row */
function rows(lanes, height) {
  return { height: height * lanes.length + MARGIN.bottom + 20, fy: { axis: /** @type {null} */ (null), domain: lanes.map(({ engine }) => engine) } };
}

/** Each row's engine above it; a name that is too long is whole in its title. @param {number} width */
function names(width) {
  /** @type {any} the types of text know less than it does */
  const options = {
    fy: 'engine',
    text: (/** @type {Lane} */ { engine }) => shorten(engine, inner(width), NAME_FONT),
    title: 'engine',
    fill: 'engine',
    frameAnchor: 'top-left',
    fontSize: 12,
    fontWeight: 600,
  };
  return options;
}
