/** The page's side of the visitor's board: its worker, and what is asked of it. */
import { insist } from '../download.js';
import { AppError, Peer } from '../wire.js';
import { handOver } from './canvas.js';

/** @typedef {import('./visitor-board.js').Keys} Keys */
/** @typedef {import('./visitor-board.js').VisitorState} VisitorState */

export class Visitor {
  #worker;
  #peer;
  /** @type {(state: VisitorState) => void} */
  onState = () => {};

  #modules;
  #ended = new AbortController();

  /**
   * @param {import('../download.js').Part[]} modules those of its worker
   * @param {(error: AppError) => void} onLost
   */
  constructor(modules, onLost) {
    this.#modules = modules;
    this.#worker = new Worker(new URL('./visitor-worker.js', import.meta.url), { type: 'module', name: 'visitor' });
    this.#peer = new Peer(this.#worker);
    this.#worker.addEventListener('error', (event) => {
      event.preventDefault();
      const lost = new AppError('BoardCrashed', `your board stopped: ${event.message || 'its worker failed to load'}`, 'Press Start anew.');
      this.#peer.lose(lost);
      this.end();
      onLost(lost);
    });
  }

  /**
   * @param {{wasm: Uint8Array, rom: Uint8Array}} emulator
   * @param {number} seed
   * @param {HTMLCanvasElement} canvas a new one: its control is handed over
   */
  async open({ wasm, rom }, seed, canvas) {
    const { offscreen, draw } = handOver(canvas);
    this.#peer.onEvent = (name, data) => {
      if (name === 'state') this.onState(data);
      else if (name === 'frame') draw(data);
    };
    await insist(() => this.#peer.call('open', [wasm, rom, seed, offscreen], offscreen ? [offscreen] : []), this.#modules, this.#ended.signal);
  }

  /** @param {Keys} keys */
  press(keys) {
    this.#peer.emit('keys', keys);
  }

  /** @param {number} seed */
  restart(seed) {
    return this.#peer.call('restart', [seed]);
  }

  /** @param {boolean} on */
  pause(on) {
    return this.#peer.call('pause', [on]);
  }

  /** @returns {Promise<any>} frames shown and missed, and the longest wait for one */
  counts() {
    return this.#peer.call('counts', []);
  }

  countAnew() {
    return this.#peer.call('countAnew', []);
  }

  /** @returns {Promise<{ram: Uint8Array, frame: number}>} */
  probe() {
    return this.#peer.call('probe', []);
  }

  end() {
    this.#ended.abort();
    this.#worker.terminate();
  }
}
