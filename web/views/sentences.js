import { h } from './dom.js';

/** @typedef {{topic: string, tone: string, text: string}} Sentence what Python's `pyapp.summary` says of a report */

/** @param {Sentence} sentence */
export function paragraph({ topic, tone, text }) {
  return h('p', { class: `sentence ${topic} ${tone}` }, unbroken(text));
}

/** Keeps numbers and their units on one line. @param {string} text */
export function unbroken(text) {
  return text.replaceAll(/(?<=\d) (?=%|ms\b)/g, '\u00a0');
}

/** What a report means: the answers and the speed, in plain sentences. */
export class MeaningView {
  #root;

  /** @param {HTMLElement} root */
  constructor(root) {
    this.#root = root;
  }

  clear() {
    this.#root.replaceChildren();
  }

  /** @param {Sentence[]} sentences */
  show(sentences) {
    this.#root.replaceChildren(...sentences.map(paragraph));
  }
}
