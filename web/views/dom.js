/** Small helpers to build elements; text is always text, never markup. */

const COUNTS = new Intl.NumberFormat('en');

/**
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no element #${id}`);
  return element;
}

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, string | number | boolean>} [attributes]
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false) continue;
    element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...children);
  return element;
}

/** @param {string} text @param {() => unknown} act @param {string} [kind] its class */
export function button(text, act, kind) {
  const made = h('button', { type: 'button', ...(kind && { class: kind }) }, text);
  made.addEventListener('click', act);
  return made;
}

/**
 * A table with a caption for screen readers; the first cell of each row is its header.
 * @param {string} caption
 * @param {string[]} columns
 * @param {(Node | string)[][]} rows
 */
export function table(caption, columns, rows) {
  const head = h('tr', {}, ...columns.map(columnHead));
  const body = rows.map(([first, ...rest]) => h('tr', {}, h('th', { scope: 'row' }, first), ...rest.map((cell) => h('td', {}, cell))));
  return h(
    'div',
    { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': caption },
    h('table', {}, h('caption', { class: 'visually-hidden' }, caption), h('thead', {}, head), h('tbody', {}, ...body)),
  );
}

/** A column without a name, such as the one of the rows' headers, has no header. @param {string} name */
export function columnHead(name) {
  return name ? h('th', { scope: 'col' }, name) : h('td');
}

/** @param {number | null} ms */
export function milliseconds(ms) {
  if (ms === null) return '–';
  return ms >= 100 ? `${ms.toFixed(0)} ms` : `${ms.toPrecision(3)} ms`;
}

/** @param {number | null} value */
export function scientific(value) {
  return value === null ? '–' : value.toExponential(1);
}

/** @param {number | null} value @param {number} [digits] */
export function fixed(value, digits = 1) {
  return value === null ? '–' : value.toFixed(digits).replace('-', '−');
}

/** @param {number | null} low @param {number | null} high */
export function between(low, high) {
  return low === null || high === null ? '–' : `${fixed(low)} to ${fixed(high)}`;
}

/** @param {number} number a whole one, as both of the page's languages write it */
export function count(number) {
  return COUNTS.format(number);
}

/** @param {number} bytes */
export function megabytes(bytes) {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

/** @param {string[]} warnings */
export function warningList(warnings) {
  return h('ul', { class: 'warnings' }, ...warnings.map((warning) => h('li', {}, warning)));
}
