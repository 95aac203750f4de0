import { h } from './dom.js';

const ACTIONS = ['NOOP', 'FIRE', 'RIGHT', 'LEFT'];
/** Scores that differ by less are not blown up to fill the scale: then it hardly matters what is done. */
const NARROWEST = 0.15;

/** The agent's four Q-values as bars, and the action that it chose. */
export class ScoresView {
  #rows = ACTIONS.map((action) => {
    const value = h('span', { class: 'value' }, '–');
    return { value, row: h('li', {}, h('span', {}, action), h('span', { class: 'bar' }), value) };
  });
  root = h('ol', { class: 'scores', 'aria-label': 'The scores (Q-values) of the four actions; the chosen one is marked' }, ...this.#rows.map(({ row }) => row));

  clear() {
    this.show(null, null);
  }

  /**
   * Bars begin at the worst score: the scores themselves differ too little to be seen.
   * @param {number[] | null} scores
   * @param {number | null} action
   */
  show(scores, action) {
    const worst = Math.min(...(scores ?? [0]));
    const scale = Math.max(NARROWEST, ...(scores ?? []).map((score) => score - worst));
    this.#rows.forEach(({ row, value }, index) => {
      const share = scores ? (scores[index] - worst) / scale : 0;
      row.style.setProperty('--share', `${3 + 97 * share}%`);
      value.textContent = scores ? scores[index].toFixed(2) : '–';
      if (index === action) row.setAttribute('aria-current', 'true');
      else row.removeAttribute('aria-current');
    });
  }
}
