import { h, table } from './dom.js';
import { unbroken } from './sentences.js';

/** @typedef {import('../types.d.ts').Verdict} Verdict */
/** @typedef {import('../types.d.ts').VerdictLine} VerdictLine */

export const CRITERIA = /** @type {const} */ (['answers', 'scores', 'stability', 'support', 'speed']);
const WORDS = { pass: ['✓ pass', 'good'], fail: ['✗ fails', 'bad'], unknown: ['? not known', 'unknown'] };

/** Which engine to ship: the answer, how each engine does by each criterion, and what would make it surer. */
export class VerdictView {
  #root;
  /** What is said where there is no verdict. */
  #before;

  /** @param {HTMLElement} root */
  constructor(root) {
    this.#root = root;
    this.#before = [...root.childNodes];
  }

  clear() {
    this.#root.replaceChildren(...this.#before);
  }

  /** @param {Verdict} verdict */
  show({ engine, decided, sentence, lines, next_steps }) {
    const engines = [...new Set(lines.map((line) => line.engine))];
    // A model of the visitor's plays no games, so that it has no scores.
    const criteria = CRITERIA.filter((name) => lines.some(({ criterion }) => criterion === name));
    this.#root.replaceChildren(
      h('p', { class: `sentence headline ${decided ? 'good' : 'plain'}` }, ...(decided && engine ? emphasized(unbroken(sentence), engine) : [unbroken(sentence)])),
      ...(engines.length ? [table('Engines by criterion', ['', ...criteria], engines.map((name) => row(name, lines, criteria)))] : []),
      ...(next_steps.length ? [h('h3', {}, 'Next steps'), h('ul', { class: 'next' }, ...next_steps.map((step) => h('li', {}, step)))] : []),
    );
  }
}

/** @param {VerdictLine[]} lines @param {string} engine @param {string} criterion @returns {string} nothing where nothing is said */
export function statusOf(lines, engine, criterion) {
  const line = lineOf(lines, engine, criterion);
  return line ? WORDS[line.status][0] : '–';
}

/** @param {VerdictLine[]} lines @param {string} engine @param {string} criterion */
function lineOf(lines, engine, criterion) {
  return lines.find((line) => line.engine === engine && line.criterion === criterion);
}

/** @param {string} engine @param {VerdictLine[]} lines @param {string[]} criteria @returns {(Node | string)[]} */
function row(engine, lines, criteria) {
  const cells = criteria.map((criterion) => {
    const { status, text } = lineOf(lines, engine, criterion) ?? { status: /** @type {const} */ ('unknown'), text: '' };
    return h('div', { class: 'criterion', 'data-name': criterion }, h('strong', { class: WORDS[status][1] }, WORDS[status][0]), h('small', {}, unbroken(text)));
  });
  return [engine, ...cells];
}

/** A sentence with an engine's name in bold, where it stands by itself: `wasm-1` is not in `wasm-16`. @param {string} sentence @param {string} engine @returns {(Node | string)[]} */
function emphasized(sentence, engine) {
  const name = engine.replaceAll(/[^\w\s]/g, '\\$&');
  const found = new RegExp(`(?<![\\w-])${name}(?![\\w-])`).exec(sentence);
  // Only where it stands first: a sentence in pieces can hardly be translated.
  return found ? [sentence.slice(0, found.index), h('strong', {}, engine), sentence.slice(found.index + engine.length)] : [sentence];
}
