/** Canvases that are drawn on by a worker. */
import { CanvasPainter } from './painter.js';

/**
 * Hands a canvas's control over to a worker, if the browser can do that; else the page draws what the worker sends.
 * @param {HTMLCanvasElement} canvas
 * @returns {{offscreen: OffscreenCanvas | null, draw: (frame: ArrayBuffer) => void}}
 */
export function handOver(canvas) {
  if ('transferControlToOffscreen' in canvas) return { offscreen: canvas.transferControlToOffscreen(), draw: () => {} };
  const painter = new CanvasPainter(canvas);
  return { offscreen: null, draw: (frame) => painter.draw(new Uint8ClampedArray(frame)) };
}

/**
 * Puts a new canvas in the place of one: control can be handed over only once.
 * @param {HTMLCanvasElement} canvas
 */
export function renewed(canvas) {
  const fresh = /** @type {HTMLCanvasElement} */ (canvas.cloneNode());
  canvas.replaceWith(fresh);
  return fresh;
}
