import { h, milliseconds } from './dom.js';

/** Stages in the order in which they follow each other, and what they are. */
const STAGES = {
  'hand-over': 'to the engine and back',
  compute: 'the engine itself',
  decide: 'choose the action',
  capture: 'the emulator plays four frames',
  preprocess: 'resize and stack',
  draw: 'four frames to the canvas',
  decision: 'the whole of it',
};

/** The loop's times while it runs: a bar from 0 to P50 and a line on to P95, for each stage. */
export class LoopView {
  #rows = Object.entries(STAGES).map(([stage, label]) => {
    const p50 = h('td', {}, '–');
    const p95 = h('td', {}, '–');
    const row = h('tr', { class: stage }, h('th', { scope: 'row' }, stage, ' ', h('small', {}, label)), h('td', { class: 'span' }, h('span', { class: 'bar' })), p50, p95);
    return { stage, row, p50, p95 };
  });
  #summary = h('p', { class: 'note' });
  root = h(
    'details',
    { class: 'loop', open: true, hidden: true },
    h('summary', {}, 'What one decision takes'),
    h(
      'div',
      { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': "The agent's loop, stage by stage" },
      h(
        'table',
        {},
        h('caption', { class: 'visually-hidden' }, "The agent's loop, stage by stage"),
        h('thead', {}, h('tr', {}, ...['stage', '', 'P50', 'P95'].map((name) => h('th', { scope: 'col' }, name)))),
        h('tbody', {}, ...this.#rows.map(({ row }) => row)),
      ),
    ),
    this.#summary,
  );

  clear() {
    this.root.hidden = true;
  }

  /** @param {any} loop what Python tells: engine, stages, frames, missed_frames, worst_gap_ms, late_decisions */
  show({ engine, stages, frames, missed_frames, worst_gap_ms, late_decisions }) {
    if (stages.length === 0) return;
    this.root.hidden = false;
    const found = new Map(stages.map((/** @type {any} */ stage) => [stage.stage, stage]));
    const most = found.get('decision').p95_ms;
    for (const { stage, row, p50, p95 } of this.#rows) {
      const times = found.get(stage);
      row.style.setProperty('--p50', `${(100 * times.p50_ms) / most}%`);
      row.style.setProperty('--p95', `${Math.min(100, (100 * times.p95_ms) / most)}%`);
      p50.textContent = milliseconds(times.p50_ms);
      p95.textContent = milliseconds(times.p95_ms);
    }
    const missed = frames ? `${missed_frames} of ${frames + missed_frames} frames missed their 60th of a second` : 'at full speed no frame is due at a certain time';
    const gap = worst_gap_ms ? `, the longest wait for one was ${milliseconds(worst_gap_ms)}` : '';
    this.#summary.textContent = `${found.get('decision').n} decisions on ${engine}: ${missed}${gap}; ${late_decisions} decisions took longer than the 66.7 ms that their frames are shown.`;
  }
}
