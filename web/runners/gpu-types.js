/**
 * Which tensors can live in a GPU buffer, and how large they are there.
 */
/** @typedef {import('../types.d.ts').WireTensor['type']} Type */

/** As onnxruntime-web does: without Float16Array, a half is its 16 bits. */
const Half = /** @type {any} */ (globalThis).Float16Array ?? Uint16Array;

/** @type {Partial<Record<Type, any>>} */
const ARRAYS = {
  float32: Float32Array,
  float16: Half,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint8: Uint8Array,
  bool: Uint8Array,
};

/** @param {string} type */
export function fitsBuffer(type) {
  return Object.hasOwn(ARRAYS, type);
}

/** @param {readonly number[]} dims */
export function countOf(dims) {
  return dims.reduce((product, size) => product * size, 1);
}

/** @param {Type} type @param {readonly number[]} dims */
export function byteLength(type, dims) {
  return countOf(dims) * ARRAYS[type].BYTES_PER_ELEMENT;
}

/** A buffer's size for so many bytes: shaders read up to four words at once, and no buffer is empty. @param {number} bytes */
export function padded(bytes) {
  return Math.max(16, Math.ceil(bytes / 16) * 16);
}

/**
 * @param {Type} type
 * @param {ArrayBuffer} bytes
 * @returns {import('../types.d.ts').WireTensor['data']}
 */
export function toTyped(type, bytes) {
  return new ARRAYS[type](bytes);
}
