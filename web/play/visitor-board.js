/** The visitor's board: the emulator, 60 frames a second, with whatever keys are down. It knows nothing of Python or of the agent. */
import { Paddle } from './paddle.js';
import { Pacer } from './pacer.js';
import { everyTick } from './painter.js';

/** @typedef {import('./painter.js').Painter} Painter */
/** @typedef {import('../ale.js').Game} Game */

const NOOP = 0;
const FIRE = 1;
const RIGHT = 3;
const LEFT = 4;

/** Where the console's memory has the ball's height; 0 while there is none. */
const BALL = 101;
/** After a late tick, no more than so many frames are played at once; the others are lost. */
const CATCH_UP = 4;
const TOLD_MS = 50;

/**
 * @typedef {object} Keys what is held down
 * @property {boolean} left
 * @property {boolean} right
 * @property {boolean} fire
 * @property {number | null} target where a finger or a pointer wants the middle of the paddle: 0 … 159; null without one
 */

/**
 * @typedef {object} VisitorState
 * @property {number} score
 * @property {number} lives
 * @property {number} frames of this game
 * @property {boolean} over
 * @property {number} shown
 * @property {number} missed
 * @property {number} gap
 */

export class VisitorBoard {
  #game;
  #painter;
  #tell;
  #pacer = new Pacer();
  #paddle = new Paddle();
  #paused = true;
  #score = 0;
  #frames = 0;
  #told = 0;
  /** @type {Keys} */
  keys = { left: false, right: false, fire: false, target: null };

  /**
   * @param {Game} game
   * @param {Painter} painter
   * @param {(state: VisitorState) => void} tell hears of the score, lives and times, at most 20 times a second
   */
  constructor(game, painter, tell) {
    this.#game = game;
    this.#painter = painter;
    this.#tell = tell;
    painter.draw(game.screen());
    everyTick((now) => this.#tick(now));
  }

  /** @param {number} seed */
  restart(seed) {
    this.#game.load(seed);
    this.#paddle = new Paddle();
    this.#score = 0;
    this.#frames = 0;
    this.#pacer.stop();
    this.#pacer.reset();
    this.#painter.draw(this.#game.screen());
    this.#report(performance.now());
  }

  /** @param {boolean} on */
  pause(on) {
    this.#paused = on;
    this.#pacer.stop();
  }

  /** Frames shown and missed, and the longest wait for one in milliseconds. */
  get counts() {
    const { shown, missed, gap } = this.#pacer;
    return { shown, missed, gap };
  }

  countAnew() {
    this.#pacer.reset();
  }

  /** What is in the console: for tests, which trust no flag. */
  probe() {
    return { ram: this.#game.ram().slice(), frame: this.#game.episode };
  }

  /** @param {number} now */
  #tick(now) {
    if (this.#paused || this.#game.over) return;
    const due = this.#pacer.due(now);
    if (due === 0) return;
    const ready = Math.min(due, CATCH_UP);
    for (let frame = 0; frame < ready && !this.#game.over; frame++) {
      this.#score += this.#game.play(this.#action(), 1);
      this.#frames++;
    }
    this.#painter.draw(this.#game.screen());
    this.#pacer.played(now, due, ready);
    if (now - this.#told >= TOLD_MS || this.#game.over) this.#report(now);
  }

  #action() {
    const { left, right, fire, target } = this.keys;
    const ram = this.#game.ram();
    // The button only serves. With a ball in play it would stop the paddle for nothing.
    const serves = fire && ram[BALL] === 0;
    const way = serves ? 0 : left !== right ? (left ? -1 : 1) : target === null ? 0 : this.#paddle.towards(target, ram);
    this.#paddle.went(way);
    if (serves) return FIRE;
    return way === 0 ? NOOP : way < 0 ? LEFT : RIGHT;
  }

  /** @param {number} now */
  #report(now) {
    this.#told = now;
    this.#tell({ score: this.#score, lives: this.#game.lives, frames: this.#frames, over: this.#game.over, ...this.counts });
  }
}
