/**
 * The check's settings as the address gives them: `?runs=100&warmup=10&seed=0&engines=wasm-1,webgpu-stock&threads=1,4`; and `&lang=zh-TW`.
 *
 * Python checks the values, for it knows the rules; a text that is no number goes on as it is, so that Python can name it.
 */

/** @typedef {{runs: number | string, warmup: number | string, seed: number | string, engines: string[]}} Settings */

/** @type {Settings} */
export const DEFAULTS = { runs: 100, warmup: 10, seed: 0, engines: ['wasm-1', 'wasm-N', 'webgpu-stock', 'webgpu-fast'] };

const NUMBERS = /** @type {const} */ (['runs', 'warmup', 'seed']);
const KNOWN = [...NUMBERS, 'engines', 'threads', 'lang'];

/**
 * @param {URLSearchParams} parameters
 * @returns {{settings: Settings, language: string | null, unknown: string[]}} with the page's language as the address names it
 */
export function readSettings(parameters) {
  const settings = structuredClone(DEFAULTS);
  for (const name of NUMBERS) {
    const text = parameters.get(name);
    if (text !== null) settings[name] = toNumber(text);
  }
  const engines = parameters.get('engines');
  if (engines !== null) settings.engines = toList(engines);
  const threads = parameters.get('threads');
  if (threads !== null) settings.engines = withThreads(settings.engines, toList(threads));
  return { settings, language: parameters.get('lang'), unknown: [...parameters.keys()].filter((name) => !KNOWN.includes(name)) };
}

/**
 * The address of a page with these settings; what has its default is left out.
 * @param {Settings} settings
 * @param {string | null} language null where the address does not say it
 * @returns {string} `?…`, or the empty text
 */
export function writeSettings(settings, language) {
  const parameters = new URLSearchParams();
  for (const name of NUMBERS) {
    if (settings[name] !== DEFAULTS[name]) parameters.set(name, String(settings[name]));
  }
  const engines = settings.engines.join(',');
  if (engines !== DEFAULTS.engines.join(',')) parameters.set('engines', engines);
  if (language !== null) parameters.set('lang', language);
  // Commas are legal in a query, and easier on the eye.
  const text = parameters.toString().replaceAll('%2C', ',');
  return text && `?${text}`;
}

/**
 * Replaces the WASM engines of a list by one for each thread count.
 * @param {string[]} engines
 * @param {string[]} threads `1`, `4`, `N` …
 * @returns {string[]}
 */
export function withThreads(engines, threads) {
  return [...threads.map((count) => `wasm-${count}`), ...engines.filter((name) => !name.startsWith('wasm-'))];
}

/**
 * The thread counts of a list's WASM engines.
 * @param {string[]} engines
 */
export function threadsOf(engines) {
  return engines.filter((name) => name.startsWith('wasm-')).map((name) => name.slice('wasm-'.length));
}

/**
 * @param {string} text
 * @returns {number | string} a number, or the text itself, so that whoever refuses it can quote it
 */
export function toNumber(text) {
  const number = Number(text);
  return text.trim() && Number.isFinite(number) ? number : text;
}

/** @param {string} text */
export function toList(text) {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean);
}
