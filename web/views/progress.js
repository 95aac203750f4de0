import { h } from './dom.js';

/** What a running check is doing, how far it is, and about how long this stage still takes. */
export class ProgressView {
  #root;
  #bar = h('progress', { max: 1, value: 0 });
  #text = h('span');
  #stage = '';
  #since = 0;

  /** @param {HTMLElement} root */
  constructor(root) {
    this.#root = root;
  }

  start() {
    this.#stage = '';
    this.#text.textContent = 'starting';
    this.#bar.value = 0;
    this.#root.replaceChildren(this.#bar, this.#text);
  }

  /** @param {{stage: string, done: number, total: number}} progress */
  show({ stage, done, total }) {
    if (stage !== this.#stage) {
      this.#stage = stage;
      this.#since = performance.now();
      this.#bar.setAttribute('aria-label', stage);
    }
    this.#bar.value = total ? done / total : 0;
    const elapsed = performance.now() - this.#since;
    const left = done > 0 && done < total && elapsed > 1_000 ? `, about ${Math.ceil((elapsed / done) * (total - done) / 1000)} s left` : '';
    this.#text.textContent = `${stage}: ${done} of ${total}${left}`;
  }

  stop() {
    this.#root.replaceChildren();
  }
}
