/** Charts of the scores of whole games. Observable Plot is loaded with the first one. */
import { shorten } from './axis.js';
import { common, MARGIN, plain, plotting } from './plots.js';

/** @typedef {{seed: number, score: number, truncated: boolean}} Game */
/** @typedef {{engine: string, mean: number | null, low: number | null, high: number | null, reference_mean: number | null, played: Game[]}} Scores */

const HEIGHT = { games: 260, row: 92 };
/** Above each row, for its engine's name. */
const NAME_HEIGHT = 20;
/** Of a row, for the mean and its interval; the games are below it. */
const MEAN_AT = 0.12;
const GAMES_FROM = 0.35;
const WIDTH_OF_LABEL = 60;
/** Successive multiples of it, without their whole parts, are spread evenly: games of one score do not hide each other. */
const GOLDEN = 0.618034;

/**
 * Every game's score in the order of play, and the mean so far.
 * @param {Scores[]} entries
 * @param {number} width
 */
export async function byGame(entries, width) {
  const { axisX, axisY, dot, gridY, line, plot } = await plotting();
  const games = entries.flatMap(({ engine, played }, place) => {
    let sum = 0;
    // Where nothing is random all engines play the same games; a small shift keeps their dots apart.
    const shift = (0.5 * (place - (entries.length - 1) / 2)) / entries.length;
    return played.map((game, i) => ({ ...game, engine, at: i + 1 + shift, mean: (sum += game.score) / (i + 1), number: i + 1 }));
  });
  const most = Math.max(1, ...entries.map(({ played }) => played.length));
  const step = Math.ceil(most / Math.max(2, Math.floor((width - MARGIN.left - MARGIN.right) / WIDTH_OF_LABEL)));
  const ticks = Array.from({ length: Math.floor(most / step) }, (_, i) => (i + 1) * step);
  const title = (/** @type {any} */ one) => `${one.engine}, game ${one.number}, ${told(one)}`;
  const r = most > 100 ? 2 : 3.5;
  return plain(
    plot({
      ...common(entries, width),
      height: HEIGHT.games,
      x: { label: 'game', domain: [0.5, most + 0.5] },
      y: { label: 'points', domain: [0, top(entries)] },
      marks: [
        gridY(),
        axisX(ticks, { text: String }),
        axisY({ ticks: 6 }),
        line(games, { x: 'number', y: 'mean', z: 'engine', stroke: 'engine', strokeWidth: 2 }),
        dot(games.filter(whole), { x: 'at', y: 'score', fill: 'engine', fillOpacity: 0.75, r, title }),
        dot(games.filter(cut), { x: 'at', y: 'score', stroke: 'engine', fill: 'var(--card)', r, title }),
      ],
    }),
    'Score of every game and the mean so far, by engine; the table of scores says the same in numbers',
  );
}

/**
 * How the scores are spread, one row an engine: a dot a game, the mean with its interval, and Python's mean.
 * @param {Scores[]} entries
 * @param {number} width
 */
export async function spread(entries, width) {
  const { axisX, dot, plot, ruleY, text, tickX } = await plotting();
  const games = entries.flatMap(({ engine, played }) => played.map((game, i) => ({ ...game, engine, at: GAMES_FROM + (1 - GAMES_FROM) * ((i * GOLDEN) % 1) })));
  const means = entries.filter(({ mean }) => mean !== null);
  const title = (/** @type {any} */ one) => `${one.engine}, ${told(one)}`;
  const place = { fy: 'engine', y: () => MEAN_AT };
  /** @type {any} the types of text know less than it does */
  const names = { fy: 'engine', text: (/** @type {Scores} */ { engine }) => shorten(engine, width - 30, '600 12px system-ui, sans-serif'), title: 'engine', fill: 'engine', frameAnchor: 'top-left', fontSize: 12, fontWeight: 600 };
  return plain(
    plot({
      ...common(entries, width),
      marginLeft: 8,
      height: HEIGHT.row * entries.length + MARGIN.bottom,
      fy: { axis: null, domain: entries.map(({ engine }) => engine) },
      x: { label: 'points', domain: [0, top(entries)] },
      y: { axis: null, domain: [1, 0], insetTop: NAME_HEIGHT, insetBottom: 4 },
      marks: [
        axisX({ ticks: Math.floor(width / 90) }),
        dot(games.filter(whole), { x: 'score', y: 'at', fy: 'engine', fill: 'engine', fillOpacity: 0.6, r: 2.5, title }),
        dot(games.filter(cut), { x: 'score', y: 'at', fy: 'engine', stroke: 'engine', fill: 'var(--card)', r: 2.5, title }),
        tickX(entries.filter(({ reference_mean }) => reference_mean !== null), { x: 'reference_mean', fy: 'engine', stroke: 'currentColor', strokeDasharray: '3 3', insetTop: NAME_HEIGHT }),
        ruleY(means.filter(({ low, high }) => low !== null && high !== null), { x1: 'low', x2: 'high', ...place, stroke: 'currentColor', strokeWidth: 2 }),
        dot(means, { x: 'mean', ...place, fill: 'currentColor', r: 4.5, title: (/** @type {any} */ one) => `${one.engine}, mean ${one.mean.toFixed(1)}` }),
        text(entries, names),
      ],
    }),
    "How the scores are spread, with each engine's mean and its interval, and Python's mean; the table of scores says the same in numbers",
  );
}

/** @param {Game} game */
function whole({ truncated }) {
  return !truncated;
}

/** @param {Game} game */
function cut({ truncated }) {
  return truncated;
}

/** @param {Game} game */
function told({ seed, score, truncated }) {
  return `seed ${seed}: ${score} points${truncated ? ', cut off' : ''}`;
}

/** @param {Scores[]} entries @returns {number} a bit more than is needed */
function top(entries) {
  return 1.05 * entries.reduce((most, { high, reference_mean, played }) => played.reduce((best, { score }) => Math.max(best, score), Math.max(most, high ?? 0, reference_mean ?? 0)), 1);
}
