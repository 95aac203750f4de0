import { MODULES, partsOf } from '../download.js';
import { Cartridge } from '../play/cartridge.js';
import { handOver } from '../play/canvas.js';
import { Input } from '../play/input.js';
import { Rounds } from '../play/round.js';
import { Visitor } from '../play/visitor.js';
import { setQuiet } from '../quiet.js';
import { AppError, toWireError } from '../wire.js';
import { BoardView } from './board.js';
import { Controls } from './controls.js';
import { button, h, megabytes } from './dom.js';
import { EngineChoice } from './engine-choice.js';
import { FramesView } from './frames.js';
import { LoopView } from './loop.js';
import { MindView } from './mind.js';
import { RomView } from './rom.js';
import { SeedFields } from './seeds.js';
import { Trouble } from './trouble.js';

/** @typedef {import('../python-host.js').PythonHost} PythonHost */
/** @typedef {import('../types.d.ts').Site} Site */
/** @typedef {import('./frames.js').Counts} Counts */
/** @typedef {import('../play/visitor-board.js').VisitorState} VisitorState */
/** @typedef {import('./controls.js').State} State */

const HIDDEN = 'The tab was hidden, so both games wait.';
const CHECK_RUNS = 'The check runs, so both games wait.';

/** The game: the visitor on the left, the agent on the right, and what the agent's loop takes. */
export class PlayView {
  #python;
  #cartridge;
  #modules;
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
  #mind = new MindView((wanted) => this.#hasGame && this.#hasPython && this.#attempt(() => this.#python.agentSees(wanted)));
  #loop = new LoopView();
  #frames = new FramesView();
  #engine = new EngineChoice();
  #seeds = new SeedFields();
  #start = button('Start', () => this.start(), 'primary');
  #controls = new Controls({
    pause: () => this.#togglePause(),
    step: () => this.#attempt(() => this.#python.agentAsk('step')),
    restart: () => this.restart(),
    speed: (speed) => this.#hasGame && this.#attempt(() => this.#python.agentTell('speed', speed)),
    pointed: () => this.#state === 'playing' && this.#focusBoard(),
  });
  #status = h('p', { class: 'note', role: 'status' });
  #progress = h('progress', { max: 1, value: 0, hidden: true, 'aria-label': 'Loading the emulator' });
  /** Says now and then how it stands, to those who do not see the boards. */
  #told = h('p', { class: 'visually-hidden', 'aria-live': 'polite' });
  #trouble = new Trouble();
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
    this.#modules = partsOf(site, base, MODULES);
    this.#input = new Input(root, {
      keys: (keys) => this.#visitor?.press(keys),
      pause: () => this.#togglePause(),
      restart: () => this.restart(),
    });
    root.append(this.#opening(), this.#rom.root, this.#controls.root, this.#status, this.#progress, this.#told, this.#trouble.root, this.#table(), this.#times);
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
    this.#controls.show(this.#state, false);
    this.#veil();
    if (this.#state === 'playing') this.#say('Python stopped, and the agent with it; your game goes on.');
  }

  /** Python is back, and knows of no game. */
  regain() {
    this.enable();
    if (!this.#hasGame) return;
    this.#say('Python is back, without the agent; your game goes on.');
    const lost = { name: 'AgentLost', message: 'the agent was lost when Python was started anew', remedy: 'Begin both anew when you like.' };
    this.#trouble.show(lost, [{ label: 'Begin both anew', act: () => this.start() }]);
  }

  get state() {
    return this.#state;
  }

  /** A check runs on the same processor: neither may disturb the other's times. @param {boolean} busy */
  checks(busy) {
    const ended = this.#busy && !busy;
    this.#busy = busy;
    this.#controls.root.disabled = busy;
    this.#start.disabled = busy;
    this.#engine.root.disabled = busy;
    this.#input.ready = !busy && this.#hasGame;
    if (busy && this.#state === 'playing') this.#attempt(() => this.pause(CHECK_RUNS));
    else if (ended && this.#state === 'paused') this.#say('The check has ended. Both games wait.');
  }

  /** Lets the agent play on an engine, now or from the start on. @param {string} name */
  use(name) {
    this.#engine.offer(name);
    this.#engine.value = name;
    if (this.#agent.state === 'stopped') this.#start.focus();
    else this.#exchange();
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
      const seeds = this.#seeds.choose();
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
      const seeds = this.#seeds.choose();
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
    this.#focusBoard();
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

  get #hasGame() {
    return this.#state === 'playing' || this.#state === 'paused' || this.#state === 'over';
  }

  #opening() {
    return h('div', { class: 'opening' }, h('label', {}, 'The agent runs on', this.#engine.root), ...this.#seeds.roots, this.#start);
  }

  #table() {
    const { you, agent } = this.#boards;
    const keys = h('p', { class: 'keys' }, ...keysOf('← →'), ' or ', ...keysOf('A D'), ' move · ', ...keysOf('space'), ' serves · ', ...keysOf('P'), ' pauses · ', ...keysOf('R'), ' restarts · or drag on your board, or use a gamepad');
    return h('div', { class: 'boards' }, you.root, agent.root, this.#mind.root, keys);
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
      if (this.#state === 'paused') this.#controls.pause.focus({ preventScroll: true });
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
    const visitor = new Visitor(this.#modules, (error) => this.#loseVisitor(error));
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
    const game = handOver(this.#boards.agent.renewCanvas());
    const seen = this.#mind.handOver();
    this.#python.on('agent-frame', game.draw);
    this.#python.on('agent-seen', seen.draw);
    await this.#python.agentAttach(game.offscreen, seen.offscreen);
    try {
      await this.#python.agentStart({ engine, seed, speed: this.#controls.speed, paused: true });
    } catch (error) {
      this.#trouble.show(toWireError(error), this.#engine.others(engine).map((name) => this.#way(`Start with ${name}`, name, () => this.start())));
      throw new Shown();
    }
    await this.#python.agentSees(this.#mind.wanted);
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
        if (this.#agent.state !== 'failed') {
          this.#say(`${this.#agent.engine} stays.`);
          throw error;
        }
        this.#say('');
        this.#loseEngine(this.#agent.engine, toWireError(error));
        return;
      }
      // Where the engine before was lost, the game goes on by itself.
      if (this.#state === 'paused') await this.#python.agentTell('pause');
      this.#say(`${wanted} plays on from the same state.`);
      if (this.#state === 'playing') this.#focusBoard();
    });
  }

  /** @param {any} told by `AgentSide` of `pyapp/browser/play.py` */
  #hearAgent({ state, engine, player, action, q_values, score, lives, seconds, error }) {
    if (!this.#hasPython) return;
    const { agent } = this.#boards;
    agent.title = player ? `${player}, from Python` : `Agent on ${engine}`;
    const before = this.#agent;
    this.#agent = { engine, state };
    if (score === undefined) return;
    agent.show({ score, lives, seconds });
    this.#mind.scores.show(q_values, action);
    if (before.state === state) return;
    this.#frames.interrupt('agent');
    if (state === 'failed') this.#loseEngine(engine, error);
    else if (before.state === 'failed') this.#trouble.hide();
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
      if (document.activeElement === this.#boards.you.canvas) this.#controls.restart.focus({ preventScroll: true });
    }
    this.#veil();
  }

  #beginRound() {
    this.#rounds.next();
    this.#mind.scores.clear();
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
    const others = this.#engine.others(engine).map((name) => this.#way(`Go on with ${name}`, name, () => this.#exchange()));
    const again = this.#way(`Open ${engine} again`, engine, () => this.#exchange());
    // A policy from the console raises what it likes; its message alone may say nothing.
    const message = error.remedy ? error.message : `${error.name}: ${error.message}`;
    this.#trouble.show({ ...error, message }, [...others, again], "The agent's game waits where it was.");
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

  /** @param {() => unknown} work */
  async #attempt(work) {
    try {
      if (this.#agent.state !== 'failed') this.#trouble.hide();
      await work();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** @param {unknown} thrown */
  #fail(thrown) {
    if (!(thrown instanceof Shown)) this.#trouble.show(toWireError(thrown));
    if (this.#state === 'starting') this.#enter('idle', '');
  }

  /** A way out with an engine. @param {string} label @param {string} engine @param {() => unknown} act */
  #way(label, engine, act) {
    const choose = () => {
      this.#engine.value = engine;
      return act();
    };
    return { label, act: choose };
  }

  /** @param {State} state @param {string} said */
  #enter(state, said) {
    this.#state = state;
    setQuiet(this, state === 'starting' || state === 'playing');
    this.#input.active = state === 'playing';
    this.#input.ready = this.#hasGame;
    this.#start.disabled = state === 'starting' || this.#busy || !this.#hasPython;
    this.#start.textContent = this.#hasGame ? 'Start anew' : 'Start';
    this.#start.classList.toggle('primary', !this.#hasGame);
    this.#controls.show(state, this.#hasPython);
    this.#boards.you.root.classList.toggle('live', state === 'playing');
    if (state !== 'playing') this.#frames.interrupt('you');
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

  /** Gives the board the keys. */
  #focusBoard() {
    this.#boards.you.canvas.focus({ preventScroll: true });
  }
}

/** An error that is on the page already. */
class Shown extends Error {}

/** @param {string} names parted by spaces */
function keysOf(names) {
  return names.split(' ').map((name) => h('kbd', {}, name));
}
