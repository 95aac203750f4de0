import { renewed } from '../play/canvas.js';
import { h } from './dom.js';

const NUMBERS = /** @type {const} */ (['score', 'lives', 'time', 'won']);

/** One of the two boards: who plays, the game with what is said across it, and its numbers. */
export class BoardView {
  #title;
  #canvas;
  #veil = h('p', { class: 'veil', 'aria-hidden': 'true' });
  #numbers = Object.fromEntries(NUMBERS.map((name) => [name, h('dd', {}, '–')]));
  root;

  /**
   * @param {string} name `you` or `agent`
   * @param {string} title
   * @param {Record<string, string | number | boolean>} attributes of the canvas
   */
  constructor(name, title, attributes) {
    this.#title = h('h3', {}, title);
    this.#canvas = h('canvas', { class: 'game', width: 160, height: 210, role: 'img', ...attributes });
    const numbers = NUMBERS.map((number) => h('div', {}, h('dt', {}, number), this.#numbers[number]));
    this.root = h('div', { class: `board ${name}` }, this.#title, h('div', { class: 'screen' }, this.#canvas, this.#veil), h('dl', { class: 'numbers' }, ...numbers));
  }

  get canvas() {
    return this.#canvas;
  }

  /** A new canvas in the place of the present one, which has been handed over. */
  renewCanvas() {
    this.#canvas = renewed(this.#canvas);
    return this.#canvas;
  }

  /** @param {string} text */
  set title(text) {
    this.#title.textContent = text;
  }

  /** What is written across the game; nothing: the game is to be seen. The status says it to those who do not see it. @param {string} text */
  set veil(text) {
    this.#veil.textContent = text;
    this.#veil.hidden = text === '';
  }

  /** @param {{score: number, lives: number, seconds: number}} game */
  show({ score, lives, seconds }) {
    const minutes = Math.floor(seconds / 60);
    this.#write('score', String(score));
    this.#write('lives', String(lives));
    this.#write('time', `${minutes}:${String(Math.floor(seconds % 60)).padStart(2, '0')}`);
  }

  /** How many rounds were won. @param {number} rounds */
  set won(rounds) {
    this.#write('won', String(rounds));
  }

  /** Touches the page only where something is new: this is called 20 times a second. @param {typeof NUMBERS[number]} name @param {string} text */
  #write(name, text) {
    if (this.#numbers[name].textContent !== text) this.#numbers[name].textContent = text;
  }
}
