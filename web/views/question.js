import { button, h } from './dom.js';
import { Place } from './place.js';

/**
 * Builds the controls of a question.
 * @param {HTMLElement} root
 * @param {string} label of the button
 * @param {() => void} ask
 * @param {() => void} cancel
 */
export function question(root, label, ask, cancel) {
  const parts = {
    ask: button(label, ask, 'ask'),
    cancel: button('Cancel', cancel, 'cancel'),
    progress: h('div', { class: 'progress', role: 'status', 'aria-live': 'polite' }),
    error: h('p', { class: 'error', role: 'alert', hidden: true }),
  };
  parts.ask.disabled = true;
  parts.cancel.hidden = true;
  root.append(h('div', { class: 'actions' }, parts.ask, parts.cancel), parts.progress, parts.error);
  return new Place(parts);
}
