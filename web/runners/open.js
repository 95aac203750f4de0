/** Picks the runner that a specification asks for. */
import { openFast } from './gpu-fast.js';
import { StockRunner } from './stock.js';

/**
 * @param {import('../types.d.ts').Ort} ort
 * @param {import('../types.d.ts').EngineSpec} spec
 * @param {Uint8Array} model an ONNX file
 * @param {boolean} profiling
 * @returns {Promise<import('../types.d.ts').Runner>}
 */
export function openRunner(ort, spec, model, profiling) {
  return spec.runner === 'stock' ? StockRunner.open(ort, spec, model, profiling) : openFast(ort, spec, model, profiling);
}
