import { suspect } from '../update.js';
import { toWireError } from '../wire.js';
import { ProgressView } from './progress.js';

/** @typedef {import('./pause.js').PauseButton} PauseButton */

/** Where a question is asked: a button that asks it, one that cancels, how far it is, and what went wrong. */
export class Place {
  #parts;
  #progress;

  /** @param {{ask: HTMLButtonElement, cancel: HTMLButtonElement, pause?: PauseButton, progress: HTMLElement, error: HTMLElement}} parts */
  constructor(parts) {
    this.#parts = parts;
    this.#progress = new ProgressView(parts.progress);
  }

  /** @param {() => void} ask @param {() => void} cancel */
  onClick(ask, cancel) {
    this.#parts.ask.addEventListener('click', ask);
    this.#parts.cancel.addEventListener('click', cancel);
  }

  /** @param {string} label what the button says from now on */
  set label(label) {
    this.#parts.ask.textContent = label;
  }

  /** @param {boolean} ready whether anything can be asked now */
  set ready(ready) {
    this.#parts.ask.disabled = !ready;
  }

  start() {
    this.#parts.error.hidden = true;
    this.#parts.cancel.hidden = false;
    this.#parts.pause?.show();
    this.#progress.start();
  }

  stop() {
    this.#parts.cancel.hidden = true;
    this.#parts.pause?.hide();
    this.#progress.stop();
  }

  /** @param {{stage: string, done: number, total: number}} progress */
  show(progress) {
    this.#progress.show(progress);
  }

  /** @param {unknown} thrown */
  fail(thrown) {
    const { message, remedy } = toWireError(thrown);
    this.#parts.error.textContent = remedy ? `${message}. ${remedy}` : message;
    this.#parts.error.hidden = false;
    void suspect();
  }
}
