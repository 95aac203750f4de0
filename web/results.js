/**
 * The results on the page: a report's sections, shown as they come or all at once.
 */
import { AnswersView } from './views/answers.js';
import { byId } from './views/dom.js';
import { FasterView } from './views/faster.js';
import { RanView } from './views/ran.js';
import { MeaningView } from './views/sentences.js';
import { FaultsView } from './views/faults.js';
import { PlacementView } from './views/placement.js';
import { StagesView } from './views/stages.js';
import { SweepView } from './views/sweep.js';
import { TournamentView } from './views/tournament.js';
import { TuneView } from './views/tune.js';
import { VerdictView } from './views/verdict.js';

/** @typedef {import('./python-host.js').PythonHost} PythonHost */
/** @typedef {import('./python-host.js').Question} Question */

export class Results {
  #python;
  #engines = new RanView(byId('ran'));
  #answers;
  #race = new FasterView(byId('faster'));
  #meaning = new MeaningView(byId('meaning'));
  #stages = new StagesView(byId('stages'));
  #sweep = new SweepView(byId('sweep'));
  #tune;
  #placement = new PlacementView(byId('placement'));
  #faults;
  #tournament = new TournamentView(byId('tournament'));
  #verdict = new VerdictView(byId('verdict'));
  /** Counts the reports that were begun: what Python says late of an earlier one is dropped. */
  #generation = 0;
  /** What is shown, where it is whole. @type {any} */
  report = null;

  /**
   * @param {PythonHost} python
   * @param {import('./views/tune.js').RecipeUses} uses what a recipe is good for
   * @param {() => unknown} saveFault saves what shows a fault
   */
  constructor(python, uses, saveFault) {
    this.#python = python;
    this.#faults = new FaultsView(byId('faults'), saveFault);
    this.#answers = new AnswersView(byId('answers'), (suite, index) => python.picture(suite, index));
    this.#tune = new TuneView(byId('tune'), uses);
  }

  clear() {
    this.#generation++;
    this.report = null;
    const further = [this.#stages, this.#sweep, this.#tune, this.#tournament, this.#verdict, this.#placement, this.#faults];
    for (const view of [this.#engines, this.#answers, this.#race, this.#meaning, ...further]) view.clear();
  }

  /**
   * The first answer to a question has come: what an earlier one was told goes.
   * @param {Question} question
   * @param {boolean} goesOn whether it goes on where an earlier one ended, so that what that one was told stays
   */
  begin(question, goesOn) {
    if (question === 'check') return this.clear();
    this.#generation++;
    const views = { explain: this.#stages, sweep: this.#sweep, tune: this.#tune, tournament: this.#tournament, placement: this.#placement, locate: this.#faults };
    if (!goesOn) views[question].clear();
  }

  /** @param {string} name of a field of the report @param {any} section one entry of it */
  add(name, section) {
    if (name === 'engines') {
      this.#engines.add(section);
      this.#race.expect(section.name);
    } else if (name === 'suites') this.#answers.addSuite(section);
    else if (name === 'parity') this.#answers.add(section);
    else if (name === 'agreement') this.#answers.addOutput(section);
    else if (name === 'placement') this.#placement.add(section);
    else if (name === 'faults') this.#faults.add(section);
    else if (name === 'race') this.#race.add(section);
    else if (name === 'stages') this.#stages.add(section);
    else if (name === 'sweep') this.#sweep.add(section);
    else if (name === 'precision') this.#sweep.addVariant(section);
    else if (name === 'tune') this.#tune.show(section);
    else if (name === 'tournament') this.#tournament.add(section);
  }

  /** Shows a whole report. @param {any} report */
  async show(report) {
    this.clear();
    for (const name of ['engines', 'suites', 'agreement', 'parity', 'race', 'stages', 'sweep', 'precision', 'tournament', 'placement', 'faults']) {
      for (const section of report[name]) this.add(name, section);
    }
    if (report.tune) this.add('tune', report.tune);
    await this.finish(report);
  }

  /** Draws what takes time to draw, and says what it means. @param {any} report null where a check did not end */
  async finish(report) {
    const generation = this.#generation;
    await this.#race.finish();
    this.#sweep.finish();
    this.#tournament.finish();
    if (!report || generation !== this.#generation) return;
    this.report = report;
    const [sentences, verdict] = await Promise.all([this.#python.summarize(report), this.#python.verdict(report)]);
    if (generation !== this.#generation) return;
    const about = (/** @type {string[]} */ ...topics) => sentences.filter(({ topic }) => topics.includes(topic));
    this.#race.say(about('ratio'));
    this.#meaning.show(about('answers', 'speed'));
    this.#stages.say(about('stages'));
    this.#sweep.say(report.crossover, about('sweep', 'precision'));
    this.#tune.say(about('tune'));
    this.#tournament.say(about('tournament'));
    this.#verdict.show(verdict);
  }
}
