/**
 * The check's settings as the URL gives them: `?runs=100&warmup=10&seed=0&engines=wasm-1,webgpu-stock`.
 */

const NUMBERS = ['runs', 'warmup', 'seed'];
const KNOWN = [...NUMBERS, 'engines'];

/**
 * @param {URLSearchParams} parameters
 * @returns {{settings: Record<string, number | string[]>, unknown: string[]}} values are checked by Python, which knows the rules
 */
export function readSettings(parameters) {
  /** @type {Record<string, number | string[]>} */
  const settings = {};
  for (const name of NUMBERS) {
    const text = parameters.get(name);
    if (text !== null) settings[name] = Number(text);
  }
  const engines = parameters.get('engines');
  if (engines !== null) settings.engines = engines.split(',').filter(Boolean);
  return { settings, unknown: [...parameters.keys()].filter((name) => !KNOWN.includes(name)) };
}
