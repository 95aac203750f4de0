/**
 * The fast WebGPU runner: GPU buffers in and out, graph capture where it works, and a readback that does not wait for the
 * event loop. It opens the best of four ways that gives onnxruntime's own answers here, and says why it left a better one.
 *
 * Output buffers are onnxruntime's, not ours. A buffer that we handed over is registered for one run only, but a captured
 * graph keeps its handle: from the second run on it would name a buffer that is gone, or another one.
 */
import { DeviceWatch } from '../device.js';
import { AppError } from '../wire.js';
import { fitsBuffer } from './gpu-types.js';
import { climb } from './ladder.js';
import { Nudger, PATIENT, Readback } from './readback.js';
import { isUsable, sessionOptions, StockRunner, toTensors } from './stock.js';
import { Inputs, MappedUpload, QueueUpload, shapeKey } from './upload.js';
import { trials, verify } from './verify.js';

/** @typedef {import('../types.d.ts').Ort} Ort */
/** @typedef {import('../types.d.ts').EngineSpec} EngineSpec */
/** @typedef {import('../types.d.ts').WireTensors} WireTensors */
/** @typedef {import('../types.d.ts').Runner} Runner */
/** @typedef {import('onnxruntime-web').InferenceSession} Session */
/** @typedef {import('./verify.js').InputShape} InputShape */
/** @typedef {{from?: string, mapped?: boolean, stagings?: number}} Variant */

/** The ways, best first. */
const LABELS = ['capture + nudge', 'nudge', 'plain readback', 'stock'];

/** `fast` is what engines have; the others begin lower on the ladder or change one part, for `bench/gpu.py`. @type {Record<string, Variant>} */
const VARIANTS = {
  fast: {},
  'fast-nocapture': { from: 'nudge' },
  'fast-plain': { from: 'plain readback' },
  'fast-mapped-upload': { mapped: true },
  'fast-two-stagings': { stagings: 2 },
};

/** Shapes whose input buffers are kept. */
const KEPT_SHAPES = 4;

/**
 * @param {Ort} ort
 * @param {EngineSpec} spec
 * @param {Uint8Array} model an ONNX file
 * @param {boolean} profiling takes the way without capture unverified: a profile wants one run
 * @returns {Promise<Runner>}
 */
export async function openFast(ort, spec, model, profiling) {
  if (!Object.hasOwn(VARIANTS, spec.runner)) throw new AppError('UnknownRunner', `"${spec.runner}" is no way to run a model`);
  const opener = new Opener(ort, spec, model, VARIANTS[spec.runner]);
  return profiling ? opener.unverified(true) : opener.best();
}

/**
 * A runner that can let runs queue up, for measurements; its answers are not verified.
 * @param {Ort} ort
 * @param {EngineSpec} spec
 * @param {Uint8Array} model an ONNX file
 * @returns {Promise<{queued: (feeds: WireTensors, runs: number) => Promise<number>}>}
 */
export function openQueue(ort, spec, model) {
  return new Opener(ort, spec, model, VARIANTS['fast-nocapture']).unverified(false);
}

/** Opens one model's ways. */
class Opener {
  #ort;
  #spec;
  #model;
  #variant;
  /** The session without capture: it takes all shapes, and its own way of moving tensors is the reference. @type {Session | null} */
  #general = null;
  /** @type {DeviceWatch | null} */
  #watch = null;
  /** @type {WireTensors[]} */
  #cases = [];
  /** @type {Promise<WireTensors[]> | null} */
  #reference = null;

  /** @param {Ort} ort @param {EngineSpec} spec @param {Uint8Array} model @param {Variant} variant */
  constructor(ort, spec, model, variant) {
    this.#ort = ort;
    this.#spec = spec;
    this.#model = model;
    this.#variant = variant;
  }

  /** @param {boolean} profiling */
  async unverified(profiling) {
    const device = await this.#prepare(profiling);
    const runner = this.#runner(/** @type {Session} */ (this.#general), device, 'nudge');
    runner.label = 'fast: nudge';
    return runner;
  }

  async best() {
    const { way, label, fallbacks } = await this.#climb(this.#variant.from ?? LABELS[0]);
    way.label = `fast: ${label}`;
    way.fallbacks = fallbacks;
    return way;
  }

  /** @param {string} from the label of the best way to try */
  #climb(from) {
    /** @type {Record<string, () => Promise<Runner>>} */
    const open = {
      'capture + nudge': () => this.#captured(),
      nudge: () => this.#uncaptured('nudge'),
      'plain readback': () => this.#uncaptured('plain readback'),
      stock: () => StockRunner.open(this.#ort, this.#spec, this.#model, false),
    };
    const rungs = LABELS.slice(LABELS.indexOf(from)).map((label) => ({ label, open: open[label] }));
    return climb(rungs, () => this.#watch?.lost ?? false);
  }

  async #captured() {
    const device = await this.#prepare(false);
    const general = /** @type {Session} */ (this.#general);
    const overrides = fixedDimensions(general, this.#spec.sizes);
    const session = await this.#ort.InferenceSession.create(this.#model, {
      ...sessionOptions(this.#spec, false),
      preferredOutputLocation: 'gpu-buffer',
      enableGraphCapture: true,
      freeDimensionOverrides: overrides,
    });
    const runner = this.#runner(session, device, 'nudge');
    try {
      await this.#verify(runner, true);
    } catch (error) {
      session.release().catch(() => {});
      throw error;
    }
    runner.fixShape(this.#cases[0], async () => (await this.#climb('nudge')).way);
    // A model without free dimensions has no other shape.
    if (!Object.keys(overrides).length) await this.#release();
    return runner;
  }

  /** @param {'nudge' | 'plain readback'} label */
  async #uncaptured(label) {
    const device = await this.#prepare(false);
    const runner = this.#runner(/** @type {Session} */ (this.#general), device, label);
    await this.#verify(runner, false);
    return runner;
  }

  /** @param {Session} session @param {GPUDevice} device @param {string} label */
  #runner(session, device, label) {
    const readback = new Readback(device, label === 'nudge' ? new Nudger(device.queue) : PATIENT, this.#variant.stagings);
    const upload = this.#variant.mapped ? new MappedUpload(device) : new QueueUpload(device);
    return new GpuRunner(session, readback, (feeds) => new Inputs(this.#ort, device, upload, feeds), this.#spec.zeros);
  }

  /** Opens what all ways but the last need. @param {boolean} profiling @returns {Promise<GPUDevice>} */
  async #prepare(profiling) {
    this.#general ??= await this.#ort.InferenceSession.create(this.#model, {
      ...sessionOptions(this.#spec, profiling),
      preferredOutputLocation: 'gpu-buffer',
    });
    const device = /** @type {GPUDevice} */ (await this.#ort.env.webgpu.device);
    this.#watch ??= new DeviceWatch(device);
    if (!this.#cases.length) this.#cases = trials(inputShapes(this.#general, this.#spec.sizes));
    return device;
  }

  /** @param {GpuRunner} runner @param {boolean} changing */
  async #verify(runner, changing) {
    const watch = /** @type {DeviceWatch} */ (this.#watch);
    const wrong = await watch.guard(() => verify((feeds) => runner.infer(feeds), this.#cases, () => this.#answers(), { changing }));
    if (wrong) throw new Error(wrong);
  }

  /** Onnxruntime's own way with the same inputs: tensors from the CPU, and its own download. */
  #answers() {
    this.#reference ??= (async () => {
      const session = /** @type {Session} */ (this.#general);
      const answers = [];
      for (const feeds of this.#cases) {
        const outputs = await session.run(toTensors(this.#ort, feeds));
        /** @type {WireTensors} */
        const answer = {};
        for (const [name, tensor] of Object.entries(outputs)) {
          const data = /** @type {any} */ (await tensor.getData());
          answer[name] = { type: /** @type {any} */ (tensor.type), dims: [...tensor.dims], data: data.slice() };
          tensor.dispose();
        }
        answers.push(answer);
      }
      return answers;
    })();
    return this.#reference;
  }

  async #release() {
    await this.#general?.release();
    this.#general = null;
  }
}

/** One session with GPU buffers in and out. @implements {Runner} */
class GpuRunner {
  label = '';
  /** @type {string[]} */
  fallbacks = [];
  #session;
  #readback;
  #makeInputs;
  #zeros;
  /** Latest last. @type {Map<string, Inputs>} */
  #shapes = new Map();
  /** The shape of a captured graph. @type {string | null} */
  #fixed = null;
  /** Opens what runs other shapes. @type {() => Promise<Runner>} */
  #openOthers = () => Promise.reject(new Error('this runner takes all shapes'));
  /** @type {Promise<Runner> | null} */
  #others = null;

  /**
   * @param {Session} session
   * @param {Readback} readback
   * @param {(feeds: WireTensors) => Inputs} makeInputs
   * @param {boolean} [zeros] whether zeros everywhere are an answer
   */
  constructor(session, readback, makeInputs, zeros) {
    this.#session = session;
    this.#readback = readback;
    this.#makeInputs = makeInputs;
    this.#zeros = zeros;
  }

  get inputs() {
    return [...this.#session.inputNames];
  }

  get outputs() {
    return [...this.#session.outputNames];
  }

  endProfiling() {
    this.#session.endProfiling();
  }

  release() {
    return this.#session.release();
  }

  /**
   * Runs the shape of these feeds only; `others` opens what runs all others.
   * @param {WireTensors} feeds
   * @param {() => Promise<Runner>} others
   */
  fixShape(feeds, others) {
    this.#fixed = shapeKey(this.#session.inputNames, feeds);
    this.#openOthers = others;
  }

  /** @param {WireTensors} feeds @returns {Promise<{outputs: WireTensors, compute_ms: number}>} */
  async run(feeds) {
    const other = await this.#other(feeds);
    if (other) return other.run(feeds);
    const start = performance.now();
    const outputs = await this.infer(feeds);
    return { outputs, compute_ms: performance.now() - start };
  }

  /**
   * Times runs as the stock runner does: from the caller's arrays until every output is in arrays again.
   * @param {WireTensors} feeds
   * @param {number} runs
   * @returns {Promise<{samples: Float64Array, bad: number}>}
   */
  async time(feeds, runs) {
    const other = await this.#other(feeds);
    if (other) return other.time(feeds, runs);
    const samples = new Float64Array(runs);
    let bad = 0;
    for (let i = 0; i < runs; i++) {
      const start = performance.now();
      const outputs = await this.infer(feeds);
      samples[i] = performance.now() - start;
      if (!Object.values(outputs).every(({ data }) => isUsable(data, this.#zeros))) bad++;
    }
    return { samples, bad };
  }

  /** @param {WireTensors} feeds @returns {Promise<WireTensors>} */
  async infer(feeds) {
    const inputs = this.#inputsFor(feeds);
    inputs.fill(feeds);
    return this.#readback.read(this.#session.outputNames, await this.#session.run(inputs.tensors));
  }

  /**
   * Runs the model many times and waits for the last one only.
   * @param {WireTensors} feeds
   * @param {number} runs
   * @returns {Promise<number>} milliseconds of them all
   */
  async queued(feeds, runs) {
    const inputs = this.#inputsFor(feeds);
    inputs.fill(feeds);
    const names = this.#session.outputNames;
    const start = performance.now();
    for (let i = 1; i < runs; i++) {
      const outputs = await this.#session.run(inputs.tensors);
      for (const name of names) outputs[name].dispose();
    }
    await this.#readback.read(names, await this.#session.run(inputs.tensors));
    return performance.now() - start;
  }

  /** @param {WireTensors} feeds */
  #inputsFor(feeds) {
    const key = shapeKey(this.#session.inputNames, feeds);
    const found = this.#shapes.get(key);
    if (!found) this.#requireTypes(feeds);
    this.#shapes.delete(key);
    const inputs = found ?? this.#makeInputs(feeds);
    this.#shapes.set(key, inputs);
    if (this.#shapes.size > KEPT_SHAPES) {
      const [[oldest, unused]] = this.#shapes;
      unused.destroy();
      this.#shapes.delete(oldest);
    }
    return inputs;
  }

  /** After a run that onnxruntime-web refuses, it goes on with that run's inputs, so it is not asked. @param {WireTensors} feeds */
  #requireTypes(feeds) {
    for (const input of this.#session.inputMetadata) {
      const { name } = input;
      if (input.isTensor && input.type !== feeds[name].type) throw new Error(`input '${name}' is ${feeds[name].type}, but the model takes ${input.type}`);
    }
  }

  /** @param {WireTensors} feeds @returns {Promise<Runner | null>} who runs this shape; null: this one */
  async #other(feeds) {
    if (this.#fixed === null || shapeKey(this.#session.inputNames, feeds) === this.#fixed) return null;
    this.#others ??= this.#openOthers().catch((error) => {
      this.#others = null;
      throw error;
    });
    return this.#others;
  }
}

/**
 * @param {Session} session
 * @param {Record<string, number>} [sizes] of free dimensions; 1 where none is given
 * @returns {InputShape[]}
 */
function inputShapes({ inputMetadata, outputMetadata }, sizes = {}) {
  for (const value of [...inputMetadata, ...outputMetadata]) {
    if (!value.isTensor) throw new Error(`${value.name} is no tensor`);
    if (!fitsBuffer(value.type)) throw new Error(`${value.name} is ${value.type}, which no GPU buffer of onnxruntime-web holds`);
  }
  return inputMetadata.map((input) => {
    const { name, type, shape } = /** @type {any} */ (input);
    const dims = shape.map((/** @type {number | string} */ size, /** @type {number} */ axis) => {
      if (typeof size === 'number' && isFixed(size)) return size;
      return sizes[typeof size === 'string' ? size : `${name}[${axis}]`] ?? 1;
    });
    return { name, type, dims };
  });
}

/** A free dimension without a name is -1, as an unsigned number. @param {number} size */
function isFixed(size) {
  return size >= 0 && size < 2 ** 31;
}

/**
 * @param {Session} session
 * @param {Record<string, number>} [sizes] 1 where none is given
 * @returns {Record<string, number>} of every free dimension, by its name
 */
function fixedDimensions({ inputMetadata }, sizes = {}) {
  /** @type {Record<string, number>} */
  const overrides = {};
  for (const input of inputMetadata) {
    for (const size of input.isTensor ? input.shape : []) {
      if (typeof size === 'string') overrides[size] = sizes[size] ?? 1;
      else if (!isFixed(size)) throw new Error(`${input.name} has a free dimension without a name, and a captured graph has fixed shapes`);
    }
  }
  return overrides;
}
