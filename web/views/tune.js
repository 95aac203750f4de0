import { button, h, milliseconds, scientific, table, warningList } from './dom.js';
import { save } from './report-file.js';
import { paragraph } from './sentences.js';

const PURPOSES = { single: 'One state at a time', tail: 'One state at a time, by P95', batch: 'Batches' };

/**
 * @typedef {object} RecipeUses
 * @property {(engine: string) => void} check compares and races it
 * @property {(engine: string) => void} play lets the agent play on it
 * @property {(engine: string) => Promise<{json: string, module: string}>} write
 */

/** The recipe: the fastest right configuration for each purpose, what can be done with it, and all that was tried. */
export class TuneView {
  #root;
  #uses;
  /** @type {any} */
  #tune = null;
  /** @type {import('./sentences.js').Sentence[]} */
  #sentences = [];

  /** @param {HTMLElement} root @param {RecipeUses} uses */
  constructor(root, uses) {
    this.#root = root;
    this.#uses = uses;
  }

  clear() {
    this.#tune = null;
    this.#sentences = [];
    this.#root.replaceChildren();
  }

  /** @param {any} tune the report's `tune` section, finished or not */
  show(tune) {
    this.#tune = tune;
    this.#draw();
  }

  /** @param {import('./sentences.js').Sentence[]} sentences */
  say(sentences) {
    this.#sentences = sentences;
    if (this.#tune) this.#draw();
  }

  #draw() {
    const { candidates, recipe, warnings } = this.#tune;
    this.#root.replaceChildren(
      ...this.#sentences.map(paragraph),
      ...(recipe.length ? [h('div', { class: 'engines' }, ...recipe.map((/** @type {any} */ choice) => this.#card(choice)))] : []),
      h('h3', {}, 'What was tried'),
      table('What was tried', ['', 'P50', 'P95', 'runs', 'agree', 'max |dQ|', 'status'], candidates.map(row)),
      ...(warnings.length ? [warningList(warnings)] : []),
    );
  }

  /** @param {any} choice */
  #card({ purpose, engine, batch, ms, low, high, ties }) {
    const said = h('p', { class: 'note', role: 'status' });
    const act = (/** @type {() => unknown} */ work) => async () => {
      try {
        await work();
      } catch (error) {
        said.textContent = `That did not work: ${/** @type {Error} */ (error).message}`;
      }
    };
    const write = async (/** @type {'json' | 'module'} */ form) => {
      const [name, type] = form === 'json' ? [`recipe-${engine}.json`, 'application/json'] : [`recipe-${engine}.mjs`, 'text/javascript'];
      save(name, type, (await this.#uses.write(engine))[form]);
      said.textContent = `Saved as ${name}.`;
    };
    return h(
      'article',
      { class: 'engine recipe' },
      h('h3', {}, PURPOSES[/** @type {keyof typeof PURPOSES} */ (purpose)] ?? purpose),
      h('p', {}, h('strong', {}, engine), `: ${milliseconds(ms)} (${milliseconds(low)} to ${milliseconds(high)})`, batch > 1 ? ` for ${batch} states` : ''),
      ...(ties.length ? [h('p', { class: 'note' }, `As fast within the interval, but less simple: ${ties.join(', ')}.`)] : []),
      h(
        'div',
        { class: 'actions' },
        button('Check it', act(() => this.#uses.check(engine))),
        button('Play on it', act(() => this.#uses.play(engine))),
        button('JavaScript', act(() => write('module'))),
        button('JSON', act(() => write('json'))),
      ),
      said,
    );
  }
}

/** @param {any} candidate @returns {(Node | string)[]} */
function row({ engine, p50_ms, p95_ms, runs, agree, cases, max_abs_diff, status, reason }) {
  const agreement = cases ? `${agree} of ${cases}` : '–';
  const ended = reason ? `${status}: ${reason}` : status;
  const bad = status === 'wrong' || status === 'failed';
  return [engine, milliseconds(p50_ms), milliseconds(p95_ms), String(runs), agreement, scientific(max_abs_diff), h('span', { class: 'why' }, bad ? h('mark', {}, ended) : ended)];
}
