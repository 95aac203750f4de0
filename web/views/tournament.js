import { DeparturesView } from './departures.js';
import { between, fixed, h, table, warningList } from './dom.js';
import { charted, chartWidth } from './plots.js';
import { byGame, spread } from './score-charts.js';
import { paragraph } from './sentences.js';

/** While games are played the page follows them this often; drawing takes time from the engines. */
const REFRESH_MS = 500;
/** Of the time, where drawing takes long: a thousand games are thousands of dots. */
const SHARE_OF_DRAWING = 0.1;
const NONE = '–';

/** Whole games by engine: their scores as they come, how they are spread, and where games left Python's. */
export class TournamentView {
  #root;
  #sentences = h('div');
  #results = h('div');
  #live = h('figure');
  #spread = h('figure');
  #departures = new DeparturesView();
  #every = h('details', {}, h('summary', {}, 'Every game'));
  #games = h('div');
  /** @type {Map<string, any>} */
  #entries = new Map();
  #ended = true;
  #timer = 0;
  #rest = REFRESH_MS;
  #last = 0;
  #drawn = 0;

  /** @param {HTMLElement} root */
  constructor(root) {
    this.#root = root;
    this.#every.append(this.#games);
    this.#every.addEventListener('toggle', () => this.#list());
    let width = 0;
    new ResizeObserver(() => {
      if (this.#entries.size && width !== chartWidth(root)) void this.#draw();
      width = chartWidth(root);
    }).observe(root);
  }

  clear() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#last = 0;
    this.#rest = REFRESH_MS;
    this.#ended = true;
    this.#drawn++;
    this.#entries.clear();
    this.#departures.clear();
    for (const part of [this.#sentences, this.#results, this.#live, this.#spread, this.#games]) part.replaceChildren();
    this.#root.replaceChildren();
  }

  /** @param {any} entry a `TournamentEntry` of the report, finished or not */
  add(entry) {
    if (!this.#entries.size) this.#root.replaceChildren(this.#sentences, this.#results, h('div', { class: 'charts' }, this.#live, this.#spread), this.#departures.root, this.#every);
    if (this.#ended) this.#sentences.replaceChildren(); // they are about fewer games
    this.#ended = false;
    this.#entries.set(entry.engine, entry);
    if (this.#timer) return;
    this.#timer = setTimeout(() => this.#draw(), Math.max(0, this.#last + this.#rest - performance.now()));
  }

  /** @param {import('./sentences.js').Sentence[]} sentences */
  say(sentences) {
    this.#sentences.replaceChildren(...sentences.map(paragraph));
  }

  /** Draws what there is; called once no more games are played, however that came. */
  finish() {
    this.#ended = true;
    if (this.#entries.size) void this.#draw();
  }

  async #draw() {
    const turn = ++this.#drawn;
    const begun = performance.now();
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#last = begun;
    const entries = [...this.#entries.values()];
    this.#tabulate(entries);
    this.#departures.show(entries);
    this.#list();
    const played = entries.filter((entry) => entry.played.length);
    const width = chartWidth(this.#root);
    const charts = played.length ? [await charted(byGame(played, width)), this.#ended ? await charted(spread(played, width)) : null] : [null, null];
    if (turn !== this.#drawn) return;
    const [live, spreading] = charts;
    this.#live.replaceChildren(...(live ? [h('figcaption', {}, 'Score of every game, and the mean so far as a line; hollow dots are games that were cut off'), legend(played), live] : []));
    this.#spread.replaceChildren(...(spreading ? [h('figcaption', {}, "How the scores are spread: a dot a game, above them the mean and its 95 % interval; the dashed line is Python's mean over the same games"), spreading] : []));
    this.#last = performance.now();
    this.#rest = Math.max(REFRESH_MS, (this.#last - begun) / SHARE_OF_DRAWING);
  }

  /** @param {any[]} entries */
  #tabulate(entries) {
    const columns = ['', 'games', 'mean', '95 % interval', 'median', 'min', 'max', 'decisions a game', 'cut off', 'at once', 'decisions/s', 'games/min'];
    const compared = entries.filter((entry) => entry.compared);
    const failed = entries.filter(({ error }) => error);
    const warnings = entries.flatMap(({ engine, warnings: own }) => own.map((/** @type {string} */ text) => `${engine}: ${text}`));
    this.#results.replaceChildren(
      table('Scores by engine', columns, entries.map(row)),
      ...(compared.length ? [h('h3', {}, "Beside Python's own games"), table("The same games as Python's", ['', 'compared', 'departures', 'not by rounding', 'mean', "Python's mean", 'difference, 95 % interval'], compared.map(comparedRow))] : []),
      ...failed.map(({ engine, error: { message, remedy } }) => h('p', { class: 'error' }, `${engine}: ${remedy ? `${message}. ${remedy}` : message}`)),
      ...(warnings.length ? [warningList(warnings)] : []),
    );
  }

  #list() {
    if (!this.#every.open) return;
    const games = [...this.#entries.values()].flatMap(({ engine, played }) => played.map((/** @type {any} */ game) => gameRow(engine, game)));
    this.#games.replaceChildren(table('Every game', ['', 'score', 'decisions', 'cut off', 'same as Python?'], games));
  }
}

/** @param {any} entry @returns {(Node | string)[]} */
function row(entry) {
  return [
    entry.engine,
    String(entry.games),
    h('strong', {}, fixed(entry.mean)),
    between(entry.low, entry.high),
    fixed(entry.median),
    fixed(entry.min, 0),
    fixed(entry.max, 0),
    fixed(entry.mean_decisions, 0),
    entry.truncated ? h('mark', {}, String(entry.truncated)) : '0',
    String(entry.lanes),
    fixed(entry.decisions_per_s, 0),
    fixed(entry.games_per_min),
  ];
}

/** @param {any} entry @returns {(Node | string)[]} */
function comparedRow({ engine, compared, departures, unexplained, mean, reference_mean, difference_low, difference_high }) {
  const bad = unexplained > 0;
  const explained = departures ? h('strong', { class: bad ? 'bad' : 'good' }, `${bad ? '✗' : '✓'} ${unexplained}`) : NONE;
  return [engine, String(compared), departures ? String(departures) : h('strong', { class: 'good' }, '✓ 0'), explained, fixed(mean), fixed(reference_mean), between(difference_low, difference_high)];
}

/** @param {string} engine @param {any} game @returns {(Node | string)[]} */
function gameRow(engine, { seed, score, decisions, truncated, reference_score, departure }) {
  const same = departure ? h('span', { class: departure.explained ? '' : 'bad' }, `no, from decision ${departure.decision} on`) : reference_score === null ? 'not compared' : 'yes';
  return [`${engine}, seed ${seed}`, String(score), String(decisions), truncated ? 'yes' : 'no', same];
}

/** @param {any[]} entries */
function legend(entries) {
  return h('ul', { class: 'legend' }, ...entries.map(({ engine }, i) => h('li', { class: `engine-${i % 6}` }, engine)));
}
