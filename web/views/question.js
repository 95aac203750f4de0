import { toWireError } from '../wire.js';
import { button, h } from './dom.js';
import { ProgressView } from './progress.js';

/** The controls of one question: a button that asks it, one that cancels, how far it is, and what went wrong. */
export class QuestionView {
  #ask;
  #cancel;
  #progress;
  #error = h('p', { class: 'error', role: 'alert', hidden: true });

  /**
   * @param {HTMLElement} root
   * @param {string} label of the button
   * @param {() => void} ask
   * @param {() => void} cancel
   */
  constructor(root, label, ask, cancel) {
    this.#ask = button(label, ask, 'ask');
    this.#cancel = button('Cancel', cancel, 'cancel');
    this.#cancel.hidden = true;
    this.#ask.disabled = true;
    const progress = h('div', { class: 'progress', role: 'status', 'aria-live': 'polite' });
    this.#progress = new ProgressView(progress);
    root.append(h('div', { class: 'actions' }, this.#ask, this.#cancel), progress, this.#error);
  }

  /** @param {string} label what the button says from now on */
  set label(label) {
    this.#ask.textContent = label;
  }

  /** @param {boolean} ready whether anything can be asked now */
  set ready(ready) {
    this.#ask.disabled = !ready;
  }

  start() {
    this.#error.hidden = true;
    this.#cancel.hidden = false;
    this.#progress.start();
  }

  stop() {
    this.#cancel.hidden = true;
    this.#progress.stop();
  }

  /** @param {{stage: string, done: number, total: number}} progress */
  show(progress) {
    this.#progress.show(progress);
  }

  /** @param {unknown} thrown */
  fail(thrown) {
    const { message, remedy } = toWireError(thrown);
    this.#error.textContent = remedy ? `${message}. ${remedy}` : message;
    this.#error.hidden = false;
  }
}
