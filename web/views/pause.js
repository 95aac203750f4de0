import { button } from './dom.js';

/** Holds what runs, and lets it go on; it is there only while something runs. */
export class PauseButton {
  #hold;
  #held = false;
  root = button('Pause', () => this.#toggle(), 'pause');

  /** @param {(on: boolean) => Promise<void>} hold */
  constructor(hold) {
    this.#hold = hold;
    this.hide();
  }

  show() {
    this.#set(false);
    this.root.hidden = false;
  }

  hide() {
    this.root.hidden = true;
  }

  #toggle() {
    this.#set(!this.#held);
    void this.#hold(this.#held);
  }

  /** @param {boolean} held */
  #set(held) {
    this.#held = held;
    this.root.textContent = held ? 'Resume' : 'Pause';
    this.root.classList.toggle('primary', held);
  }
}
