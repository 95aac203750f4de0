import { toNumber } from '../settings.js';
import { AppError } from '../wire.js';
import { h } from './dom.js';

const MAX_SEED = 2 ** 31 - 1;
/** Seeds that are drawn are below this: short enough to be typed again. */
const DRAWN = 1_000_000;

/** What both games begin with: a seed, and whether it is the same for both. */
export class SeedFields {
  #seed = h('input', { type: 'text', inputmode: 'numeric', placeholder: 'any', spellcheck: 'false' });
  #same = h('input', { type: 'checkbox', checked: true });
  roots = [h('label', {}, 'Seed', this.#seed), h('label', { class: 'same' }, this.#same, 'the same for both')];

  /**
   * Seeds for the next games; the visitor's can be read in the field afterwards.
   * @returns {{you: number, agent: number}}
   * @throws {AppError} `BadSeed`
   */
  choose() {
    const text = this.#seed.value.trim();
    const typed = toNumber(text);
    const isSeed = typeof typed === 'number' && Number.isInteger(typed) && typed >= 0 && typed <= MAX_SEED;
    if (text !== '' && !isSeed) throw new AppError('BadSeed', `the seed ${text} is no whole number from 0 to ${MAX_SEED}`, 'Correct it, or leave it empty for any.');
    const you = isSeed ? typed : anySeed();
    this.#seed.placeholder = `any; last ${you}`;
    return { you, agent: this.#same.checked ? you : anySeed() };
  }
}

function anySeed() {
  return crypto.getRandomValues(new Uint32Array(1))[0] % DRAWN;
}
