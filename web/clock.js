/**
 * The step of this realm's clock: the smallest difference seen between two different readings of `performance.now()`.
 * Browsers coarsen it, to 5 µs where a page is cross-origin isolated and to 100 µs or more where it is not.
 * @returns {number} milliseconds
 */
export function clockStep() {
  let smallest = Infinity;
  for (let changes = 0; changes < 50; changes++) {
    const before = performance.now();
    let after = before;
    while (after === before) after = performance.now();
    smallest = Math.min(smallest, after - before);
  }
  return smallest;
}
