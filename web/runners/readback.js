/**
 * From the GPU to JavaScript: all outputs of a run through one staging buffer and one map.
 */
import { byteLength, padded, toTyped } from './gpu-types.js';

/** @typedef {import('../types.d.ts').WireTensors} WireTensors */

/**
 * How long a map is nudged: at every turn of the event loop for `hotMs`, then at every turn of a timer until `limitMs` or
 * `count` nudges are over, then not at all. What is won is a few milliseconds, so a long run is not worth a busy processor: a
 * software GPU, which needs the processor itself, took a third longer with 20 ms.
 */
export const NUDGING = { hotMs: 8, limitMs: 2_000, count: 20_000 };

/** Says nothing of a promise that nobody waits for. */
const ignore = () => {};

/**
 * Waits for the GPU. Chromium tells JavaScript late that a buffer is mapped, milliseconds after it is; asking the queue for
 * its own news meanwhile, without waiting for them, makes it look sooner. A lost device never answers, so nudging has an end.
 */
export class Nudger {
  #queue;
  #limits;
  #channel = new MessageChannel();
  /** @type {(value?: unknown) => void} */
  #turned = ignore;

  /** @param {Pick<GPUQueue, 'onSubmittedWorkDone'>} queue @param {typeof NUDGING} [limits] */
  constructor(queue, limits = NUDGING) {
    this.#queue = queue;
    this.#limits = limits;
    this.#channel.port2.onmessage = () => this.#turned();
  }

  /**
   * @template T
   * @param {Promise<T>} waiting of a map that was asked for
   * @returns {Promise<T>} the same; after the limits it is simply awaited
   */
  async settle(waiting) {
    const { hotMs, limitMs, count } = this.#limits;
    let open = true;
    const settled = () => {
      open = false;
    };
    waiting.then(settled, settled);
    const start = performance.now();
    for (let nudges = 0; open && nudges < count; nudges++) {
      const elapsed = performance.now() - start;
      if (elapsed > limitMs) break;
      this.#queue.onSubmittedWorkDone().then(ignore, ignore);
      await (elapsed < hotMs ? this.#turn() : new Promise((resolve) => setTimeout(resolve, 1)));
    }
    return waiting;
  }

  /** One turn of the event loop; a timer would take at least a millisecond. */
  #turn() {
    return new Promise((resolve) => {
      this.#turned = resolve;
      this.#channel.port1.postMessage(null);
    });
  }
}

/** What waits without nudging. */
export const PATIENT = { settle: (/** @type {Promise<any>} */ waiting) => waiting };

export class Readback {
  #device;
  #waiter;
  /** @type {(GPUBuffer | null)[]} */
  #stagings;
  #next = 0;

  /**
   * @param {GPUDevice} device
   * @param {{settle: <T>(waiting: Promise<T>) => Promise<T>}} waiter
   * @param {number} [stagings] how many staging buffers take turns
   */
  constructor(device, waiter, stagings = 1) {
    this.#device = device;
    this.#waiter = waiter;
    this.#stagings = Array(stagings).fill(null);
  }

  /**
   * Reads tensors and gives them up.
   * @param {readonly string[]} names
   * @param {Record<string, import('onnxruntime-web').Tensor>} tensors
   * @returns {Promise<WireTensors>}
   */
  async read(names, tensors) {
    /** @type {WireTensors} */
    const outputs = {};
    const places = [];
    let size = 0;
    for (const name of names) {
      const tensor = tensors[name];
      const type = /** @type {any} */ (tensor.type);
      const dims = [...tensor.dims];
      if (tensor.location === 'gpu-buffer') {
        const bytes = byteLength(type, dims);
        places.push({ name, type, dims, bytes, offset: size, buffer: /** @type {GPUBuffer} */ (tensor.gpuBuffer) });
        size += padded(bytes);
      } else {
        // An output without elements has no buffer.
        outputs[name] = { type, dims, data: /** @type {any} */ (tensor.data).slice() };
      }
    }
    if (places.length) {
      const staging = this.#staging(size);
      const encoder = this.#device.createCommandEncoder();
      // A copy's size is a multiple of 4; onnxruntime's buffers are padded by more.
      for (const { buffer, offset, bytes } of places) encoder.copyBufferToBuffer(buffer, 0, staging, offset, Math.ceil(bytes / 4) * 4);
      this.#device.queue.submit([encoder.finish()]);
      await this.#waiter.settle(staging.mapAsync(GPUMapMode.READ, 0, size));
      const range = staging.getMappedRange(0, size);
      for (const { name, type, dims, offset, bytes } of places) {
        outputs[name] = { type, dims, data: toTyped(type, range.slice(offset, offset + bytes)) };
      }
      staging.unmap();
    }
    for (const name of names) tensors[name].dispose();
    return outputs;
  }

  /** The next staging buffer, large enough. @param {number} size */
  #staging(size) {
    const index = this.#next++ % this.#stagings.length;
    let staging = this.#stagings[index];
    // A map that failed leaves its buffer in a state of which nothing good can come.
    if (!staging || staging.size < size || staging.mapState !== 'unmapped') {
      staging?.destroy();
      staging = this.#device.createBuffer({ size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
      this.#stagings[index] = staging;
    }
    return staging;
  }
}
