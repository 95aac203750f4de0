/**
 * Which of onnxruntime-web's builds an engine loads, and how.
 *
 * `wasm` holds the CPU only. `jspi` and `asyncify` hold the native WebGPU provider; jspi is smaller but needs
 * `WebAssembly.Suspending`. asyncify's wasm is over the 25 MiB that static hosts accept, so the site ships it gzipped.
 */
import { download } from './download.js';
import { AppError } from './wire.js';

/** @typedef {import('./types.d.ts').EngineSpec} EngineSpec */
/** @typedef {{entry: string, glue: string, wasm: string, compressed: boolean}} Build */

/** @type {Record<string, Build>} */
const BUILDS = {
  wasm: {
    entry: 'ort.wasm.min.mjs',
    glue: 'ort-wasm-simd-threaded.mjs',
    wasm: 'ort-wasm-simd-threaded.wasm',
    compressed: false,
  },
  jspi: {
    entry: 'ort.jspi.min.mjs',
    glue: 'ort-wasm-simd-threaded.jspi.mjs',
    wasm: 'ort-wasm-simd-threaded.jspi.wasm',
    compressed: false,
  },
  asyncify: {
    entry: 'ort.webgpu.min.mjs',
    glue: 'ort-wasm-simd-threaded.asyncify.mjs',
    wasm: 'ort-wasm-simd-threaded.asyncify.wasm.gz',
    compressed: true,
  },
};

/**
 * The build that a specification means on this browser.
 * @param {EngineSpec} spec
 * @returns {string} a key of BUILDS
 */
export function pickBuild(spec) {
  if (spec.build !== 'auto') {
    if (!Object.hasOwn(BUILDS, spec.build)) {
      throw new AppError('UnknownBuild', `"${spec.build}" is no build of onnxruntime-web`, `Use one of auto, ${Object.keys(BUILDS).join(', ')}.`);
    }
    return spec.build;
  }
  if (spec.provider === 'wasm') return 'wasm';
  return 'Suspending' in WebAssembly ? 'jspi' : 'asyncify';
}

/**
 * Imports a build and sets its environment; a realm does this once.
 * @param {string} name a key of BUILDS
 * @param {URL} base where the build's files are
 * @param {number} threads
 * @returns {Promise<import('./types.d.ts').Ort>}
 */
export async function loadBuild(name, base, threads) {
  const build = BUILDS[name];
  const wasmUrl = new URL(build.wasm, base);
  const ort = await import(new URL(build.entry, base).href);
  ort.env.wasm.numThreads = threads;
  ort.env.wasm.wasmPaths = { mjs: new URL(build.glue, base), wasm: wasmUrl };
  if (build.compressed) ort.env.wasm.wasmBinary = await gunzip(wasmUrl);
  ort.env.logLevel = 'error';
  return ort;
}

/**
 * @param {string} name a key of BUILDS
 * @param {URL} base where the builds' files are
 * @param {import('./download.js').Part[]} files of all builds
 * @returns {import('./download.js').Part[]} those that `loadBuild` and the first session load
 */
export function filesOf(name, base, files) {
  const { entry, glue, wasm } = BUILDS[name];
  const urls = [entry, glue, wasm].map((file) => new URL(file, base).href);
  return files.filter(({ url }) => urls.includes(url));
}

/**
 * @param {URL} url
 * @returns {Promise<ArrayBuffer>}
 */
async function gunzip(url) {
  const packed = new Blob([await download({ url: url.href })]);
  return new Response(packed.stream().pipeThrough(new DecompressionStream('gzip'))).arrayBuffer();
}
