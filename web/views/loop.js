import { columnHead, h, milliseconds } from './dom.js';

/** Stages as a decision's data goes through them, and what they are. */
const STAGES = {
  capture: 'the emulator plays four frames',
  preprocess: 'resize and stack',
  'hand-over': 'infer: to the engine and back',
  compute: 'infer: the engine itself',
  decide: 'choose the action',
  draw: 'four frames to the canvas',
  decision: 'the whole of it',
};

/** What four frames of a 60th of a second leave for a decision. */
const DEADLINE_MS = 66.7;

/** The loop's times while it runs: for each stage a bar from 0 to P50, and a lighter one on to P95. */
export class LoopView {
  #rows = Object.entries(STAGES).map(([stage, label]) => {
    const p50 = h('td', {}, '–');
    const p95 = h('td', {}, '–');
    const row = h('tr', { class: stage }, h('th', { scope: 'row' }, stage, ' ', h('small', {}, label)), h('td', { class: 'span' }, h('span', { class: 'bar' })), p50, p95);
    return { stage, row, p50, p95 };
  });
  #summary = h('p', { class: 'note' });
  root = h(
    'div',
    { class: 'loop' },
    h(
      'div',
      { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': "The agent's loop, stage by stage" },
      h(
        'table',
        {},
        h('caption', { class: 'visually-hidden' }, "The agent's loop, stage by stage"),
        h('thead', {}, h('tr', {}, ...['stage', '', 'P50', 'P95'].map(columnHead))),
        h('tbody', {}, ...this.#rows.map(({ row }) => row)),
      ),
    ),
    this.#summary,
  );

  /** @param {any} loop what Python tells: engine, stages, late_decisions, software and more */
  show({ engine, stages, late_decisions, software }) {
    if (stages.length === 0) return;
    const found = new Map(stages.map((/** @type {any} */ stage) => [stage.stage, stage]));
    const { n, p95_ms } = found.get('decision');
    for (const { stage, row, p50, p95 } of this.#rows) {
      const times = found.get(stage);
      row.style.setProperty('--p50', `${(100 * times.p50_ms) / p95_ms}%`);
      row.style.setProperty('--p95', `${Math.min(100, (100 * times.p95_ms) / p95_ms)}%`);
      p50.textContent = milliseconds(times.p50_ms);
      p95.textContent = milliseconds(times.p95_ms);
    }
    const gpu = software ? ', which is a software GPU: its time says nothing about a real one' : '';
    this.#summary.textContent = `${n} ${n === 1 ? 'decision' : 'decisions'} on ${engine}${gpu}. Each has the ${DEADLINE_MS} ms that its four frames are shown; ${late_decisions} took longer.`;
  }
}
