import { count, h, megabytes, table } from './dom.js';

const SHOWN_OPERATORS = 12;

/** What a model's file says. @param {any} read what Python's `Workbench.read` returns */
export function facts({ model, ir_version, producer, domains }) {
  const operators = Object.entries(model.operators);
  const more = operators.length - SHOWN_OPERATORS;
  const listed = operators.slice(0, SHOWN_OPERATORS).map(([op, count]) => `${op} ×${count}`).join(', ') + (more > 0 ? ` and ${more} more kinds` : '');
  const others = Object.entries(domains).map(([name, version]) => `${name} ${version}`);
  return table('What the model is', ['', ''], [
    ['inputs', lines(model.inputs.map(signature))],
    ['outputs', lines(model.outputs.map(signature))],
    ['operators', listed],
    ['parameters', count(model.parameters)],
    ['size', megabytes(model.size)],
    ['opset', [`ai.onnx ${model.opset}`, ...others].join(', ') + `, file format ${ir_version}`],
    ['written by', producer || 'not said'],
    ...(model.fixes.length ? [['changed here', lines(model.fixes)]] : []),
  ]);
}

/** @param {string[]} texts */
function lines(texts) {
  return h('div', {}, ...texts.map((text) => h('div', {}, text)));
}

/** @param {{name: string, dtype: string, dims: string[] | null}} tensor */
export function signature({ name, dtype, dims }) {
  return `${name}: ${dtype}${dims === null ? ' of any rank' : `[${dims.join(', ')}]`}`;
}
