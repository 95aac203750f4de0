import { adapterHasHalves } from '../gpu.js';
import { download, sorted } from '../model-files.js';
import { toWireError } from '../wire.js';
import { CasesForm } from './cases-form.js';
import { button, count, h } from './dom.js';
import { findings } from './findings.js';
import { facts } from './model-facts.js';
import { ProgressView } from './progress.js';

/** @typedef {import('../python-host.js').PythonHost} PythonHost */
/** @typedef {import('../model-files.js').Brought} Brought */

/**
 * @typedef {object} Uses
 * @property {(work: () => Promise<void>) => Promise<void>} during does work that nothing may be asked during
 * @property {(model: any) => void} changed what the page looks at is another model, or it is asked otherwise; null: the worked example
 */

/** The visitor's own model: how it comes here, what it is, what it is asked, and what the doctor says. */
export class ModelView {
  #python;
  #uses;
  #root;
  #input = h('input', { type: 'file', id: 'model-file', hidden: true, multiple: true });
  #address = h('input', { type: 'url', id: 'model-address', placeholder: 'https://…/model.onnx', spellcheck: 'false', 'aria-label': "A model's address" });
  #cases = new CasesForm({
    file: (file) => this.#act(() => this.#takeCases(file)),
    make: (settings) => this.#act(() => this.#change('make_cases', JSON.stringify(settings))),
    allow: (settings) => this.#act(() => this.#change('allow', JSON.stringify(settings))),
  });
  #said = h('p', { class: 'note', role: 'status' });
  #error = h('p', { class: 'error', role: 'alert', hidden: true });
  #progressPlace = h('div', { class: 'progress', role: 'status', 'aria-live': 'polite' });
  #progress = new ProgressView(this.#progressPlace);
  #chooser;
  #card = h('div', { class: 'own', hidden: true });
  #all;
  /** What made the model what it is, to make it again where Python has forgotten it. @type {[string, any[]][]} */
  #history = [];
  /** Whether something is being done to it. */
  #acting = false;
  /** Whether it is made again: then what was found about it still holds. */
  #restoring = false;
  /** What Python says of it. @type {any} */
  model = null;

  /** @param {HTMLElement} root @param {PythonHost} python @param {Uses} uses */
  constructor(root, python, uses) {
    this.#python = python;
    this.#uses = uses;
    this.#root = root;
    this.#input.addEventListener('change', () => {
      const files = [...(this.#input.files ?? [])];
      this.#act(() => this.load(files)).finally(() => (this.#input.value = '')); // so that the same file can be chosen again
    });
    const form = h('form', { class: 'address' }, this.#address, h('button', { type: 'submit' }, 'Load'));
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#act(() => this.#download(this.#address.value.trim()));
    });
    this.#chooser = h(
      'div',
      { class: 'drop' },
      h('p', {}, h('strong', {}, 'Bring your own model.'), ' Drop an ONNX file here, with the files that hold its weights and its cases if there are any, or choose it; up to 1 GiB. It stays on your machine.'),
      h('div', { class: 'actions' }, button('Choose files…', () => this.#input.click()), form),
      this.#input,
    );
    this.#all = h('fieldset', { class: 'plain', disabled: true, 'aria-label': 'Your own model' }, this.#card, this.#chooser);
    root.append(this.#all, this.#progressPlace, this.#said, this.#error);
    this.#acceptDrops();
  }

  /** @param {boolean} ready whether the model may be changed now */
  set ready(ready) {
    this.#all.disabled = !ready;
  }

  start() {
    this.#error.hidden = true;
    this.#progress.start();
  }

  stop() {
    this.#progress.stop();
  }

  /** @param {{stage: string, done: number, total: number}} progress */
  show(progress) {
    this.#progress.show(progress);
  }

  /** @param {unknown} thrown */
  fail(thrown) {
    const { message, remedy } = toWireError(thrown);
    this.#said.textContent = '';
    this.#error.textContent = remedy ? `${message}. ${remedy}` : message;
    this.#error.hidden = false;
  }

  /** @param {Brought[]} files */
  async load(files) {
    const { model, weights, cases } = sorted(files);
    if (!model && cases) return this.#takeCases(cases);
    if (!model) return;
    this.#said.textContent = `Reading ${model.name}…`;
    const others = Object.fromEntries(await Promise.all(weights.map(async (file) => [file.name, new Uint8Array(await file.arrayBuffer())])));
    await this.#python.bench('load', model.name, new Uint8Array(await model.arrayBuffer()), others);
    // Kept as files: a copy of their bytes for a restart that may never come would double what a large model takes.
    this.#history = [['load', [model, weights]]];
    await this.#refresh(`${model.name} is loaded; every question below is about it now.`);
    if (cases) await this.#takeCases(cases);
  }

  /** What a control does, for programs. @param {string} verb @param {any} settings */
  change(verb, settings) {
    return this.#act(() => this.#change(verb, verb === 'fix' ? settings : JSON.stringify(settings)));
  }

  /** Makes the model again what it was, in a Python that has been started anew. */
  async restore() {
    const history = this.#history;
    if (!history.length) return;
    this.#restoring = true;
    try {
      for (const [verb, args] of history) {
        if (verb === 'load') await this.load([args[0], ...args[1]]);
        else if (verb === 'take_cases') await this.#takeCases(args[0]);
        else await this.#change(verb, ...args);
      }
    } finally {
      this.#restoring = false;
    }
  }

  /** @param {string} address */
  async #download(address) {
    this.#progress.start();
    const brought = await download(address, (done, total) => this.#progress.show({ stage: `loading ${address}, kB`, done: Math.round(done / 1e3), total: Math.round(total / 1e3) }));
    await this.load([brought]);
  }

  /** @param {Brought} file */
  async #takeCases(file) {
    this.#said.textContent = `Reading ${file.name}…`;
    await this.#python.bench('take_cases', file.name, new Uint8Array(await file.arrayBuffer()));
    this.#history.push(['take_cases', [file]]);
    await this.#refresh(`The cases are those of ${file.name}.`);
  }

  /** @param {string} verb @param {...any} args */
  async #change(verb, ...args) {
    const answer = await this.#python.bench(verb, ...args);
    this.#history.push([verb, args]);
    await this.#refresh(said(answer));
  }

  async #drop() {
    await this.#python.bench('drop');
    this.#history = [];
    this.model = null;
    this.#card.hidden = true;
    this.#said.textContent = 'Every question is about the worked example again.';
    this.#uses.changed(null);
  }

  /** @param {string} text */
  async #refresh(text) {
    this.model = await this.#python.bench('read', await adapterHasHalves());
    this.#said.textContent = text;
    this.#cases.show(this.model);
    this.#card.replaceChildren(
      h('h3', { tabindex: -1 }, this.model.model.name),
      facts(this.model),
      findings(this.model.findings, (fix) => this.#act(() => this.#change('fix', fix))),
      this.#cases.root,
      h('div', { class: 'actions' }, button('Back to the worked example', () => this.#act(() => this.#drop()))),
    );
    this.#card.hidden = false;
    if (!this.#restoring) this.#uses.changed(this.model);
  }

  /** @param {() => Promise<void>} work */
  async #act(work) {
    if (this.#all.disabled || this.#acting) return;
    this.#acting = true;
    try {
      await this.#uses.during(work);
    } finally {
      this.#acting = false;
    }
  }

  #acceptDrops() {
    const section = this.#root.closest('section') ?? this.#root;
    const mark = (/** @type {boolean} */ on) => section.classList.toggle('dropping', on);
    section.addEventListener('dragover', () => mark(true));
    section.addEventListener('dragleave', (event) => {
      if (!section.contains(/** @type {Node | null} */ (/** @type {DragEvent} */ (event).relatedTarget))) mark(false);
    });
    section.addEventListener('drop', (event) => {
      mark(false);
      const files = [.../** @type {DragEvent} */ (event).dataTransfer?.files ?? []];
      if (files.length) this.#act(() => this.load(files));
    });
  }
}

/** @param {any} answer of a change @returns {string} */
function said({ changes, proof }) {
  if (!changes) return 'Changed.';
  return `Applied: ${changes.join('; ')}. Proven on ${proof.cases} cases: ${count(proof.numbers)} numbers are the same, to the bit.`;
}
