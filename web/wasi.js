/**
 * As much of WASI as a module needs that does no more than compute.
 */

/** The few calls of WASI that the C and C++ libraries make. There are no files, no clock that matters, and no environment. */
export class Wasi {
  /** @type {WebAssembly.Memory | null} set once the module is there */
  memory = null;
  /** What the module wrote last; a crash quotes it. */
  said = '';

  /** @param {WebAssembly.Module} module @returns {Record<string, (...args: any[]) => unknown>} */
  imports(module) {
    /** @type {Record<string, (...args: any[]) => unknown>} */
    const known = {
      fd_write: (/** @type {number} */ _file, /** @type {number} */ parts, /** @type {number} */ count, /** @type {number} */ written) => this.#write(parts, count, written),
      proc_exit: (/** @type {number} */ code) => {
        throw new Error(`it exited with ${code}`);
      },
      environ_sizes_get: (/** @type {number} */ count, /** @type {number} */ bytes) => {
        this.#words().setUint32(count, 0, true);
        this.#words().setUint32(bytes, 0, true);
        return 0;
      },
      environ_get: () => 0,
    };
    const refused = () => 52; // ENOSYS
    return Object.fromEntries(WebAssembly.Module.imports(module).map(({ name }) => [name, known[name] ?? refused]));
  }

  #words() {
    return new DataView(/** @type {WebAssembly.Memory} */ (this.memory).buffer);
  }

  /** @param {number} parts @param {number} count @param {number} written */
  #write(parts, count, written) {
    const words = this.#words();
    let total = 0;
    for (let part = parts; part < parts + 8 * count; part += 8) {
      const bytes = new Uint8Array(words.buffer, words.getUint32(part, true), words.getUint32(part + 4, true));
      const text = new TextDecoder().decode(bytes.slice()).trim(); // a copy: decoders refuse shared memory
      if (text) this.said = text;
      total += bytes.length;
    }
    words.setUint32(written, total, true);
    return 0;
  }
}
