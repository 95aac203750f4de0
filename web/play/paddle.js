/**
 * Brings the paddle to where a finger is, with the two keys that there are.
 *
 * The console smooths its paddle: a frame's press moves it by 6 pixels, 3 in the next frame, 2 and 1 in the two after. Whoever looks only at
 * where the paddle is presses too long, and then it swings about the finger for ever. So what is still to come is counted as done.
 */

/** The paddle's place in the console's memory, and how far that is from its middle on the screen. */
const PLACE = 72;
const MIDDLE = 39;
/** What presses of the last three frames, the newest first, still add. */
const TO_COME = [6, 3, 1];
/** Half of what one press moves: nearer than this it cannot come. */
const NEAR = 3;

export class Paddle {
  /** -1 left, 1 right, 0: the last three frames' presses, the newest first. */
  #ways = [0, 0, 0];

  /**
   * @param {number} target for the paddle's middle, 0 … 159
   * @param {Uint8Array} ram the console's memory
   * @returns {number} -1 left, 1 right, 0 stay
   */
  towards(target, ram) {
    const comes = TO_COME.reduce((sum, pixels, ago) => sum + pixels * this.#ways[ago], 0);
    const away = target - (ram[PLACE] - MIDDLE + comes);
    return Math.abs(away) <= NEAR ? 0 : Math.sign(away);
  }

  /** Tells what is pressed in this frame, by whomever. @param {number} way */
  went(way) {
    this.#ways.pop();
    this.#ways.unshift(way);
  }
}
