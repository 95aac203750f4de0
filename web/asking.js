/**
 * One question at a time: asks Python, shows what comes where it was asked, and keeps what was found.
 */
import { publicPage } from './public-page.js';
import { toWireError } from './wire.js';

/** @typedef {import('./python-host.js').PythonHost} PythonHost */
/** @typedef {import('./python-host.js').Question} Question */
/** @typedef {import('./public-page.js').State} State */

/** @typedef {import('./views/place.js').Place} Place */

/**
 * @typedef {object} Parts
 * @property {PythonHost} python
 * @property {import('./results.js').Results} results
 * @property {import('./views/report.js').ReportView} reports
 * @property {import('./views/play.js').PlayView} play
 * @property {import('./store.js').Store} store
 * @property {Record<Question, Place>} places
 * @property {Pick<Place, 'start' | 'stop' | 'show' | 'fail' | 'ready'>} model where the visitor's own model is changed
 * @property {(state: State) => void} onState
 * @property {(question: Question, wanted: object) => boolean} goesOn whether a question with these settings goes on where it was ended
 * @property {(question: Question, wanted: object, error: import('./types.d.ts').WireError | null) => void} onEnd null where there was an answer
 */

export class Asking {
  #parts;
  /** @type {Question} */
  #asked = 'check';
  /** Where progress is shown. @type {Pick<Place, 'show'>} */
  #place;
  /** Whether it goes on where it was ended. */
  #goesOn = false;
  /** Whether what is asked has not shown anything yet. */
  #fresh = false;
  /** Whether Python is there. */
  #up = false;

  /** @param {Parts} parts */
  constructor(parts) {
    this.#parts = parts;
    this.#place = parts.model;
    parts.python.on('progress', (json) => {
      publicPage.progress = JSON.parse(json);
      this.#place.show(/** @type {any} */ (publicPage.progress));
    });
    parts.python.on('section', (json) => this.#take(JSON.parse(json)));
  }

  /** Python is ready to be asked. */
  up() {
    this.#up = true;
    this.#occupy(false);
  }

  /** Python is gone. Whatever was asked fails, and nothing can be asked before it is up again. */
  down() {
    const { reports, onState } = this.#parts;
    this.#up = false;
    reports.busy = true;
    for (const place of this.#all) place.ready = false;
    onState('booting');
  }

  /** @param {Question} question @param {object} wanted its settings */
  async ask(question, wanted) {
    const { python, results, reports, places, goesOn, onEnd } = this.#parts;
    publicPage.error = null;
    this.#asked = question;
    this.#place = places[question];
    this.#goesOn = goesOn(question, wanted);
    this.#occupy(true);
    places[question].start();
    this.#fresh = true;
    try {
      if (question !== 'check') await reports.showOwn();
      const report = await python.ask(question, wanted);
      for (const entry of question === 'check' ? [] : report.engines) results.add('engines', entry);
      await results.finish(report);
      this.keep(report);
      onEnd(question, wanted, null);
    } catch (error) {
      publicPage.error = toWireError(error);
      if (!this.#fresh) await results.finish(null);
      places[question].fail(error);
      onEnd(question, wanted, publicPage.error);
    } finally {
      this.#fresh = false;
      places[question].stop();
      this.#occupy(false);
    }
  }

  /**
   * Changes what is asked about; meanwhile nothing can be asked.
   * @param {() => Promise<void>} work
   */
  async during(work) {
    const { model } = this.#parts;
    publicPage.error = null;
    this.#place = model;
    this.#occupy(true);
    model.start();
    try {
      await work();
    } catch (error) {
      publicPage.error = toWireError(error);
      model.fail(error);
    } finally {
      model.stop();
      this.#occupy(false);
      publicPage.changes++;
    }
  }

  /** What was found so far is about something else. */
  forget() {
    const { results, reports } = this.#parts;
    publicPage.report = null;
    results.clear();
    reports.checkBegins();
  }

  get #all() {
    const { places, model } = this.#parts;
    return [...Object.values(places), model];
  }

  /** @param {any} report what this page has found so far */
  keep(report) {
    const { reports, play, store } = this.#parts;
    reports.take(report);
    publicPage.report = report;
    play.learn(report.engines);
    store.write('report', report);
  }

  /** Goes on with what this page had found when it was last open. @param {any} report */
  async recall(report) {
    const { python, results } = this.#parts;
    const valid = await python.readReport(JSON.stringify(report));
    await python.adopt(valid);
    await results.show(valid);
    this.keep(valid);
  }

  /** @param {{name: string, section: any}} found a part of the answer */
  #take({ name, section }) {
    const { results, reports } = this.#parts;
    // Only now is it sure that it is being answered: until then the last results stay.
    if (this.#fresh) {
      results.begin(this.#asked, this.#goesOn);
      if (this.#asked === 'check') reports.checkBegins();
    }
    this.#fresh = false;
    // Engines that a further question has opened are told of when it has ended: they may be known already.
    if (this.#asked === 'check' || name !== 'engines') results.add(name, section);
  }

  /** @param {boolean} busy */
  #occupy(busy) {
    const { reports, play, onState } = this.#parts;
    if (!this.#up) return;
    onState(busy ? 'running' : 'ready');
    reports.busy = busy;
    play.checks(busy);
    for (const place of this.#all) place.ready = !busy;
  }
}
