/** Draws what Python describes of a value (`pyapp/rich.py`). */
import { needed } from '../download.js';
import { cumulative } from './charts.js';
import { button, count, h, table } from './dom.js';
import { charted, chartWidth } from './plots.js';

const SCALE = 2;

/**
 * @param {any} shown
 * @param {HTMLElement} root where it will be, for its width
 * @returns {Promise<HTMLElement>}
 */
export async function draw(shown, root) {
  switch (shown.kind) {
    case 'picture':
      return picture(shown);
    case 'table':
      return drawTable(shown, root);
    case 'html':
      return safe(shown.html);
    default:
      return text(shown);
  }
}

/** @param {{width: number, height: number, channels: number, data: string, label: string}} shown */
function picture({ width, height, channels, data, label }) {
  const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
  const canvas = h('canvas', { width, height, role: 'img', 'aria-label': `Picture of ${label}` });
  canvas.style.width = `${width * SCALE}px`;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  const image = context.createImageData(width, height);
  for (let i = 0; i < width * height; i++) {
    for (let channel = 0; channel < 3; channel++) image.data[4 * i + channel] = bytes[channels * i + (channels === 3 ? channel : 0)];
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return h('figure', { class: 'result picture' }, canvas, h('figcaption', {}, label));
}

/** @param {{caption: string, columns: string[], rows: string[][], lanes?: any[]}} shown @param {HTMLElement} root */
async function drawTable({ caption, columns, rows, lanes }, root) {
  const found = h('div', { class: 'result' }, table(caption, columns, rows));
  if (lanes?.length) found.append(await charted(cumulative(lanes, chartWidth(root))));
  return found;
}

/** HTML that anybody may have written: no script, no style, no frame, no address that is not data. @param {string} html */
async function safe(html) {
  /** @type {typeof import('../vendor/purify.js')} */
  const { DOMPurify } = await needed(new URL('../vendor/purify.js', import.meta.url));
  const clean = DOMPurify.sanitize(plain(html), { RETURN_DOM_FRAGMENT: true, FORBID_TAGS: ['style', 'form', 'input', 'button', 'textarea', 'select'], FORBID_ATTR: ['style', 'id', 'name'], ALLOW_DATA_ATTR: false });
  for (const link of clean.querySelectorAll('[src], [href]')) {
    for (const name of ['src', 'href']) if (!/^(data:image\/|#)/i.test(link.getAttribute(name) ?? '#')) link.removeAttribute(name);
  }
  return h('div', { class: 'result html scroll', tabindex: 0, role: 'region', 'aria-label': 'HTML from Python' }, clean);
}

/**
 * Takes out most styles: the sanitiser leaves none, but has to parse them, and the browser would report each as against the page's policy.
 * @param {string} html
 */
function plain(html) {
  const unstyled = html.split(/<\/style\s*>/i).map((part) => part.replace(/<style\b[^]*/i, ''));
  return unstyled.join('').replace(/<[a-z][^<>]*/gi, (tag) => tag.replace(/\sstyle\s*=\s*("[^"]*"|'[^']*'|[^\s>]+)/gi, ''));
}

/** @param {{text: string, length: number, shown: number}} shown */
function text({ text: whole, length, shown: most }) {
  const pre = h('pre', { class: 'result' }, whole.slice(0, most));
  if (length <= most) return pre;
  const more = button(`Show all ${count(length)} characters`, () => {
    pre.textContent = length > whole.length ? `${whole}… (only so much was kept)` : whole;
    more.remove();
  });
  return h('div', {}, pre, more);
}
