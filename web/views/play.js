import { Cartridge } from '../play/cartridge.js';
import { handOver, renewed } from '../play/canvas.js';
import { Input } from '../play/input.js';
import { Rounds } from '../play/round.js';
import { Visitor } from '../play/visitor.js';
import { toNumber } from '../settings.js';
import { AppError, toWireError } from '../wire.js';
import { BoardView } from './board.js';
import { h, megabytes } from './dom.js';
import { EngineChoice } from './engine-choice.js';
import { FramesView } from './frames.js';
import { LoopView } from './loop.js';
import { RomView } from './rom.js';
import { ScoresView } from './scores.js';

/** @typedef {import('../python-host.js').PythonHost} PythonHost */
/** @typedef {import('../types.d.ts').Site} Site */
/** @typedef {import('./frames.js').Counts} Counts */
/** @typedef {import('../play/visitor-board.js').VisitorState} VisitorState */
/** @typedef {'idle' | 'starting' | 'playing' | 'paused' | 'over'} State of a round */

const MAX_SEED = 2 ** 31 - 1;
const SPEEDS = /** @type {const} */ ([
  [1, '1×'],
  [2, '2×'],
  [0, 'max'],
]);
const SEEN_SIDE = 170;
const HIDDEN = 'The tab was hidden, so both games wait.';
const CHECK_RUNS = 'The check runs, so both games wait.';

/** The game: the visitor on the left, the agent on the right, and what the agent's loop takes. */
export class PlayView {
  #python;
  #cartridge;
  /** @type {State} */
  #state = 'idle';
  /** @type {Visitor | null} */
  #visitor = null;
  /** Whether Python lives: the visitor can play on without. */
  #hasPython = false;
  #rounds = new Rounds();
  /** Who plays on the right, as Python says. */
  #agent = { engine: '', state: 'stopped' };
  #busy = false;
  #hidden = false;
  #lives = 0;
  #input;
  #rom = new RomView((rom) => this.#bringRom(rom));
  #boards = {
    you: new BoardView('you', 'You', { tabindex: 0, 'aria-label': 'Your board: arrow keys or A and D move the paddle, space serves' }),
    agent: new BoardView('agent', 'The agent', { 'aria-label': "The agent's board" }),
  };
  #scores = new ScoresView();
  #loop = new LoopView();
  #frames = new FramesView();
  #seen = h('canvas', { class: 'seen', width: SEEN_SIDE, height: SEEN_SIDE, role: 'img', hidden: true, 'aria-label': 'What the agent sees: four frames of 84 by 84, oldest first' });
  #sees = button('Show what it sees', () => this.#toggleSeen());
  #engine = new EngineChoice();
  #seed = h('input', { type: 'text', inputmode: 'numeric', placeholder: 'any', spellcheck: 'false' });
  #same = h('input', { type: 'checkbox', checked: true });
  #start = button('Start', () => this.start(), 'primary');
  #pause = button('Pause', () => this.#togglePause());
  #step = button('Step one decision', () => this.#attempt(() => this.#python.agentAsk('step')));
  #restart = button('Restart', () => this.restart());
  #speeds = h('fieldset', { class: 'speeds' }, h('legend', {}, "Agent's speed"), ...SPEEDS.map(([speed, label]) => this.#speed(speed, label)));
  #controls = h('fieldset', { class: 'plain games', hidden: true }, h('div', { class: 'buttons' }, this.#pause, this.#step, this.#restart), this.#speeds);
  #status = h('p', { class: 'note', role: 'status' });
  #progress = h('progress', { max: 1, value: 0, hidden: true, 'aria-label': 'Loading the emulator' });
  /** Says now and then how it stands, to those who do not see the boards. */
  #told = h('p', { class: 'visually-hidden', 'aria-live': 'polite' });
  #error = h('div', { class: 'error', role: 'alert', hidden: true });
  #times = h('details', { class: 'times', open: true, hidden: true }, h('summary', {}, 'What one decision takes, and whether every frame came in time'), this.#loop.root, this.#frames.root);

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
    this.#input = new Input(root, {
      keys: (keys) => this.#visitor?.press(keys),
      pause: () => this.#togglePause(),
      restart: () => this.restart(),
    });
    root.append(this.#opening(), this.#rom.root, this.#controls, this.#status, this.#progress, this.#told, this.#error, this.#table(), this.#times);
    this.#rom.root.hidden = !this.#cartridge.lacksRom;
    this.#start.disabled = true;
    this.#say('Python is still starting.');
    this.#veil();
    this.#engine.root.addEventListener('change', () => this.#exchange());
    python.askRom = () => this.#cartridge.bring();
    python.on('agent', (json) => this.#hearAgent(JSON.parse(json)));
    python.on('loop', (json) => this.#hearLoop(JSON.parse(json)));
    document.addEventListener('visibilitychange', () => this.#lookedAt(!document.hidden));
  }

  /** Python is ready. */
  enable() {
    this.#hasPython = true;
    this.#start.disabled = false;
    this.#say(`Nothing is loaded until you press Start: then ${megabytes(this.#cartridge.bytes)} of emulator, and the engine.`);
  }

  /** Python is gone, and the agent with it. The visitor's board knows nothing of that, and plays on. */
  lose() {
    this.#hasPython = false;
    this.#agent.state = 'failed';
    this.#start.disabled = true;
    this.#engine.root.disabled = true;
    this.#step.disabled = true;
    this.#veil();
    if (this.#state === 'playing') this.#say('Python stopped, and the agent with it; your game goes on.');
  }

  get state() {
    return this.#state;
  }

  /** A check runs on the same processor: neither may disturb the other's times. @param {boolean} busy */
  checks(busy) {
    this.#busy = busy;
    this.#controls.disabled = busy;
    this.#start.disabled = busy;
    this.#engine.root.disabled = busy;
    this.#input.ready = !busy && this.#hasGame;
    if (busy && this.#state === 'playing') this.#attempt(() => this.pause(CHECK_RUNS));
    else if (!busy && this.#state === 'paused') this.#say('The check has ended. Both games wait.');
  }

  /** What a check has found out about engines. @param {{name: string, actual: object | null}[]} engines of its report */
  learn(engines) {
    this.#engine.learn(engines);
  }

  /** Opens both games and plays. */
  async start() {
    if (this.#cartridge.lacksRom) {
      this.#rom.focus();
      return;
    }
    await this.#attempt(async () => {
      const seeds = this.#chosenSeeds();
      this.#engine.askForGpu();
      this.#enter('starting', 'Loading the emulator …');
      const emulator = await this.#loaded();
      await this.#openVisitor(emulator, seeds.you);
      await this.#openAgent(seeds.agent);
      this.#rounds = new Rounds();
      this.#beginRound();
      await this.resume();
    });
  }

  /** Both start again, from the seed that is asked for. */
  async restart() {
    if (!this.#visitor) return this.start();
    await this.#attempt(async () => {
      const seeds = this.#chosenSeeds();
      await Promise.all([this.#visitor?.restart(seeds.you), this.#hasPython && this.#python.agentAsk('restart', seeds.agent)]);
      this.#beginRound();
      await this.resume();
    });
  }

  async resume() {
    if (this.#busy) return this.pause(CHECK_RUNS);
    if (document.hidden) {
      this.#hidden = true;
      return this.pause(HIDDEN);
    }
    this.#enter('playing', 'Playing. Press space to serve, or tap your board.');
    await Promise.all([this.#visitor?.pause(false), this.#hasPython && this.#python.agentTell('resume')]);
    this.#boards.you.canvas.focus({ preventScroll: true });
  }

  /** @param {string} [why] */
  async pause(why = 'Both games wait.') {
    this.#enter('paused', why);
    await this.#hold();
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

  get #hasGame() {
    return this.#state === 'playing' || this.#state === 'paused' || this.#state === 'over';
  }

  #opening() {
    const seed = h('label', {}, 'Seed', this.#seed);
    const same = h('label', { class: 'same' }, this.#same, 'the same for both');
    return h('div', { class: 'opening' }, h('label', {}, 'The agent runs on', this.#engine.root), seed, same, this.#start);
  }

  #table() {
    const { you, agent } = this.#boards;
    const keys = h('p', { class: 'keys' }, ...keysOf('← →'), ' or ', ...keysOf('A D'), ' move · ', ...keysOf('space'), ' serves · ', ...keysOf('P'), ' pauses · ', ...keysOf('R'), ' restarts · or drag on your board, or use a gamepad');
    const mind = h('div', { class: 'mind' }, h('h3', {}, 'What it thinks'), this.#scores.root, this.#sees, this.#seen);
    this.#sees.setAttribute('aria-pressed', 'false');
    return h('div', { class: 'boards' }, you.root, agent.root, mind, keys);
  }

  async #togglePause() {
    if (this.#state === 'playing') await this.#attempt(() => this.pause());
    else if (this.#state === 'paused') await this.#attempt(() => this.resume());
  }

  async #hold() {
    await Promise.all([this.#visitor?.pause(true), this.#hasPython && this.#python.agentTell('pause')]);
    if (this.#hasPython) this.onLoop(await this.#python.loopSection());
  }

  /** @param {boolean} looked whether the tab is to be seen */
  #lookedAt(looked) {
    if (!looked && this.#state === 'playing') {
      this.#hidden = true;
      this.#attempt(() => this.pause(HIDDEN));
    } else if (looked && this.#hidden) {
      this.#hidden = false;
      if (this.#state === 'paused') this.#pause.focus({ preventScroll: true });
    }
  }

  async #loaded() {
    this.#progress.hidden = false;
    try {
      return await this.#cartridge.load((loaded, total) => {
        this.#progress.value = total ? Math.min(1, loaded / total) : 0;
      });
    } finally {
      this.#progress.hidden = true;
    }
  }

  /** @param {{wasm: Uint8Array, rom: Uint8Array}} emulator @param {number} seed */
  async #openVisitor(emulator, seed) {
    this.#visitor?.end();
    const visitor = new Visitor((error) => this.#loseVisitor(error));
    visitor.onState = (state) => this.#hearVisitor(state);
    const canvas = this.#boards.you.renewCanvas();
    this.#input.watch(canvas);
    this.#visitor = visitor;
    try {
      await visitor.open(emulator, seed, canvas);
    } catch (error) {
      if (error instanceof AppError && error.name === 'BadRom') {
        this.#cartridge.rom = null;
        this.#rom.root.hidden = !this.#cartridge.lacksRom;
      }
      throw error;
    }
  }

  /** @param {number} seed */
  async #openAgent(seed) {
    const engine = this.#engine.value;
    this.#say(`Opening ${engine} …`);
    this.#seen = renewed(this.#seen);
    const [game, seen] = [this.#boards.agent.renewCanvas(), this.#seen].map(handOver);
    this.#python.on('agent-frame', game.draw);
    this.#python.on('agent-seen', seen.draw);
    await this.#python.agentAttach(game.offscreen, seen.offscreen);
    try {
      await this.#python.agentStart({ engine, seed, speed: this.speed, paused: true });
    } catch (error) {
      this.#showError(toWireError(error), this.#engine.others(engine).map((name) => [`Start with ${name}`, name, () => this.start()]));
      throw new Shown();
    }
    await this.#python.agentSees(!this.#seen.hidden);
  }

  /** Another engine plays on from the same state. */
  async #exchange() {
    if (!this.#hasGame) return;
    const wanted = this.#engine.value;
    this.#say(`Opening ${wanted} …`);
    await this.#attempt(async () => {
      try {
        await this.#python.agentAsk('engine', wanted);
      } catch (error) {
        this.#engine.value = this.#agent.engine;
        this.#say(`${this.#agent.engine} stays.`);
        throw error;
      }
      // Where the engine before was lost, the game goes on by itself.
      if (this.#state === 'paused') await this.#python.agentTell('pause');
      this.#say(`${wanted} plays on from the same state.`);
      if (this.#state === 'playing') this.#boards.you.canvas.focus({ preventScroll: true });
    });
  }

  async #toggleSeen() {
    this.#seen.hidden = !this.#seen.hidden;
    this.#sees.setAttribute('aria-pressed', String(!this.#seen.hidden));
    await this.#attempt(() => this.#python.agentSees(!this.#seen.hidden));
  }

  /** @param {any} told by `AgentSide` of `pyapp/browser/play.py` */
  #hearAgent({ state, engine, action, q_values, score, lives, seconds, error }) {
    if (!this.#hasPython) return;
    const { agent } = this.#boards;
    agent.title = `Agent on ${engine}`;
    const before = this.#agent;
    this.#agent = { engine, state };
    if (score === undefined) return;
    agent.show({ score, lives, seconds });
    this.#scores.show(q_values, action);
    if (before.state === state) return;
    this.#frames.interrupt();
    if (state === 'failed') this.#loseEngine(engine, error);
    else if (before.state === 'failed') this.#error.hidden = true;
    if (state === 'over') this.#ends('agent', score);
    this.#veil();
  }

  /** @param {any} told by `AgentSide` of `pyapp/browser/play.py` */
  #hearLoop(told) {
    this.#loop.show(told);
    this.#frames.show('agent', { shown: told.frames, missed: told.missed_frames, gap: told.worst_gap_ms });
  }

  /** @param {VisitorState} told */
  #hearVisitor({ score, lives, frames, over, ...counts }) {
    this.#boards.you.show({ score, lives, seconds: frames / 60 });
    this.#frames.show('you', counts);
    if (lives < this.#lives && !over) this.#told.textContent = `You have ${lives} ${lives === 1 ? 'life' : 'lives'} left, and ${score} points.`;
    this.#lives = lives;
    if (over) this.#ends('you', score);
  }

  /** A game is over. @param {import('../play/round.js').Side} side @param {number} score */
  #ends(side, score) {
    if (this.#rounds.hasEnded(side)) return;
    this.#say(this.#rounds.end(side, score));
    this.#count();
    if (this.#rounds.over) {
      this.#enter('over', this.#status.textContent ?? '');
      this.#attempt(() => this.#hold());
      if (document.activeElement === this.#boards.you.canvas) this.#restart.focus({ preventScroll: true });
    }
    this.#veil();
  }

  #beginRound() {
    this.#rounds.next();
    this.#scores.clear();
    this.#frames.interrupt();
    this.#times.hidden = false;
    this.#lives = 0;
    this.#count();
  }

  #count() {
    this.#boards.you.won = this.#rounds.won.you;
    this.#boards.agent.won = this.#rounds.won.agent;
  }

  /** The engine is gone, the game is not. @param {string} engine @param {import('../types.d.ts').WireError} error */
  #loseEngine(engine, error) {
    /** @type {[string, string, () => unknown][]} */
    const ways = this.#engine.others(engine).map((name) => [`Go on with ${name}`, name, () => this.#exchange()]);
    ways.push([`Open ${engine} again`, engine, () => this.#exchange()]);
    // A policy from the console raises what it likes; its message alone may say nothing.
    const message = error.remedy ? error.message : `${error.name}: ${error.message}`;
    this.#showError({ ...error, message }, ways, "The agent's game waits where it was.");
  }

  /** @param {AppError} error */
  #loseVisitor(error) {
    this.#visitor = null;
    this.#fail(error);
    this.#boards.you.veil = 'Stopped';
  }

  /** @param {Uint8Array} rom */
  #bringRom(rom) {
    this.#cartridge.rom = rom;
    this.#rom.root.hidden = true;
    return this.start();
  }

  /** @returns {{you: number, agent: number}} */
  #chosenSeeds() {
    const text = this.#seed.value.trim();
    const typed = toNumber(text);
    const isSeed = typeof typed === 'number' && Number.isInteger(typed) && typed >= 0 && typed <= MAX_SEED;
    if (text !== '' && !isSeed) throw new AppError('BadSeed', `the seed ${text} is no whole number from 0 to ${MAX_SEED}`, 'Correct it, or leave it empty for any.');
    const you = isSeed ? typed : anySeed();
    this.#seed.placeholder = `any; last ${you}`;
    return { you, agent: this.#same.checked ? you : anySeed() };
  }

  /** @param {() => unknown} work */
  async #attempt(work) {
    try {
      if (this.#agent.state !== 'failed') this.#error.hidden = true;
      await work();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** @param {unknown} thrown */
  #fail(thrown) {
    if (!(thrown instanceof Shown)) this.#showError(toWireError(thrown));
    if (this.#state === 'starting') this.#enter('idle', '');
  }

  /**
   * @param {import('../types.d.ts').WireError} error
   * @param {[label: string, engine: string, act: () => unknown][]} [ways] out of it, with another engine
   * @param {string} [more]
   */
  #showError({ message, remedy }, ways = [], more = '') {
    const buttons = ways.map(([label, engine, act]) =>
      button(label, () => {
        this.#engine.value = engine;
        return act();
      }),
    );
    this.#error.replaceChildren(h('p', {}, [message, remedy, more].filter(Boolean).map(sentence).join(' ')));
    if (buttons.length) this.#error.append(h('div', { class: 'buttons' }, ...buttons));
    this.#error.hidden = false;
  }

  /** @param {State} state @param {string} said */
  #enter(state, said) {
    this.#state = state;
    this.#input.active = state === 'playing';
    this.#input.ready = this.#hasGame;
    this.#start.disabled = state === 'starting' || this.#busy || !this.#hasPython;
    this.#start.textContent = this.#hasGame ? 'Start anew' : 'Start';
    this.#start.classList.toggle('primary', !this.#hasGame);
    this.#controls.hidden = !this.#hasGame;
    this.#pause.textContent = state === 'paused' ? 'Resume' : 'Pause';
    this.#pause.disabled = state === 'over';
    this.#pause.classList.toggle('primary', state === 'paused');
    this.#restart.classList.toggle('primary', state === 'over');
    this.#step.disabled = state !== 'paused' || !this.#hasPython;
    if (state !== 'playing') this.#frames.interrupt();
    this.#say(said);
    this.#veil();
  }

  /** Writes across each board why nothing moves there. */
  #veil() {
    const standing = { idle: 'Press Start', starting: 'Loading …', playing: '', paused: 'Paused', over: '' }[this.#state];
    this.#boards.you.veil = this.#rounds.hasEnded('you') ? 'Game over' : standing;
    const lost = { failed: this.#hasPython ? 'Agent stopped' : 'Python stopped', over: 'Game over' }[this.#agent.state];
    this.#boards.agent.veil = (this.#hasGame && lost) || standing;
  }

  /** @param {string} text */
  #say(text) {
    this.#status.textContent = text;
  }

  /** @param {number} speed @param {string} label */
  #speed(speed, label) {
    const input = h('input', { type: 'radio', name: 'speed', value: speed, checked: speed === 1 });
    input.addEventListener('change', () => this.#hasGame && this.#attempt(() => this.#python.agentTell('speed', speed)));
    // Whoever points at a speed goes on playing with the keys; whoever came to it with keys goes on choosing.
    input.addEventListener('click', ({ detail }) => detail > 0 && this.#state === 'playing' && this.#boards.you.canvas.focus({ preventScroll: true }));
    return h('label', {}, input, h('span', {}, label));
  }
}

/** An error that is on the page already. */
class Shown extends Error {}

/** @param {string} text @param {() => unknown} act @param {string} [kind] */
function button(text, act, kind) {
  const made = h('button', { type: 'button', ...(kind && { class: kind }) }, text);
  made.addEventListener('click', act);
  return made;
}

/** @param {string} names parted by spaces */
function keysOf(names) {
  return names.split(' ').map((name) => h('kbd', {}, name));
}

/** @param {string} text */
function sentence(text) {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

/** Short enough to be typed again. */
function anySeed() {
  return crypto.getRandomValues(new Uint32Array(1))[0] % 1_000_000;
}
