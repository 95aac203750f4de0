import { toNumber } from '../settings.js';
import { h } from './dom.js';

/** How often the agent does something at random. Python begins each game with random decisions where it is never. */
const RANDOM = /** @type {const} */ ([
  [0.01, '0.01 – as the agent was scored'],
  [0, '0 – the same game everywhere'],
]);

/** How many games are wanted, and how the agent plays them. */
export class GamesAsk {
  #games = h('input', { type: 'number', id: 'tournament-games', min: 1, max: 1000, step: 1, value: 30 });
  #epsilon = h('select', { id: 'tournament-epsilon' }, ...RANDOM.map(([value, label]) => h('option', { value }, label)));
  /** What was asked last, as text, where games of it are missing. */
  #unfinished = '';
  root = h(
    'div',
    { class: 'fields games-ask' },
    h('label', {}, h('span', {}, 'Games of each engine'), this.#games),
    h('label', {}, h('span', {}, 'Random decisions (epsilon)'), this.#epsilon),
  );

  /** @param {import('../settings.js').Settings} settings of the page */
  settings({ engines, seed }) {
    return { engines, games: toNumber(this.#games.value), seed, epsilon: Number(this.#epsilon.value), opening: null };
  }

  /** It has ended, or nobody remembers it. @param {any} settings what was asked @param {any[]} entries what was found, `TournamentEntry`s of the report */
  end(settings, entries) {
    this.#unfinished = entries.some(({ games, error }) => games < settings.games && !error) ? JSON.stringify(settings) : '';
  }

  /** Whether these settings were asked, and ended before all games were played. @param {object} settings */
  goesOn(settings) {
    return this.#unfinished === JSON.stringify(settings);
  }
}
