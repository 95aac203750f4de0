/** Whose work the site holds, and under which licences: the build's list, loaded when it is opened. */
import { h, table } from './dom.js';
import { downloadText } from '../download.js';
import { toWireError } from '../wire.js';

/** @typedef {{name: string, version: string | null, licence: string, source: string, text: string, files: string[]}} Part */

/**
 * @param {HTMLElement} details a `details` element with its summary
 * @param {URL} base the folder of the site's version
 */
export function licences(details, base) {
  const said = h('p', { class: 'error', role: 'alert', hidden: true });
  details.append(said);
  let wanted = true;
  details.addEventListener('toggle', async () => {
    if (!wanted || !(/** @type {HTMLDetailsElement} */ (details).open)) return;
    wanted = false;
    try {
      details.append(list(JSON.parse(await downloadText(new URL('licences.json', base))).parts, base));
      said.hidden = true;
    } catch (error) {
      const { message, remedy } = toWireError(error);
      said.textContent = `${message}. ${remedy}`;
      said.hidden = false;
      wanted = true;
    }
  });
}

/** @param {Part[]} parts @param {URL} base */
function list(parts, base) {
  const rows = parts.map(({ name, version, licence, source, text }) => [
    source ? h('a', { href: source, rel: 'noreferrer' }, name) : name,
    version ?? '–',
    h('a', { href: new URL(text, base).href }, licence),
  ]);
  return table('Parts and their licences', ['Part', 'Version', 'Licence'], rows);
}
