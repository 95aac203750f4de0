import { h, table, warningList } from './dom.js';

const ACTIONS = ['NOOP', 'FIRE', 'RIGHT', 'LEFT'];
const SHOWN = 12;

/** Every engine's answers against Python's, and each state in which they disagree. */
export class AnswersView {
  #root;
  #picture;
  /** @type {Map<string, any>} */
  #suites = new Map();
  /** @type {any[]} */
  #entries = [];

  /**
   * @param {HTMLElement} root
   * @param {(suite: string, index: number) => Promise<Uint8Array>} picture the newest frame of a state
   */
  constructor(root, picture) {
    this.#root = root;
    this.#picture = picture;
  }

  clear() {
    this.#entries = [];
    this.#root.replaceChildren();
  }

  /** @param {any} suite a `SuiteEntry` of the report */
  addSuite(suite) {
    this.#suites.set(suite.suite, suite);
  }

  /** @param {any} entry a `ParityEntry` of the report */
  add(entry) {
    this.#entries.push(entry);
    const rows = this.#entries.map((parity) => [
      `${parity.suite} on ${parity.engine}`,
      h('strong', { class: parity.passed ? 'good' : 'bad' }, `${parity.passed ? '✓' : '✗'} ${parity.agree} / ${parity.cases}`),
      scientific(parity.max_abs_diff),
      scientific(parity.mean_abs_diff),
      scientific(parity.min_margin),
      parity.could_flip.length ? `${parity.could_flip.length} could flip` : 'no',
    ]);
    const summary = table("Engines' answers against Python's", ['', 'actions agree', 'max |ΔQ|', 'mean |ΔQ|', 'smallest margin', 'could the error flip one?'], rows);
    const troubled = this.#entries.filter(({ warnings }) => warnings.length);
    this.#root.replaceChildren(summary, ...troubled.map((parity) => this.#trouble(parity)));
  }

  /** @param {any} parity */
  #trouble(parity) {
    const shown = parity.disagreements.slice(0, SHOWN);
    const rest = parity.disagreements.length - shown.length;
    return h(
      'div',
      { class: 'trouble' },
      h('h3', {}, `${parity.suite} on ${parity.engine}`),
      warningList(parity.warnings),
      ...shown.map((/** @type {number} */ index) => this.#disagreement(parity, index)),
      rest ? h('p', { class: 'note' }, `and ${rest} more: states ${parity.disagreements.slice(SHOWN).join(', ')}`) : '',
    );
  }

  /** @param {any} parity @param {number} index */
  #disagreement(parity, index) {
    const suite = this.#suites.get(parity.suite);
    const failure = parity.failures.find((/** @type {any} */ failed) => failed.case === index)?.failure;
    const canvas = h('canvas', { width: 84, height: 84, role: 'img', 'aria-label': `state ${index}` });
    this.#picture(parity.suite, index).then((grey) => draw(canvas, grey));
    const rows = [
      ['Python', ...suite.q_values[index].map(decimal), ACTIONS[suite.action[index]]],
      [parity.engine, ...(parity.q_values[index]?.map(decimal) ?? ACTIONS.map(() => '–')), failure ?? ACTIONS[parity.action[index]]],
    ];
    const caption = `State ${index}: margin ${scientific(suite.margin[index])}`;
    return h('figure', { class: 'state' }, canvas, h('figcaption', {}, caption, table(caption, ['', ...ACTIONS, 'chosen'], rows)));
  }
}

/** @param {HTMLCanvasElement} canvas @param {Uint8Array} grey */
function draw(canvas, grey) {
  const image = new ImageData(84, 84);
  grey.forEach((value, i) => image.data.set([value, value, value, 255], i * 4));
  canvas.getContext('2d')?.putImageData(image, 0, 0);
}

/** @param {number | null} value */
function scientific(value) {
  return value === null ? '–' : value.toExponential(1);
}

/** @param {number} value */
function decimal(value) {
  return value.toFixed(4);
}
