/**
 * When a run is inside of onnxruntime's WebAssembly: what lies before and after are the copies in and out.
 *
 * A profile would say it too, but slows down a run with threads by a third. So this wraps the functions that WebAssembly exports in
 * one realm, which belongs to one short-lived engine worker that does nothing else. Their names mean nothing, for they are
 * minified: the run is the call that takes longest.
 */

/** @typedef {{entered: number, left: number}} Stay milliseconds of `performance.now()`; NaN where nothing was called */

export class WasmTrace {
  /** @type {Stay | null} */
  #longest = null;
  #depth = 0;

  /** Takes hold of the realm's WebAssembly. */
  constructor() {
    const instantiate = WebAssembly.instantiate.bind(WebAssembly);
    const streaming = WebAssembly.instantiateStreaming?.bind(WebAssembly);
    WebAssembly.instantiate = /** @type {any} */ (async (/** @type {any} */ source, /** @type {any} */ imports) => this.#watched(await instantiate(source, imports)));
    if (streaming) WebAssembly.instantiateStreaming = async (source, imports) => this.#watched(await streaming(source, imports));
  }

  /**
   * Finds the longest stay of one run.
   * @param {() => Promise<unknown>} run
   * @returns {Promise<Stay>}
   */
  async stay(run) {
    const longest = { entered: NaN, left: NaN };
    this.#longest = longest;
    try {
      await run();
    } finally {
      this.#longest = null;
    }
    return longest;
  }

  /** @param {any} made an instance, or one with its module @returns {any} the same with watched exports */
  #watched(made) {
    const { exports } = made.instance ?? made;
    const instance = { exports: Object.fromEntries(Object.entries(exports).map(([name, value]) => [name, typeof value === 'function' ? this.#timed(value) : value])) };
    return made.instance ? { module: made.module, instance } : instance;
  }

  /** @param {Function} work @returns {(...args: unknown[]) => unknown} */
  #timed(work) {
    return (...args) => {
      const longest = this.#depth ? null : this.#longest;
      if (!longest) return work(...args);
      this.#depth++;
      const entered = performance.now();
      try {
        return work(...args);
      } finally {
        this.#depth--;
        const left = performance.now();
        // Nothing is longer than a stay that never was.
        if (!(left - entered <= longest.left - longest.entered)) Object.assign(longest, { entered, left });
      }
    };
  }
}
