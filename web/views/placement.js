import { h, milliseconds, table, warningList } from './dom.js';

const SHOWN = 20;

/** Where the nodes ran, engine by engine, the most expensive first. */
export class PlacementView {
  #root;

  /** @param {HTMLElement} root */
  constructor(root) {
    this.#root = root;
  }

  clear() {
    this.#root.replaceChildren();
  }

  /** @param {any} entry a `PlacementEntry` of the report */
  add(entry) {
    this.#root.append(part(entry));
  }
}

/** @param {any} entry */
function part({ engine, strict, nodes, copies, reason, warnings }) {
  const title = h('h3', {}, engine, ...(strict ? [' ', h('small', { class: 'note' }, 'no node may run on the CPU')] : []));
  if (reason) return h('article', {}, title, h('p', { class: 'error' }, reason));
  /** @type {Map<string, {count: number, ms: number}>} */
  const providers = new Map();
  for (const { provider, ms } of nodes) {
    const known = providers.get(provider) ?? { count: 0, ms: 0 };
    providers.set(provider, { count: known.count + 1, ms: known.ms + ms });
  }
  const shares = [...providers].map(([provider, { count, ms }]) => `${plain(provider)}: ${count} ${count === 1 ? 'node' : 'nodes'}, ${milliseconds(ms)}`);
  const total = nodes.reduce((/** @type {number} */ sum, /** @type {any} */ { ms }) => sum + ms, 0);
  const rows = nodes.map((/** @type {any} */ node) => [
    node.name || node.op,
    node.op,
    plain(node.provider) === 'CPU' && providers.size > 1 ? h('mark', {}, 'CPU') : plain(node.provider),
    h('code', {}, node.shape || '–'),
    milliseconds(node.ms),
    total ? `${((100 * node.ms) / total).toFixed(0)} %` : '–',
  ]);
  const columns = ['node', 'operator', 'provider', 'gives', 'time', 'share'];
  const caption = `Nodes of ${engine}`;
  return h(
    'article',
    {},
    title,
    h('p', {}, `${shares.join('; ')}. Copies between CPU and GPU: ${copies}.`),
    ...(warnings.length ? [warningList(warnings)] : []),
    table(caption, columns, rows.slice(0, SHOWN)),
    ...(rows.length > SHOWN ? [h('details', {}, h('summary', {}, `The other ${rows.length - SHOWN} nodes`), table(`${caption}, the rest`, columns, rows.slice(SHOWN)))] : []),
  );
}

/** @param {string} provider as onnxruntime calls it */
function plain(provider) {
  return provider.replace(/ExecutionProvider$/, '');
}
