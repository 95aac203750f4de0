/**
 * The stock runner: one inference is one `session.run`, with tensors on the CPU going in and coming out.
 */
import { AppError } from '../wire.js';

/** @typedef {import('../types.d.ts').Ort} Ort */
/** @typedef {import('../types.d.ts').EngineSpec} EngineSpec */
/** @typedef {import('../types.d.ts').WireTensors} WireTensors */
/** @typedef {import('../types.d.ts').Runner} Runner */

/** @implements {Runner} */
export class StockRunner {
  label = 'stock';
  /** @type {string[]} */
  fallbacks = [];
  #ort;
  #session;
  #zeros;
  /** Of the outputs that are tensors: others cannot be read. */
  #names;

  /**
   * @param {Ort} ort
   * @param {import('onnxruntime-web').InferenceSession} session
   * @param {boolean} [zeros] whether zeros everywhere are an answer
   */
  constructor(ort, session, zeros = false) {
    this.#ort = ort;
    this.#session = session;
    this.#zeros = zeros;
    this.#names = session.outputNames.filter((_, index) => session.outputMetadata[index].isTensor);
    if (!this.#names.length) throw new AppError('NoTensor', 'no output of this model is a tensor', 'Export it with tensors as its outputs.');
  }

  /**
   * @param {Ort} ort
   * @param {EngineSpec} spec
   * @param {Uint8Array} model an ONNX file
   * @param {boolean} profiling
   */
  static async open(ort, spec, model, profiling) {
    return new StockRunner(ort, await ort.InferenceSession.create(model, sessionOptions(spec, profiling)), spec.zeros);
  }

  get inputs() {
    return [...this.#session.inputNames];
  }

  get outputs() {
    return [...this.#names];
  }

  /** @returns {void} prints the profile to the console, which is the only way that onnxruntime-web gives it */
  endProfiling() {
    this.#session.endProfiling();
  }

  release() {
    return this.#session.release();
  }

  /**
   * Runs once; `compute_ms` is what `time` times.
   * @param {WireTensors} feeds
   * @returns {Promise<{outputs: WireTensors, compute_ms: number}>}
   */
  async run(feeds) {
    const start = performance.now();
    const outputs = await this.#session.run(toTensors(this.#ort, feeds), this.#names);
    for (const name of this.#names) void outputs[name].data;
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
    const names = this.#names;
    let bad = 0;
    for (let i = 0; i < runs; i++) {
      const start = performance.now();
      const outputs = await session.run(toTensors(this.#ort, feeds), names);
      const scores = names.map((name) => outputs[name].data);
      samples[i] = performance.now() - start;
      if (!scores.every((data) => isUsable(data, this.#zeros))) bad++;
      for (const name of names) outputs[name].dispose();
    }
    return { samples, bad };
  }
}

/**
 * What all sessions of an engine have in common.
 * @param {EngineSpec} spec
 * @param {boolean} profiling
 * @returns {import('onnxruntime-web').InferenceSession.SessionOptions}
 */
export function sessionOptions(spec, profiling) {
  return {
    executionProviders: [spec.provider === 'webgpu' ? { name: 'webgpu' } : 'wasm'],
    graphOptimizationLevel: 'all',
    enableProfiling: profiling,
    extra: { session: { intra_op: { allow_spinning: spec.spinning ? '1' : '0' }, disable_cpu_ep_fallback: spec.strict ? '1' : '0' } },
  };
}

/** @param {Ort} ort @param {WireTensors} feeds */
export function toTensors(ort, feeds) {
  /** @type {Record<string, import('onnxruntime-web').Tensor>} */
  const tensors = {};
  for (const [name, { type, dims, data }] of Object.entries(feeds)) {
    tensors[name] = new ort.Tensor(/** @type {any} */ (type), /** @type {any} */ (data), dims);
  }
  return tensors;
}

/** Younger than the types that we check with. @type {any} */
const Half = /** @type {any} */ (globalThis).Float16Array;

/**
 * A lost device returns zeros and a broken kernel NaN: neither is an answer.
 * @param {unknown} data a tensor's data
 * @param {boolean} [zeros] whether zeros everywhere are an answer of this model
 */
export function isUsable(data, zeros = false) {
  if (!(data instanceof Float32Array || data instanceof Float64Array || (Half && data instanceof Half))) return true;
  const scores = /** @type {Float32Array} */ (data);
  let anyNonZero = zeros || scores.length === 0;
  for (const value of scores) {
    if (!Number.isFinite(value)) return false;
    if (value !== 0) anyNonZero = true;
  }
  return anyNonZero;
}
