/**
 * What WebGPU is asked to do during one run, and when: the seams between a run's stages.
 *
 * Neither onnxruntime nor the standard tells where a run's time goes, but every run passes the same few calls of WebGPU. So
 * this replaces those methods in one realm, which belongs to one short-lived engine worker that does nothing else.
 */

/** @typedef {{recorded: number, submitted: number, told: number}} Marks milliseconds of `performance.now()`; NaN where it did not come to that */

/** A run has one or two submissions; those of a large model may be many. */
const MAX_SUBMISSIONS = 64;

export class GpuTrace {
  /** @type {Marks | null} */
  #marks = null;
  #asked = false;
  /** @type {GpuClock | null} */
  #clock = null;

  /** Takes hold of the realm's WebGPU. */
  constructor() {
    const trace = this;
    replace(GPUCommandEncoder.prototype, 'beginComputePass', (original) =>
      function (...args) {
        trace.#recording();
        return original.apply(this, args);
      });
    replace(GPUQueue.prototype, 'submit', (original) =>
      function (buffers) {
        original.call(this, trace.#clock ? trace.#clock.around(buffers) : buffers);
        trace.#submitting();
      });
    replace(GPUBuffer.prototype, 'mapAsync', (original) =>
      function (...args) {
        const mapped = original.apply(this, args);
        return trace.#mapping(mapped);
      });
  }

  /**
   * Marks the seams of one run.
   * @param {() => Promise<unknown>} run
   * @returns {Promise<Marks>}
   */
  async marks(run) {
    const marks = { recorded: NaN, submitted: NaN, told: NaN };
    this.#marks = marks;
    this.#asked = false;
    try {
      await run();
    } finally {
      this.#marks = null;
    }
    return marks;
  }

  /**
   * Lets the GPU measure one run by its own clock.
   * @param {GpuClock} clock
   * @param {() => Promise<unknown>} run
   * @returns {Promise<number>} milliseconds that the GPU worked on what was submitted
   */
  async gpuTime(clock, run) {
    clock.begin();
    this.#clock = clock;
    try {
      await run();
    } finally {
      this.#clock = null;
    }
    return clock.read();
  }

  #recording() {
    if (this.#marks && Number.isNaN(this.#marks.recorded)) this.#marks.recorded = performance.now();
  }

  #submitting() {
    // Of several outputs, the second is only copied once the first has been told.
    if (this.#marks && !this.#asked) this.#marks.submitted = performance.now();
  }

  /** @template T @param {Promise<T>} mapped */
  #mapping(mapped) {
    const marks = this.#marks;
    if (!marks) return mapped;
    this.#asked = true;
    const told = () => {
      marks.told = performance.now();
    };
    // Registered before whoever asked can wait for it.
    mapped.then(told, told);
    return mapped;
  }
}

/** The GPU's own clock, asked before and after every submission. Browsers round it to 0.1 ms, so that only means say something. */
export class GpuClock {
  #device;
  #queries;
  #resolved;
  #staging;
  #submissions = 0;

  /** @param {GPUDevice} device that has the feature `timestamp-query` */
  constructor(device) {
    this.#device = device;
    const count = 2 * MAX_SUBMISSIONS;
    this.#queries = device.createQuerySet({ type: 'timestamp', count });
    this.#resolved = device.createBuffer({ size: 8 * count, usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC });
    this.#staging = device.createBuffer({ size: 8 * count, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
  }

  begin() {
    this.#submissions = 0;
  }

  /** @param {Iterable<GPUCommandBuffer>} buffers @returns {GPUCommandBuffer[]} the same between two looks at the clock */
  around(buffers) {
    const turn = this.#submissions++;
    if (turn >= MAX_SUBMISSIONS) return [...buffers];
    return [this.#look({ beginningOfPassWriteIndex: 2 * turn }), ...buffers, this.#look({ endOfPassWriteIndex: 2 * turn + 1 })];
  }

  /** @returns {Promise<number>} milliseconds between the looks of all submissions; NaN where there were too many */
  async read() {
    if (this.#submissions > MAX_SUBMISSIONS) return NaN;
    const looks = 2 * this.#submissions;
    const encoder = this.#device.createCommandEncoder();
    encoder.resolveQuerySet(this.#queries, 0, looks, this.#resolved, 0);
    encoder.copyBufferToBuffer(this.#resolved, 0, this.#staging, 0, 8 * looks);
    this.#device.queue.submit([encoder.finish()]);
    await this.#staging.mapAsync(GPUMapMode.READ, 0, 8 * looks);
    const times = new BigUint64Array(this.#staging.getMappedRange(0, 8 * looks)).slice();
    this.#staging.unmap();
    let nanoseconds = 0n;
    for (let turn = 0; turn < looks; turn += 2) nanoseconds += times[turn + 1] - times[turn];
    return Number(nanoseconds) / 1e6;
  }

  /** @param {Omit<GPUComputePassTimestampWrites, 'querySet'>} indices */
  #look(indices) {
    const encoder = this.#device.createCommandEncoder();
    encoder.beginComputePass({ timestampWrites: { querySet: this.#queries, ...indices } }).end();
    return encoder.finish();
  }
}

/**
 * @template {object} T
 * @template {keyof T} K
 * @param {T} prototype
 * @param {K} name
 * @param {(original: any) => (this: any, ...args: any[]) => unknown} wrap
 */
function replace(prototype, name, wrap) {
  prototype[name] = /** @type {any} */ (wrap(prototype[name]));
}
