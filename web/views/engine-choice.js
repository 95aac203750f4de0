import { requireAdapter } from '../gpu.js';
import { h } from './dom.js';

const GPU_ENGINES = ['webgpu-stock', 'webgpu-fast'];

/** Where the agent can run, and why not elsewhere. */
export class EngineChoice {
  root = h('select');
  /** @type {Map<string, string>} why an engine cannot be chosen; the empty text where it can */
  #known = new Map([['wasm-1', ''], ...GPU_ENGINES.map((name) => /** @type {[string, string]} */ ([name, '']))]);
  #hasAsked = false;

  constructor() {
    if (globalThis.crossOriginIsolated && navigator.hardwareConcurrency > 1) this.#known.set('wasm-2', '');
    this.root.addEventListener('focus', () => this.askForGpu());
    this.#write();
  }

  /** Finds out whether there is a graphics adapter; that may wake a GPU, so it is not asked before somebody wants to play. */
  async askForGpu() {
    if (this.#hasAsked) return;
    this.#hasAsked = true;
    try {
      await requireAdapter();
    } catch {
      for (const name of GPU_ENGINES) this.#known.set(name, 'no WebGPU here');
      this.#write();
    }
  }

  get value() {
    return this.root.value;
  }

  set value(/** @type {string} */ name) {
    this.root.value = name;
  }

  /** Has an engine among the choices. @param {string} name */
  offer(name) {
    this.#known.set(name, '');
    this.#write();
  }

  /** What a check has found out. @param {{name: string, actual: object | null}[]} engines of its report */
  learn(engines) {
    for (const { name, actual } of engines) this.#known.set(name, actual ? '' : 'the check could not open it');
    this.#write();
  }

  /** Those that can be chosen instead of one. @param {string} name */
  others(name) {
    return this.#names.filter((other) => other !== name && !this.#known.get(other));
  }

  get #names() {
    return [...this.#known.keys()].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  }

  #write() {
    const chosen = this.root.value || 'wasm-1';
    this.root.replaceChildren(
      ...this.#names.map((name) => {
        const why = this.#known.get(name);
        return h('option', { value: name, disabled: Boolean(why), selected: name === chosen }, why ? `${name} (${why})` : name);
      }),
    );
  }
}
