/** What all charts have in common. */
import { needed } from '../download.js';
import { toWireError } from '../wire.js';
import { h } from './dom.js';

export const MARGIN = { left: 52, right: 20, bottom: 40 };

/** Observable Plot, loaded with the first chart. @returns {Promise<typeof import('../vendor/plot.js')>} */
export function plotting() {
  return needed(new URL('../vendor/plot.js', import.meta.url));
}

/**
 * A chart, or why there is none: results must not be lost for want of a picture, and a table beside it has the numbers.
 * @param {Promise<Element>} chart
 * @returns {Promise<Element>}
 */
export function charted(chart) {
  return chart.catch((error) => {
    const { message, remedy } = toWireError(error);
    return h('p', { class: 'note' }, `There is no chart: ${message}. ${remedy}`);
  });
}

/** The colour of the engine with this place in a chart. @param {number} place */
export function engineColor(place) {
  return `var(--engine-${place % 6})`;
}

/** What charts of engines share: their margins and colours. @param {{engine: string}[]} entries @param {number} width */
export function common(entries, width) {
  const engines = entries.map(({ engine }) => engine);
  return {
    width,
    marginLeft: MARGIN.left,
    marginRight: MARGIN.right,
    marginBottom: MARGIN.bottom,
    color: { domain: engines, range: engines.map((_, i) => engineColor(i)) },
  };
}

/** The width of a chart in an element. @param {HTMLElement} root */
export function chartWidth(root) {
  return Math.max(280, Math.min(900, root.clientWidth || 640));
}

/**
 * Plot brings a style element of its own, which the content security policy refuses; its rules are in page.css. It names each group of marks,
 * which only a group with a role may have; to those who hear it, the whole is one picture with one name, beside a table.
 * @param {Element} figure
 * @param {string} label
 */
export function plain(figure, label) {
  for (const style of figure.querySelectorAll('style')) style.remove();
  for (const part of figure.children) part.setAttribute('aria-hidden', 'true');
  figure.setAttribute('class', 'plot');
  figure.setAttribute('role', 'img');
  figure.setAttribute('aria-label', label);
  return figure;
}
