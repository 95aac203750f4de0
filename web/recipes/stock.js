/*
 * How to use this module (RECIPE, above, says for what it was made):
 *   1. npm install onnxruntime-web@VERSION, with the version that RECIPE names.
 *   2. import * as ort from 'onnxruntime-web/wasm' where RECIPE.build is wasm, from 'onnxruntime-web/jspi' where it is jspi, from
 *      'onnxruntime-web/webgpu' where it is asyncify. Set ort.env.wasm.wasmPaths where the files lie elsewhere.
 *   3. Import openModel from this file; then:
 *      const model = await openModel(ort, 'model.onnx');
 *      const { q_values } = await model.run({ observation: { data: pixels, dims: [1, 4, 84, 84] } });
 *   4. More than one thread needs a page with the headers Cross-Origin-Opener-Policy: same-origin and
 *      Cross-Origin-Embedder-Policy: require-corp. WebGPU needs HTTPS or localhost.
 */

/** @typedef {{type?: string, dims: readonly number[], data: any}} Tensor `type` is told from the typed array where it is left out */

export const recipe = RECIPE;

/** Overlapping calls hang onnxruntime-web, whichever model they are for. @type {Promise<unknown>} */
let queue = Promise.resolve();

/** @template T @param {() => Promise<T>} work @returns {Promise<T>} */
function queued(work) {
  const done = queue.then(work);
  queue = done.catch(() => {});
  return done;
}

/**
 * Opens a model in the configuration of the recipe. Do it once in a page or a worker: threads cannot be changed later.
 * @param {typeof import('onnxruntime-web')} ort
 * @param {Uint8Array | ArrayBuffer | string} model an ONNX file, or its address
 * @param {import('onnxruntime-web').InferenceSession.SessionOptions} [options] more of onnxruntime's, where the recipe has none
 * @returns {Promise<{run: (feeds: Record<string, Tensor>) => Promise<Record<string, Tensor>>, close: () => Promise<void>}>}
 */
export function openModel(ort, model, options = {}) {
  return queued(() => open(ort, model, options));
}

/** @param {typeof import('onnxruntime-web')} ort @param {Uint8Array | ArrayBuffer | string} model @param {object} options */
async function open(ort, model, options) {
  if (RECIPE.threads > 1 && !globalThis.crossOriginIsolated) {
    throw new Error(`${RECIPE.engine} needs shared memory for ${RECIPE.threads} threads; serve the page with the headers Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp`);
  }
  ort.env.wasm.numThreads = RECIPE.threads;
  const session = await ort.InferenceSession.create(/** @type {any} */ (model), {
    ...options,
    // As an object, so that nothing but this provider is tried.
    executionProviders: [RECIPE.provider === 'webgpu' ? { name: 'webgpu' } : 'wasm'],
    graphOptimizationLevel: 'all',
    // Threads that wait keep a processor busy otherwise.
    extra: { session: { intra_op: { allow_spinning: '0' } } },
  });

  /** @param {Record<string, Tensor>} feeds */
  async function run(feeds) {
    /** @type {Record<string, import('onnxruntime-web').Tensor>} */
    const tensors = {};
    for (const [name, { type, dims, data }] of Object.entries(feeds)) {
      tensors[name] = type ? new ort.Tensor(/** @type {any} */ (type), data, dims) : new ort.Tensor(data, dims);
    }
    const outputs = await session.run(tensors);
    /** @type {Record<string, Tensor>} */
    const answer = {};
    for (const [name, tensor] of Object.entries(outputs)) {
      const data = /** @type {any} */ (await tensor.getData());
      answer[name] = { type: tensor.type, dims: [...tensor.dims], data: data.slice() };
      tensor.dispose();
    }
    return answer;
  }

  return {
    run: (/** @type {Record<string, Tensor>} */ feeds) => queued(() => run(feeds)),
    close: () => queued(() => session.release()),
  };
}
