import { h } from './dom.js';

/** A line of Python, and what came of the lines before. */
export class ConsoleView {
  #log = h('div', { class: 'log', role: 'log', 'aria-live': 'polite', tabindex: 0, 'aria-label': 'Python output' });
  #input = h('input', {
    type: 'text',
    'aria-label': 'Python to run',
    placeholder: 'await open_engine("wasm-1")',
    autocomplete: 'off',
    autocapitalize: 'off',
    spellcheck: 'false',
    disabled: true,
  });
  #evaluate;

  /**
   * @param {HTMLElement} root
   * @param {(source: string) => Promise<{repr?: string | null, traceback?: string}>} evaluate
   */
  constructor(root, evaluate) {
    this.#evaluate = evaluate;
    const form = h('form', { class: 'line' }, h('span', { 'aria-hidden': 'true' }, '>>>'), this.#input, h('button', { type: 'submit' }, 'Run'));
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#run();
    });
    root.append(this.#log, form);
  }

  enable() {
    this.#input.disabled = false;
  }

  /** @param {string} text @param {string} kind */
  print(text, kind) {
    this.#log.append(h('pre', { class: kind }, text));
    this.#log.scrollTop = this.#log.scrollHeight;
  }

  async #run() {
    const source = this.#input.value;
    if (!source.trim()) return;
    this.#input.value = '';
    this.print(`>>> ${source}`, 'input');
    try {
      const { repr, traceback } = await this.#evaluate(source);
      if (traceback) this.print(traceback, 'stderr');
      else if (repr) this.print(repr, 'result');
    } catch (error) {
      this.print(String(error), 'stderr');
    }
  }
}
