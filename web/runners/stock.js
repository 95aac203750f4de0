/**
 * The stock runner: one inference is one `session.run`, with tensors on the CPU going in and coming out.
 */
/** @typedef {import('../types.d.ts').Ort} Ort */
/** @typedef {import('../types.d.ts').EngineSpec} EngineSpec */
/** @typedef {import('../types.d.ts').WireTensors} WireTensors */

export class StockRunner {
  #ort;
  #session;

  /**
   * @param {Ort} ort
   * @param {import('onnxruntime-web').InferenceSession} session
   */
  constructor(ort, session) {
    this.#ort = ort;
    this.#session = session;
  }

  /**
   * @param {Ort} ort
   * @param {EngineSpec} spec
   * @param {Uint8Array} model an ONNX file
   * @param {boolean} profiling
   */
  static async open(ort, spec, model, profiling) {
    const session = await ort.InferenceSession.create(model, {
      executionProviders: [spec.provider === 'webgpu' ? { name: 'webgpu' } : 'wasm'],
      graphOptimizationLevel: 'all',
      enableProfiling: profiling,
      extra: { session: { intra_op: { allow_spinning: spec.spinning ? '1' : '0' } } },
    });
    return new StockRunner(ort, session);
  }

  get inputs() {
    return [...this.#session.inputNames];
  }

  get outputs() {
    return [...this.#session.outputNames];
  }

  /** @returns {void} prints the profile to the console, which is the only way that onnxruntime-web gives it */
  endProfiling() {
    this.#session.endProfiling();
  }

  /**
   * Runs once; `compute_ms` is what `time` times.
   * @param {WireTensors} feeds
   * @returns {Promise<{outputs: WireTensors, compute_ms: number}>}
   */
  async run(feeds) {
    const start = performance.now();
    const outputs = await this.#session.run(this.#tensors(feeds));
    for (const name of this.#session.outputNames) void outputs[name].data;
    const compute_ms = performance.now() - start;
    /** @type {WireTensors} */
    const copies = {};
    for (const [name, tensor] of Object.entries(outputs)) {
      const data = /** @type {any} */ (tensor.data);
      copies[name] = { type: /** @type {any} */ (tensor.type), dims: [...tensor.dims], data: data.slice() };
      tensor.dispose();
    }
    return { outputs: copies, compute_ms };
  }

  /**
   * Times `runs` runs, each from the call (tensors made from the caller's arrays) until every score can be read.
   * @param {WireTensors} feeds
   * @param {number} runs
   * @returns {Promise<{samples: Float64Array, bad: number}>} milliseconds, and how many runs gave no usable scores
   */
  async time(feeds, runs) {
    const samples = new Float64Array(runs);
    const session = this.#session;
    const names = session.outputNames;
    let bad = 0;
    for (let i = 0; i < runs; i++) {
      const start = performance.now();
      const outputs = await session.run(this.#tensors(feeds));
      const scores = names.map((name) => outputs[name].data);
      samples[i] = performance.now() - start;
      if (!scores.every(isUsable)) bad++;
      for (const name of names) outputs[name].dispose();
    }
    return { samples, bad };
  }

  /** @param {WireTensors} feeds */
  #tensors(feeds) {
    /** @type {Record<string, import('onnxruntime-web').Tensor>} */
    const tensors = {};
    for (const [name, { type, dims, data }] of Object.entries(feeds)) {
      tensors[name] = new this.#ort.Tensor(/** @type {any} */ (type), /** @type {any} */ (data), dims);
    }
    return tensors;
  }
}

/**
 * A lost device returns zeros and a broken kernel NaN: neither is an answer.
 * @param {unknown} data a tensor's data
 */
function isUsable(data) {
  if (!(data instanceof Float32Array || data instanceof Float64Array)) return true;
  let anyNonZero = data.length === 0;
  for (const value of data) {
    if (!Number.isFinite(value)) return false;
    if (value !== 0) anyNonZero = true;
  }
  return anyNonZero;
}
