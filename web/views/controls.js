import { button, h } from './dom.js';

/** @typedef {'idle' | 'starting' | 'playing' | 'paused' | 'over'} State of a round */

/**
 * @typedef {object} Acts what the controls do
 * @property {() => unknown} pause or resume
 * @property {() => unknown} step
 * @property {() => unknown} restart
 * @property {(speed: number) => unknown} speed
 * @property {() => unknown} pointed at a speed, which takes the focus from the board
 */

const SPEEDS = /** @type {const} */ ([
  [1, '1×'],
  [2, '2×'],
  [0, 'max'],
]);

/** The running games' controls. */
export class Controls {
  #acts;
  pause;
  restart;
  #step;
  #speeds;
  root;

  /** @param {Acts} acts */
  constructor(acts) {
    this.#acts = acts;
    this.pause = button('Pause', acts.pause);
    this.#step = button('Step one decision', acts.step);
    this.restart = button('Restart', acts.restart);
    this.#speeds = h('fieldset', { class: 'speeds' }, h('legend', {}, "Agent's speed"), ...SPEEDS.map(([speed, label]) => this.#speed(speed, label)));
    this.root = h('fieldset', { class: 'plain games', hidden: true }, h('div', { class: 'buttons' }, this.pause, this.#step, this.restart), this.#speeds);
  }

  /** 1 or 2 times the console's own; 0: as fast as possible. */
  get speed() {
    const chosen = /** @type {HTMLInputElement | null} */ (this.#speeds.querySelector('input:checked'));
    return Number(chosen?.value ?? 1);
  }

  /** @param {State} state @param {boolean} hasAgent whether somebody is there who could make a step */
  show(state, hasAgent) {
    this.root.hidden = state === 'idle' || state === 'starting';
    this.pause.textContent = state === 'paused' ? 'Resume' : 'Pause';
    this.pause.disabled = state === 'over';
    this.pause.classList.toggle('primary', state === 'paused');
    this.restart.classList.toggle('primary', state === 'over');
    this.#step.disabled = state !== 'paused' || !hasAgent;
  }

  /** @param {number} speed @param {string} label */
  #speed(speed, label) {
    const input = h('input', { type: 'radio', name: 'speed', value: speed, checked: speed === 1 });
    input.addEventListener('change', () => this.#acts.speed(speed));
    // Whoever points at a speed goes on playing with the keys; whoever came to it with keys goes on choosing.
    input.addEventListener('click', ({ detail }) => detail > 0 && this.#acts.pointed());
    return h('label', {}, input, h('span', {}, label));
  }
}
