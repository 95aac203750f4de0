/**
 * What the harness is measured against: onnxruntime-web in a worker, and nothing of ours – no Python, nothing from web/.
 *
 * Blocks have the shape that our race gives them (warm-up, then rounds that each begin with unmeasured runs), so that both
 * sides measure an engine in the same state and only the machinery around it differs.
 */
const settings = new URLSearchParams(location.search);
const worker = new Worker(new URL('./bare-worker.js', import.meta.url), { type: 'module' });

/**
 * One question at a time.
 * @param {object} question
 * @returns {Promise<any>}
 */
function ask(question) {
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => (data.error ? reject(new Error(data.error)) : resolve(data.value));
    worker.onerror = (event) => reject(new Error(event.message || 'the worker failed to load'));
    worker.postMessage(question);
  });
}

/** @param {Float64Array} values */
function median(values) {
  const sorted = values.toSorted();
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
}

/**
 * @param {{warmup: number, sizes: number[], leadInMs: number, leadInMaxRuns: number}} block
 * @returns {Promise<number[]>} milliseconds of the measured runs
 */
async function run({ warmup, sizes, leadInMs, leadInMaxRuns }) {
  /** @type {number[]} */
  const measured = [];
  let newest = await ask({ verb: 'time', runs: warmup });
  for (const size of sizes) {
    const leadIn = Math.max(1, Math.min(leadInMaxRuns, Math.ceil(leadInMs / median(newest))));
    newest = (await ask({ verb: 'time', runs: leadIn + size })).slice(leadIn);
    measured.push(...newest);
  }
  return measured;
}

Object.assign(globalThis, {
  bare: { open: () => ask({ verb: 'open', ...Object.fromEntries(settings) }), run },
});
