/** Puts pictures on a canvas: on one of this worker's own, or, where the browser has none, on the page's. */

/** The console's screen. */
export const WIDTH = 160;
export const HEIGHT = 210;

/**
 * @typedef {object} Painter
 * @property {(rgba: Uint8ClampedArray) => void} draw
 */

/** A painter in a worker, on a canvas whose control was handed over. @implements {Painter} */
export class CanvasPainter {
  #context;
  #image;

  /** @param {OffscreenCanvas | HTMLCanvasElement} canvas */
  constructor(canvas) {
    const context = canvas.getContext('2d', { alpha: false });
    this.#context = /** @type {OffscreenCanvasRenderingContext2D} */ (context);
    this.#image = new ImageData(canvas.width, canvas.height);
  }

  /** @param {Uint8ClampedArray} rgba */
  draw(rgba) {
    this.#image.data.set(rgba);
    this.#context.putImageData(this.#image, 0, 0);
  }
}

/** A painter that sends its pictures to somebody who has a canvas; the bytes move. @implements {Painter} */
export class SendingPainter {
  #send;

  /** @param {(picture: ArrayBuffer) => void} send */
  constructor(send) {
    this.#send = send;
  }

  /** @param {Uint8ClampedArray} rgba */
  draw(rgba) {
    this.#send(rgba.slice().buffer);
  }
}

/**
 * A painter on the canvas that came with the call, or on the other end's.
 * @param {OffscreenCanvas | null} canvas
 * @param {(picture: ArrayBuffer) => void} send
 * @returns {Painter}
 */
export function painterFor(canvas, send) {
  return canvas ? new CanvasPainter(canvas) : new SendingPainter(send);
}

/**
 * Calls back at every tick of the display; a worker of a browser without that gets a timer.
 * @param {(now: number) => void} tick
 * @returns {() => void} ends it
 */
export function everyTick(tick) {
  const next = globalThis.requestAnimationFrame ?? ((/** @type {FrameRequestCallback} */ call) => setTimeout(() => call(performance.now()), 1000 / 120));
  let ended = false;
  const again = (/** @type {number} */ now) => {
    if (ended) return;
    next(again);
    tick(now);
  };
  next(again);
  return () => {
    ended = true;
  };
}
