import { DEFAULTS, threadsOf, toList, toNumber, withThreads, writeSettings } from '../settings.js';
import { h } from './dom.js';

/** @typedef {import('../settings.js').Settings} Settings */

const NUMBERS = /** @type {const} */ ([
  ['runs', 'Measured runs'],
  ['warmup', 'Warm-up runs'],
  ['seed', 'Seed'],
]);

const GPU_ENGINES = /** @type {const} */ ([
  ['webgpu-stock', 'WebGPU, stock'],
  ['webgpu-fast', 'WebGPU, fast'],
]);

/** The check's settings as a form; the address follows it, so that it can be shared. */
export class SettingsView {
  /** @type {Record<string, HTMLInputElement>} */
  #fields = {};
  #others;

  /** @param {HTMLElement} root @param {Settings} settings */
  constructor(root, settings) {
    // Engines that the form has no field for stay as the address named them.
    this.#others = settings.engines.filter((name) => !name.startsWith('wasm-') && !GPU_ENGINES.some(([known]) => known === name));
    const form = h('form', { class: 'fields' });
    for (const [name, label] of NUMBERS) {
      // Not type=number: that one turns `many` into an empty text, and then nobody can say what was wrong.
      const input = h('input', { type: 'text', inputmode: 'numeric', value: settings[name], spellcheck: 'false' });
      form.append(this.#field(name, label, input));
    }
    const threads = h('input', { type: 'text', value: threadsOf(settings.engines).join(', '), spellcheck: 'false' });
    form.append(this.#field('threads', 'WASM threads', threads, 'counts with commas; N is the best here'));
    for (const [name, label] of GPU_ENGINES) {
      const box = h('input', { type: 'checkbox', checked: settings.engines.includes(name) });
      form.append(this.#field(name, label, box));
    }
    const reset = h('button', { type: 'reset' }, 'Defaults');
    form.append(reset);
    form.addEventListener('reset', (event) => {
      event.preventDefault();
      this.#fill(DEFAULTS);
    });
    form.addEventListener('submit', (event) => event.preventDefault());
    form.addEventListener('change', () => this.#share());
    root.append(form);
  }

  /** @returns {Settings} as they stand; Python checks them */
  get settings() {
    const chosen = GPU_ENGINES.map(([name]) => name).filter((name) => this.#fields[name].checked);
    const others = [...chosen, ...this.#others];
    return {
      runs: toNumber(this.#fields.runs.value),
      warmup: toNumber(this.#fields.warmup.value),
      seed: toNumber(this.#fields.seed.value),
      engines: withThreads(others, toList(this.#fields.threads.value)),
    };
  }

  /** @param {Settings} settings */
  #fill(settings) {
    for (const [name] of NUMBERS) this.#fields[name].value = String(settings[name]);
    this.#fields.threads.value = threadsOf(settings.engines).join(', ');
    for (const [name] of GPU_ENGINES) this.#fields[name].checked = settings.engines.includes(name);
    this.#others = [];
    this.#share();
  }

  #share() {
    const language = new URLSearchParams(location.search).get('lang');
    history.replaceState(null, '', `${location.pathname}${writeSettings(this.settings, language)}`);
  }

  /**
   * @param {string} name
   * @param {string} label
   * @param {HTMLInputElement} input
   * @param {string} [hint]
   */
  #field(name, label, input, hint) {
    this.#fields[name] = input;
    input.name = name;
    return h('label', {}, h('span', {}, label), input, hint ? h('small', {}, hint) : '');
  }
}
