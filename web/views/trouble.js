import { button, h } from './dom.js';

/** @typedef {import('../types.d.ts').WireError} WireError */
/** @typedef {{label: string, act: () => unknown}} Way out of trouble */

/** What went wrong, what can be done about it, and buttons that do it. */
export class Trouble {
  root = h('div', { class: 'error', role: 'alert', hidden: true });

  /**
   * @param {Pick<WireError, 'message' | 'remedy'>} error
   * @param {Way[]} [ways]
   * @param {string} [more]
   */
  show({ message, remedy }, ways = [], more = '') {
    this.root.replaceChildren(h('p', {}, [message, remedy, more].filter(Boolean).map(sentence).join(' ')));
    if (ways.length) this.root.append(h('div', { class: 'buttons' }, ...ways.map(({ label, act }) => button(label, act))));
    this.root.hidden = false;
  }

  hide() {
    this.root.hidden = true;
  }
}

/** @param {string} text */
function sentence(text) {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
