import { button, h } from './dom.js';

const WORDS = /** @type {Record<string, string>} */ ({ error: '✗', warning: '!', note: 'i' });
const NAMES = /** @type {Record<string, string>} */ ({ error: 'error', warning: 'warning', note: 'note' });

/** What a fix does, on its button. */
const FIXES = /** @type {Record<string, string>} */ ({
  'explicit-attributes': 'Write the attributes out',
  'channels-padded': 'Add a channel of zeros',
  'cast-moved': 'Move the cast out of the model',
  'batch-fixed': 'Fix the dimensions',
  'plain-names': 'Rename',
});

/**
 * What the doctor found, the worst first.
 * @param {{code: string, severity: string, node: string, message: string, remedy: string, fix: string | null}[]} found
 * @param {(fix: string) => unknown} apply
 */
export function findings(found, apply) {
  if (!found.length) return h('p', { class: 'sentence good' }, 'The doctor finds nothing that would keep this model from running on WASM or WebGPU.');
  const items = found.map(({ code, severity, node, message, remedy, fix }) =>
    h(
      'li',
      { class: severity, 'data-code': code },
      h('span', { class: 'mark', role: 'img', 'aria-label': NAMES[severity] }, WORDS[severity] ?? '?'),
      h('div', {}, ...(node ? [h('code', {}, node), ': '] : []), `${sentence(message)} ${sentence(remedy)}`, ...(fix ? [' ', button(FIXES[fix] ?? fix, () => apply(fix), 'fix')] : [])),
    ),
  );
  return h('div', {}, h('h4', {}, 'Before it runs'), h('ul', { class: 'findings' }, ...items));
}

/** @param {string} text */
function sentence(text) {
  return !text || /[.!?]$/.test(text) ? text : `${text}.`;
}
