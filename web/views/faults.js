import { button, h, scientific, table, warningList } from './dom.js';

const KINDS = /** @type {Record<string, (entry: any) => string>} */ ({
  source: ({ engine, node, op, reference }) => `On ${engine}, ${op} “${node}” is where it goes wrong: it errs on inputs that are ${reference}'s own.`,
  inherited: ({ engine, node, op }) => `On ${engine}, ${op} “${node}” is the first beyond the tolerance, but alone it does not err, nor does any node before it: the error adds up.`,
  fused: ({ engine }) => `On ${engine} nothing differs as soon as the values within the model are asked for: what onnxruntime makes of several nodes errs.`,
  none: ({ engine, reference }) => `On ${engine} every value within the model is ${reference}'s, within the tolerance.`,
});

const COLUMNS = ['node', 'operator', 'gives', 'max |Δ|', 'max relative', ''];

/** Values before the first that is too far, at most. */
const SHOWN = 5;

/** Where an engine's values leave the reference's. */
export class FaultsView {
  #root;
  #download;

  /** @param {HTMLElement} root @param {() => unknown} download saves what reproduces the fault */
  constructor(root, download) {
    this.#root = root;
    this.#download = download;
  }

  clear() {
    this.#root.replaceChildren();
  }

  /** @param {any} entry a `FaultEntry` of the report */
  add(entry) {
    const { engine, reference, suite, case: index, kind, compared, steps, alone, map, warnings } = entry;
    const where = `${index} of ${suite}; ${compared} values compared with ${reference} (rtol ${entry.rtol}, atol ${entry.atol})`;
    const far = steps.findIndex((/** @type {any} */ { close, failure }) => !close || failure);
    const first = Math.max(0, (far < 0 ? steps.length : far) - SHOWN);
    this.#root.replaceChildren(
      h('p', { class: `sentence ${kind === 'none' ? 'good' : 'bad'}` }, KINDS[kind]?.(entry) ?? kind),
      h('p', { class: 'note' }, `Case ${where}.`),
      ...(warnings.length ? [warningList(warnings)] : []),
      ...(alone ? [h('h3', {}, 'That node alone, on the reference’s inputs'), table('The node alone', COLUMNS, [step(alone)])] : []),
      ...(steps.length ? [h('h3', {}, 'Within the model'), table(`Values of ${engine} against ${reference}`, COLUMNS, steps.slice(first).map(step))] : []),
      ...(first ? [h('details', {}, h('summary', {}, `The ${first} values before these`), table(`Earlier values of ${engine} against ${reference}`, COLUMNS, steps.slice(0, first).map(step)))] : []),
      ...(map ? [heat(map)] : []),
      ...(alone ? [h('div', { class: 'actions' }, button('Save the node with its inputs (.onnx and .npz)', () => this.#download()))] : []),
    );
  }
}

/** @param {any} one a `FaultStep` @returns {(Node | string)[]} */
function step({ node, op, output, shape, max_abs, max_rel, close, failure }) {
  const verdict = failure ?? (close ? 'within' : 'too far');
  return [node || output, op, h('code', {}, `${output} [${shape}]`), scientific(max_abs), scientific(max_rel), h('strong', { class: close && !failure ? 'good' : 'bad' }, verdict)];
}

/**
 * The difference as a picture: black where there is none, the brighter the larger, on a logarithmic scale.
 * @param {{height: number, width: number, values: (number | null)[][]}} map
 */
function heat({ height, width, values }) {
  const rows = values.length;
  const columns = values[0]?.length ?? 0;
  const canvas = h('canvas', { width: Math.max(columns, 1), height: Math.max(rows, 1), class: 'heat', role: 'img', 'aria-label': `Difference of a tensor of ${height} rows and ${width} columns` });
  const finite = values.flat().filter((value) => value !== null).filter((value) => value > 0);
  const largest = Math.max(...finite, 0);
  const smallest = Math.max(Math.min(...finite, Infinity), largest * 1e-6);
  const image = new ImageData(Math.max(columns, 1), Math.max(rows, 1));
  values.forEach((row, y) => row.forEach((value, x) => image.data.set(colour(value, smallest, largest), (y * columns + x) * 4)));
  canvas.getContext('2d')?.putImageData(image, 0, 0);
  return h(
    'figure',
    {},
    h('figcaption', {}, `How far each part of the tensor is from its reference: ${height} × ${width} elements; black is 0, the brightest is ${scientific(largest)}; magenta is no number.`),
    canvas,
  );
}

/** @param {number | null} value @param {number} smallest @param {number} largest @returns {[number, number, number, number]} */
function colour(value, smallest, largest) {
  if (value === null) return [255, 0, 255, 255];
  if (value <= 0) return [0, 0, 0, 255];
  const part = largest > smallest ? Math.log(Math.max(value, smallest) / smallest) / Math.log(largest / smallest) : 1;
  return [60 + 195 * part, 30 + 190 * part ** 2, 30 + 120 * part ** 4, 255];
}
