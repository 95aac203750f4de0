/** What a visitor brings: which of several files is the model, which hold its weights, and which the cases. */
import { AppError } from './wire.js';

/** As `pyapp.onnxfile.MAX_BYTES`, so that no file is read in vain. */
const MAX_BYTES = 2 ** 30;
const CASES = /\.(npz|npy|json)$/i;

/** @typedef {{name: string, size: number, arrayBuffer: () => Promise<ArrayBuffer>}} Brought a file, or what an address gave */

/**
 * @template {Brought} T
 * @param {T[]} files
 * @returns {{model: T | null, weights: T[], cases: T | null}}
 */
export function sorted(files) {
  const cases = files.filter(({ name }) => CASES.test(name));
  const others = files.filter((file) => !cases.includes(file));
  const models = others.length === 1 ? others : others.filter(({ name }) => /\.onnx$/i.test(name));
  if (others.length && models.length !== 1) {
    const names = others.map(({ name }) => name).join(', ');
    throw new AppError('WhichModel', `${models.length} of these files are named as models: ${names}`, 'Give one .onnx file, with the files that hold its weights.');
  }
  if (cases.length > 1) throw new AppError('WhichCases', `${cases.length} files with cases were given`, 'Give one of .npz, .npy or .json.');
  const total = files.reduce((sum, { size }) => sum + size, 0);
  if (total > MAX_BYTES) {
    throw new AppError('TooLarge', `${files.map(({ name }) => name).join(', ')}: ${Math.ceil(total / 1e6)} MB; at most ${Math.floor(MAX_BYTES / 1e6)} MB can be used`, 'Use a smaller or a quantised model.');
  }
  const [model] = models;
  return { model: model ?? null, weights: others.filter((file) => file !== model), cases: cases[0] ?? null };
}

/**
 * Fetches a model from an address.
 * @param {string} address
 * @param {(done: number, total: number) => void} onProgress bytes; `total` is 0 where the server does not say
 * @returns {Promise<Brought>}
 */
export async function download(address, onProgress) {
  const url = URL.canParse(address) ? new URL(address) : null;
  if (url?.protocol !== 'https:' && url?.origin !== location.origin) {
    throw new AppError('BadAddress', `"${address}" is no address that this page may load`, 'Give one that begins with https://.');
  }
  const response = await fetch(url, { credentials: 'omit' }).catch((error) => {
    throw new AppError('DownloadFailed', `${url.href} could not be loaded: ${error.message}`, 'Its server must allow other pages to read it (CORS). Else download it, and drop the file here.');
  });
  if (!response.ok || !response.body) throw new AppError('DownloadFailed', `${url.href} could not be loaded: the server answered ${response.status}`, 'Is the address right?');
  const total = Number(response.headers.get('content-length')) || 0;
  /** @type {Uint8Array[]} */
  const parts = [];
  let size = 0;
  for (const reader = response.body.getReader(); ; ) {
    const { value, done } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > MAX_BYTES) {
      await reader.cancel();
      throw new AppError('TooLarge', `${url.href} has more than ${Math.floor(MAX_BYTES / 1e6)} MB`, 'Use a smaller or a quantised model.');
    }
    parts.push(value);
    onProgress(size, total);
  }
  const blob = new Blob(/** @type {BlobPart[]} */ (parts));
  return { name: decodeURIComponent(url.pathname.split('/').pop() || 'model.onnx'), size, arrayBuffer: () => blob.arrayBuffer() };
}
