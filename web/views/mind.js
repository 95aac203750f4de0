import { handOver, renewed } from '../play/canvas.js';
import { button, h } from './dom.js';
import { ScoresView } from './scores.js';

const SIDE = 170;

/** What the agent thinks: its scores, and on demand what it sees. */
export class MindView {
  #seen = h('canvas', { class: 'seen', width: SIDE, height: SIDE, role: 'img', hidden: true, 'aria-label': 'What the agent sees: four frames of 84 by 84, oldest first' });
  #toggle;
  scores = new ScoresView();
  root;

  /** @param {(wanted: boolean) => unknown} onWanted hears whether what it sees is to be shown */
  constructor(onWanted) {
    this.#toggle = button('Show what it sees', () => {
      this.#seen.hidden = !this.#seen.hidden;
      this.#toggle.setAttribute('aria-pressed', String(this.wanted));
      onWanted(this.wanted);
    });
    this.#toggle.setAttribute('aria-pressed', 'false');
    this.root = h('div', { class: 'mind' }, h('h3', {}, 'What it thinks'), this.scores.root, this.#toggle, this.#seen);
  }

  /** Whether what it sees is to be shown. */
  get wanted() {
    return !this.#seen.hidden;
  }

  /** A new canvas in the place of the present one, handed over. */
  handOver() {
    this.#seen = renewed(this.#seen);
    return handOver(this.#seen);
  }
}
