import { AppError, toWireError } from '../wire.js';
import { comparison } from './compare.js';
import { byId, h } from './dom.js';
import { fileName, origin, read, save } from './report-file.js';

/** @typedef {import('../python-host.js').PythonHost} PythonHost */
/** @typedef {import('../results.js').Results} Results */
/** @typedef {import('./compare.js').Named} Named */

const OWN = "this page's own results";

/** What can be done with a report: save it, copy it, print it, open a saved one, and lay two side by side. */
export class ReportView {
  #python;
  #results;
  /** @type {Named | null} of this page's last check */
  #own = null;
  /** @type {Named | null} from a file */
  #opened = null;
  /** @type {Named | null} what the opened one took the place of */
  #before = null;
  #showsOpened = false;
  #compares = false;
  #acting = false;
  /** @type {HTMLButtonElement[]} */
  #needReport;
  #compareButtons = [this.#button('', () => this.#toggleComparison()), this.#button('', () => this.#toggleComparison())];
  #backButton = this.#button(`Back to ${OWN}`, () => this.#back());
  #showing = h('p');
  /** @type {HTMLButtonElement | null} */
  #lastButton = null;
  #banner;
  #tools;
  #said = h('p', { class: 'note', role: 'status' });
  #error = h('p', { class: 'error', role: 'alert', hidden: true });
  #text = h('textarea', { 'aria-label': 'The report as Markdown', readonly: true, rows: 8, hidden: true });
  #comparison = h('div');
  /** What is compared there. @type {Named[]} */
  #compared = [];

  /**
   * @param {HTMLElement} root
   * @param {PythonHost} python
   * @param {Results} results where an opened report is shown
   */
  constructor(root, python, results) {
    this.#python = python;
    this.#results = results;
    this.#needReport = [
      this.#button('Download JSON', () => this.#download('json', 'application/json')),
      this.#button('Download CSV', () => this.#download('csv', 'text/csv')),
      this.#button('Copy as Markdown', () => this.#copy()),
      this.#button('Print', () => print()),
    ];
    const [inBanner, inTools] = this.#compareButtons;
    this.#tools = h('fieldset', { class: 'plain', disabled: true }, h('div', { class: 'actions' }, ...this.#needReport, ...this.#picker(), inTools));
    this.#banner = h('fieldset', { class: 'plain banner', 'aria-label': 'Saved report', hidden: true }, this.#showing, h('div', { class: 'actions' }, this.#backButton, inBanner));
    byId('check').after(this.#banner);
    root.append(this.#tools, this.#said, this.#error, this.#text, this.#comparison);
    this.#acceptDrops(root.closest('section') ?? root);
    this.#refresh();
  }

  /** Offers what was found here before the page was closed. @param {() => Promise<void>} recall */
  offerLast(recall) {
    this.#lastButton = this.#button('Show the last results', recall);
    this.#tools.firstElementChild?.append(this.#lastButton);
  }

  /** Whether the page is starting or a check is running: nothing may be opened then, nor take time from the engines. */
  get busy() {
    return this.#tools.disabled;
  }

  set busy(/** @type {boolean} */ busy) {
    this.#tools.disabled = busy;
    this.#banner.disabled = busy;
  }

  /** Results of a new check are about to be shown; until it ends there is no report of what the page shows. */
  checkBegins() {
    this.#own = null;
    this.#showsOpened = false;
    this.#refresh();
  }

  /** Shows this page's own results again, where a saved report has taken their place: a further question adds to them. */
  async showOwn() {
    if (!this.#showsOpened) return;
    if (this.#own) await this.#results.show(this.#own.report);
    else this.#results.clear();
    this.#showsOpened = false;
    this.#compares = false;
    this.#refresh();
  }

  /** Takes the report of a check that has ended on this page. @param {any} report */
  take(report) {
    this.#own = { report, name: OWN };
    this.#lastButton?.remove();
    this.#refresh();
  }

  get #shown() {
    return this.#showsOpened ? this.#opened : this.#own;
  }

  /** @returns {Named | null} what the opened report can be compared with */
  get #other() {
    return this.#opened && (this.#showsOpened ? this.#before : this.#own);
  }

  /** @param {string} label @param {() => Promise<void> | void} act */
  #button(label, act) {
    const button = h('button', { type: 'button' }, label);
    button.addEventListener('click', () => this.#act(act));
    return button;
  }

  #picker() {
    const input = h('input', { type: 'file', id: 'report-file', hidden: true, accept: '.json,application/json' });
    input.addEventListener('change', () => {
      const [file] = input.files ?? [];
      if (file) this.#act(() => this.#open(file)).finally(() => (input.value = '')); // so that the same file can be chosen again
    });
    return [this.#button('Open a saved report…', () => input.click()), input];
  }

  /** @param {Element} section */
  #acceptDrops(section) {
    // A file that is dropped beside the section would take the place of the page, and of its results.
    for (const event of ['dragover', 'drop']) addEventListener(event, (dropped) => dropped.preventDefault());
    section.addEventListener('dragover', () => section.classList.add('dropping'));
    section.addEventListener('dragleave', () => section.classList.remove('dropping'));
    section.addEventListener('drop', (event) => {
      section.classList.remove('dropping');
      const [file] = /** @type {DragEvent} */ (event).dataTransfer?.files ?? [];
      if (file && !this.#tools.disabled) this.#act(() => this.#open(file));
    });
  }

  /** One thing at a time; what goes wrong is said here, beside the button. @param {() => Promise<void> | void} act */
  async #act(act) {
    if (this.#acting) return;
    this.#acting = true;
    this.#said.textContent = '';
    this.#error.hidden = true;
    try {
      await act();
    } catch (error) {
      const { message, remedy } = toWireError(error);
      this.#said.textContent = '';
      this.#error.textContent = remedy ? `${message}. ${remedy}` : message;
      this.#error.hidden = false;
    } finally {
      this.#acting = false;
      this.#refresh();
    }
  }

  /** @param {'json' | 'csv'} form @param {string} type */
  async #download(form, type) {
    if (!this.#shown) return;
    const { report } = this.#shown;
    const name = fileName(report, form);
    save(name, type, await this.#python.exportReport(report, form));
    this.#said.textContent = `Saved as ${name}.`;
  }

  async #copy() {
    if (!this.#shown) return;
    const text = await this.#python.exportReport(this.#shown.report, 'markdown');
    try {
      await navigator.clipboard.writeText(text);
      this.#text.hidden = true;
      this.#said.textContent = 'Copied as Markdown.';
    } catch {
      this.#text.value = text;
      this.#text.hidden = false;
      this.#text.select();
      this.#said.textContent = 'The browser does not let the page copy. The text is selected below; copy it from there.';
    }
  }

  /** @param {File} file */
  async #open(file) {
    this.#said.textContent = `Reading ${file.name}…`;
    const report = await this.#python.readReport(await read(file));
    this.#refuseWhileBusy(file);
    await this.#show({ report, name: file.name });
    this.#refuseWhileBusy(file);
    this.#before = this.#shown;
    this.#opened = { report, name: file.name };
    this.#showsOpened = true;
    this.#compares = false;
    this.#showing.replaceChildren(h('strong', {}, 'Showing a saved report: '), file.name, ', from ', ...origin(report), '.');
    this.#said.textContent = `${file.name} is open, and shown in the sections above.`;
  }

  /** A check that began while a file was read has the page. @param {File} file */
  #refuseWhileBusy({ name }) {
    if (this.#tools.disabled) throw new AppError('Busy', `a check has begun before ${name} was read`, 'Open it when the check has ended.');
  }

  async #back() {
    if (!this.#own) return;
    await this.showOwn();
    this.#said.textContent = `The sections above show ${OWN} again.`;
  }

  /** Shows a report in all views, or what they showed before. @param {Named} wanted */
  async #show({ report, name }) {
    try {
      await this.#results.show(report);
    } catch (error) {
      if (this.#shown) await this.#results.show(this.#shown.report);
      throw new Error(`${name} cannot be shown: ${toWireError(error).message}`);
    }
  }

  #toggleComparison() {
    this.#compares = !this.#compares;
    this.#refresh();
    this.#comparison.querySelector('h3')?.focus();
  }

  #refresh() {
    for (const button of this.#needReport) button.disabled = !this.#shown;
    this.#banner.hidden = !this.#showsOpened;
    this.#backButton.hidden = !this.#own;
    const other = this.#other;
    const offered = this.#showsOpened ? other : this.#opened;
    for (const button of this.#compareButtons) {
      button.hidden = !other;
      button.textContent = this.#compares ? 'Close the comparison' : `Compare with ${offered?.name}`;
    }
    this.#compare(this.#compares && other && this.#opened ? [other, this.#opened] : []);
  }

  /** Lays two reports side by side, or none; what is there already stays, and keeps the focus. @param {Named[]} pair */
  #compare(pair) {
    if (pair.length === this.#compared.length && pair.every((named, i) => named === this.#compared[i])) return;
    this.#compared = pair;
    const [first, second] = pair;
    this.#comparison.replaceChildren(...(first ? [comparison(first, second, (report) => this.#python.verdict(report))] : []));
  }
}
