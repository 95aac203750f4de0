/** What the visitor holds down: arrow keys and A/D, space, a finger or a pointer on the board, a gamepad. */

/** @typedef {import('./visitor-board.js').Keys} Keys */

const LEFT = new Set(['ArrowLeft', 'KeyA']);
const RIGHT = new Set(['ArrowRight', 'KeyD']);
const FIRE = new Set(['Space']);
const STICK = 0.3;
/** A finger's first touch serves, for this long. */
const SERVE_MS = 120;

/** Buttons of the standard gamepad: any of the first four serves; those to the left and right are of its cross. */
const PAD = { fire: 4, left: 14, right: 15 };

/**
 * @typedef {object} Listeners
 * @property {(keys: Keys) => void} keys hears of every change
 * @property {() => void} pause hears of P
 * @property {() => void} restart hears of R
 */

export class Input {
  #root;
  #listeners;
  /** @type {Set<string>} */
  #down = new Set();
  /** @type {number | null} */
  #target = null;
  #serving = false;
  #active = false;
  #pad = { left: false, right: false, fire: false };
  #last = '';
  /** Whether there is a game that P and R are for. */
  ready = false;

  /**
   * @param {Element} root where a key that is pressed is the game's; elsewhere it may be somebody else's
   * @param {Listeners} listeners
   */
  constructor(root, listeners) {
    this.#root = root;
    this.#listeners = listeners;
    addEventListener('keydown', (event) => this.#pressed(event));
    addEventListener('keyup', ({ code }) => this.#released(code));
    addEventListener('blur', () => this.#releaseAll());
  }

  /** Whether the game is played just now: keys are the page's own while it is not. @param {boolean} active */
  set active(active) {
    if (active && !this.#active) requestAnimationFrame(() => this.#poll());
    this.#active = active;
    if (!active) this.#releaseAll();
  }

  /**
   * Lets a finger or a pointer on the board move the paddle, and a touch serve.
   * @param {HTMLCanvasElement} canvas
   */
  watch(canvas) {
    canvas.addEventListener('pointerdown', (event) => {
      if (!this.#active) return;
      canvas.setPointerCapture(event.pointerId);
      this.#serving = true;
      setTimeout(() => {
        this.#serving = false;
        this.#changed();
      }, SERVE_MS);
      this.#aim(canvas, event);
    });
    canvas.addEventListener('pointermove', (event) => {
      if (this.#active && canvas.hasPointerCapture(event.pointerId)) this.#aim(canvas, event);
    });
    for (const end of ['pointerup', 'pointercancel', 'lostpointercapture']) {
      canvas.addEventListener(end, () => {
        this.#target = null;
        this.#changed();
      });
    }
  }

  /** @param {KeyboardEvent} event */
  #pressed(event) {
    const { code } = event;
    if (!this.ready || event.ctrlKey || event.altKey || event.metaKey || !this.#isOurs(event)) return;
    if (code === 'KeyP' && !event.repeat) this.#listeners.pause();
    if (code === 'KeyR' && !event.repeat) this.#listeners.restart();
    if (!this.#active || ![LEFT, RIGHT, FIRE].some((codes) => codes.has(code))) return;
    event.preventDefault(); // the page would scroll
    this.#down.add(code);
    this.#changed();
  }

  /** @param {string} code */
  #released(code) {
    this.#down.delete(code);
    this.#changed();
  }

  /**
   * Whether a key is the game's, and not a control's that has the focus: letters are a text's, space is a button's, arrows are a choice's.
   * @param {KeyboardEvent} event
   */
  #isOurs({ target, code }) {
    if (target === document.body) return true;
    if (!(target instanceof Element) || !this.#root.contains(target)) return false;
    if (target.closest('input, textarea, select, [contenteditable]')) return false;
    return code !== 'Space' || target.closest('button, summary, a') === null;
  }

  /** @param {HTMLCanvasElement} canvas @param {PointerEvent} event */
  #aim(canvas, event) {
    const { left, width } = canvas.getBoundingClientRect();
    this.#target = Math.min(159, Math.max(0, ((event.clientX - left) / width) * 160));
    this.#changed();
  }

  #poll() {
    if (!this.#active) return;
    requestAnimationFrame(() => this.#poll());
    const pad = { left: false, right: false, fire: false };
    for (const found of navigator.getGamepads?.() ?? []) {
      if (!found) continue;
      pad.left ||= found.axes[0] < -STICK || Boolean(found.buttons[PAD.left]?.pressed);
      pad.right ||= found.axes[0] > STICK || Boolean(found.buttons[PAD.right]?.pressed);
      pad.fire ||= found.buttons.slice(0, PAD.fire).some(({ pressed }) => pressed);
    }
    this.#pad = pad;
    this.#changed();
  }

  #releaseAll() {
    this.#down.clear();
    this.#target = null;
    this.#serving = false;
    this.#pad = { left: false, right: false, fire: false };
    this.#changed();
  }

  #changed() {
    const held = (/** @type {Set<string>} */ codes) => [...this.#down].some((code) => codes.has(code));
    const keys = {
      left: held(LEFT) || this.#pad.left,
      right: held(RIGHT) || this.#pad.right,
      fire: held(FIRE) || this.#pad.fire || this.#serving,
      target: this.#target,
    };
    const text = JSON.stringify(keys);
    if (text === this.#last) return;
    this.#last = text;
    this.#listeners.keys(keys);
  }
}
