/**
 * From JavaScript to the GPU: the input buffers of one shape, and the ways to fill them.
 */
import { byteLength, countOf, fitsBuffer, padded } from './gpu-types.js';

/** @typedef {import('../types.d.ts').WireTensors} WireTensors */
/** @typedef {{write: (target: GPUBuffer, bytes: Uint8Array<ArrayBuffer>) => void}} Upload */

/** Lets the queue copy: the browser finds the memory. @implements {Upload} */
export class QueueUpload {
  #queue;

  /** @param {GPUDevice} device */
  constructor({ queue }) {
    this.#queue = queue;
  }

  /** @param {GPUBuffer} target @param {Uint8Array<ArrayBuffer>} bytes a multiple of 4 */
  write(target, bytes) {
    this.#queue.writeBuffer(target, 0, bytes);
  }
}

/** Writes into buffers that stay mapped until they are needed, for `bench/gpu.py`. @implements {Upload} */
export class MappedUpload {
  #device;
  /** @type {GPUBuffer[]} mapped */
  #ready = [];

  /** @param {GPUDevice} device */
  constructor(device) {
    this.#device = device;
  }

  /** @param {GPUBuffer} target @param {Uint8Array<ArrayBuffer>} bytes a multiple of 4 */
  write(target, bytes) {
    const usage = GPUBufferUsage.MAP_WRITE | GPUBufferUsage.COPY_SRC;
    const found = this.#ready.findIndex(({ size }) => size >= bytes.byteLength);
    const [staging] =
      found < 0 ? [this.#device.createBuffer({ size: target.size, usage, mappedAtCreation: true })] : this.#ready.splice(found, 1);
    new Uint8Array(staging.getMappedRange(0, bytes.byteLength)).set(bytes);
    staging.unmap();
    const encoder = this.#device.createCommandEncoder();
    encoder.copyBufferToBuffer(staging, 0, target, 0, bytes.byteLength);
    this.#device.queue.submit([encoder.finish()]);
    staging.mapAsync(GPUMapMode.WRITE).then(
      () => this.#ready.push(staging),
      () => staging.destroy(),
    );
  }
}

/** The input buffers of one shape, as tensors that onnxruntime takes. */
export class Inputs {
  /** @type {Record<string, import('onnxruntime-web').Tensor>} */
  tensors = {};
  #upload;
  /** @type {Map<string, {buffer: GPUBuffer, scratch: Uint8Array<ArrayBuffer> | null}>} */
  #buffers = new Map();

  /**
   * @param {import('../types.d.ts').Ort} ort
   * @param {GPUDevice} device
   * @param {Upload} upload
   * @param {WireTensors} feeds of this shape
   */
  constructor(ort, device, upload, feeds) {
    this.#upload = upload;
    // onnxruntime copies from an input where a node runs on the CPU.
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC;
    for (const [name, { type, dims }] of Object.entries(feeds)) {
      const bytes = byteLength(type, dims);
      const buffer = device.createBuffer({ size: padded(bytes), usage });
      this.#buffers.set(name, { buffer, scratch: bytes % 4 ? new Uint8Array(Math.ceil(bytes / 4) * 4) : null });
      this.tensors[name] = ort.Tensor.fromGpuBuffer(buffer, { dataType: /** @type {any} */ (type), dims });
    }
  }

  /** @param {WireTensors} feeds */
  fill(feeds) {
    for (const [name, { buffer, scratch }] of this.#buffers) {
      const { data } = feeds[name];
      const bytes = new Uint8Array(/** @type {ArrayBuffer} */ (data.buffer), data.byteOffset, data.byteLength);
      // Writes have a multiple of 4 bytes.
      scratch?.set(bytes);
      this.#upload.write(buffer, scratch ?? bytes);
    }
  }

  destroy() {
    for (const { buffer } of this.#buffers.values()) buffer.destroy();
  }
}

/**
 * Names a shape.
 * @param {readonly string[]} names the model's inputs
 * @param {WireTensors} feeds
 * @returns {string} the same for feeds that fit into the same buffers
 * @throws {Error} where they are not the model's inputs
 */
export function shapeKey(names, feeds) {
  let key = '';
  for (const name of names) {
    const feed = feeds[name];
    if (!feed) throw new Error(`input '${name}' is missing`);
    const { type, dims, data } = feed;
    if (!fitsBuffer(type)) throw new Error(`input '${name}' is ${type}, which no GPU buffer of onnxruntime-web holds`);
    if (data.length !== countOf(dims)) throw new Error(`input '${name}' is ${type}[${dims}], but has ${data.length} values`);
    key += `${type}[${dims}] `;
  }
  const unknown = Object.keys(feeds).find((name) => !names.includes(name));
  if (unknown) throw new Error(`the model has no input '${unknown}', only ${names.join(', ')}`);
  return key;
}
