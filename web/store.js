/**
 * What outlives the page: the editor's text, what was typed, the last report. Where the browser keeps nothing (a private window, a full disk), the
 * page works without, and says so once.
 */

/** @typedef {'editor' | 'history' | 'report'} Name */

export class Store {
  /** @type {Promise<any> | null} */
  #module = null;
  /** Hears once why nothing can be kept. @type {(reason: string) => void} */
  onFailure = () => {};
  #failed = false;

  /** @param {Name} name @returns {Promise<any>} undefined where there is nothing */
  read(name) {
    return this.#attempt(({ get }, store) => get(name, store));
  }

  /** @param {Name} name @param {unknown} value */
  write(name, value) {
    return this.#attempt(({ set }, store) => set(name, value, store));
  }

  /** @param {Name} name */
  forget(name) {
    return this.#attempt(({ del }, store) => del(name, store));
  }

  /** @param {(module: any, store: any) => Promise<unknown>} work */
  async #attempt(work) {
    try {
      this.#module ??= import('./vendor/keyval.js').then((module) => ({ module, store: module.createStore('pyapp', 'kept') }));
      const { module, store } = await this.#module;
      return await work(module, store);
    } catch (error) {
      if (!this.#failed) this.onFailure(/** @type {Error} */ (error).message);
      this.#failed = true;
      return undefined;
    }
  }
}
