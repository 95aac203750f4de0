import { h, scientific, table, warningList } from './dom.js';
import { StateWalk } from './state-walk.js';

/** Every engine's answers against Python's, and a walk through the states. */
export class AnswersView {
  #root;
  #walk;
  #summary = h('div');
  #warnings = h('div');
  /** @type {any[]} */
  #entries = [];

  /**
   * @param {HTMLElement} root
   * @param {(suite: string, index: number) => Promise<Uint8Array>} picture the newest frame of a state
   */
  constructor(root, picture) {
    this.#root = root;
    this.#walk = new StateWalk(picture);
  }

  clear() {
    this.#entries = [];
    this.#walk.clear();
    this.#summary.replaceChildren();
    this.#warnings.replaceChildren();
    this.#root.replaceChildren(this.#summary, this.#warnings, this.#walk.element);
  }

  /** @param {any} suite a `SuiteEntry` of the report */
  addSuite(suite) {
    this.#walk.addSuite(suite);
  }

  /** @param {any} entry a `ParityEntry` of the report */
  add(entry) {
    this.#entries.push(entry);
    const columns = ['', 'actions agree', 'max |ΔQ|', 'mean |ΔQ|', 'smallest margin', 'could flip'];
    this.#summary.replaceChildren(table("Engines' answers against Python's", columns, this.#entries.map(row)));
    const troubled = this.#entries.filter(({ warnings }) => warnings.length);
    this.#warnings.replaceChildren(...troubled.map(trouble));
    this.#walk.addAnswers(entry);
  }
}

/** @param {any} parity @returns {(Node | string)[]} */
function row(parity) {
  return [
    `${parity.suite} on ${parity.engine}`,
    h('strong', { class: parity.passed ? 'good' : 'bad' }, `${parity.passed ? '✓' : '✗'} ${parity.agree} / ${parity.cases}`),
    scientific(parity.max_abs_diff),
    scientific(parity.mean_abs_diff),
    scientific(parity.min_margin),
    String(parity.could_flip.length),
  ];
}

/** @param {any} parity */
function trouble(parity) {
  const list = warningList(parity.warnings.map((/** @type {string} */ text) => `${parity.suite} on ${parity.engine}: ${text}`));
  if (!parity.passed) list.classList.add('failed');
  return list;
}
