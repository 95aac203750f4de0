/**
 * The site's files, and what became of one that does not come: which it was, and whether the server refused it, went silent or gave only a part.
 */
import { Patience } from './patience.js';
import { AppError } from './wire.js';

/** Who has sent nothing for so long sends nothing more. */
const SILENCE_MS = 20_000;

/** @typedef {{url: string, bytes?: number}} Part a file of the site, and its size where that is known */

/**
 * Fetches a whole file.
 * @param {Part} part
 * @param {(loaded: number) => void} [onLoaded] bytes so far
 * @param {RequestInit} [how]
 * @returns {Promise<Uint8Array<ArrayBuffer>>}
 * @throws {AppError} `DownloadFailed`
 */
export async function download({ url, bytes }, onLoaded = () => {}, how = {}) {
  const silence = new AbortController();
  const patience = new Patience(() => silence.abort());
  /** @type {Uint8Array<ArrayBuffer>[]} */
  const chunks = [];
  let loaded = 0;
  let begun = false;
  try {
    patience.begin(SILENCE_MS);
    const response = await fetch(url, { ...how, signal: silence.signal });
    if (!response.ok) throw failed(url, `the server answered ${response.status}`, 'Reload the page. If that does not help, the site is not complete and has to be deployed again.');
    begun = true;
    const reader = /** @type {ReadableStream<Uint8Array<ArrayBuffer>>} */ (response.body).getReader();
    for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
      patience.begin(SILENCE_MS);
      if (!value) continue;
      chunks.push(value);
      onLoaded((loaded += value.length));
    }
  } catch (error) {
    if (error instanceof AppError) throw error;
    if (silence.signal.aborted) throw failed(url, `nothing came for ${SILENCE_MS / 1000} s`);
    throw failed(url, begun ? `the connection was cut after ${sizes(loaded, bytes)}` : `there is no connection (${error instanceof Error ? error.message : error})`);
  } finally {
    patience.end();
  }
  if (bytes !== undefined && loaded !== bytes) throw failed(url, `${sizes(loaded, bytes)} came`, 'Reload the page: the site may have been updated meanwhile, or a server on the way gives only a part of the file.');
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}

/** @param {URL} url of a small text @returns {Promise<string>} */
export async function downloadText(url) {
  return new TextDecoder().decode(await download({ url: url.href }));
}

/**
 * Imports a module that is only needed now.
 * @param {URL} url
 * @returns {Promise<any>}
 */
export function needed({ href }) {
  return insist(() => import(href), [{ url: href }]);
}

/**
 * Does work that loads files by itself (modules, wasm) and cannot say which one did not come. Where it fails or takes long, the files that
 * have not come are asked for once more, to learn what is wrong.
 * @template T
 * @param {() => Promise<T>} work
 * @param {Part[]} parts what it loads
 * @param {AbortSignal} [given] up: nobody waits for the work any more, and it may never end
 * @returns {Promise<T>}
 * @throws {AppError} `DownloadFailed`, or what the work throws where no file is to blame
 */
export async function insist(work, parts, given) {
  let over = false;
  const done = work().finally(() => (over = true));
  const watched = async () => {
    const waiting = () => !over && !given?.aborted;
    while (waiting()) {
      await new Promise((resolve) => setTimeout(resolve, SILENCE_MS));
      const fault = waiting() ? await faultOf(parts) : null;
      if (fault && waiting()) throw fault;
    }
    return done;
  };
  try {
    return await Promise.race([done, watched()]);
  } catch (error) {
    if (given?.aborted || (error instanceof AppError && error.name === 'DownloadFailed')) throw error;
    throw (await faultOf(parts)) ?? error;
  }
}

/**
 * @param {Part[]} parts
 * @returns {Promise<AppError | null>} what is wrong with the first of them with which something is
 */
async function faultOf(parts) {
  const missing = parts.filter((part) => !hasCome(part));
  // Not from the cache, where a request for the same file would wait for the one that does not end.
  const asked = missing.map((part) => download(part, () => {}, { cache: 'no-store' }));
  return Promise.all(asked).then(
    () => null,
    (error) => error,
  );
}

/** @param {Part} part @returns {boolean} whether this realm has loaded all of it */
function hasCome({ url, bytes }) {
  const entries = /** @type {PerformanceResourceTiming[]} */ (performance.getEntriesByName(url, 'resource'));
  return entries.some(({ decodedBodySize, responseStatus }) => responseStatus > 0 && responseStatus < 400 && decodedBodySize === bytes);
}

/** @param {string} url @param {string} why @param {string} [remedy] */
function failed(url, why, remedy = 'Check the connection and try again, or reload the page.') {
  return new AppError('DownloadFailed', `${new URL(url).pathname.split('/').pop() || url} could not be loaded: ${why}`, remedy);
}

/** @param {number} loaded @param {number} [bytes] */
function sizes(loaded, bytes) {
  return bytes === undefined ? `${loaded} bytes` : `${loaded} of ${bytes} bytes`;
}

/** What workers begin with: all modules but the page's views. */
export const MODULES = /^((play|runners)\/)?[\w-]+\.js$/;

/**
 * @param {import('./types.d.ts').Site} site
 * @param {URL} base the folder of the site's version
 * @param {...(string | RegExp)} which its paths begin with, or match
 * @returns {Part[]}
 */
export function partsOf(site, base, ...which) {
  const wanted = (/** @type {string} */ path) => which.some((one) => (typeof one === 'string' ? path.startsWith(one) : one.test(path)));
  return site.files.filter(({ path }) => wanted(path)).map(({ path, bytes }) => ({ url: new URL(path, base).href, bytes }));
}
