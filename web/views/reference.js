import { h } from './dom.js';

/** @typedef {{name: string, signature: string, doc: string}} Entry */

/**
 * The public API, to look through and to search.
 * @param {Entry[]} entries
 */
export function reference(entries) {
  const search = h('input', { type: 'search', placeholder: 'Search the reference', 'aria-label': 'Search the reference', spellcheck: 'false' });
  const count = h('p', { class: 'note', role: 'status' });
  const items = entries.map(({ name, signature, doc }) => ({
    text: `${name} ${doc}`.toLowerCase(),
    root: h('details', {}, h('summary', {}, h('code', {}, name)), h('pre', { class: 'scroll', tabindex: 0 }, `${name.split('.').at(-1)}${signature}\n\n${doc}`)),
  }));
  const list = h('div', { class: 'entries' }, ...items.map(({ root }) => root));
  const filter = () => {
    const wanted = search.value.trim().toLowerCase();
    for (const { text, root } of items) root.hidden = !text.includes(wanted);
    count.textContent = `${items.filter(({ root }) => !root.hidden).length} of ${items.length}`;
  };
  search.addEventListener('input', filter);
  filter();
  return h('section', { class: 'reference', 'aria-label': 'Reference' }, search, count, list);
}
