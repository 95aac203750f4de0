/**
 * Where the time of a run goes, stage by stage.
 *
 * On the GPU, the stages lie between seams that a `GpuTrace` marks: *upload* until the first computation is recorded, *dispatch* until
 * everything is submitted, then the GPU's *compute*, *wait* from the moment it is done until the browser tells that the outputs
 * can be mapped, *readback* until they are in arrays. How long the GPU computes is measured in runs of their own.
 */
import { AppError } from '../wire.js';
import { Nudger, PATIENT } from './readback.js';
import { GpuClock } from './gpu-trace.js';

/** @typedef {import('../types.d.ts').Ort} Ort */
/** @typedef {import('../types.d.ts').Runner} Runner */
/** @typedef {import('../types.d.ts').WireTensors} WireTensors */
/** @typedef {import('../types.d.ts').StageTimes} StageTimes */
/** @typedef {import('./gpu-trace.js').GpuTrace} GpuTrace */
/** @typedef {import('./wasm-trace.js').WasmTrace} WasmTrace */

/** Runs in a queue; only the last one is waited for. */
const QUEUED = 20;

/** Of a clock in steps of 0.1 ms, a mean of fewer tells too little of a computation that takes 0.1 ms. */
const MIN_CLOCKED = 20;

const WARMUP = 3;

/**
 * @param {Runner} runner an open one
 * @param {GPUDevice} device
 * @param {GpuTrace} trace of this realm
 * @param {() => Promise<{queued: (feeds: WireTensors, runs: number) => Promise<number>}>} openQueue opens what runs the model without reading
 * @param {WireTensors} feeds
 * @param {number} runs of each kind
 * @returns {Promise<StageTimes>}
 */
export async function gpuStages(runner, device, trace, openQueue, feeds, runs) {
  await runner.time(feeds, WARMUP);
  const clock = device.features.has('timestamp-query') ? new GpuClock(device) : null;
  const clocked = clock ? await repeated(Math.max(runs, MIN_CLOCKED), () => trace.gpuTime(clock, () => runner.time(feeds, 1))) : [];
  const compute = usable(clocked) ? { ms: mean(clocked), source: "the GPU's clock" } : await amortised(openQueue, feeds, runs);
  const floor = await floorOf(device, runner.label.includes('nudge'), runs);
  /** @type {StageTimes} */
  const found = { stages: { upload: [], dispatch: [], compute: [], wait: [], readback: [] }, compute_from: compute.source, floor_ms: floor };
  for (let i = 0; i < runs; i++) {
    let ms = 0;
    const start = performance.now();
    const { recorded, submitted, told } = await trace.marks(async () => {
      ms = (await runner.time(feeds, 1)).samples[0];
    });
    if (![recorded, submitted, told].every(Number.isFinite)) {
      throw new AppError('NoStages', 'this model does nothing on the GPU that could be told apart', 'Look at what ran, and where.');
    }
    const done = Math.min(submitted + compute.ms, told);
    found.stages.upload.push(recorded - start);
    found.stages.dispatch.push(submitted - recorded);
    found.stages.compute.push(compute.ms);
    found.stages.wait.push(told - done);
    found.stages.readback.push(Math.max(0, start + ms - told)); // the runner's own clock starts a moment later
  }
  return found;
}

/**
 * The stages on WASM: what lies before and after the stay in WebAssembly are the copies in and out of its memory.
 * @param {Runner} runner an open one
 * @param {WasmTrace} trace of this realm
 * @param {WireTensors} feeds
 * @param {number} runs
 * @returns {Promise<StageTimes>}
 */
export async function wasmStages(runner, trace, feeds, runs) {
  await runner.time(feeds, WARMUP);
  /** @type {StageTimes} */
  const found = { stages: { upload: [], compute: [], readback: [] }, compute_from: 'the time inside of WebAssembly', floor_ms: null };
  for (let i = 0; i < runs; i++) {
    let ms = 0;
    const start = performance.now();
    const { entered, left } = await trace.stay(async () => {
      ms = (await runner.time(feeds, 1)).samples[0];
    });
    if (Number.isNaN(entered)) throw new AppError('NoStages', 'this engine runs in WebAssembly that could not be watched', 'Look at the times of whole runs.');
    found.stages.upload.push(entered - start);
    found.stages.compute.push(left - entered);
    found.stages.readback.push(Math.max(0, start + ms - left));
  }
  return found;
}

/**
 * One run of many in a queue of which only the last is waited for: what the GPU needs, or what it takes to ask it, whichever is more.
 * @param {() => Promise<{queued: (feeds: WireTensors, runs: number) => Promise<number>}>} openQueue
 * @param {WireTensors} feeds
 * @param {number} repeats
 */
async function amortised(openQueue, feeds, repeats) {
  const runner = await openQueue();
  await runner.queued(feeds, WARMUP);
  const pairs = await repeated(Math.max(3, Math.ceil(repeats / QUEUED)), async () => {
    const one = await runner.queued(feeds, 1);
    return ((await runner.queued(feeds, QUEUED)) - one) / (QUEUED - 1);
  });
  return { ms: Math.max(0, pairs.toSorted((a, b) => a - b)[pairs.length >> 1]), source: `a queue of ${QUEUED} runs` };
}

/**
 * The least that an answer from this device takes: one empty dispatch, and 16 bytes to read.
 * @param {GPUDevice} device
 * @param {boolean} nudged whether to wait as the fast runner does
 * @param {number} repeats
 * @returns {Promise<number[]>} milliseconds
 */
async function floorOf(device, nudged, repeats) {
  const module = device.createShaderModule({ code: '@compute @workgroup_size(1) fn main() {}' });
  const pipeline = await device.createComputePipelineAsync({ layout: 'auto', compute: { module, entryPoint: 'main' } });
  const source = device.createBuffer({ size: 16, usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC });
  const staging = device.createBuffer({ size: 16, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
  const waiter = nudged ? new Nudger(device.queue) : PATIENT;
  const round = async () => {
    const start = performance.now();
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.dispatchWorkgroups(1);
    pass.end();
    encoder.copyBufferToBuffer(source, 0, staging, 0, 16);
    device.queue.submit([encoder.finish()]);
    await waiter.settle(staging.mapAsync(GPUMapMode.READ));
    staging.getMappedRange().slice(0);
    staging.unmap();
    return performance.now() - start;
  };
  await repeated(WARMUP, round);
  return repeated(repeats, round);
}

/** @param {number[]} clocked what the GPU's clock said; some say nothing, or only zero */
function usable(clocked) {
  return clocked.length > 0 && clocked.every(Number.isFinite) && mean(clocked) > 0;
}

/** @param {number[]} values */
function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** @template T @param {number} times @param {() => Promise<T>} work @returns {Promise<T[]>} one after the other */
async function repeated(times, work) {
  const found = [];
  for (let i = 0; i < times; i++) found.push(await work());
  return found;
}
