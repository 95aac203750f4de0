/** What programs can see of the page: the command line and the tests drive it through `globalThis.pyappPage`. */
import { AppError } from './wire.js';

/** @typedef {'booting' | 'ready' | 'running' | 'failed'} State */
/** @typedef {import('./python-host.js').Question} Question */

/** The methods are set once Python is ready. */
export const publicPage = {
  /** @type {State} */
  state: 'booting',
  /** @type {{stage: string, done: number, total: number} | null} */
  progress: null,
  /** What was shown in another language than English and has no translation. @type {string[]} */
  untranslated: [],
  /** @type {any} the last report */
  report: null,
  /** @type {import('./types.d.ts').WireError | null} */
  error: null,
  /** What Python says of the visitor's own model; null: the worked example. @type {any} */
  model: null,
  /** How often the visitor's own model was changed, or could not be. */
  changes: 0,
  /** @type {import('./views/play.js').PlayView | null} the game */
  play: null,
  /** What Python has printed, until somebody empties it. @type {{stream: string, text: string}[]} */
  printed: [],
  /** @type {(question: Question, settings: object) => Promise<void>} */
  ask: notReady,
  /** @type {(settings: object) => Promise<void>} */
  check: notReady,
  /** @type {() => Promise<void>} */
  cancel: notReady,
  /** @type {(on: boolean) => Promise<void>} holds the tournament that runs, or lets it go on */
  pause: notReady,
  /** @type {(source: string) => Promise<{repr?: string | null, traceback?: string}>} */
  evaluate: notReady,
  /** @type {(source: string, filename: string) => Promise<{value?: unknown, traceback?: string}>} */
  runPlain: notReady,
  /** @type {() => Promise<boolean>} */
  stop: notReady,
  /** @type {() => Promise<void>} */
  restart: notReady,
  /** Does what the controls of the visitor's own model do. @type {(verb: 'make_cases' | 'allow' | 'fix', settings: any) => Promise<void>} */
  changeModel: notReady,
  /** What shows the fault that was found last, in base64. @type {() => Promise<{model: string, cases: string} | null>} */
  reproducer: notReady,
};
Object.assign(globalThis, { pyappPage: publicPage });

/** @returns {Promise<never>} */
async function notReady() {
  throw new AppError('NotReady', 'the page is still booting', 'Wait until pyappPage.state is "ready".');
}
