import { h } from './dom.js';

const SAMPLES = 10;

/** A row of the states that the engines are asked about, so that one sees what it is about before anything has run. */
export class ComparedView {
  #root;
  #picture;

  /**
   * @param {HTMLElement} root
   * @param {(suite: string, index: number) => Promise<Uint8Array>} picture the newest frame of a state
   */
  constructor(root, picture) {
    this.#root = root;
    this.#picture = picture;
  }

  /** @param {string} suite @param {number} count how many states it has */
  async show(suite, count) {
    const indices = Array.from({ length: SAMPLES }, (_, i) => Math.floor((i * count) / SAMPLES));
    const canvases = indices.map((index) => h('canvas', { width: 84, height: 84, role: 'img', 'aria-label': `state ${index}` }));
    this.#root.replaceChildren(...canvases);
    await Promise.all(indices.map(async (index, i) => drawGrey(canvases[i], await this.#picture(suite, index))));
  }
}

/**
 * @param {HTMLCanvasElement} canvas 84 x 84
 * @param {Uint8Array} grey 7056 values in 0..255
 */
export function drawGrey(canvas, grey) {
  const image = new ImageData(84, 84);
  grey.forEach((value, i) => image.data.set([value, value, value, 255], i * 4));
  canvas.getContext('2d')?.putImageData(image, 0, 0);
}
