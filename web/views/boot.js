import { h, megabytes } from './dom.js';

/** The named stages of the boot, with what they load and how long they took. */
export class BootView {
  #root;
  /** @type {Map<string, HTMLElement>} */
  #stages = new Map();

  /** @param {HTMLElement} root */
  constructor(root) {
    this.#root = root;
  }

  /** @param {{name: string, bytes: number, ms: number | null}} stage */
  show({ name, bytes, ms }) {
    const item = h('li', { class: ms === null ? 'running' : 'done' }, h('span', { class: 'name' }, name));
    if (bytes) item.append(h('span', { class: 'detail' }, megabytes(bytes)));
    if (ms !== null) item.append(h('span', { class: 'detail' }, `${(ms / 1000).toFixed(1)} s`));
    const before = this.#stages.get(name);
    if (before) before.replaceWith(item);
    else this.#root.append(item);
    this.#stages.set(name, item);
  }

  /** Begins anew: Python is started again. */
  again() {
    this.#stages.clear();
    this.#root.replaceChildren();
  }

  finish() {
    this.#root.append(h('li', { class: 'done ready' }, h('span', { class: 'name' }, 'ready')));
  }
}
