import { Cartridge } from '../play/cartridge.js';
import { handOver, renewed } from '../play/canvas.js';
import { Input } from '../play/input.js';
import { Visitor } from '../play/visitor.js';
import { toNumber } from '../settings.js';
import { AppError, toWireError } from '../wire.js';
import { h } from './dom.js';
import { LoopView } from './loop.js';
import { RomView } from './rom.js';
import { ScoresView } from './scores.js';

/** @typedef {import('../python-host.js').PythonHost} PythonHost */
/** @typedef {import('../types.d.ts').Site} Site */
/** @typedef {{shown: number, missed: number, gap: number}} Counts frames, and the longest wait for one in milliseconds */
/** @typedef {'idle' | 'starting' | 'playing' | 'paused'} State */

const MAX_SEED = 2 ** 31 - 1;
const SPEEDS = /** @type {const} */ ([
  [1, '1×'],
  [2, '2×'],
  [0, 'max'],
]);

/** The game: the visitor on the left, the agent on the right, and what the agent's loop takes. */
export class PlayView {
  #python;
  #cartridge;
  /** @type {State} */
  #state = 'idle';
  /** @type {Visitor | null} */
  #visitor = null;
  #round = { you: /** @type {number | null} */ (null), agent: /** @type {number | null} */ (null) };
  #won = { you: 0, agent: 0 };
  #failed = false;
  #input = new Input((keys) => this.#visitor?.press(keys));
  #scores = new ScoresView();
  #loop = new LoopView();
  #rom;
  #boards = { you: board('you', 'Your board'), agent: board('agent', "The agent's board") };
  #seenCanvas = h('canvas', { class: 'seen', width: 336, height: 84, role: 'img', 'aria-label': 'What the agent sees: four frames of 84 by 84, oldest first' });
  #seen = h('details', {}, h('summary', {}, 'What it sees'), this.#seenCanvas);
  #engine = h('select');
  #seed = h('input', { type: 'text', inputmode: 'numeric', placeholder: 'any', spellcheck: 'false' });
  #start = button('Start', () => this.start(), 'primary');
  #pause = button('Pause', () => this.#togglePause());
  #step = button('Step one decision', () => this.#step1());
  #restart = button('Restart', () => this.restart());
  #speeds = h('fieldset', { class: 'speeds' }, h('legend', {}, "Agent's speed"), ...SPEEDS.map(([speed, label]) => this.#speed(speed, label)));
  #controls = h('div', { class: 'actions', hidden: true }, this.#pause, this.#step, this.#restart, this.#speeds);
  #status = h('p', { class: 'note', role: 'status' });
  #error = h('div', { class: 'error', role: 'alert', hidden: true });
  #tally = h('p', { class: 'tally' });

  /** Hears of the loop's section for the report whenever the game stands still. @type {(section: object[]) => void} */
  onLoop = () => {};

  /**
   * @param {HTMLElement} root
   * @param {PythonHost} python
   * @param {Site} site
   * @param {URL} base
   */
  constructor(root, python, site, base) {
    this.#python = python;
    this.#cartridge = new Cartridge(site, base);
    this.#rom = new RomView((rom) => this.#bringRom(rom));
    this.offer(['wasm-1', ...(globalThis.crossOriginIsolated && navigator.hardwareConcurrency > 1 ? ['wasm-2'] : []), ...('gpu' in navigator ? ['webgpu-stock'] : [])]);
    this.#engine.addEventListener('change', () => this.#exchange());
    this.#seen.addEventListener('toggle', () => python.agentSees(this.#seen.open));
    const fields = h('div', { class: 'fields' }, h('label', {}, 'The agent runs on', this.#engine), h('label', {}, 'Seed, for both', this.#seed));
    const { you, agent } = this.#boards;
    agent.figure.append(this.#scores.root, this.#seen);
    you.figure.append(h('p', { class: 'keys' }, h('kbd', {}, '←'), h('kbd', {}, '→'), ' or ', h('kbd', {}, 'A'), h('kbd', {}, 'D'), ' move, ', h('kbd', {}, 'space'), ' serves; or drag on the board, or use a gamepad'));
    root.append(h('div', { class: 'opening' }, fields, this.#start), this.#rom.root, this.#controls, this.#status, this.#error);
    root.append(h('div', { class: 'boards' }, you.figure, agent.figure), this.#tally, this.#loop.root);
    this.#rom.root.hidden = !this.#cartridge.lacksRom;
    this.#start.disabled = true;
    python.askRom = () => this.#cartridge.bring();
    python.on('agent', (json) => this.#hearAgent(JSON.parse(json)));
    python.on('loop', (json) => this.#loop.show(JSON.parse(json)));
    document.addEventListener('visibilitychange', () => {
      if (document.hidden && this.#state === 'playing') this.pause('The tab was hidden, so both games wait.');
    });
  }

  /** Python is ready. */
  enable() {
    this.#start.disabled = false;
  }

  get state() {
    return this.#state;
  }

  /** Names the engines that can be chosen. @param {string[]} names */
  offer(names) {
    const chosen = this.#engine.value;
    this.#engine.replaceChildren(...names.map((name) => h('option', {}, name)));
    if (names.includes(chosen)) this.#engine.value = chosen;
    else if (chosen) this.#engine.prepend(h('option', { selected: true }, chosen));
  }

  /** Opens both games and plays. */
  async start() {
    if (this.#cartridge.lacksRom) {
      this.#rom.root.hidden = false;
      this.#rom.focus();
      return;
    }
    await this.#attempt(async () => {
      const seed = this.#chosenSeed();
      this.#enter('starting', 'Loading the emulator and the engine …');
      const emulator = await this.#cartridge.load();
      await this.#openVisitor(emulator, seed ?? anySeed());
      await this.#openAgent();
      await this.#python.agentStart({ engine: this.#engine.value, seed, speed: this.speed, paused: true });
      this.#newRound();
      this.#won = { you: 0, agent: 0 };
      await this.resume();
    });
  }

  /** Both start again, from the seed that is asked for. */
  async restart() {
    await this.#attempt(async () => {
      const seed = this.#chosenSeed();
      await Promise.all([this.#visitor?.restart(seed ?? anySeed()), this.#python.agentAsk('restart', seed)]);
      this.#newRound();
      await this.resume();
    });
  }

  async resume() {
    this.#enter('playing', 'Playing. Press space to serve.');
    await Promise.all([this.#visitor?.pause(false), this.#python.agentTell('resume')]);
    this.#boards.you.canvas.focus({ preventScroll: true });
  }

  /** @param {string} [why] */
  async pause(why = 'Both games wait.') {
    this.#enter('paused', why);
    await Promise.all([this.#visitor?.pause(true), this.#python.agentTell('pause')]);
    this.onLoop(await this.#python.loopSection());
  }

  /** What is in the visitor's console: for tests. */
  probe() {
    return this.#visitor?.probe();
  }

  /** Begins counting frames anew on both boards: for benchmarks. */
  async countAnew() {
    await Promise.all([this.#visitor?.countAnew(), this.#python.agentTell('count_anew')]);
  }

  /** What both boards have counted. @returns {Promise<{you: Counts, agent: Counts}>} */
  async counts() {
    const [you, agent] = await Promise.all([this.#visitor?.counts(), this.#python.agentCounts()]);
    return { you, agent };
  }

  get speed() {
    const chosen = /** @type {HTMLInputElement | null} */ (this.#speeds.querySelector('input:checked'));
    return Number(chosen?.value ?? 1);
  }

  #togglePause() {
    return this.#attempt(() => (this.#state === 'playing' ? this.pause() : this.resume()));
  }

  #step1() {
    return this.#attempt(() => this.#python.agentAsk('step'));
  }

  /** @param {{wasm: Uint8Array, rom: Uint8Array}} emulator @param {number} seed */
  async #openVisitor(emulator, seed) {
    this.#visitor?.end();
    const visitor = new Visitor((error) => this.#fail(error));
    visitor.onState = (state) => this.#hearVisitor(state);
    this.#boards.you.canvas = renewed(this.#boards.you.canvas);
    this.#input.watch(this.#boards.you.canvas);
    this.#visitor = visitor;
    try {
      await visitor.open(emulator, seed, this.#boards.you.canvas);
    } catch (error) {
      if (error instanceof AppError && error.name === 'BadRom') {
        this.#cartridge.rom = null;
        this.#rom.root.hidden = !this.#cartridge.lacksRom;
      }
      throw error;
    }
  }

  async #openAgent() {
    this.#boards.agent.canvas = renewed(this.#boards.agent.canvas);
    this.#seenCanvas = renewed(this.#seenCanvas);
    const [game, seen] = [this.#boards.agent.canvas, this.#seenCanvas].map(handOver);
    this.#python.on('agent-frame', game.draw);
    this.#python.on('agent-seen', seen.draw);
    await this.#python.agentAttach(game.offscreen, seen.offscreen);
    await this.#python.agentSees(this.#seen.open);
  }

  /** Another engine plays on from the same state. */
  async #exchange() {
    if (this.#state === 'idle' || this.#state === 'starting') return;
    const wanted = this.#engine.value;
    this.#say(`Opening ${wanted} …`);
    await this.#attempt(async () => {
      await this.#python.agentAsk('engine', wanted);
      this.#say(`${wanted} plays on from the same state.`);
    });
  }

  /** @param {any} told by `AgentSide` of `pyapp/browser/play.py` */
  #hearAgent({ state, engine, action, q_values, score, lives, seconds, error }) {
    const { agent } = this.#boards;
    agent.title.textContent = `Agent on ${engine}`;
    if (score === undefined) return;
    agent.line(score, lives, seconds);
    this.#scores.show(q_values, action);
    if (state === 'failed') this.#offerOthers(engine, error);
    else if (this.#failed) this.#clearError();
    if (state === 'over') this.#finished('agent', score);
  }

  /** @param {any} told by the visitor's board */
  #hearVisitor({ score, lives, frames, over }) {
    this.#boards.you.line(score, lives, frames / 60);
    if (over) this.#finished('you', score);
  }

  /** A round is over when both games are; the higher score has won it. @param {'you' | 'agent'} who @param {number} score */
  #finished(who, score) {
    if (this.#round[who] !== null) return;
    this.#round[who] = score;
    const { you, agent } = this.#round;
    if (you === null || agent === null) {
      this.#say(who === 'you' ? 'Your game is over; the agent plays on.' : "The agent's game is over; play on.");
      return;
    }
    if (you > agent) this.#won.you++;
    if (agent > you) this.#won.agent++;
    this.#count();
    this.#say(`The round is over: you ${you}, the agent ${agent}. Restart for the next one.`);
  }

  #newRound() {
    this.#round = { you: null, agent: null };
    this.#scores.clear();
    this.#loop.clear();
    this.#count();
  }

  #count() {
    this.#tally.textContent = `Rounds won: you ${this.#won.you}, the agent ${this.#won.agent}.`;
  }

  /** The engine is gone, the game is not. @param {string} engine @param {any} error */
  #offerOthers(engine, error) {
    if (this.#failed) return;
    this.#failed = true;
    const others = [...this.#engine.options].map(({ value }) => value).filter((name) => name !== engine);
    const buttons = others.map((name) =>
      button(`Go on with ${name}`, () => {
        this.#engine.value = name;
        return this.#exchange();
      }),
    );
    this.#showError(error);
    this.#error.append(h('p', {}, "The agent's game waits where it was."), h('div', { class: 'actions' }, ...buttons));
  }

  /** @param {Uint8Array} rom */
  #bringRom(rom) {
    this.#cartridge.rom = rom;
    this.#rom.root.hidden = true;
    return this.start();
  }

  #chosenSeed() {
    const text = this.#seed.value.trim();
    const seed = toNumber(text);
    if (text === '') return null;
    if (typeof seed === 'number' && Number.isInteger(seed) && seed >= 0 && seed <= MAX_SEED) return seed;
    throw new AppError('BadSeed', `the seed ${text} is no whole number from 0 to ${MAX_SEED}`, 'Correct it, or leave it empty for any.');
  }

  /** @param {() => unknown} work */
  async #attempt(work) {
    try {
      this.#clearError();
      await work();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** @param {unknown} thrown */
  #fail(thrown) {
    this.#showError(toWireError(thrown));
    if (this.#state === 'starting') this.#enter('idle', '');
  }

  /** @param {import('../types.d.ts').WireError} error */
  #showError({ message, remedy }) {
    this.#error.replaceChildren(h('p', {}, remedy ? `${message}. ${remedy}` : message));
    this.#error.hidden = false;
  }

  #clearError() {
    this.#failed = false;
    this.#error.hidden = true;
  }

  /** @param {State} state @param {string} said */
  #enter(state, said) {
    this.#state = state;
    this.#input.active = state === 'playing';
    this.#start.disabled = state === 'starting';
    this.#start.textContent = state === 'idle' || state === 'starting' ? 'Start' : 'Start anew';
    this.#controls.hidden = state === 'idle' || state === 'starting';
    this.#pause.textContent = state === 'playing' ? 'Pause' : 'Resume';
    this.#step.disabled = state !== 'paused';
    this.#say(said);
  }

  /** @param {string} text */
  #say(text) {
    this.#status.textContent = text;
  }

  /** @param {number} speed @param {string} label */
  #speed(speed, label) {
    const input = h('input', { type: 'radio', name: 'speed', value: speed, checked: speed === 1 });
    input.addEventListener('change', () => {
      if (this.#state !== 'idle') this.#attempt(() => this.#python.agentTell('speed', speed));
    });
    return h('label', {}, input, label);
  }
}

/**
 * @param {string} name
 * @param {string} label
 */
function board(name, label) {
  const title = h('h3', {}, name === 'you' ? 'You' : 'Agent');
  const stats = h('p', { class: 'stats' }, 'score –');
  const canvas = h('canvas', { class: 'game', width: 160, height: 210, role: 'img', tabindex: name === 'you' ? 0 : -1, 'aria-label': label });
  const figure = h('div', { class: `board ${name}` }, title, canvas, stats);
  return {
    title,
    canvas,
    figure,
    /** @param {number} score @param {number} lives @param {number} seconds */
    line(score, lives, seconds) {
      const minutes = Math.floor(seconds / 60);
      stats.textContent = `score ${score} · ${lives} ${lives === 1 ? 'life' : 'lives'} · ${minutes}:${String(Math.floor(seconds % 60)).padStart(2, '0')}`;
    },
  };
}

/** @param {string} text @param {() => unknown} act @param {string} [kind] */
function button(text, act, kind) {
  const made = h('button', { type: 'button', ...(kind && { class: kind }) }, text);
  made.addEventListener('click', act);
  return made;
}

function anySeed() {
  return crypto.getRandomValues(new Uint32Array(1))[0] >>> 1;
}
