import { button, h } from './dom.js';
import { Place } from './place.js';

/** @typedef {import('./pause.js').PauseButton} PauseButton */

/**
 * Builds the controls of a question.
 * @param {HTMLElement} root
 * @param {string} label of the button
 * @param {() => void} ask
 * @param {() => void} cancel
 * @param {PauseButton} [pause] where it can be held
 */
export function question(root, label, ask, cancel, pause) {
  const parts = {
    ask: button(label, ask, 'ask'),
    cancel: button('Cancel', cancel, 'cancel'),
    pause,
    progress: h('div', { class: 'progress', role: 'status', 'aria-live': 'polite' }),
    error: h('p', { class: 'error', role: 'alert', hidden: true }),
  };
  parts.ask.disabled = true;
  parts.cancel.hidden = true;
  root.append(h('div', { class: 'actions' }, parts.ask, ...(pause ? [pause.root] : []), parts.cancel), parts.progress, parts.error);
  return new Place(parts);
}
