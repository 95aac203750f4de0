/** What a printed report shows in place of a walk through the states: those in which an engine disagrees. */
import { h, scientific, table } from './dom.js';

const MOST = 40;

/**
 * @param {any[]} suites `SuiteEntry`s of the report
 * @param {any[]} answers `ParityEntry`s of the report
 * @param {string[]} actions the actions' names
 * @returns {Node[]} a table for each suite with such states; nothing where all agree
 */
export function disagreements(suites, answers, actions) {
  return suites.flatMap((suite) => {
    const asked = answers.filter((entry) => entry.suite === suite.suite);
    const states = [...new Set(asked.flatMap((entry) => entry.disagreements))].sort((a, b) => a - b);
    if (!states.length) return [];
    const title = `Disagreements in ${suite.suite}`;
    const rows = states.slice(0, MOST).map((state) => [
      String(state),
      scientific(suite.margin[state]),
      actions[suite.action[state]],
      ...asked.map((entry) => chosen(entry, state, actions)),
    ]);
    const rest = states.length > MOST ? [h('p', { class: 'note' }, `These are the first ${MOST} of ${states.length}; the saved report has all of them.`)] : [];
    return [h('h3', {}, title), table(title, ['state', 'margin', 'Python', ...asked.map(({ engine }) => engine)], rows), ...rest];
  });
}

/** @param {any} entry @param {number} state @param {string[]} actions */
function chosen(entry, state, actions) {
  const failure = entry.failures.find((/** @type {any} */ failed) => failed.case === state)?.failure;
  const text = failure ?? (state < entry.cases ? actions[entry.action[state]] : '–');
  return entry.disagreements.includes(state) ? h('strong', { class: 'bad' }, text) : text;
}
