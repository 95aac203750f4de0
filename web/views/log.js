import { button, count, h } from './dom.js';
import { draw } from './rich.js';

/** Lines of one print that are shown at once; the rest on demand. */
const SHOWN_LINES = 400;
/** Lines of one print that are kept. */
const KEPT_LINES = 100_000;
/** Inputs, outputs and results that are kept in all. */
const KEPT_ENTRIES = 300;

/** What was typed, printed and found, latest last. */
export class LogView {
  root = h('div', { class: 'log', role: 'log', 'aria-live': 'polite', 'aria-label': 'Python output' });
  /** What is being printed. @type {Printed | null} */
  #printed = null;

  /** @param {string} text @param {'input' | 'stderr' | 'result' | 'note'} kind */
  write(text, kind) {
    this.#append(h('pre', { class: kind }, text));
  }

  /** @param {'stdout' | 'stderr'} stream @param {string} text one or more lines */
  print(stream, text) {
    if (this.#printed?.stream !== stream) {
      const printed = new Printed(stream);
      this.#append(printed.root);
      this.#printed = printed;
    }
    this.#printed?.add(text);
    this.#follow();
  }

  /** @param {any} shown what `pyapp/rich.py` says of a value; null for nothing */
  async show(shown) {
    if (shown) this.#append(await draw(shown, this.root));
  }

  clear() {
    this.#printed = null;
    this.root.replaceChildren();
    this.root.removeAttribute('tabindex');
  }

  /** @param {HTMLElement} entry */
  #append(entry) {
    this.#printed = null;
    this.root.append(entry);
    this.root.tabIndex = 0; // while it is empty there is nothing to scroll
    while (this.root.childElementCount > KEPT_ENTRIES) this.root.firstElementChild?.remove();
    this.#follow();
  }

  #follow() {
    this.root.scrollTop = this.root.scrollHeight;
  }
}

/** What a program prints without a break: the last lines, and all of them on demand. */
class Printed {
  #pre;
  #more = button('', () => this.#showAll());
  /** @type {string[]} */
  #lines = [];
  #dropped = 0;
  #all = false;
  #drawing = false;

  /** @param {'stdout' | 'stderr'} stream */
  constructor(stream) {
    this.stream = stream;
    this.#pre = h('pre', { class: stream });
    this.#more.hidden = true;
    this.root = h('div', {}, this.#more, this.#pre);
  }

  /** @param {string} text */
  add(text) {
    for (const line of text.split('\n')) this.#lines.push(line);
    if (this.#lines.length > 2 * KEPT_LINES) {
      this.#dropped += this.#lines.length - KEPT_LINES;
      this.#lines = this.#lines.slice(-KEPT_LINES);
    }
    if (this.#drawing) return;
    this.#drawing = true;
    requestAnimationFrame(() => {
      this.#drawing = false;
      this.#draw();
    });
  }

  #draw() {
    const hidden = this.#all ? 0 : Math.max(0, this.#lines.length - SHOWN_LINES);
    this.#pre.textContent = this.#lines.slice(hidden).join('\n');
    this.#more.hidden = hidden === 0;
    const lost = this.#dropped ? `; ${count(this.#dropped)} before them are gone` : '';
    this.#more.textContent = `Show all ${count(this.#lines.length)} lines${lost}`;
  }

  #showAll() {
    this.#all = true;
    this.#draw();
  }
}
