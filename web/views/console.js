import { toWireError } from '../wire.js';
import { button, h } from './dom.js';

/** @typedef {import('../python-host.js').PythonHost} PythonHost */
/** @typedef {import('./log.js').LogView} LogView */

const KEPT_LINES = 500;

/** A prompt: runs what is whole, goes on where it is not, completes names, and remembers. */
export class ConsoleView {
  #python;
  #log;
  #keep;
  /** @type {string[]} */
  #history = [];
  /** Where in the history the prompt stands; its length is the line that is being written. */
  #place = 0;
  #draft = '';
  #input = h('textarea', {
    rows: 1,
    'aria-label': 'Python to run',
    'aria-describedby': 'console-help',
    placeholder: 'await open_engine("wasm-1")',
    autocomplete: 'off',
    autocapitalize: 'off',
    spellcheck: 'false',
    disabled: true,
  });
  #words = h('p', { class: 'words note', role: 'status', hidden: true });
  #run = button('Run', () => this.#enter(true));

  /**
   * @param {HTMLElement} root
   * @param {PythonHost} python
   * @param {LogView} log
   * @param {(history: string[]) => void} keep saves the history
   */
  constructor(root, python, log, keep) {
    this.root = root;
    this.#python = python;
    this.#log = log;
    this.#keep = keep;
    this.#run.disabled = true;
    this.#input.addEventListener('keydown', (event) => this.#key(event));
    this.#input.addEventListener('input', () => this.#fit());
    root.append(
      h('div', { class: 'line' }, h('span', { 'aria-hidden': 'true' }, '>>>'), this.#input, this.#run),
      this.#words,
      h('p', { class: 'note', id: 'console-help' }, 'Enter runs what is complete, Shift-Enter begins a line, ↑ and ↓ go through what was typed, Ctrl-R searches it, Tab completes; Escape, then Tab leaves the field.'),
    );
  }

  /** @param {boolean} ready */
  set ready(ready) {
    this.#input.disabled = this.#run.disabled = !ready;
  }

  /** @param {string[]} history from an earlier visit */
  restore(history) {
    this.#history = [...history, ...this.#history].slice(-KEPT_LINES);
    this.#place = this.#history.length;
  }

  /** Forgets what was typed. */
  forget() {
    this.#history = [];
    this.#place = 0;
  }

  #leaving = false;

  /** @param {KeyboardEvent} event */
  #key(event) {
    const { key, shiftKey, isComposing } = event;
    if (isComposing) return;
    const leaving = this.#leaving;
    this.#leaving = key === 'Escape';
    const { value, selectionStart, selectionEnd } = this.#input;
    const one = selectionStart === selectionEnd;
    if (key === 'Enter' && !shiftKey) {
      event.preventDefault();
      this.#enter(false);
    } else if (key === 'Tab' && !shiftKey && !leaving && one && value.slice(0, selectionStart).trim()) {
      event.preventDefault();
      this.#complete(selectionStart);
    } else if (key === 'r' && event.ctrlKey) {
      event.preventDefault();
      this.#search();
    } else if (key === 'ArrowUp' && one && !value.slice(0, selectionStart).includes('\n')) {
      if (this.#go(-1)) event.preventDefault();
    } else if (key === 'ArrowDown' && one && !value.slice(selectionStart).includes('\n')) {
      if (this.#go(1)) event.preventDefault();
    }
  }

  /** @param {boolean} anyhow whether to run it, whole or not */
  async #enter(anyhow) {
    const source = this.#input.value;
    if (!source.trim()) return;
    if (!anyhow && (await this.#python.status(source)) === 'incomplete') {
      const { selectionStart } = this.#input;
      // A block goes on with the indentation of its last line, and one more after a colon.
      const line = source.slice(0, selectionStart).split('\n').at(-1) ?? '';
      const indent = (/^[ \t]*/.exec(line)?.[0] ?? '') + (line.trimEnd().endsWith(':') ? '    ' : '');
      this.#input.setRangeText(`\n${line.trim() || !indent ? indent : ''}`, selectionStart, this.#input.selectionEnd, 'end');
      return this.#fit();
    }
    this.#input.value = '';
    this.#fit();
    this.#remember(source);
    await this.run(source);
  }

  /** Runs a text as if it had been typed. @param {string} source */
  async run(source) {
    this.#log.write(source.replaceAll(/^/gm, (_, place) => (place ? '... ' : '>>> ')), 'input');
    try {
      const { shown, traceback } = await this.#python.run(source, '<console>');
      if (traceback) this.#log.write(traceback, 'stderr');
      else await this.#log.show(shown);
    } catch (error) {
      const { message, remedy } = toWireError(error);
      this.#log.write(`${message}. ${remedy}`, 'stderr');
    }
  }

  /** @param {string} source */
  #remember(source) {
    if (this.#history.at(-1) !== source) this.#history.push(source);
    this.#history = this.#history.slice(-KEPT_LINES);
    this.#place = this.#history.length;
    this.#keep(this.#history);
  }

  /** @param {number} step @returns {boolean} whether there was something to go to */
  #go(step) {
    const place = this.#place + step;
    if (place < 0 || place > this.#history.length) return false;
    if (this.#place === this.#history.length) this.#draft = this.#input.value;
    this.#place = place;
    this.#input.value = this.#history[place] ?? this.#draft;
    this.#input.setSelectionRange(this.#input.value.length, this.#input.value.length);
    this.#fit();
    return true;
  }

  /** Goes back to the latest line that holds what was written when the search began; again, to the one before it. */
  #search() {
    if (this.#place === this.#history.length) this.#draft = this.#input.value;
    const found = this.#history.findLastIndex((line, i) => i < this.#place && line.includes(this.#draft));
    if (found < 0) {
      this.#words.textContent = `nothing earlier holds ${this.#draft || 'anything'}`;
      this.#words.hidden = false;
      return;
    }
    this.#place = found;
    this.#input.value = this.#history[found];
    this.#fit();
  }

  /** @param {number} end the cursor's place */
  async #complete(end) {
    const before = this.#input.value.slice(0, end);
    const { words, start } = await this.#python.complete(before);
    if (this.#input.value.slice(0, end) !== before) return; // typed on meanwhile
    const common = words.reduce((a, b) => {
      let same = 0;
      while (same < a.length && a[same] === b[same]) same++;
      return a.slice(0, same);
    }, words[0] ?? '');
    if (common.length > end - start) this.#input.setRangeText(common, start, end, 'end');
    this.#words.textContent = words.length > 1 ? words.slice(0, 40).join('  ') + (words.length > 40 ? '  …' : '') : '';
    this.#words.hidden = words.length < 2;
  }

  #fit() {
    this.#words.hidden = true;
    this.#input.rows = Math.min(12, this.#input.value.split('\n').length);
  }
}
