import { toWireError } from '../wire.js';
import { byId } from './dom.js';
import { ProgressView } from './progress.js';

/** Where the check is asked: its controls are in the page from the start. */
export class CheckPlace {
  #run = /** @type {HTMLButtonElement} */ (byId('run'));
  #cancel = /** @type {HTMLButtonElement} */ (byId('cancel'));
  #error = byId('error');
  #progress = new ProgressView(byId('progress'));

  /** @param {boolean} ready whether anything can be asked now */
  set ready(ready) {
    this.#run.disabled = !ready;
  }

  /** @param {() => void} run @param {() => void} cancel */
  onClick(run, cancel) {
    this.#run.addEventListener('click', run);
    this.#cancel.addEventListener('click', cancel);
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
