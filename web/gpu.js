/**
 * Whether this browser offers WebGPU, and if not, why and what to do about it.
 */
import { AppError } from './wire.js';

/** @typedef {import('./types.d.ts').AdapterFacts} AdapterFacts */

/** @param {GPUAdapterInfo} info @returns {AdapterFacts} */
export function adapterFacts(info) {
  return {
    vendor: info.vendor,
    architecture: info.architecture,
    device: info.device,
    description: info.description,
    software: isSoftware(info),
  };
}

/** @param {GPUAdapterInfo} info */
function isSoftware(info) {
  // `isFallbackAdapter` came to the info object late; the architecture names the known software adapters everywhere.
  return info.isFallbackAdapter ?? /swiftshader|llvmpipe|basic render/i.test(`${info.architecture} ${info.description}`);
}

/**
 * Finds the adapter that a WebGPU engine will run on.
 * @returns {Promise<GPUAdapter>}
 * @throws {AppError} `WebGpuUnavailable`, with the reason and a remedy
 */
export async function requireAdapter() {
  if (!globalThis.isSecureContext) {
    throw unavailable('this page is not a secure context', 'Open it over https, or from localhost.');
  }
  if (!navigator.gpu) {
    throw unavailable(
      'this browser does not offer WebGPU',
      'Use Chrome or Edge 113+, Safari 26+ or Firefox 141+; on Linux, Chrome may need chrome://flags/#enable-unsafe-webgpu.',
    );
  }
  const adapter = await patientAdapter(navigator.gpu);
  if (!adapter) {
    throw unavailable(
      'the browser found no graphics adapter that it trusts with WebGPU',
      'Look at chrome://gpu (in Firefox: about:support) for the reason: hardware acceleration may be off, or the driver may be on a block list.',
    );
  }
  return adapter;
}

/** Pauses before asking again, in milliseconds. */
const PAUSES = [100, 400, 1_000];

/**
 * A browser that has just started says "no adapter" while its GPU process is still coming up, so one "no" is not believed.
 * @param {GPU} gpu
 * @returns {Promise<GPUAdapter | null>}
 */
async function patientAdapter(gpu) {
  const ask = () => gpu.requestAdapter({ powerPreference: 'high-performance' });
  let adapter = await ask();
  for (const pause of PAUSES) {
    if (adapter) break;
    await new Promise((resolve) => setTimeout(resolve, pause));
    adapter = await ask();
  }
  return adapter;
}

/** @param {string} reason @param {string} remedy */
function unavailable(reason, remedy) {
  return new AppError('WebGpuUnavailable', `WebGPU is not available: ${reason}`, remedy);
}

/** @returns {Promise<boolean | null>} whether the adapter computes in 16-bit floats; null where there is no adapter */
export async function adapterHasHalves() {
  try {
    return (await requireAdapter()).features.has('shader-f16');
  } catch {
    return null;
  }
}
