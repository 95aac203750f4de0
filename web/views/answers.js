import { agreement } from './agreement.js';
import { h, scientific, table, warningList } from './dom.js';
import { disagreements } from './on-paper.js';
import { ACTIONS, StateWalk } from './state-walk.js';

const COLUMNS = ['', 'actions agree', 'max |ΔQ|', 'mean |ΔQ|', 'smallest margin', 'could flip'];
const OWN_COLUMNS = ['', 'cases agree', 'max |Δ|', 'mean |Δ|'];

/** Every engine's answers against Python's, and a walk through the states. */
export class AnswersView {
  #root;
  #walk;
  #summary = h('div');
  #outputs = h('div', { class: 'outputs' });
  #warnings = h('div');
  #paper = h('div', { class: 'paper' });
  /** @type {any[]} */
  #suites = [];
  /** @type {any[]} */
  #entries = [];
  /** @type {any[]} */
  #agreement = [];

  /**
   * @param {HTMLElement} root
   * @param {(suite: string, index: number) => Promise<Uint8Array>} picture the newest frame of a state
   */
  constructor(root, picture) {
    this.#root = root;
    this.#walk = new StateWalk(picture);
  }

  clear() {
    this.#suites = [];
    this.#entries = [];
    this.#agreement = [];
    this.#walk.element.hidden = false;
    this.#outputs.replaceChildren();
    this.#walk.clear();
    this.#paper.replaceChildren();
    this.#summary.replaceChildren();
    this.#warnings.replaceChildren();
    this.#root.replaceChildren(this.#summary, this.#outputs, this.#warnings, this.#walk.element, this.#paper);
  }

  /** @param {any} suite a `SuiteEntry` of the report */
  addSuite(suite) {
    this.#suites.push(suite);
    // Only the worked example's answers are scores of a game's actions, in states that can be seen.
    this.#walk.element.hidden = !suite.q_values.length;
    if (suite.q_values.length) this.#walk.addSuite(suite);
  }

  /** @param {any} entry an `AgreementEntry` of the report */
  addOutput(entry) {
    this.#agreement.push(entry);
    this.#outputs.replaceChildren(agreement(this.#agreement));
  }

  /** @param {any} entry a `ParityEntry` of the report */
  add(entry) {
    this.#entries.push(entry);
    const own = this.#walk.element.hidden;
    const columns = own ? OWN_COLUMNS : COLUMNS;
    this.#summary.replaceChildren(table(`Engines' answers against ${own ? 'the reference' : "Python's"}`, columns, this.#entries.map((one) => row(one).slice(0, columns.length))));
    const failed = this.#entries.filter(({ passed }) => !passed);
    this.#warnings.replaceChildren(...trouble(failed, 'failed'), ...trouble(this.#entries.filter(({ passed }) => passed)));
    if (own) return;
    this.#walk.addAnswers(entry);
    this.#paper.replaceChildren(...disagreements(this.#suites, this.#entries, ACTIONS));
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

/** @param {any[]} entries @param {string[]} classes @returns {Node[]} a list of all their warnings, if there are any */
function trouble(entries, ...classes) {
  const warnings = entries.flatMap(({ suite, engine, warnings }) => warnings.map((/** @type {string} */ text) => `${suite} on ${engine}: ${text}`));
  if (!warnings.length) return [];
  const list = warningList(warnings);
  list.classList.add(...classes);
  return [list];
}
