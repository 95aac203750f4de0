/** Code in an address: compressed, after the #, so that no server sees it. Whoever reads it must never run it by itself. */
import { AppError } from './wire.js';

const KEY = 'code';
/** Of code; browsers take addresses of some 100,000 characters, chat programs fewer. */
const MAX_BYTES = 100_000;

/**
 * @param {string} code
 * @returns {Promise<string>} `#code=…`
 */
export async function toHash(code) {
  const bytes = new TextEncoder().encode(code);
  if (bytes.length > MAX_BYTES) throw new AppError('TooLong', `the code has ${bytes.length} bytes, and an address holds up to ${MAX_BYTES}`, 'Save it as a file instead.');
  const packed = await through(bytes, new CompressionStream('deflate-raw'));
  return `#${KEY}=${btoa(String.fromCharCode(...packed)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')}`;
}

/**
 * @param {string} hash of an address
 * @returns {Promise<string | null>} null where it holds no code
 * @throws {AppError} where it holds something else
 */
export async function fromHash(hash) {
  const text = new URLSearchParams(hash.slice(1)).get(KEY);
  if (text === null) return null;
  try {
    const packed = Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (character) => character.charCodeAt(0));
    const bytes = await through(packed, new DecompressionStream('deflate-raw'), MAX_BYTES);
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new AppError('BadLink', 'the address holds code that cannot be read', 'Ask for the link again; it may have been cut off.');
  }
}

/**
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @param {CompressionStream | DecompressionStream} stream
 * @param {number} [most] bytes that may come out: a short address can unpack to gigabytes
 */
async function through(bytes, stream, most = Infinity) {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > most) throw new Error('too long');
    parts.push(value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}
