/**
 * What the emulator takes, what its C++ answers (`Status` in `native/ale/api.h`), and how a refusal is told.
 */
import { AppError } from './wire.js';

export const MAX_ROM = 512 * 1024;
export const MAX_SEED = 2 ** 31 - 1;

/** The emulator's numbers for NOOP, FIRE, RIGHT and LEFT; it knows others, which mean nothing in Breakout. */
export const LEGAL = [0, 1, 3, 4];

export const BAD_ROM = -2;
export const BAD_STATE = -8;
const CANNOT_START = -9;

/** @param {number} seed @returns {number} */
export function seedOf(seed) {
  if (seed === -1) return crypto.getRandomValues(new Uint32Array(1))[0] >>> 1;
  if (Number.isInteger(seed) && seed >= 0 && seed <= MAX_SEED) return seed;
  throw new AppError('BadSeed', `the seed ${quoted(seed)} is no integer from 0 to ${MAX_SEED}`, 'Use one of these, or -1 for a random one.');
}

/** @param {string} why */
export function badRom(why) {
  return new AppError('BadRom', `this is not the ROM of Breakout: ${why}`, 'Choose breakout.bin as the Python package ale-py 0.12.1 holds it.');
}

/** @param {number} status that no argument can be blamed for */
export function failed(status) {
  const why = status === CANNOT_START ? 'it refuses the cartridge' : `it answered ${status}`;
  return new AppError('AleFailed', `the emulator could not do it: ${why}`, 'Reload the page.');
}

/** @param {unknown} value @returns {string} */
export function quoted(value) {
  return typeof value === 'string' ? JSON.stringify(value) : String(value);
}
