import { toNumber } from '../settings.js';
import { button, h } from './dom.js';

/**
 * @typedef {object} Acts
 * @property {(file: File) => unknown} file takes cases from a file
 * @property {(settings: {sizes: Record<string, number | string>, count: number | string, seed: number | string}) => unknown} make makes them anew
 * @property {(settings: {rtol: number | string, atol: number | string}) => unknown} allow sets the tolerance
 */

/** What a model is asked: cases from a file or made from its signature, the sizes of its free dimensions, and the tolerance. */
export class CasesForm {
  #acts;
  #input = h('input', { type: 'file', id: 'cases-file', hidden: true, accept: '.npz,.npy,.json' });
  #from = h('p');
  #sizes = h('div', { class: 'fields sizes' });
  #count = number('cases-count', '8');
  #seed = number('cases-seed', '0');
  #rtol = number('rtol', '', 'decimal');
  #atol = number('atol', '', 'decimal');
  root;

  /** @param {Acts} acts */
  constructor(acts) {
    this.#acts = acts;
    this.#input.addEventListener('change', () => {
      const [file] = this.#input.files ?? [];
      if (file) acts.file(file);
      this.#input.value = '';
    });
    const make = form([this.#sizes, field('Cases', this.#count), field('Seed', this.#seed)], 'Make cases', () => this.#make());
    const allow = form([field('rtol', this.#rtol), field('atol', this.#atol)], 'Apply', () => acts.allow({ rtol: toNumber(this.#rtol.value), atol: toNumber(this.#atol.value) }));
    this.root = h(
      'div',
      { class: 'cases' },
      h('h4', {}, 'What it is asked'),
      this.#from,
      h('div', { class: 'actions' }, button('Use a file with cases…', () => this.#input.click())),
      this.#input,
      h('details', { class: 'settings' }, h('summary', {}, 'Cases made from the signature'), h('p', { class: 'note' }, 'Free dimensions have been guessed from their names; correct them here.'), make),
      h('details', { class: 'settings' }, h('summary', {}, 'How near is the same?'), h('p', { class: 'note' }, 'A floating-point number may differ from the reference by atol + rtol × |reference|; other numbers must be equal.'), allow),
    );
  }

  /** @param {any} read what Python's `Workbench.read` returns */
  show({ model, cases, problem }) {
    const text = problem ? `No cases: ${problem.message}. ${problem.remedy}` : `${cases} cases, ${model.cases}. The reference: ${model.reference}.`;
    this.#from.textContent = text;
    this.#from.className = problem ? 'error' : '';
    this.#sizes.replaceChildren(...Object.entries(model.sizes).map(([name, size]) => field(name, number('', String(size)), name)));
    this.#rtol.value = String(model.rtol);
    this.#atol.value = String(model.atol);
  }

  #make() {
    const inputs = /** @type {NodeListOf<HTMLInputElement>} */ (this.#sizes.querySelectorAll('input'));
    const sizes = Object.fromEntries([...inputs].map((input) => [input.name, toNumber(input.value)]));
    this.#acts.make({ sizes, count: toNumber(this.#count.value), seed: toNumber(this.#seed.value) });
  }
}

/** @param {string} id @param {string} value @param {string} [mode] */
function number(id, value, mode = 'numeric') {
  return h('input', { ...(id && { id }), type: 'text', inputmode: mode, value, spellcheck: 'false' });
}

/** @param {string} label @param {HTMLInputElement} input @param {string} [name] */
function field(label, input, name = '') {
  input.name = name;
  return h('label', {}, h('span', {}, label), input);
}

/** @param {HTMLElement[]} parts @param {string} label @param {() => void} act */
function form(parts, label, act) {
  const made = h('form', { class: 'fields' }, ...parts, h('button', { type: 'submit' }, label));
  made.addEventListener('submit', (event) => {
    event.preventDefault();
    act();
  });
  return made;
}
