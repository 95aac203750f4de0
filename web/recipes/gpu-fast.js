/*
 * How to use this module (RECIPE, above, says for what it was made):
 *   1. npm install onnxruntime-web@VERSION, with the version that RECIPE names. WebGPU needs HTTPS or localhost.
 *   2. import * as ort from 'onnxruntime-web/jspi' where RECIPE.build is jspi, from 'onnxruntime-web/webgpu' where it is asyncify.
 *      Set ort.env.wasm.wasmPaths where the files lie elsewhere.
 *   3. Import openModel from this file; then:
 *      const model = await openModel(ort, 'model.onnx');
 *      const { q_values } = await model.run({ observation: { data: pixels, dims: [1, 4, 84, 84] } });
 *   4. Every run has the shapes of the first one. Open the model again for others, or use the stock recipe.
 *
 * Tensors stay on the GPU; the outputs are copied into one buffer, and while it is being mapped the queue is asked for news, or
 * the browser tells milliseconds late. A captured graph is compared with an uncaptured one before it is used.
 */

/** @typedef {{type?: string, dims: readonly number[], data: any}} Tensor `type` is told from the typed array where it is left out */
/** @typedef {Record<string, Tensor>} Tensors */
/** @typedef {import('onnxruntime-web').InferenceSession} Session */
/** @typedef {{infer: (feeds: Tensors) => Promise<Tensors>, close: () => Promise<void>}} Runner */

export const recipe = RECIPE;

/** Hot at first, then at a timer's pace, and with an end: a device that was lost may never answer. */
const NUDGING = { hotMs: 8, limitMs: 2_000, count: RECIPE.runner.endsWith('nudge') ? 20_000 : 0 };
const TOLERANCES = /** @type {Record<string, number>} */ ({ float16: 2e-3 });
/** What onnxruntime-web has GPU buffers for. @type {Record<string, any>} */
const ARRAYS = {
  float32: Float32Array, float16: /** @type {any} */ (globalThis).Float16Array ?? Uint16Array, int32: Int32Array, uint32: Uint32Array, int64: BigInt64Array, uint8: Uint8Array, bool: Uint8Array,
};
const TYPES = /** @type {Record<string, string>} */ ({
  Float32Array: 'float32', Float16Array: 'float16', Int32Array: 'int32', Uint32Array: 'uint32', BigInt64Array: 'int64', Uint8Array: 'uint8', Uint8ClampedArray: 'uint8',
});

const countOf = (/** @type {readonly number[]} */ dims) => dims.reduce((product, size) => product * size, 1);
/** A buffer's size for so many bytes: shaders read four words at once, and no buffer is empty. */
const padded = (/** @type {number} */ bytes) => Math.max(16, Math.ceil(bytes / 16) * 16);

/** Overlapping calls hang onnxruntime-web, whichever model they are for. @type {Promise<unknown>} */
let queue = Promise.resolve();

/** @template T @param {() => Promise<T>} work @returns {Promise<T>} */
function queued(work) {
  const done = queue.then(work);
  queue = done.catch(() => {});
  return done;
}

/**
 * Opens a model in the configuration of the recipe.
 * @param {typeof import('onnxruntime-web')} ort
 * @param {Uint8Array | ArrayBuffer | string} model an ONNX file, or its address
 * @param {import('onnxruntime-web').InferenceSession.SessionOptions} [options] more of onnxruntime's, where the recipe has none
 * @returns {Promise<{run: (feeds: Tensors) => Promise<Tensors>, close: () => Promise<void>}>}
 */
export function openModel(ort, model, options = {}) {
  return queued(() => open(ort, model, options));
}

/** @param {typeof import('onnxruntime-web')} ort @param {Uint8Array | ArrayBuffer | string} model @param {object} options */
async function open(ort, model, options) {
  ort.env.wasm.numThreads = RECIPE.threads;
  const create = (/** @type {object} */ more) =>
    ort.InferenceSession.create(/** @type {any} */ (model), {
      ...options,
      // As an object: otherwise graph capture is ignored.
      executionProviders: [{ name: 'webgpu' }],
      graphOptimizationLevel: 'all',
      extra: { session: { intra_op: { allow_spinning: '0' } } },
      preferredOutputLocation: 'gpu-buffer',
      ...more,
    });
  let plain = await create({});
  const device = /** @type {GPUDevice} */ (await ort.env.webgpu.device);
  const nudge = nudger(device.queue);
  /** Fails the run that is under way. @type {(error: Error) => void} */
  let fail = () => {};
  /** @type {Error | null} */
  let lost = null;
  device.lost.then(({ reason, message }) => fail((lost = new Error(`the GPU device was lost (${reason}: ${message}); reload the page`))));
  /** @type {{shapes: string, runner: Runner} | null} */
  let first = null;

  /** The first run fixes the shapes; only then can a graph be captured. @param {Tensors} feeds @returns {Promise<Runner>} */
  async function prepare(feeds) {
    const uncaptured = runner(ort, device, plain, feeds, nudge);
    if (!RECIPE.capture) return uncaptured;
    const answer = await uncaptured.infer(feeds);
    /** @type {Runner | null} */
    let captured = null;
    try {
      const session = await create({ enableGraphCapture: true, freeDimensionOverrides: fixed(plain, feeds) });
      captured = runner(ort, device, session, feeds, nudge);
      const other = changed(feeds);
      await requireFresh(captured, [feeds, other], [answer, await uncaptured.infer(other)]);
    } catch (error) {
      console.warn('the graph is not captured:', error);
      captured?.close().catch(() => {});
      return uncaptured;
    }
    await uncaptured.close();
    return captured;
  }

  /** @param {Tensors} feeds */
  async function run(feeds) {
    const shapes = shapesOf(plain.inputMetadata, feeds);
    if (first && shapes !== first.shapes) throw new Error(`the inputs are ${shapes}, but were ${first.shapes} at first; open the model again for another shape, or use the stock recipe`);
    if (first) return first.runner.infer(feeds);
    try {
      const opened = await prepare(feeds);
      const answer = await opened.infer(feeds);
      first = { shapes, runner: opened };
      return answer;
    } catch (error) {
      // After a run that failed, onnxruntime-web goes on with that run's inputs, whatever it is given. The new session comes
      // first, for the device goes with the last one.
      const spoilt = plain;
      plain = await create({});
      spoilt.release().catch(() => {});
      throw error;
    }
  }

  /** @param {Tensors} feeds @returns {Promise<Tensors>} */
  function guarded(feeds) {
    return new Promise((resolve, reject) => {
      if (lost) throw lost;
      fail = reject;
      run(feeds).then(resolve, reject);
    });
  }

  return {
    run: (/** @type {Tensors} */ feeds) => queued(() => guarded(feeds)),
    close: () => queued(() => (first ? first.runner.close() : plain.release())),
  };
}

/**
 * One session with buffers of its own for inputs of these shapes.
 * @param {typeof import('onnxruntime-web')} ort
 * @param {GPUDevice} device
 * @param {Session} session
 * @param {Tensors} shapes
 * @param {(mapped: Promise<void>) => Promise<void>} nudge
 * @returns {Runner}
 */
function runner(ort, device, session, shapes, nudge) {
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC;
  /** @type {Record<string, GPUBuffer>} */
  const buffers = {};
  /** @type {Record<string, import('onnxruntime-web').Tensor>} */
  const inputs = {};
  for (const name of session.inputNames) {
    const { dims, data } = shapes[name];
    buffers[name] = device.createBuffer({ size: padded(data.byteLength), usage });
    inputs[name] = ort.Tensor.fromGpuBuffer(buffers[name], { dataType: /** @type {any} */ (typeOf(shapes[name])), dims });
  }
  /** @type {GPUBuffer | null} */
  let staging = null;

  /** @param {Tensors} feeds @returns {Promise<Tensors>} */
  async function infer(feeds) {
    for (const [name, buffer] of Object.entries(buffers)) device.queue.writeBuffer(buffer, 0, bytesOf(feeds[name].data));
    const outputs = await session.run(inputs);
    /** @type {Tensors} */
    const answer = {};
    const places = [];
    let size = 0;
    for (const name of session.outputNames) {
      const tensor = outputs[name];
      const { type, dims, location } = tensor;
      answer[name] = { type, dims: [...dims], data: null };
      if (location === 'gpu-buffer') {
        const bytes = ARRAYS[type].BYTES_PER_ELEMENT * countOf(dims);
        places.push({ name, bytes, offset: size, buffer: /** @type {GPUBuffer} */ (tensor.gpuBuffer) });
        size += padded(bytes);
      } else {
        // An output without elements has no buffer.
        answer[name].data = tensor.data.slice();
      }
    }
    if (places.length) {
      if (!staging || staging.size < size) {
        staging?.destroy();
        staging = device.createBuffer({ size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
      }
      const encoder = device.createCommandEncoder();
      for (const { bytes, offset, buffer } of places) encoder.copyBufferToBuffer(buffer, 0, staging, offset, Math.ceil(bytes / 4) * 4);
      device.queue.submit([encoder.finish()]);
      await nudge(staging.mapAsync(GPUMapMode.READ, 0, size));
      const range = staging.getMappedRange(0, size);
      for (const { name, bytes, offset } of places) answer[name].data = new ARRAYS[answer[name].type ?? ''](range.slice(offset, offset + bytes));
      staging.unmap();
    }
    for (const name of session.outputNames) outputs[name].dispose();
    return answer;
  }

  async function close() {
    for (const buffer of [staging, ...Object.values(buffers)]) buffer?.destroy();
    await session.release();
  }

  return { infer, close };
}

/** Waits for a map and asks the queue for news meanwhile, without waiting for those. @param {GPUQueue} queue */
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
    for (let nudges = 0; open && nudges < NUDGING.count; nudges++) {
      const elapsed = performance.now() - start;
      if (elapsed > NUDGING.limitMs) break;
      queue.onSubmittedWorkDone().catch(() => {});
      await new Promise((resolve) => {
        turned = () => resolve(undefined);
        if (elapsed < NUDGING.hotMs) port1.postMessage(null);
        else setTimeout(turned, 1);
      });
    }
    await mapped;
  };
}

/**
 * Asks an input, another one and the first again, since a replay may read the wrong buffer.
 * @param {Runner} captured
 * @param {Tensors[]} asked
 * @param {Tensors[]} wanted
 */
async function requireFresh(captured, asked, wanted) {
  if (!difference(wanted[0], wanted[1])) throw new Error('another input had the same answer, so that a stale one could not be told');
  for (const i of [0, 1, 0]) {
    const wrong = difference(await captured.infer(asked[i]), wanted[i]);
    if (wrong) throw new Error(`its answers are not those of the uncaptured one: ${wrong}`);
  }
}

/** @param {Tensors} found @param {Tensors} wanted @returns {string} empty where there is none but rounding */
function difference(found, wanted) {
  for (const [name, { type = '', data }] of Object.entries(wanted)) {
    const other = found[name].data;
    if (other.length !== data.length) return `${name} has ${other.length} values, not ${data.length}`;
    for (let i = 0; i < data.length; i++) {
      const [x, y] = [Number(other[i]), Number(data[i])];
      // Written so that NaN is a difference.
      if (!Object.is(x, y) && !(Math.abs(x - y) <= (TOLERANCES[type] ?? 1e-5) * Math.max(1, Math.abs(y)))) return `${name}[${i}] is ${x}, not ${y}`;
    }
  }
  return '';
}

/** Other inputs of the same shapes: nearly every value changes, and integers stay in any vocabulary. @param {Tensors} feeds @returns {Tensors} */
function changed(feeds) {
  return Object.fromEntries(Object.entries(feeds).map(([name, { dims, data, type = typeOf({ dims, data }) }]) => {
    const [none, one] = type === 'int64' ? [0n, 1n] : [0, 1];
    const isFloat = type.startsWith('float') && !(data instanceof Uint16Array);
    const change = (/** @type {any} */ value, /** @type {number} */ i) => (isFloat ? value / 2 + ((i % 7) + 1.3) / 8 : value ? none : one);
    return [name, { type, dims, data: data.map(change) }];
  }));
}

/**
 * Checks inputs, and names what buffers they need.
 * @param {Session['inputMetadata']} inputs the model's
 * @param {Tensors} feeds
 */
function shapesOf(inputs, feeds) {
  const names = inputs.map(({ name }) => name);
  const unknown = Object.keys(feeds).find((name) => !names.includes(name));
  if (unknown !== undefined) throw new Error(`the model has no input ${unknown}, only ${names.join(', ')}`);
  return inputs.map((input) => {
    const { name } = input;
    if (!feeds[name]) throw new Error(`input ${name} is missing`);
    const { dims, data } = feeds[name];
    const type = typeOf(feeds[name]);
    if (!Object.hasOwn(ARRAYS, type)) throw new Error(`input ${name} is ${type}, for which onnxruntime-web has no GPU buffer; convert it, or use the stock recipe`);
    if (input.isTensor && input.type !== type) throw new Error(`input ${name} is ${type}, but the model takes ${input.type}`);
    const bytes = ARRAYS[type].BYTES_PER_ELEMENT * countOf(dims);
    if (data.byteLength !== bytes) throw new Error(`input ${name} has ${data.byteLength} bytes, but ${type}[${dims}] has ${bytes}`);
    return `${name} ${type}[${dims}]`;
  }).join(', ');
}

/** @param {Tensor} tensor @returns {string} its type, or what kind of array has none */
function typeOf({ type, data }) {
  return type ?? TYPES[data.constructor.name] ?? data.constructor.name;
}

/** The sizes of free dimensions, by name. @param {Session} session @param {Tensors} feeds */
function fixed({ inputMetadata }, feeds) {
  /** @type {Record<string, number>} */
  const sizes = {};
  for (const input of inputMetadata) {
    if (!input.isTensor) continue;
    for (const [i, size] of input.shape.entries()) if (typeof size === 'string') sizes[size] = feeds[input.name].dims[i];
  }
  return sizes;
}

/** All bytes of a typed array, and more if need be: a write has a multiple of 4. @param {any} data */
function bytesOf({ buffer, byteOffset, byteLength }) {
  const bytes = new Uint8Array(buffer, byteOffset, byteLength);
  if (byteLength % 4 === 0) return bytes;
  const more = new Uint8Array(padded(byteLength));
  more.set(bytes);
  return more;
}

