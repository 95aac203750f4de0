import { h } from './dom.js';

const ACTIONS = ['NOOP', 'FIRE', 'RIGHT', 'LEFT'];

/** The agent's four Q-values as bars, and the action that it chose. */
export class ScoresView {
  #rows = ACTIONS.map((action) => {
    const value = h('span', { class: 'value' }, '–');
    return { value, row: h('li', {}, h('span', {}, action), h('span', { class: 'bar' }), value) };
  });
  root = h('ol', { class: 'scores', 'aria-label': 'The scores (Q-values) of the four actions; the chosen one is marked' }, ...this.#rows.map(({ row }) => row));
  /** The widest spread of four scores so far. Bars begin at the worst score: the scores themselves differ too little to be seen. */
  #widest = 0;

  clear() {
    this.#widest = 0;
    this.show(null, null);
  }

  /** @param {number[] | null} scores @param {number | null} action */
  show(scores, action) {
    const worst = Math.min(...(scores ?? []));
    this.#widest = Math.max(this.#widest, ...(scores ?? []).map((score) => score - worst));
    this.#rows.forEach(({ row, value }, index) => {
      const share = scores && this.#widest ? (scores[index] - worst) / this.#widest : 0;
      row.style.setProperty('--share', `${3 + 97 * share}%`);
      value.textContent = scores ? scores[index].toFixed(2) : '–';
      if (index === action) row.setAttribute('aria-current', 'true');
      else row.removeAttribute('aria-current');
    });
  }
}
