import { downloadText } from '../download.js';
import { fromHash, toHash } from '../permalink.js';
import { AppError, toWireError } from '../wire.js';
import { ConsoleView } from './console.js';
import { button, h, table } from './dom.js';
import { Editor } from './editor.js';
import { LogView } from './log.js';
import { reference } from './reference.js';
import { save } from './report-file.js';

/** @typedef {import('../python-host.js').PythonHost} PythonHost */
/** @typedef {import('../store.js').Store} Store */

const EXAMPLES = /** @type {const} */ ([
  ['parity', 'Parity by hand'],
  ['race', 'A race of your own'],
  ['batches', 'A sweep over batches'],
  ['saliency', 'Which pixels count'],
  ['engine', 'An engine of your own'],
  ['tracker', 'A policy that follows the ball'],
]);

const SAVED_AFTER_MS = 400;
const MAX_FILE_BYTES = 200e6;

/** Python for the visitor: an editor on demand, what came of it, and a prompt. Text and history outlive the page. */
export class PythonView {
  log = new LogView();
  #python;
  #store;
  #console;
  /** @type {Editor | null} */
  #editor = null;
  #text = '';
  #error = h('p', { class: 'error', role: 'alert', hidden: true });
  #said = h('p', { class: 'note', role: 'status' });
  #editorRoot = h('div');
  #brought = h('div', { class: 'brought', hidden: true });
  #variables = h('div', { hidden: true });
  #reference = h('div', { hidden: true });
  #open = button('Open the editor', () => this.#openEditor(true));
  #stop = button('Stop', () => this.#attempt(() => this.#halt()));
  /** What needs Python. @type {HTMLButtonElement[]} */
  #needPython;
  /** What needs the editor. */
  #tools;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #saving;

  /**
   * @param {HTMLElement} root
   * @param {PythonHost} python
   * @param {URL} base the folder of the site's version
   * @param {Store} store
   */
  constructor(root, python, base, store) {
    this.#python = python;
    this.#store = store;
    const examples = h('select', { 'aria-label': 'Examples' }, h('option', { value: '' }, 'Examples…'), ...EXAMPLES.map(([name, label]) => h('option', { value: name }, label)));
    examples.addEventListener('change', () => {
      const name = examples.value;
      examples.value = '';
      if (name) this.#attempt(() => this.#example(new URL(`examples/${name}.py`, base)));
    });
    const runAll = button('Run all', () => this.#editor && this.#run(this.#editor.text), 'primary');
    const runChosen = button('Run the selection or line', () => this.#editor && this.#run(this.#editor.chosen));
    const restart = button('Restart Python', () => this.#attempt(() => this.#python.restart()));
    const variables = button('Variables', () => this.#attempt(() => this.#showVariables()));
    const link = button('Copy a link', () => this.#attempt(() => this.#copyLink()));
    const saves = button('Save as a file', () => this.#saveFile());
    const files = h('input', { type: 'file', multiple: true, hidden: true, 'aria-label': 'Files for Python' });
    files.addEventListener('change', () => this.#attempt(() => this.#bringFiles([...(files.files ?? [])])).finally(() => (files.value = '')));
    const bring = button('Bring files…', () => files.click());
    const take = button('Take a file', () => this.#attempt(() => this.#takeFile()));
    const docs = button('Reference', () => this.#attempt(() => this.#showReference()));
    const forget = button('Forget all that is kept', () => this.#attempt(() => this.#forget()));
    this.#tools = h('div', { class: 'actions', hidden: true }, runAll, runChosen, link, saves, forget);
    this.#needPython = [runAll, runChosen, restart, variables, bring, take, docs];
    const actions = h('div', { class: 'actions' }, this.#open, examples, this.#stop, variables, docs, bring, take, files, button('Clear', () => this.log.clear()), restart);
    this.#console = new ConsoleView(h('div'), python, this.log, (history) => this.#store.write('history', history));
    root.append(this.#brought, actions, this.#tools, this.#editorRoot, this.#error, this.#said, this.#reference, this.#variables, this.log.root, this.#console.root);
    this.#store.onFailure = (reason) => {
      this.#said.textContent = `This browser keeps nothing of what you write here (${reason}).`;
    };
    python.on('typed', () => {
      if (!this.#variables.hidden && !this.#needPython[0].disabled) this.#attempt(() => this.#listVariables());
    });
    root.addEventListener('dragover', (event) => event.preventDefault());
    root.addEventListener('drop', (event) => {
      event.preventDefault();
      if (!this.#needPython[0].disabled) this.#attempt(() => this.#bringFiles([...(event.dataTransfer?.files ?? [])]));
    });
    this.ready = false;
    this.#remember();
  }

  /** @param {boolean} ready whether Python is there */
  set ready(ready) {
    this.#console.ready = ready;
    for (const one of this.#needPython) one.disabled = !ready;
  }

  /** @param {{stream: 'stdout' | 'stderr', text: string}[]} output */
  print(output) {
    for (const { stream, text } of output) this.log.print(stream, text);
  }

  /** Python has been ended and boots again. */
  restarted() {
    this.ready = false;
    this.log.write('Python restarts: its variables are gone.', 'note');
  }

  async #remember() {
    const [text, history] = await Promise.all([this.#store.read('editor'), this.#store.read('history')]);
    if (Array.isArray(history)) this.#console.restore(history.filter((line) => typeof line === 'string'));
    if (typeof text === 'string') this.#text = text;
    await this.#attempt(async () => {
      const code = await fromHash(location.hash);
      if (code !== null) this.#bring(code);
    });
    if (this.#text) await this.#openEditor(false);
  }

  /** Code that an address has brought is shown, and not run. @param {string} code */
  #bring(code) {
    const lines = code.split('\n').length;
    const from = document.referrer ? `from ${new URL(document.referrer).host}` : 'from somebody who does not say who they are';
    const end = () => {
      this.#brought.hidden = true;
      history.replaceState(null, '', `${location.pathname}${location.search}`);
    };
    this.#brought.replaceChildren(
      h('p', {}, h('strong', {}, 'The address has brought code'), `, ${lines} ${lines === 1 ? 'line' : 'lines'}, ${from}. It has not been run. Read it before you run it.`),
      h('pre', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'The code' }, code),
      h(
        'div',
        { class: 'actions' },
        button('Put it into the editor', () => this.#attempt(async () => {
          await this.#openEditor(true);
          if (this.#editor) this.#editor.text = code;
          end();
        })),
        button('Ignore it', end),
      ),
    );
    this.#brought.hidden = false;
  }

  /** @param {boolean} focus */
  async #openEditor(focus) {
    if (!this.#editor) {
      this.#open.disabled = true;
      this.#editor = await Editor.open(this.#editorRoot, {
        python: this.#python,
        run: (source) => this.#run(source),
        changed: (text) => this.#changed(text),
        text: this.#text,
      });
      this.#open.hidden = true;
      this.#tools.hidden = false;
    }
    if (focus) this.#editor.focus();
  }

  /** @param {string} text */
  #changed(text) {
    this.#text = text;
    clearTimeout(this.#saving);
    this.#saving = setTimeout(() => this.#store.write('editor', text), SAVED_AFTER_MS);
  }

  /** @param {string} source */
  async #run(source) {
    if (!source.trim() || this.#needPython[0].disabled) return;
    this.log.write(source.length > 300 ? `${source.slice(0, 300)}…` : source, 'input');
    await this.#attempt(async () => {
      const { shown, traceback } = await this.#python.run(source, '<editor>');
      if (traceback) this.log.write(traceback, 'stderr');
      else await this.log.show(shown);
    });
  }

  async #halt() {
    if (!this.#python.types) {
      this.#said.textContent = 'Nothing runs.';
      return;
    }
    this.#stop.disabled = true;
    try {
      const ended = await this.#python.stop();
      this.#said.textContent = ended ? 'Python did not heed, so it was started anew.' : 'Stopped.';
    } finally {
      this.#stop.disabled = false;
    }
  }

  /** @param {URL} place */
  async #example(place) {
    const text = await downloadText(place);
    await this.#openEditor(true);
    if (this.#editor) this.#editor.text = text;
    this.#said.textContent = 'The example is in the editor; undo brings your text back.';
  }

  async #showVariables() {
    if (!this.#variables.hidden) {
      this.#variables.hidden = true;
      return;
    }
    await this.#listVariables();
    this.#variables.hidden = false;
  }

  async #listVariables() {
    const found = await this.#python.variables();
    const rows = found.map(({ name, type, summary }) => [name, type, h('code', {}, summary)]);
    this.#variables.replaceChildren(found.length ? table('Variables', ['', 'type', 'value'], rows) : h('p', { class: 'note' }, 'No variables of yours yet.'));
  }

  async #showReference() {
    if (!this.#reference.hasChildNodes()) this.#reference.append(reference(await this.#python.reference()));
    this.#reference.hidden = !this.#reference.hidden;
    if (!this.#reference.hidden) this.#reference.querySelector('input')?.focus();
  }

  /** Files go into Python's present folder; wheels are installed with `micropip`. @param {File[]} files */
  async #bringFiles(files) {
    for (const file of files) {
      if (file.size > MAX_FILE_BYTES) throw new AppError('TooLarge', `${file.name} has ${Math.ceil(file.size / 1e6)} MB; files up to ${MAX_FILE_BYTES / 1e6} MB are taken`, 'Choose a smaller one.');
      await this.#python.writeFile(file.name, await file.arrayBuffer());
      this.log.write(file.name.endsWith('.whl') ? `${file.name} is here; install it: import micropip; await micropip.install("emfs:${file.name}")` : `${file.name} is here: open("${file.name}")`, 'note');
    }
  }

  /** Offers the files of Python's folder, the newest first. */
  async #takeFile() {
    const names = await this.#python.listFiles();
    if (!names.length) throw new AppError('NoFile', "there is no file in Python's folder", 'Write one, as in open("mine.txt", "w").');
    const choice = h('select', { 'aria-label': 'File to save' }, ...names.map((name) => h('option', { value: name }, name)));
    const saves = button('Save it', () =>
      this.#attempt(async () => {
        const bytes = await this.#python.readFile(choice.value);
        save(choice.value, 'application/octet-stream', /** @type {Uint8Array<ArrayBuffer>} */ (bytes));
        this.#said.textContent = `Saved ${choice.value}.`;
      }),
    );
    this.#said.replaceChildren(choice, ' ', saves);
  }

  async #copyLink() {
    if (!this.#editor) return;
    const address = new URL(location.href);
    address.hash = await toHash(this.#editor.text);
    await navigator.clipboard.writeText(address.href);
    this.#said.textContent = 'A link with this code is in the clipboard. Whoever opens it is asked before anything runs.';
  }

  #saveFile() {
    if (!this.#editor) return;
    save('page.py', 'text/x-python', this.#editor.text);
  }

  async #forget() {
    clearTimeout(this.#saving);
    if (this.#editor) this.#editor.text = '';
    clearTimeout(this.#saving);
    this.#console.forget();
    await Promise.all([this.#store.forget('editor'), this.#store.forget('history'), this.#store.forget('report')]);
    this.#said.textContent = 'Text, history and the last results are forgotten.';
  }

  /** @param {() => Promise<unknown>} work */
  async #attempt(work) {
    this.#error.hidden = true;
    try {
      await work();
    } catch (error) {
      const { message, remedy } = toWireError(error);
      this.#error.textContent = remedy ? `${message}. ${remedy}` : message;
      this.#error.hidden = false;
    }
  }
}
