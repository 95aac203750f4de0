import { h, milliseconds } from './dom.js';

/** @typedef {{shown: number, missed: number, gap: number}} Counts frames, and the longest wait for one in milliseconds */

/** Frames a second are counted over so long. */
const SPAN_MS = 2_000;
const COLUMNS = ['board', 'frames/s', 'missed', 'longest wait'];

/** How many frames each board shows, and how many came too late. */
export class FramesView {
  #rows = { you: new Row('you'), agent: new Row('agent') };
  root = h(
    'table',
    { class: 'frames' },
    h('caption', { class: 'visually-hidden' }, 'Frames on the screen'),
    h('thead', {}, h('tr', {}, ...COLUMNS.map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', {}, this.#rows.you.root, this.#rows.agent.root),
  );

  /** @param {'you' | 'agent'} side @param {Counts} counts */
  show(side, counts) {
    this.#rows[side].show(counts, performance.now());
  }

  /** Time has passed in which a board had nothing to show. @param {'you' | 'agent'} side */
  interrupt(side) {
    this.#rows[side].interrupt();
  }
}

class Row {
  #rate = h('td', {}, '–');
  #missed = h('td', {}, '–');
  #gap = h('td', {}, '–');
  /** @type {[number, number][]} when so many frames had been shown */
  #seen = [];
  root;

  /** @param {string} name */
  constructor(name) {
    this.root = h('tr', {}, h('th', { scope: 'row' }, name), this.#rate, this.#missed, this.#gap);
  }

  interrupt() {
    this.#seen = [];
  }

  /** @param {Counts} counts @param {number} now */
  show({ shown, missed, gap }, now) {
    const last = this.#seen.at(-1);
    if (last && last[1] > shown) this.#seen = []; // counted anew
    this.#seen.push([now, shown]);
    while (now - this.#seen[0][0] > SPAN_MS) this.#seen.shift();
    const [since, before] = this.#seen[0];
    if (now - since < SPAN_MS / 2) return;
    this.#rate.textContent = shown ? ((1000 * (shown - before)) / (now - since)).toFixed(1) : 'as it comes';
    this.#missed.textContent = shown ? `${missed} of ${shown + missed}` : '–';
    this.#gap.textContent = gap ? milliseconds(gap) : '–';
  }
}
