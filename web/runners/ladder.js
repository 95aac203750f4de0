/**
 * The best way of running a model that works here: ways are tried in order, and why one was left is remembered.
 */

/**
 * @template T
 * @typedef {{label: string, open: () => Promise<T>}} Rung
 */

const LONGEST = 200;

/**
 * @template T
 * @param {Rung<T>[]} rungs best first; the last one's error is everybody's
 * @param {() => boolean} [hopeless] whether no other rung can help either
 * @returns {Promise<{way: T, label: string, fallbacks: string[]}>} `fallbacks` says of each better rung why it was left
 */
export async function climb(rungs, hopeless = () => false) {
  /** @type {string[]} */
  const fallbacks = [];
  let last = '';
  for (const [index, { label, open }] of rungs.entries()) {
    try {
      return { way: await open(), label, fallbacks };
    } catch (error) {
      if (index === rungs.length - 1 || hopeless()) throw error;
      const reason = reasonOf(error);
      fallbacks.push(`${label}: ${reason === last ? 'the same' : reason}`);
      last = reason;
    }
  }
  throw new Error('a ladder has rungs');
}

/** @param {unknown} error @returns {string} one line of it */
function reasonOf(error) {
  // What onnxruntime puts before its own message says nothing.
  const [line] = String(error instanceof Error ? error.message : error).replace(/^.*ERROR_MESSAGE: /, '').split('\n');
  return line.length > LONGEST ? `${line.slice(0, LONGEST)} …` : line;
}
