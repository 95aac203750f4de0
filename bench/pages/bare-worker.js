/** The bare page's engine: the smallest worker that opens a session and times it. */

/** @type {any} */
let ort;
/** @type {any} */
let session;
/** @type {Float32Array} */
let observation;

const verbs = {
  /** @param {Record<'ort' | 'model' | 'observation', string>} urls */
  async open(urls) {
    const base = new URL(urls.ort, location.href);
    ort = await import(new URL('ort.wasm.min.mjs', base).href);
    ort.env.wasm.numThreads = 1;
    ort.env.wasm.wasmPaths = {
      mjs: new URL('ort-wasm-simd-threaded.mjs', base),
      wasm: new URL('ort-wasm-simd-threaded.wasm', base),
    };
    ort.env.logLevel = 'error';
    observation = new Float32Array(await bytes(urls.observation));
    session = await ort.InferenceSession.create(new Uint8Array(await bytes(urls.model)), {
      executionProviders: ['wasm'],
      graphOptimizationLevel: 'all',
      extra: { session: { intra_op: { allow_spinning: '0' } } },
    });
    return ort.env.wasm.numThreads;
  },

  /**
   * Each run is timed from making its tensor until its scores can be read.
   * @param {{runs: number}} what
   */
  async time({ runs }) {
    const samples = new Float64Array(runs);
    for (let i = 0; i < runs; i++) {
      const start = performance.now();
      const outputs = await session.run({ observation: new ort.Tensor('float32', observation, [1, 4, 84, 84]) });
      const scores = outputs.q_values.data;
      samples[i] = performance.now() - start;
      if (!scores.some((/** @type {number} */ score) => score !== 0)) throw new Error('the scores are all zero');
      outputs.q_values.dispose();
    }
    return samples;
  },
};

/** @param {string} url */
async function bytes(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return response.arrayBuffer();
}

self.onmessage = async ({ data: { verb, ...what } }) => {
  try {
    self.postMessage({ value: await verbs[/** @type {keyof typeof verbs} */ (verb)](what) });
  } catch (error) {
    self.postMessage({ error: String(error) });
  }
};
