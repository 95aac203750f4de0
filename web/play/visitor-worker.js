/** The visitor's worker: no Python in it, so that nothing the agent or a console does can stop the visitor's game. */
import { loadAle } from '../ale.js';
import { Peer } from '../wire.js';
import { painterFor } from './painter.js';
import { VisitorBoard } from './visitor-board.js';

/** @type {VisitorBoard | null} */
let board = null;

const page = new Peer(/** @type {any} */ (self), {
  /**
   * @param {Uint8Array<ArrayBuffer>} wasm the emulator
   * @param {Uint8Array} rom
   * @param {number} seed
   * @param {OffscreenCanvas | null} canvas
   */
  async open(wasm, rom, seed, canvas) {
    const game = (await loadAle(wasm)).open(rom, 0, seed);
    const painter = painterFor(canvas, (frame) => page.emit('frame', frame, [frame]));
    board = new VisitorBoard(game, painter, (state) => page.emit('state', state));
  },
  restart: (/** @type {number} */ seed) => board?.restart(seed),
  pause: (/** @type {boolean} */ on) => board?.pause(on),
  counts: () => board?.counts,
  countAnew: () => board?.countAnew(),
  probe: () => board?.probe(),
});

page.onEvent = (name, data) => {
  if (name === 'keys' && board) board.keys = data;
};
