/**
 * One engine: one worker, one realm, one configuration of onnxruntime-web, one queue.
 *
 * The page starts it with a MessagePort, over which somebody else (Python, as it happens) calls the verbs below. Before
 * and after each verb it tells the page how long the verb may take, so that the page can end a worker that hangs.
 */
import { filesOf, loadBuild, pickBuild } from './builds.js';
import { clockStep } from './clock.js';
import { DeviceWatch } from './device.js';
import { insist } from './download.js';
import { adapterFacts, requireAdapter } from './gpu.js';
import { serveLane } from './lane.js';
import { listenForProfile, nodesOf } from './profile.js';
import { openQueue } from './runners/gpu-fast.js';
import { GpuTrace } from './runners/gpu-trace.js';
import { openRunner } from './runners/open.js';
import { gpuStages, wasmStages } from './runners/stages.js';
import { WasmTrace } from './runners/wasm-trace.js';
import { AppError, Peer, transfer } from './wire.js';

/** @typedef {import('./types.d.ts').EngineSpec} EngineSpec */
/** @typedef {import('./types.d.ts').EngineFacts} EngineFacts */
/** @typedef {import('./types.d.ts').WireTensors} WireTensors */

/** @type {import('./types.d.ts').Runner | null} */
let runner = null;
/** None where the engine has no GPU. @type {DeviceWatch | null} */
let watch = null;
/** @type {ReturnType<typeof listenForProfile> | null} */
let readProfile = null;
/** What `stages` needs, in an engine that was opened for it. @type {((feeds: WireTensors, runs: number) => Promise<import('./types.d.ts').StageTimes>) | null} */
let measureStages = null;
/** Opens another model as the first one was. @type {((model: Uint8Array) => Promise<import('./types.d.ts').Runner>) | null} */
let openAnother = null;
/** @type {URL} */
let ortBase;
/** @type {import('./download.js').Part[]} onnxruntime-web's */
let files = [];
/** Overlapping runs hang onnxruntime-web's WebGPU provider, so verbs wait for each other here. */
let queue = Promise.resolve();

function opened() {
  if (!runner) throw new AppError('NotOpen', 'the engine has not been opened', 'Call open first.');
  return runner;
}

const verbs = {
  /**
   * @param {EngineSpec} spec
   * @param {Uint8Array} model
   * @param {{purpose: 'run' | 'profile' | 'stages'}} options what comes next; a profile or stages slow a session down
   * @returns {Promise<EngineFacts>}
   */
  async open(spec, model, { purpose }) {
    if (runner) throw new AppError('AlreadyOpen', 'an engine is opened once', 'Start another engine.');
    const adapter = spec.provider === 'webgpu' ? await requireAdapter() : null;
    if (adapter && spec.precision === 'float16') requireHalves(adapter);
    const build = pickBuild(spec);
    if (purpose === 'profile') readProfile = listenForProfile();
    // Before onnxruntime-web is imported: it takes hold of what it uses when it starts.
    const gpuTrace = purpose === 'stages' && adapter ? new GpuTrace() : null;
    const wasmTrace = purpose === 'stages' && !adapter ? new WasmTrace() : null;
    // Its wasm comes with the first session.
    const { ort, opened, create_ms } = await insist(async () => {
      const ort = await loadBuild(build, ortBase, spec.threads);
      const start = performance.now();
      const opened = await openRunner(ort, spec, model, purpose === 'profile');
      return { ort, opened, create_ms: performance.now() - start };
    }, filesOf(build, ortBase, files));
    openAnother = (another) => openRunner(ort, spec, another, purpose === 'profile');
    runner = opened;
    if (adapter) {
      const device = /** @type {GPUDevice} */ (await ort.env.webgpu.device);
      watch = new DeviceWatch(device);
      const queue = async () => ('queued' in opened ? /** @type {any} */ (opened) : openQueue(ort, spec, model));
      if (gpuTrace) measureStages = (feeds, runs) => gpuStages(opened, device, gpuTrace, queue, feeds, runs);
    }
    if (wasmTrace) measureStages = (feeds, runs) => wasmStages(opened, wasmTrace, feeds, runs);
    return {
      provider: spec.provider,
      build,
      runner: runner.label,
      fallbacks: runner.fallbacks,
      threads: ort.env.wasm.numThreads ?? 1,
      adapter: adapter && adapterFacts(await actualAdapterInfo(ort, adapter)),
      clock_step_ms: clockStep(),
      create_ms,
      inputs: runner.inputs,
      outputs: runner.outputs,
    };
  },

  /**
   * Opens another model in the place of the first: for thousands of small ones, where a realm for each would take an hour.
   * Only for the stock runner, whose sessions share nothing but the realm. A model that cannot be opened leaves the former one open.
   * @param {Uint8Array} model
   */
  async replace(model) {
    const open = required(openAnother);
    if (runner && runner.label !== 'stock') throw new AppError('WrongPurpose', `a model of the runner "${runner.label}" is not replaced`, 'Open another engine.');
    // The new one first: where its last session goes, onnxruntime-web destroys the GPU's device.
    const another = await open(model);
    await runner?.release();
    runner = another;
    return { inputs: another.inputs, outputs: another.outputs };
  },

  /** @param {WireTensors} feeds */
  async run(feeds) {
    const answer = await onDevice(() => opened().run(feeds));
    for (const output of Object.values(answer.outputs)) output.data = portable(output.data);
    return transfer(answer, Object.values(answer.outputs).map(({ data }) => /** @type {ArrayBuffer} */ (data.buffer)));
  },

  /**
   * Opens a fast lane, on which runs of one input of this type and shape are asked for without messages.
   * @param {SharedArrayBuffer} buffer
   * @param {string} name of the input
   * @param {{type: 'float32', dims: number[]}} shape
   */
  async lane(buffer, name, { type, dims }) {
    const count = dims.reduce((product, size) => product * size, 1);
    const run = unwatched(async (/** @type {ArrayBuffer} */ input) => {
      const { outputs, compute_ms } = await onDevice(() => opened().run({ [name]: { type, dims, data: new Float32Array(input) } }));
      return { output: Object.values(outputs)[0].data, compute_ms };
    });
    serveLane(buffer, count * Float32Array.BYTES_PER_ELEMENT, run);
  },

  /** @param {WireTensors} feeds @param {number} runs */
  async time(feeds, runs) {
    const timed = await onDevice(() => opened().time(feeds, runs));
    return transfer(timed, [/** @type {ArrayBuffer} */ (timed.samples.buffer)]);
  },

  /** Runs once and tells which provider ran which node; the engine must have been opened for a profile. */
  async profile(/** @type {WireTensors} */ feeds) {
    const session = opened();
    const read = required(readProfile);
    await onDevice(() => session.run(feeds));
    return nodesOf(await read(() => session.endProfiling()));
  },

  /** Measures each stage of a run by itself; the engine must have been opened for stages, and is asked once. @param {WireTensors} feeds @param {number} runs */
  async stages(feeds, runs) {
    const measure = required(measureStages);
    return onDevice(() => measure(feeds, runs));
  },
};

/** @template T @param {T | null} tool @returns {T} */
function required(tool) {
  if (!tool) throw new AppError('WrongPurpose', 'the engine was not opened for this', 'Open another one.');
  return tool;
}

/** @param {GPUAdapter} adapter */
function requireHalves(adapter) {
  if (adapter.features.has('shader-f16')) return;
  throw new AppError('NoFloat16', 'this graphics adapter does not compute in 16-bit floats (WebGPU feature shader-f16)', 'Use an engine with float32.');
}

/**
 * Does work that ends at once where the GPU's device is lost.
 * @template T
 * @param {() => Promise<T>} work
 */
function onDevice(work) {
  return watch ? watch.guard(work) : work();
}

/**
 * Python knows no halves, so that they cross as their bits.
 * @param {import('./types.d.ts').WireTensor['data']} data
 */
function portable(data) {
  const Half = /** @type {any} */ (globalThis).Float16Array;
  return Half && /** @type {unknown} */ (data) instanceof Half ? new Uint16Array(data.buffer, data.byteOffset, data.length) : data;
}

/**
 * The device's own adapter says more surely what ran than the one that we asked for.
 * @param {import('./types.d.ts').Ort} ort
 * @param {GPUAdapter} asked
 * @returns {Promise<GPUAdapterInfo>}
 */
async function actualAdapterInfo(ort, asked) {
  const device = /** @type {any} */ (await ort.env.webgpu.device);
  return device?.adapterInfo ?? asked.info;
}

/**
 * Puts work into the queue.
 * @template {any[]} A
 * @template T
 * @param {(...args: A) => Promise<T>} work
 */
function unwatched(work) {
  return (/** @type {A} */ ...args) => {
    const result = queue.then(() => work(...args));
    queue = result.then(
      () => {},
      () => {},
    );
    return result;
  };
}

/**
 * Puts a verb into the queue and reports it to the page's watchdog.
 * @param {string} verb
 * @param {(...args: any[]) => Promise<unknown>} work
 */
function queued(verb, work) {
  return unwatched(async (/** @type {number} */ limitMs, /** @type {any[]} */ ...args) => {
    self.postMessage({ busy: verb, limitMs });
    try {
      return await work(...args);
    } finally {
      self.postMessage({ busy: null });
    }
  });
}

self.addEventListener(
  'message',
  ({ data }) => {
    ortBase = new URL(data.ortBase);
    files = data.files;
    self.postMessage({ busy: null });
    const waiting = Object.entries(verbs).map(([verb, work]) => [verb, queued(verb, work)]);
    // Does not wait for its turn: it is there to see what becomes of a run that is under way.
    new Peer(data.port, { ...Object.fromEntries(waiting), lose: () => watch?.lose() });
  },
  { once: true },
);
