import { drawGrey } from './compared.js';
import { h, scientific, table } from './dom.js';

export const ACTIONS = ['NOOP', 'FIRE', 'RIGHT', 'LEFT'];

/** @type {Record<string, string>} */
const ORDERS = { all: 'all states', margin: 'smallest margins first', disagree: 'disagreements only' };

/** One state at a time: its picture, and every engine's Q-values beside Python's. */
export class StateWalk {
  #picture;
  /** @type {Map<string, any>} */
  #suites = new Map();
  /** @type {any[]} */
  #answers = [];
  /** @type {number[]} the states in the order chosen */
  #states = [];
  #position = 0;
  #suite = h('select', { name: 'suite' });
  #order = h('select', { name: 'order' }, ...Object.entries(ORDERS).map(([value, label]) => h('option', { value }, label)));
  #slider = h('input', { type: 'range', min: 0, max: 0, value: 0, 'aria-label': 'State' });
  #back = h('button', { type: 'button', 'aria-label': 'Previous state' }, '←');
  #on = h('button', { type: 'button', 'aria-label': 'Next state' }, '→');
  #canvas = h('canvas', { width: 84, height: 84, role: 'img' });
  #caption = h('p', { class: 'where', 'aria-live': 'polite' });
  #values = h('div', { class: 'values' });
  #onPaper = h('p', { class: 'paper note' });
  #nothing = h('p', { class: 'empty' });
  #body;
  element;

  /** @param {(suite: string, index: number) => Promise<Uint8Array>} picture the newest frame of a state */
  constructor(picture) {
    this.#picture = picture;
    this.#suite.addEventListener('change', () => this.#arrange());
    this.#order.addEventListener('change', () => this.#arrange());
    this.#slider.addEventListener('input', () => this.#show(Number(this.#slider.value)));
    this.#back.addEventListener('click', () => this.#show(this.#position - 1));
    this.#on.addEventListener('click', () => this.#show(this.#position + 1));
    const controls = h(
      'div',
      { class: 'controls' },
      h('label', {}, 'Suite ', this.#suite),
      h('label', {}, 'Show ', this.#order),
      h('span', { class: 'steps' }, this.#back, this.#slider, this.#on),
    );
    this.#body = h('div', { class: 'state' }, this.#canvas, h('div', {}, this.#caption, this.#values, this.#onPaper));
    this.element = h('section', { class: 'walk', 'aria-label': 'Walk through the states', hidden: true }, h('h3', {}, 'State by state'), controls, this.#nothing, this.#body);
  }

  clear() {
    this.#suites.clear();
    this.#answers = [];
    this.#suite.replaceChildren();
    this.#order.value = 'all';
    this.element.hidden = true;
  }

  /** @param {any} suite a `SuiteEntry` of the report */
  addSuite(suite) {
    this.#suites.set(suite.suite, suite);
    this.#suite.append(h('option', { value: suite.suite }, `${suite.suite} (${suite.cases})`));
  }

  /** @param {any} entry a `ParityEntry` of the report */
  addAnswers(entry) {
    this.#answers.push(entry);
    if (entry.disagreements.length && this.#order.value !== 'disagree') {
      // A state that disagrees is shown, not only counted; the first suite that has one stays.
      this.#suite.value = entry.suite;
      this.#order.value = 'disagree';
    }
    this.element.hidden = false;
    this.#arrange(this.#states[this.#position]);
  }

  get #asked() {
    return this.#answers.filter(({ suite }) => suite === this.#suite.value);
  }

  /** @param {number} [state] stay at this one, where it is still there */
  #arrange(state) {
    const suite = this.#suites.get(this.#suite.value);
    if (!suite) return;
    const all = [...suite.action.keys()];
    const disagreeing = new Set(this.#asked.flatMap(({ disagreements }) => disagreements));
    if (this.#order.value === 'disagree') this.#states = all.filter((index) => disagreeing.has(index));
    else if (this.#order.value === 'margin') this.#states = all.sort((a, b) => suite.margin[a] - suite.margin[b]);
    else this.#states = all;
    this.#slider.max = String(Math.max(0, this.#states.length - 1));
    this.#body.hidden = this.#states.length === 0;
    this.#nothing.hidden = this.#states.length > 0;
    this.#nothing.textContent = `No engine disagrees with Python in ${suite.suite}.`;
    this.#show(state === undefined ? 0 : Math.max(0, this.#states.indexOf(state)));
  }

  /** @param {number} position */
  #show(position) {
    this.#position = Math.min(Math.max(position, 0), Math.max(0, this.#states.length - 1));
    this.#slider.value = String(this.#position);
    this.#back.disabled = this.#position === 0;
    this.#on.disabled = this.#position >= this.#states.length - 1;
    const suite = this.#suites.get(this.#suite.value);
    const index = this.#states[this.#position];
    if (index === undefined) return;
    const label = `state ${index} of ${suite.suite}`;
    this.#slider.setAttribute('aria-valuetext', label);
    this.#caption.textContent = `${label} (${this.#position + 1} of ${this.#states.length}), margin ${scientific(suite.margin[index])}`;
    this.#onPaper.textContent = `This is state ${this.#position + 1} of ${this.#states.length}; the page shows each of them.`;
    const rows = [pythonRow(suite, index), ...this.#asked.filter(({ cases }) => index < cases).map((entry) => engineRow(entry, suite, index))];
    this.#values.replaceChildren(table(`Q-values of ${label}`, ['', ...ACTIONS, 'chosen', '|ΔQ|'], rows));
    this.#draw(suite.suite, index, label);
  }

  /** @param {string} suite @param {number} index @param {string} label */
  async #draw(suite, index, label) {
    this.#canvas.setAttribute('aria-label', `picture of ${label}`);
    const grey = await this.#picture(suite, index).catch(() => null);
    if (!grey || this.#states[this.#position] !== index) return; // somebody has walked on meanwhile
    drawGrey(this.#canvas, grey);
    this.#canvas.dataset.state = String(index);
  }
}

/** @param {any} suite @param {number} index */
function pythonRow(suite, index) {
  return ['Python', ...scores(suite.q_values[index], suite.action[index]), ACTIONS[suite.action[index]], ''];
}

/** @param {any} entry @param {any} suite @param {number} index @returns {(Node | string)[]} */
function engineRow(entry, suite, index) {
  const failure = entry.failures.find((/** @type {any} */ failed) => failed.case === index)?.failure;
  const q = entry.q_values[index];
  const action = entry.action[index];
  const same = action === suite.action[index];
  const chosen = h('strong', { class: same ? 'good' : 'bad' }, failure ?? ACTIONS[action]);
  if (!q) return [entry.engine, ...ACTIONS.map(() => '–'), chosen, '–'];
  const diff = Math.max(...q.map((/** @type {number} */ value, /** @type {number} */ i) => Math.abs(value - suite.q_values[index][i])));
  return [entry.engine, ...scores(q, action), chosen, scientific(diff)];
}

/**
 * @param {number[]} q
 * @param {number} best
 * @returns {(Node | string)[]}
 */
function scores(q, best) {
  return q.map((value, i) => (i === best ? h('strong', {}, value.toFixed(4)) : value.toFixed(4)));
}
