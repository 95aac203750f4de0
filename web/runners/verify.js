/**
 * Whether a way of running a model gives the answers that onnxruntime's own way gives, above all to an input that changed:
 * a captured graph that reads the wrong buffer replays an old answer, quickly and without an error.
 */
import { countOf } from './gpu-types.js';

/** @typedef {import('../types.d.ts').WireTensors} WireTensors */
/** @typedef {import('../types.d.ts').WireTensor} WireTensor */
/** @typedef {{name: string, type: WireTensor['type'], dims: number[]}} InputShape */

/** Both ran the same kernels on the same device; halves have three digits. @type {Record<string, number>} */
const TOLERANCES = { float32: 1e-5, float64: 1e-5, float16: 2e-3 };

/** The inputs that are asked, in this order: a change, and back. */
const ORDER = [0, 1, 0];

/**
 * @param {(feeds: WireTensors) => Promise<WireTensors>} infer the way that is tried
 * @param {WireTensors[]} cases two inputs that differ
 * @param {() => Promise<WireTensors[]>} reference their answers; asked for after the way has run
 * @param {{changing: boolean}} options `changing`: the answers have to differ, or nothing is shown
 * @returns {Promise<string | null>} what is wrong
 */
export async function verify(infer, cases, reference, { changing }) {
  const found = [];
  for (const index of ORDER) found.push(await infer(cases[index]));
  const expected = await reference();
  if (changing && !difference(expected[0], expected[1])) {
    return 'two different inputs had the same answer, so that a stale one could not be told';
  }
  for (const [turn, index] of ORDER.entries()) {
    const wrong = difference(found[turn], expected[index]);
    if (!wrong) continue;
    const stale = !difference(found[turn], expected[1 - index]);
    return stale ? 'it gave the answer to an earlier input again' : `it gave another answer than onnxruntime's own way: ${wrong}`;
  }
  return null;
}

/**
 * @param {WireTensors} found
 * @param {WireTensors} expected
 * @returns {string | null} how they differ by more than rounding
 */
export function difference(found, expected) {
  for (const [name, wanted] of Object.entries(expected)) {
    const got = found[name];
    if (!got) return `${name} is missing`;
    const shapes = [got, wanted].map(({ type, dims }) => `${type}[${dims}]`);
    if (shapes[0] !== shapes[1]) return `${name} is ${shapes[0]}, not ${shapes[1]}`;
    const index = firstDifference(got, wanted);
    if (index >= 0) return `${name}[${index}] is ${got.data[index]}, not ${wanted.data[index]}`;
  }
  return null;
}

/** @param {WireTensor} got @param {WireTensor} wanted @returns {number} -1 where there is none */
function firstDifference(got, wanted) {
  const [a, b] = [got.data, wanted.data];
  const tolerance = TOLERANCES[wanted.type] ?? 0;
  for (let i = 0; i < b.length; i++) {
    if (a[i] === b[i] || (a[i] !== a[i] && b[i] !== b[i])) continue;
    // Bits of halves, where there is no Float16Array, are compared as what they are: the same kernels give the same bits.
    if (typeof a[i] === 'bigint' || !tolerance || b instanceof Uint16Array) return i;
    const [x, y] = [Number(a[i]), Number(b[i])];
    if (!(Math.abs(x - y) <= tolerance * Math.max(1, Math.abs(y)))) return i;
  }
  return -1;
}

/**
 * Two inputs to try a model with. Floats are in 0..1 and in 0..255; integers are 0 or 1, which any vocabulary has, and the
 * other one in the second input, so that even one alone is sure to change.
 * @param {InputShape[]} shapes
 * @returns {WireTensors[]}
 */
export function trials(shapes) {
  return [1, 255].map((range) => {
    const random = generator(1);
    /** @type {WireTensors} */
    const feeds = {};
    for (const { name, type, dims } of shapes) feeds[name] = { type, dims, data: values(type, countOf(dims), random, range) };
    return feeds;
  });
}

/**
 * @param {WireTensor['type']} type
 * @param {number} count
 * @param {() => number} random
 * @param {number} range
 * @returns {any}
 */
function values(type, count, random, range) {
  const bit = () => Number(random() < 0.5 === (range === 1));
  // Not the same pattern in two brightnesses: a model may normalise its input.
  if (type === 'float32') return Float32Array.from({ length: count }, () => (range === 1 ? random() : (1 - random()) * range));
  // Bits of halves from 1 to 2, and from 1/4 to 1/2: no conversion is needed, and nothing overflows.
  if (type === 'float16') return Uint16Array.from({ length: count }, () => (range === 1 ? 0x3c00 : 0x3400) + Math.floor(random() * 1024));
  if (type === 'int64') return BigInt64Array.from({ length: count }, () => BigInt(bit()));
  if (type === 'int32') return Int32Array.from({ length: count }, bit);
  if (type === 'uint32') return Uint32Array.from({ length: count }, bit);
  return Uint8Array.from({ length: count }, bit);
}

/** The same numbers in 0..1 in every browser (mulberry32). @param {number} seed */
function generator(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
