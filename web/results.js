/**
 * The results on the page: a report's sections, shown as they come or all at once.
 */
import { AnswersView } from './views/answers.js';
import { byId } from './views/dom.js';
import { FasterView } from './views/faster.js';
import { RanView } from './views/ran.js';
import { MeaningView } from './views/sentences.js';

/** @typedef {import('./python-host.js').PythonHost} PythonHost */

export class Results {
  #python;
  #engines = new RanView(byId('ran'));
  #answers;
  #race = new FasterView(byId('faster'));
  #meaning = new MeaningView(byId('meaning'));
  /** Counts the reports that were begun: what Python says late of an earlier one is dropped. */
  #generation = 0;

  /** @param {PythonHost} python */
  constructor(python) {
    this.#python = python;
    this.#answers = new AnswersView(byId('answers'), (suite, index) => python.picture(suite, index));
  }

  clear() {
    this.#generation++;
    for (const view of [this.#engines, this.#answers, this.#race, this.#meaning]) view.clear();
  }

  /** @param {string} name of a section: engines, suites, parity or race @param {any} section one entry of it */
  add(name, section) {
    if (name === 'engines') {
      this.#engines.add(section);
      this.#race.expect(section.name);
    } else if (name === 'suites') this.#answers.addSuite(section);
    else if (name === 'parity') this.#answers.add(section);
    else if (name === 'race') this.#race.add(section);
  }

  /** Shows a whole report. @param {any} report */
  async show(report) {
    this.clear();
    for (const name of ['engines', 'suites', 'parity', 'race']) {
      for (const section of report[name]) this.add(name, section);
    }
    await this.finish(report);
  }

  /** Draws what takes time to draw, and says what it means. @param {any} report null where a check did not end */
  async finish(report) {
    const generation = this.#generation;
    await this.#race.finish();
    if (!report || generation !== this.#generation) return;
    const sentences = await this.#python.summarize(report);
    if (generation !== this.#generation) return;
    this.#race.say(sentences.filter(({ topic }) => topic === 'ratio'));
    this.#meaning.show(sentences.filter(({ topic }) => topic !== 'ratio'));
  }
}
