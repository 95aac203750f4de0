/**
 * Watches over a GPU device. One that is lost may leave a run waiting for ever, or give zeros for an answer.
 */
import { AppError } from './wire.js';

/** Work on a lost device may fail before the news of the loss arrives. */
const NEWS_MS = 20;

export class DeviceWatch {
  #device;
  /** @type {AppError | null} */
  #lost = null;
  /** Fails the work that is under way; there is one at a time. @type {(error: AppError) => void} */
  #fail = () => {};

  /** @param {GPUDevice} device */
  constructor(device) {
    this.#device = device;
    device.lost.then(({ reason, message }) => {
      const why = [reason, message].filter(Boolean).join(': ');
      this.#lost = new AppError('DeviceLost', `the GPU device was lost (${why})`, 'Open the engine again; if it happens twice, use a WASM engine or restart the browser.');
      this.#fail(this.#lost);
    });
  }

  get lost() {
    return this.#lost !== null;
  }

  /**
   * Does work on the device, for as long as there is one.
   * @template T
   * @param {() => Promise<T>} work
   * @returns {Promise<T>} rejects with `DeviceLost` as soon as the device is lost, whatever the work does; an
   *   error of the work comes a moment later than it was thrown
   */
  guard(work) {
    return new Promise((resolve, reject) => {
      if (this.#lost) throw this.#lost;
      this.#fail = reject;
      work().then(resolve, (error) => setTimeout(() => reject(this.#lost ?? error), NEWS_MS));
    });
  }

  /** Gives the device up, as a reset of the driver would. */
  lose() {
    this.#device.destroy();
  }
}
