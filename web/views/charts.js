/** Charts of timings. Observable Plot is loaded with the first one, so that it costs the boot nothing. */

/** @typedef {{engine: string, samples_ms: number[], p50_ms: number, p95_ms: number, blocks: number[]}} Lane */

const HEIGHT = { distribution: 260, histogram: 90, order: 110 };

/**
 * How many runs took at most so long: every engine on one axis, with P50 and P95 marked.
 * @param {Lane[]} lanes
 * @param {number} width
 */
export async function cumulative(lanes, width) {
  const { axisX, axisY, dot, gridY, line, plot, ruleX } = await import('../vendor/plot.js');
  const steps = lanes.flatMap(({ engine, samples_ms }) => {
    const sorted = samples_ms.toSorted((a, b) => a - b);
    return sorted.map((ms, i) => ({ engine, ms, share: (i + 1) / sorted.length }));
  });
  const marks = lanes.flatMap(({ engine, p50_ms, p95_ms }) => [
    { engine, ms: p50_ms, share: 0.5, label: 'P50' },
    { engine, ms: p95_ms, share: 0.95, label: 'P95' },
  ]);
  return plain(
    plot({
      ...common(lanes, width),
      marginRight: 20,
      height: HEIGHT.distribution,
      x: { type: 'log', label: 'time of one run, ms (log)' },
      y: { domain: [0, 1], label: 'share of runs that took at most this long' },
      marks: [
        gridY(),
        axisX({ ticks: Math.max(3, width / 90), tickFormat: (/** @type {number} */ ms) => String(ms) }),
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
  const { axisX, binX, plot, rectY, ruleX, ruleY } = await import('../vendor/plot.js');
  const samples = lanes.flatMap(({ engine, samples_ms }) => samples_ms.map((ms) => ({ engine, ms })));
  const all = samples.map(({ ms }) => ms);
  const [low, high] = [Math.min(...all) * 0.98, Math.max(...all) * 1.02];
  const thresholds = Array.from({ length: 61 }, (_, i) => low * (high / low) ** (i / 60));
  /** @type {any} the types of binX forget the facets */
  const bins = { x: { value: 'ms', thresholds }, fy: 'engine', fill: 'engine' };
  const marks = lanes.flatMap(({ engine, p50_ms, p95_ms }) => [p50_ms, p95_ms].map((ms) => ({ engine, ms })));
  return plain(
    plot({
      ...common(lanes, width),
      height: HEIGHT.histogram * lanes.length + 50,
      x: { type: 'log', label: 'time of one run, ms (log); the lines are P50 and P95', domain: [low, high] },
      y: { axis: null },
      fy: { label: null, axis: 'right', domain: lanes.map(({ engine }) => engine) },
      marks: [
        axisX({ ticks: Math.max(3, width / 90), tickFormat: (/** @type {number} */ ms) => String(ms) }),
        rectY(samples, binX({ y: 'count' }, bins)),
        ruleX(marks, { x: 'ms', fy: 'engine', stroke: 'currentColor', strokeDasharray: '2 3' }),
        ruleY([0]),
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
  const { axisY, dot, plot, ruleX } = await import('../vendor/plot.js');
  const samples = lanes.flatMap(({ engine, samples_ms }) => samples_ms.map((ms, run) => ({ engine, ms, run: run + 1 })));
  const rounds = lanes.flatMap(({ engine, blocks }) => {
    let run = 0.5;
    return blocks.slice(0, -1).map((length) => ({ engine, run: (run += length) }));
  });
  return plain(
    plot({
      ...common(lanes, width),
      height: HEIGHT.order * lanes.length + 50,
      x: { label: 'run' },
      y: { type: 'log', label: 'ms (log)' },
      fy: { label: null, domain: lanes.map(({ engine }) => engine) },
      marks: [
        axisY({ ticks: 3, tickFormat: (/** @type {number} */ ms) => String(ms) }),
        ruleX(rounds, { x: 'run', fy: 'engine', strokeOpacity: 0.15 }),
        dot(samples, { x: 'run', y: 'ms', fy: 'engine', fill: 'engine', r: 2 }),
      ],
    }),
    'Every run in order, by engine',
  );
}

/** @param {Lane[]} lanes @param {number} width */
function common(lanes, width) {
  const engines = lanes.map(({ engine }) => engine);
  return {
    width,
    marginLeft: 52,
    marginRight: Math.min(120, 24 + 7 * Math.max(...engines.map((name) => Math.min(name.length, 14)))),
    color: { domain: engines, range: engines.map((_, i) => `var(--engine-${i % 6})`) },
  };
}

/**
 * Plot brings a style element of its own, which the content security policy refuses; its rules are in page.css.
 * @param {Element} figure
 * @param {string} label
 */
function plain(figure, label) {
  for (const style of figure.querySelectorAll('style')) style.remove();
  figure.setAttribute('class', 'plot');
  figure.setAttribute('role', 'img');
  figure.setAttribute('aria-label', label);
  return figure;
}
