import { h } from './dom.js';

const ACTIONS = ['NOOP', 'FIRE', 'RIGHT', 'LEFT'];
/** How much of the scale is kept from one picture to the next, so that bars neither jump nor stay small after one wide decision. */
const KEPT = 0.93;
/** Scores that differ by less are not blown up to fill the scale. */
const NARROWEST = 0.04;

/** The agent's four Q-values as bars, and the action that it chose. */
export class ScoresView {
  #rows = ACTIONS.map((action) => {
    const value = h('span', { class: 'value' }, '–');
    return { value, row: h('li', {}, h('span', {}, action), h('span', { class: 'bar' }), value) };
  });
  root = h('ol', { class: 'scores', 'aria-label': 'The scores (Q-values) of the four actions; the chosen one is marked' }, ...this.#rows.map(({ row }) => row));
  /** From the worst score to the best. Bars begin at the worst: the scores themselves differ too little to be seen. */
  #scale = NARROWEST;

  clear() {
    this.#scale = NARROWEST;
    this.show(null, null);
  }

  /** @param {number[] | null} scores @param {number | null} action */
  show(scores, action) {
    const worst = Math.min(...(scores ?? [0]));
    this.#scale = Math.max(NARROWEST, KEPT * this.#scale, ...(scores ?? []).map((score) => score - worst));
    this.#rows.forEach(({ row, value }, index) => {
      const share = scores ? (scores[index] - worst) / this.#scale : 0;
      row.style.setProperty('--share', `${3 + 97 * share}%`);
      value.textContent = scores ? scores[index].toFixed(2) : '–';
      if (index === action) row.setAttribute('aria-current', 'true');
      else row.removeAttribute('aria-current');
    });
  }
}
