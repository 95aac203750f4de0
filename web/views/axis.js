/** What charts need to fit: ticks of an axis of times, and names that are shortened to the room they have. */

/** @typedef {{type: 'log' | 'linear', domain: [number, number], ticks: number[], label: string}} TimeAxis */

const WIDTH_OF_LABEL = 70;
/** Over fewer than these, ticks at 1, 2 and 5 would be two or three; there even steps say more. */
const FULL_RANGE = 8;
const ROOM = 0.02;

const ruler = document.createElement('canvas').getContext('2d');

/**
 * An axis that holds every time. It is logarithmic, but for times of zero, which a coarse clock gives.
 * @param {number[]} times
 * @param {number} length of the axis, in pixels
 * @returns {TimeAxis}
 */
export function timeAxis(times, length) {
  const [least, most] = times.reduce(([low, high], time) => [Math.min(low, time), Math.max(high, time)], [Infinity, 0]);
  const count = Math.max(3, Math.floor(length / WIDTH_OF_LABEL));
  if (least > 0) {
    const low = least * (1 - ROOM);
    const high = most * (1 + ROOM);
    return { type: 'log', domain: [low, high], ticks: high / low < FULL_RANGE ? even(low, high, count) : decades(low, high, count), label: 'ms (log)' };
  }
  const high = most * (1 + ROOM) || 1;
  return { type: 'linear', domain: [0, high], ticks: even(0, high, count), label: 'ms' };
}

/** @param {number} low @param {number} high @param {number} count about so many, two at least @returns {number[]} */
function even(low, high, count) {
  const wanted = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(wanted));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= wanted) ?? 10);
  const first = Math.ceil(low / step);
  const found = Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => rounded((first + i) * step));
  return found.length < 2 ? even(low, high, count + 1) : found;
}

/** @param {number} low @param {number} high @param {number} count */
function decades(low, high, count) {
  const first = Math.floor(Math.log10(low));
  const powers = Array.from({ length: Math.ceil(Math.log10(high)) - first + 1 }, (_, i) => first + i);
  const of = (/** @type {number[]} */ factors) =>
    powers.flatMap((power) => factors.map((factor) => rounded(factor * 10 ** power))).filter((tick) => low <= tick && tick <= high);
  const found = [[1, 2, 5], [1, 3], [1]].map(of).find((ticks) => ticks.length <= count) ?? of([1]);
  return found.filter((_, i) => i % Math.ceil(found.length / count) === 0);
}

/** @param {number} value without what binary fractions add, as in 0.30000000000000004 */
function rounded(value) {
  return Number(value.toPrecision(12));
}

/**
 * @param {string} name
 * @param {number} room in pixels
 * @param {string} font as CSS has it
 * @returns {string} the name on one line, with an ellipsis where it is too long
 */
export function shorten(name, room, font) {
  const line = name.replaceAll(/\s+/g, ' ');
  if (!ruler) return line;
  ruler.font = font;
  let kept = '';
  for (const character of line) {
    // Ends where the room does, however long the name is.
    if (ruler.measureText(kept + character).width > room) return fitted(kept, room);
    kept += character;
  }
  return kept;
}

/** @param {string} kept what just fits without an ellipsis @param {number} room */
function fitted(kept, room) {
  const characters = [...kept];
  while (characters.length && ruler && ruler.measureText(`${characters.join('')}…`).width > room) characters.pop();
  return `${characters.join('')}…`;
}
