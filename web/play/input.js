/** What the visitor holds down: arrow keys and A/D, space, a finger or a pointer on the board, a gamepad. */

/** @typedef {import('./visitor-board.js').Keys} Keys */

const LEFT = new Set(['ArrowLeft', 'KeyA']);
const RIGHT = new Set(['ArrowRight', 'KeyD']);
const FIRE = new Set(['Space']);
const STICK = 0.3;
/** A finger's first touch serves, for this long. */
const SERVE_MS = 120;

export class Input {
  #tell;
  /** @type {Set<string>} */
  #down = new Set();
  /** @type {number | null} */
  #target = null;
  #serving = false;
  #active = false;
  #pad = { left: false, right: false, fire: false };
  #last = '';

  /** @param {(keys: Keys) => void} tell hears of every change */
  constructor(tell) {
    this.#tell = tell;
    addEventListener('keydown', (event) => this.#key(event, true));
    addEventListener('keyup', (event) => this.#key(event, false));
    addEventListener('blur', () => this.#releaseAll());
  }

  /** Whether there is a game to be played: keys are the page's own while there is none. @param {boolean} active */
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
      if (canvas.hasPointerCapture(event.pointerId)) this.#aim(canvas, event);
    });
    for (const end of ['pointerup', 'pointercancel', 'lostpointercapture']) {
      canvas.addEventListener(end, () => {
        this.#target = null;
        this.#changed();
      });
    }
  }

  /** @param {KeyboardEvent} event @param {boolean} down */
  #key(event, down) {
    const ours = LEFT.has(event.code) || RIGHT.has(event.code) || FIRE.has(event.code);
    if (!ours || !this.#active || (down && (event.ctrlKey || event.altKey || event.metaKey || isWorked(event)))) return;
    if (down) {
      event.preventDefault(); // the page would scroll
      this.#down.add(event.code);
    } else this.#down.delete(event.code);
    this.#changed();
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
    const pads = navigator.getGamepads?.() ?? [];
    const pad = { left: false, right: false, fire: false };
    for (const found of pads) {
      if (!found) continue;
      pad.left ||= found.axes[0] < -STICK || Boolean(found.buttons[14]?.pressed);
      pad.right ||= found.axes[0] > STICK || Boolean(found.buttons[15]?.pressed);
      pad.fire ||= found.buttons.slice(0, 4).some(({ pressed }) => pressed);
    }
    this.#pad = pad;
    this.#changed();
  }

  #releaseAll() {
    this.#down.clear();
    this.#target = null;
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
    this.#tell(keys);
  }
}

/**
 * Whether the key belongs to a control that has the focus: letters to a text, space to a button, arrows to a choice.
 * @param {KeyboardEvent} event
 */
function isWorked({ target, code }) {
  if (!(target instanceof Element)) return false;
  if (target.closest('input, textarea, select, [contenteditable]')) return true;
  return code === 'Space' && target.closest('button, summary, a') !== null;
}
