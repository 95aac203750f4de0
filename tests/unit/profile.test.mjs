/** onnxruntime-web's profile, as its console gives it: whole, in parts, and with names that would break it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nodesOf, parseTrace } from '../../web/profile.js';

/** @param {string} written a node's name as onnxruntime writes it */
const trace = (written) =>
  [
    '[',
    '{"cat" : "Session","pid" :42,"tid" :1,"dur" :5,"ts" :2,"ph" : "X","name" :"session_initialization","args" : {}},',
    `{"cat" : "Node","pid" :42,"tid" :1,"dur" :7,"ts" :3,"ph" : "X","name" :"${written}_kernel_time","args" : {"op_name" : "Relu","provider" : "CPUExecutionProvider","node_index" : "0","output_type_shape" : [{"float":[2,3]}]}},`,
    '{"cat" : "Session","pid" :42,"tid" :1,"dur" :6,"ts" :1,"ph" : "X","name" :"model_run","args" : {}}',
    ']\n',
  ].join('\n');

/** @param {string} text */
const names = (text) => nodesOf(parseTrace(text) ?? []).map(({ name }) => name);

test('a node has its operator, provider, time and shape', () => {
  assert.deepEqual(nodesOf(parseTrace(trace('relu')) ?? []), [{ name: 'relu', op: 'Relu', provider: 'CPUExecutionProvider', us: 7, shape: 'float[2,3]' }]);
});

test('names that are not escaped are read', () => {
  for (const name of ['<img src=x onerror="x">', '"', 'a\\b', 'two\nlines', '{"name" :"x"}', '\\"', ']', 'tab\t', '}}', '模型']) {
    assert.deepEqual(names(trace(name)), [name], JSON.stringify(name));
  }
});

test('what is not whole yet is waited for', () => {
  for (const name of ['relu', '"odd" ]']) {
    const whole = trace(name).trimEnd();
    for (let length = 0; length < whole.length; length++) assert.equal(parseTrace(whole.slice(0, length)), null);
  }
});
