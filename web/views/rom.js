import { h } from './dom.js';

/** Asks the visitor for the game's ROM, where the site holds none. */
export class RomView {
  #input = h('input', { type: 'file', id: 'rom-file' });
  root = h(
    'div',
    { class: 'rom', hidden: true },
    h('p', {}, h('label', { for: 'rom-file' }, "This site holds no ROM of the game. Choose Breakout's, or drop it here: "), h('code', {}, 'breakout.bin'), ', 2,048 bytes, MD5 f34f08e5eb96e500e851a80be3277a56. It stays on your machine.'),
    this.#input,
  );

  /** @param {(rom: Uint8Array) => unknown} take */
  constructor(take) {
    const read = async (/** @type {File | undefined} */ file) => file && take(new Uint8Array(await file.arrayBuffer()));
    this.#input.addEventListener('change', () => read(this.#input.files?.[0]));
    this.root.addEventListener('dragover', (event) => event.preventDefault());
    this.root.addEventListener('drop', (event) => {
      event.preventDefault();
      read(event.dataTransfer?.files[0]);
    });
  }

  focus() {
    this.#input.focus();
  }
}
