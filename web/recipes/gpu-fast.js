/*
 * How to use this module (RECIPE, above, says for what it was made):
 *   1. npm install onnxruntime-web@VERSION, with the version that RECIPE names.
 *   2. import * as ort from 'onnxruntime-web/jspi' where RECIPE.build is jspi, from 'onnxruntime-web/webgpu' where it is asyncify.
 *      Set ort.env.wasm.wasmPaths where the files lie elsewhere.
 *   3. const model = await openModel(ort, 'model.onnx');
 *      const { q_values } = await model.run({ observation: { data: pixels, dims: [1, 4, 84, 84] } });
 *   4. Every run has the shapes of the first one. Open the model again for others.
 *
 * Tensors stay on the GPU; the outputs are copied into one buffer, and while it is being mapped the queue is asked for news, or
 * the browser tells milliseconds late. A captured graph is compared with an uncaptured one before it is used.
 */

/** @typedef {{type?: string, dims: readonly number[], data: any}} Tensor `type` is told from the typed array where it is left out */
/** @typedef {import('onnxruntime-web').InferenceSession} Session */

export const recipe = RECIPE;

const HOT_MS = 8;
const NUDGING_MS = 2_000;
const TOLERANCE = 1e-4;
const BYTES = /** @type {Record<string, number>} */ ({ float32: 4, int32: 4, uint32: 4, float16: 2, int64: 8, uint64: 8, uint8: 1, int8: 1, bool: 1 });
const NAMES = /** @type {Record<string, string>} */ ({
  Float32Array: 'float32', Int32Array: 'int32', Uint32Array: 'uint32', Float16Array: 'float16', BigInt64Array: 'int64', BigUint64Array: 'uint64', Uint8Array: 'uint8', Int8Array: 'int8',
});
const ARRAYS = /** @type {Record<string, any>} */ ({
  float32: Float32Array, int32: Int32Array, uint32: Uint32Array, float16: /** @type {any} */ (globalThis).Float16Array ?? Uint16Array, int64: BigInt64Array, uint64: BigUint64Array, uint8: Uint8Array, int8: Int8Array, bool: Uint8Array,
});

/**
 * Opens a model in the configuration of the recipe.
 * @param {typeof import('onnxruntime-web')} ort
 * @param {Uint8Array | ArrayBuffer | string} model an ONNX file, or its address
 * @returns {Promise<{run: (feeds: Record<string, Tensor>) => Promise<Record<string, Tensor>>, close: () => Promise<void>}>}
 */
export async function openModel(ort, model) {
  ort.env.wasm.numThreads = 1;
  const create = (/** @type {object} */ more) =>
    ort.InferenceSession.create(/** @type {any} */ (model), {
      // As an object: otherwise graph capture is ignored.
      executionProviders: [{ name: 'webgpu' }],
      graphOptimizationLevel: 'all',
      preferredOutputLocation: 'gpu-buffer',
      ...more,
    });
  const plain = await create({});
  const device = /** @type {GPUDevice} */ (await ort.env.webgpu.device);
  const nudge = nudger(device.queue);
  /** @type {Awaited<ReturnType<typeof prepare>> | null} */
  let prepared = null;
  /** Overlapping runs hang onnxruntime-web. @type {Promise<unknown>} */
  let queue = Promise.resolve();

  /** The first run fixes the shapes; only then can a graph be captured. @param {Record<string, Tensor>} feeds */
  async function prepare(feeds) {
    const shape = shapeOf(feeds);
    const uncaptured = runner(ort, device, plain, feeds, nudge);
    if (!RECIPE.capture) return { shape, infer: uncaptured, sessions: [plain] };
    try {
      const captured = await create({ enableGraphCapture: true, freeDimensionOverrides: fixed(plain, feeds) });
      const infer = runner(ort, device, captured, feeds, nudge);
      const other = changed(feeds);
      for (const asked of [feeds, other, feeds]) requireSame(await infer(asked), await uncaptured(asked));
      return { shape, infer, sessions: [captured, plain] };
    } catch (error) {
      console.warn('the graph is not captured:', error);
      return { shape, infer: uncaptured, sessions: [plain] };
    }
  }

  /** @param {Record<string, Tensor>} feeds */
  async function run(feeds) {
    prepared ??= await prepare(feeds);
    if (shapeOf(feeds) !== prepared.shape) throw new Error(`the inputs are ${shapeOf(feeds)}, but were ${prepared.shape} at first; open the model again for another shape`);
    return prepared.infer(feeds);
  }

  return {
    run(feeds) {
      const answer = queue.then(() => run(feeds));
      queue = answer.catch(() => {});
      return answer;
    },
    close: async () => {
      await queue;
      for (const session of prepared?.sessions ?? [plain]) await session.release();
    },
  };
}

/**
 * One session with buffers of its own for inputs of these shapes.
 * @param {typeof import('onnxruntime-web')} ort
 * @param {GPUDevice} device
 * @param {Session} session
 * @param {Record<string, Tensor>} feeds
 * @param {(mapped: Promise<void>) => Promise<void>} nudge
 */
function runner(ort, device, session, feeds, nudge) {
  /** @type {Record<string, {buffer: GPUBuffer, tensor: import('onnxruntime-web').Tensor}>} */
  const inputs = {};
  for (const [name, { dims, data, type = typeOf(data) }] of Object.entries(feeds)) {
    const buffer = device.createBuffer({ size: Math.ceil(data.byteLength / 16) * 16, usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC });
    inputs[name] = { buffer, tensor: ort.Tensor.fromGpuBuffer(buffer, { dataType: /** @type {any} */ (type), dims }) };
  }
  const tensors = Object.fromEntries(Object.entries(inputs).map(([name, { tensor }]) => [name, tensor]));
  /** @type {GPUBuffer | null} */
  let staging = null;

  return async (/** @type {Record<string, Tensor>} */ fed) => {
    for (const [name, { buffer }] of Object.entries(inputs)) {
      const { data } = fed[name];
      const bytes = new Uint8Array(Math.ceil(data.byteLength / 4) * 4);
      bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
      device.queue.writeBuffer(buffer, 0, bytes);
    }
    const outputs = await session.run(tensors);
    const places = [];
    let size = 0;
    for (const name of session.outputNames) {
      const tensor = outputs[name];
      const bytes = BYTES[tensor.type] * tensor.dims.reduce((product, length) => product * length, 1);
      places.push({ name, tensor, bytes, offset: size });
      size += Math.ceil(bytes / 16) * 16;
    }
    if (!staging || staging.size < size) staging = device.createBuffer({ size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
    const encoder = device.createCommandEncoder();
    for (const { tensor, bytes, offset } of places) encoder.copyBufferToBuffer(/** @type {any} */ (tensor.gpuBuffer), 0, staging, offset, Math.ceil(bytes / 4) * 4);
    device.queue.submit([encoder.finish()]);
    await nudge(staging.mapAsync(GPUMapMode.READ, 0, size));
    const range = staging.getMappedRange(0, size);
    /** @type {Record<string, Tensor>} */
    const answer = {};
    for (const { name, tensor, bytes, offset } of places) {
      answer[name] = { type: tensor.type, dims: [...tensor.dims], data: new ARRAYS[tensor.type](range.slice(offset, offset + bytes)) };
      tensor.dispose();
    }
    staging.unmap();
    return answer;
  };
}

/** Waits for a map and asks the queue for news meanwhile, for a bounded time. @param {GPUQueue} queue */
function nudger(queue) {
  const { port1, port2 } = new MessageChannel();
  let turned = () => {};
  port2.onmessage = () => turned();
  return async (/** @type {Promise<void>} */ mapped) => {
    let open = true;
    const settled = () => {
      open = false;
    };
    mapped.then(settled, settled);
    const start = performance.now();
    for (let elapsed = 0; open && elapsed < NUDGING_MS; elapsed = performance.now() - start) {
      queue.onSubmittedWorkDone().catch(() => {});
      await new Promise((resolve) => {
        turned = () => resolve(undefined);
        if (elapsed < HOT_MS) port1.postMessage(null);
        else setTimeout(turned, 1);
      });
    }
    await mapped;
  };
}

/** @param {any} data a typed array */
function typeOf(data) {
  return NAMES[data.constructor.name] ?? 'float32';
}

/** @param {Record<string, Tensor>} feeds */
function shapeOf(feeds) {
  return Object.entries(feeds).map(([name, { dims }]) => `${name}[${dims}]`).join(', ');
}

/** The sizes of free dimensions, by name. @param {Session} session @param {Record<string, Tensor>} feeds */
function fixed({ inputMetadata }, feeds) {
  /** @type {Record<string, number>} */
  const sizes = {};
  for (const input of inputMetadata) {
    if (!input.isTensor) continue;
    for (const [i, size] of input.shape.entries()) if (typeof size === 'string') sizes[size] = feeds[input.name].dims[i];
  }
  return sizes;
}

/** The same inputs in reverse, which a stale answer does not fit. @param {Record<string, Tensor>} feeds */
function changed(feeds) {
  return Object.fromEntries(Object.entries(feeds).map(([name, tensor]) => [name, { ...tensor, data: tensor.data.slice().reverse() }]));
}

/** @param {Record<string, Tensor>} found @param {Record<string, Tensor>} wanted */
function requireSame(found, wanted) {
  for (const [name, { data }] of Object.entries(wanted)) {
    for (const [i, value] of [...data].entries()) {
      const [x, y] = [Number(found[name].data[i]), Number(value)];
      if (Math.abs(x - y) > TOLERANCE * Math.max(1, Math.abs(y))) throw new Error(`${name}[${i}] is ${x}, not ${y}`);
    }
  }
}
