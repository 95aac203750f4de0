/**
 * The wire: calls, answers and events over a MessagePort (or a Worker, or a worker's own scope).
 *
 * Both ends are a `Peer`. Typed arrays move only where `transfer` names them, so that it is visible who loses what.
 * An error crosses as `{name, message, remedy}`; the other end throws it again as an `AppError`.
 */

/** @typedef {import('./types.d.ts').WireError} WireError */
/** @typedef {Pick<MessagePort, 'postMessage' | 'addEventListener'> & {start?: () => void}} Port */
/** @typedef {Record<string, (...args: any[]) => unknown>} Verbs */

/** An error with a name that code can test and a remedy that a person can follow. */
export class AppError extends Error {
  /**
   * @param {string} name
   * @param {string} message
   * @param {string} [remedy]
   */
  constructor(name, message, remedy = '') {
    super(message);
    this.name = name;
    this.remedy = remedy;
  }
}

/**
 * @param {unknown} error whatever was thrown
 * @returns {WireError}
 */
export function toWireError(error) {
  if (error instanceof AppError) return { name: error.name, message: error.message, remedy: error.remedy };
  if (error instanceof Error) return { name: error.name, message: error.message, remedy: '' };
  return { name: 'Error', message: String(error), remedy: '' };
}

/** @type {WeakMap<object, Transferable[]>} */
const transfers = new WeakMap();

/**
 * Marks a verb's return value so that `list` moves with it instead of being copied.
 * @template {object} T
 * @param {T} value
 * @param {Transferable[]} list
 * @returns {T}
 */
export function transfer(value, list) {
  transfers.set(value, list);
  return value;
}

/** One end of a wire. */
export class Peer {
  #port;
  #verbs;
  #nextId = 1;
  /** @type {Map<number, {resolve: (value: any) => void, reject: (error: unknown) => void}>} */
  #pending = new Map();
  /** @type {AppError | null} */
  #lost = null;
  /** @type {(name: string, data: any) => void} */
  onEvent = () => {};

  /**
   * @param {Port} port
   * @param {Verbs} [verbs] what the other end may call
   */
  constructor(port, verbs = {}) {
    this.#port = port;
    this.#verbs = verbs;
    port.addEventListener('message', (event) => this.#receive(/** @type {MessageEvent} */ (event).data));
    port.start?.();
  }

  /**
   * Calls a verb of the other end.
   * @param {string} verb
   * @param {unknown[]} args
   * @param {Transferable[]} [list] what moves with the call
   * @returns {Promise<any>}
   */
  call(verb, args, list = []) {
    if (this.#lost) return Promise.reject(this.#lost);
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#port.postMessage({ kind: 'call', id, verb, args }, list);
    });
  }

  /**
   * Tells the other end something; no answer is expected.
   * @param {string} name
   * @param {unknown} data
   * @param {Transferable[]} [list]
   */
  emit(name, data, list = []) {
    this.#port.postMessage({ kind: 'event', name, data }, list);
  }

  /**
   * Fails every open call and every later one: the other end is gone.
   * @param {AppError} error
   */
  lose(error) {
    this.#lost ??= error;
    for (const { reject } of this.#pending.values()) reject(this.#lost);
    this.#pending.clear();
  }

  /** @param {any} message */
  #receive(message) {
    if (message?.kind === 'call') this.#answer(message);
    else if (message?.kind === 'event') this.onEvent(message.name, message.data);
    else if (message?.kind === 'done' || message?.kind === 'fail') this.#settle(message);
  }

  /** @param {{id: number, verb: string, args: unknown[]}} message */
  async #answer({ id, verb, args }) {
    try {
      if (!Object.hasOwn(this.#verbs, verb)) throw new AppError('UnknownVerb', `there is no verb "${verb}"`);
      const value = await this.#verbs[verb](...args);
      const list = (typeof value === 'object' && value !== null && transfers.get(value)) || [];
      this.#port.postMessage({ kind: 'done', id, value }, list);
    } catch (error) {
      this.#port.postMessage({ kind: 'fail', id, error: toWireError(error) });
    }
  }

  /** @param {{kind: string, id: number, value?: unknown, error?: WireError}} message */
  #settle({ kind, id, value, error }) {
    const call = this.#pending.get(id);
    if (!call) return; // it was failed by lose() before the answer came
    this.#pending.delete(id);
    if (kind === 'done') call.resolve(value);
    else call.reject(new AppError(error?.name ?? 'Error', error?.message ?? '', error?.remedy ?? ''));
  }
}
