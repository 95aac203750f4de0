/** Where a run's time goes, under Node.js: with a GPU and a WebAssembly that take as long as they are told. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

const TOLD = { upload: 3, dispatch: 4, gpu: 12, wait: 5, readback: 2 };
let now = 1_000;
globalThis.performance = /** @type {any} */ ({ now: () => now });
const later = () => Promise.resolve();

globalThis.GPUBufferUsage = /** @type {any} */ ({ QUERY_RESOLVE: 1, COPY_SRC: 2, MAP_READ: 4, COPY_DST: 8, STORAGE: 16 });
globalThis.GPUMapMode = /** @type {any} */ ({ READ: 1 });

/** The GPU's own clock, which the browser rounds. */
const clock = { ms: 0, step: 0, broken: false };
const nanoseconds = () => BigInt(Math.round((clock.step ? Math.floor(clock.ms / clock.step) * clock.step : clock.ms) * 1e6));

class GPUCommandEncoder {
  commands = [];
  beginComputePass({ timestampWrites } = {}) {
    const { querySet, beginningOfPassWriteIndex: begin, endOfPassWriteIndex: end } = timestampWrites ?? {};
    if (querySet) this.commands.push(() => (querySet.values[begin ?? end] = clock.broken ? 0n : nanoseconds()));
    return { setPipeline() {}, dispatchWorkgroups() {}, end() {} };
  }
  computes(ms) {
    this.commands.push(() => (clock.ms += ms));
  }
  resolveQuerySet({ values }, first, count, target) {
    this.commands.push(() => (target.content = BigUint64Array.from(values.slice(first, first + count), (value) => value ?? 0n).buffer));
  }
  copyBufferToBuffer(source, from, target) {
    this.commands.push(() => (target.content = source.content));
  }
  finish() {
    return this.commands;
  }
}
class GPUQueue {
  submit(buffers) {
    for (const commands of buffers) for (const command of commands) command();
  }
  onSubmittedWorkDone() {
    return later();
  }
}
class GPUBuffer {
  content = new ArrayBuffer(16);
  /** Until the page is told that it is mapped. */
  takes = 0;
  async mapAsync() {
    await later();
    now += this.takes;
  }
  getMappedRange() {
    return this.content;
  }
  unmap() {}
}
Object.assign(globalThis, { GPUCommandEncoder, GPUQueue, GPUBuffer });

const device = (features = []) => ({
  features: new Set(features),
  queue: new GPUQueue(),
  createCommandEncoder: () => new GPUCommandEncoder(),
  createBuffer: () => new GPUBuffer(),
  createQuerySet: () => ({ values: [] }),
  createShaderModule: () => ({}),
  createComputePipelineAsync: async () => ({}),
});

/** A runner on a device; what it does not do on the GPU takes time all the same. */
const runnerOn = (gpu, { idle = false } = {}) => ({
  label: 'stock',
  async time() {
    const start = now;
    now += TOLD.upload;
    if (!idle) {
      const encoder = gpu.createCommandEncoder();
      encoder.beginComputePass().end();
      encoder.computes(TOLD.gpu);
      now += TOLD.dispatch;
      gpu.queue.submit([encoder.finish()]);
      const staging = gpu.createBuffer();
      staging.takes = TOLD.gpu + TOLD.wait;
      await staging.mapAsync();
    }
    now += TOLD.readback;
    return { samples: [now - start], bad: 0 };
  },
});

const { GpuTrace } = await import('../../web/runners/gpu-trace.js');
const { WasmTrace } = await import('../../web/runners/wasm-trace.js');
const { gpuStages, wasmStages } = await import('../../web/runners/stages.js');
const trace = new GpuTrace();
/** Runs that queue up: what the GPU needs, and once what it takes to be told. */
const queue = async () => ({ queued: async (feeds, runs) => runs * TOLD.gpu + TOLD.wait });
const noQueue = () => assert.fail('there is a clock, so no queue is needed');

const middle = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
const near = (found, wanted, by = 1e-9) => assert.ok(Math.abs(found - wanted) <= by, `${found} is not ${wanted} ± ${by}`);

test('each stage lies between its own seams', async () => {
  const gpu = device(['timestamp-query']);
  const found = await gpuStages(runnerOn(gpu), gpu, trace, noQueue, {}, 5);
  assert.equal(found.compute_from, "the GPU's clock");
  assert.deepEqual(Object.keys(found.stages), ['upload', 'dispatch', 'compute', 'wait', 'readback']);
  for (const ms of Object.values(found.stages)) assert.equal(ms.length, 5);
  near(middle(found.stages.upload), TOLD.upload);
  near(middle(found.stages.dispatch), TOLD.dispatch);
  near(middle(found.stages.compute), TOLD.gpu);
  near(middle(found.stages.wait), TOLD.wait);
  near(middle(found.stages.readback), TOLD.readback);
  const total = Object.values(found.stages).reduce((sum, ms) => sum + middle(ms), 0);
  near(total, TOLD.upload + TOLD.dispatch + TOLD.gpu + TOLD.wait + TOLD.readback);
});

test('a clock that steps is right on the mean', async () => {
  const gpu = device(['timestamp-query']);
  clock.step = 5;
  const found = await gpuStages(runnerOn(gpu), gpu, trace, noQueue, {}, 50);
  clock.step = 0;
  near(found.stages.compute[0], TOLD.gpu, 1);
});

test('without a clock, a queue of runs is timed', async () => {
  const gpu = device();
  const found = await gpuStages(runnerOn(gpu), gpu, trace, queue, {}, 5);
  assert.equal(found.compute_from, 'a queue of 20 runs');
  near(found.stages.compute[0], TOLD.gpu);
});

test('a clock that says nothing is not believed', async () => {
  const gpu = device(['timestamp-query']);
  clock.broken = true;
  const found = await gpuStages(runnerOn(gpu), gpu, trace, queue, {}, 5);
  clock.broken = false;
  assert.equal(found.compute_from, 'a queue of 20 runs');
});

test('the floor is measured on the same device', async () => {
  const gpu = device();
  const found = await gpuStages(runnerOn(gpu), gpu, trace, queue, {}, 7);
  assert.equal(found.floor_ms?.length, 7);
});

test('an engine that does nothing on the GPU is an error with a remedy', async () => {
  const gpu = device();
  await assert.rejects(gpuStages(runnerOn(gpu, { idle: true }), gpu, trace, queue, {}, 3), { name: 'NoStages', message: /nothing on the GPU/ });
});

test('a run that fails leaves nothing behind', async () => {
  await assert.rejects(trace.marks(() => Promise.reject(new Error('lost'))), /lost/);
  const gpu = device();
  const found = await gpuStages(runnerOn(gpu), gpu, trace, queue, {}, 3);
  near(middle(found.stages.upload), TOLD.upload);
});

/** Exports `run`, which calls back `host.during`, and `free`, which does nothing. */
const MODULE = Uint8Array.of(
  0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 2, 15, 1, 4, 104, 111, 115, 116, 6, 100, 117, 114, 105, 110, 103, 0, 0, 3, 3, 2, 0, 0,
  7, 14, 2, 3, 114, 117, 110, 0, 1, 4, 102, 114, 101, 101, 0, 2, 10, 9, 2, 4, 0, 16, 0, 11, 2, 0, 11,
);

test('on WASM, the run is the longest stay in WebAssembly', async () => {
  const wasm = new WasmTrace();
  const { instance } = await WebAssembly.instantiate(MODULE, { host: { during: () => (now += 10) } });
  const { run, free } = /** @type {any} */ (instance.exports);
  const runner = {
    async time() {
      const start = now;
      now += 2;
      free();
      run();
      free();
      now += 1;
      return { samples: [now - start], bad: 0 };
    },
  };
  const found = await wasmStages(runner, wasm, {}, 4);
  assert.deepEqual(found.stages, { upload: [2, 2, 2, 2], compute: [10, 10, 10, 10], readback: [1, 1, 1, 1] });
  assert.equal(found.floor_ms, null);
});

test('WebAssembly that cannot be watched is an error', async () => {
  const runner = { time: async () => ({ samples: [1], bad: 0 }) };
  await assert.rejects(wasmStages(runner, new WasmTrace(), {}, 2), { name: 'NoStages' });
});
