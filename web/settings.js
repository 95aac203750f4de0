/**
 * The check's settings as the URL gives them: `?runs=100&warmup=10&seed=0&engines=wasm-1,webgpu-stock`.
 */

const NUMBERS = ['runs', 'warmup', 'seed'];
const KNOWN = [...NUMBERS, 'engines'];

/**
 * @param {URLSearchParams} parameters
 * @returns {{settings: Record<string, number | string | string[]>, unknown: string[]}} values are checked by Python, which knows the rules
 */
export function readSettings(parameters) {
  /** @type {Record<string, number | string | string[]>} */
  const settings = {};
  for (const name of NUMBERS) {
    const text = parameters.get(name);
    if (text !== null) settings[name] = toNumber(text);
  }
  const engines = parameters.get('engines');
  if (engines !== null) settings.engines = engines.split(',').filter(Boolean);
  return { settings, unknown: [...parameters.keys()].filter((name) => !KNOWN.includes(name)) };
}

/**
 * @param {string} text
 * @returns {number | string} a number, or the text itself, so that whoever refuses it can quote it
 */
function toNumber(text) {
  const number = Number(text);
  return text.trim() && Number.isFinite(number) ? number : text;
}
