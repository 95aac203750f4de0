/** Which of a visitor's files is what. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

globalThis.location = { origin: 'https://page.example', href: 'https://page.example/' };
const { download, sorted } = await import('../../web/model-files.js');

const file = (name, size = 10) => ({ name, size, arrayBuffer: async () => new ArrayBuffer(size) });
const names = ({ model, weights, cases }) => [model?.name, weights.map(({ name }) => name), cases?.name];

test('one file that is no case is the model, whatever its name', () => {
  assert.deepEqual(names(sorted([file('anything.bin')])), ['anything.bin', [], undefined]);
});

test('of several, the one that is named .onnx is the model, and the others hold its weights', () => {
  const files = [file('w.data'), file('model.ONNX'), file('cases.npz'), file('w2.data')];
  assert.deepEqual(names(sorted(files)), ['model.ONNX', ['w.data', 'w2.data'], 'cases.npz']);
});

test('cases may come alone', () => {
  assert.deepEqual(names(sorted([file('cases.json')])), [undefined, [], 'cases.json']);
});

test('what is not clear is refused, naming the files', () => {
  assert.throws(() => sorted([file('a.onnx'), file('b.onnx')]), { name: 'WhichModel', message: /2 of these files.*a\.onnx, b\.onnx/ });
  assert.throws(() => sorted([file('a.bin'), file('b.bin')]), { name: 'WhichModel', message: /0 of these/ });
  assert.throws(() => sorted([file('a.npz'), file('b.npy')]), { name: 'WhichCases' });
});

test('what is too large is refused before it is read, naming the limit', () => {
  assert.doesNotThrow(() => sorted([file('a.onnx', 2 ** 30)]));
  assert.throws(() => sorted([file('a.onnx', 2 ** 30), file('w.data', 1)]), { name: 'TooLarge', message: /a\.onnx, w\.data: 1074 MB; at most 1073 MB/ });
});

for (const address of ['', 'model.onnx', 'http://elsewhere.example/a.onnx', 'file:///a.onnx', 'javascript:alert(1)', 'data:,x']) {
  test(`"${address}" is no address to load`, async () => {
    await assert.rejects(download(address, () => {}), { name: 'BadAddress' });
  });
}

test('a download counts its bytes and is cut off at the limit', async () => {
  const told = [];
  globalThis.fetch = async () => new Response(new Uint8Array(3000), { headers: { 'content-length': '3000' } });
  const brought = await download('https://elsewhere.example/a%20b.onnx?x=1', (done, total) => told.push([done, total]));
  assert.equal(brought.name, 'a b.onnx');
  assert.equal((await brought.arrayBuffer()).byteLength, 3000);
  assert.deepEqual(told.at(-1), [3000, 3000]);
  let cancelled = false;
  const endless = new ReadableStream({ pull: (controller) => controller.enqueue({ length: 2 ** 29 }), cancel: () => void (cancelled = true) });
  globalThis.fetch = async () => ({ ok: true, body: endless, headers: new Headers() });
  await assert.rejects(download('https://elsewhere.example/a.onnx', () => {}), { name: 'TooLarge' });
  assert.ok(cancelled);
  globalThis.fetch = async () => new Response('no', { status: 403 });
  await assert.rejects(download('https://elsewhere.example/a.onnx', () => {}), { name: 'DownloadFailed', message: /403/ });
});
