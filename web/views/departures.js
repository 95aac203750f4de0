import { drawGrey } from './compared.js';
import { h, scientific, table } from './dom.js';
import { ACTIONS } from './state-walk.js';

/** Departures that are shown; the saved report has all of them. */
const MOST = 12;
const FRAMES = 4;
const FRAME_BYTES = 84 * 84;

/** Games that left Python's: the first decision that differs, what was seen there, and whether rounding explains it. */
export class DeparturesView {
  #shown = '';
  root = h('div', { class: 'departures' });

  clear() {
    this.#shown = '';
    this.root.replaceChildren();
  }

  /** @param {any[]} entries `TournamentEntry`s of the report */
  show(entries) {
    const departed = entries.flatMap(({ engine, played }) => played.filter(left).map((/** @type {any} */ game) => ({ engine, ...game })));
    // Drawn anew only where there is something new: somebody may be reading.
    const shown = departed.map(({ engine, seed, sha256 }) => `${engine} ${seed} ${sha256}`).join();
    if (shown === this.#shown) return;
    this.#shown = shown;
    const more = departed.length - MOST;
    this.root.replaceChildren(
      ...(departed.length ? [h('h3', {}, "Games that left Python's"), h('div', { class: 'engines' }, ...departed.slice(0, MOST).map(article))] : []),
      ...(more > 0 ? [h('p', { class: 'note' }, `These are the first ${MOST}; ${more} more ${more === 1 ? 'game' : 'games'} left Python's. The saved report has all of them.`)] : []),
    );
  }
}

/** @param {any} game */
function left({ departure }) {
  return departure !== null;
}

/** @param {any} game a `PlayedGame` with its engine */
function article({ engine, seed, departure }) {
  const { decision, action, expected, q_values, reference_q_values, margin, error, explained, state } = departure;
  const name = `${engine}, seed ${seed}`;
  const pictures = h('div', { class: 'four' });
  void draw(pictures, state);
  const why = explained
    ? 'Rounding explains it: the margin is at most twice the largest error, so that the two actions are as good as equal.'
    : 'Rounding does not explain it: the margin is more than twice the largest error.';
  return h(
    'article',
    { class: 'engine departure' },
    h('h3', {}, name),
    h('p', {}, `At decision ${decision} it chose `, h('strong', {}, named(action)), ', where Python chose ', h('strong', {}, named(expected)), '.'),
    pictures,
    table(`Q-values where ${name} left Python's game`, ['', ...ACTIONS], [row(engine, q_values, action), row('Python', reference_q_values, expected)]),
    h('p', { class: 'note' }, `Margin ${scientific(margin)}, largest error ${scientific(error)}.`),
    h('p', { class: explained ? 'sentence plain' : 'sentence bad' }, why),
  );
}

/** @param {string} who @param {number[]} q @param {number} chosen @returns {(Node | string)[]} */
function row(who, q, chosen) {
  return [who, ...q.map((value, i) => (i === chosen ? h('strong', {}, value.toFixed(4)) : value.toFixed(4)))];
}

/** @param {number} action */
function named(action) {
  return ACTIONS[action] ?? `action ${action}`;
}

/** Draws the four frames, or says why there are none. @param {HTMLElement} root @param {string} state */
async function draw(root, state) {
  try {
    const grey = await unpack(state);
    const canvases = Array.from({ length: FRAMES }, (_, i) => {
      const canvas = h('canvas', { width: 84, height: 84, role: 'img', 'aria-label': `frame ${i + 1} of ${FRAMES}${i === FRAMES - 1 ? ', the newest' : ''}` });
      drawGrey(canvas, grey.subarray(i * FRAME_BYTES, (i + 1) * FRAME_BYTES));
      return canvas;
    });
    root.replaceChildren(...canvases);
  } catch (error) {
    const why = error instanceof WrongSize ? error.message : 'what was saved of them is damaged';
    root.replaceChildren(h('p', { class: 'error' }, `The frames cannot be shown: ${why}.`));
  }
}

/** @param {string} state base64 of a zlib stream @returns {Promise<Uint8Array>} uint8 [4,84,84] */
async function unpack(state) {
  const packed = Uint8Array.from(atob(state), (character) => character.charCodeAt(0));
  const reader = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate')).getReader();
  const grey = new Uint8Array(FRAMES * FRAME_BYTES);
  let length = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    // A file may hold anything, and little of it may unpack to very much.
    if (length + part.value.length > grey.length) throw new WrongSize(`they have more than ${grey.length} bytes`);
    grey.set(part.value, length);
    length += part.value.length;
  }
  if (length < grey.length) throw new WrongSize(`they have ${length} bytes, not ${grey.length}`);
  return grey;
}

/** What was unpacked is not four frames. */
class WrongSize extends Error {}
