import { h } from './dom.js';

/** What a report means, in the sentences that Python makes of it. */
export class MeaningView {
  #root;

  /** @param {HTMLElement} root */
  constructor(root) {
    this.#root = root;
  }

  clear() {
    this.#root.replaceChildren();
  }

  /** @param {{topic: string, tone: string, text: string}[]} sentences */
  show(sentences) {
    this.#root.replaceChildren(...sentences.map(({ topic, tone, text }) => h('p', { class: `sentence ${topic} ${tone}` }, text)));
  }
}
