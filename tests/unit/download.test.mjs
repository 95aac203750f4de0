/** What becomes of a file that does not come: servers that go silent, give a part, or give all. Time is turned by hand. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { afterEach, beforeEach, mock, test } from 'node:test';

import { download, insist } from '../../web/download.js';

/** @type {import('node:http').Server} */
let server;
let base = '';
/** @type {string[]} */
let asked = [];

beforeEach(async () => {
  asked = [];
  server = createServer((request, response) => {
    asked.push(request.url ?? '');
    response.setHeader('Content-Length', 10);
    if (request.url === '/silent.wasm') response.write('half');
    else response.end('0123456789');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  base = `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}`;
  mock.timers.enable({ apis: ['setTimeout'] });
});

afterEach(() => {
  mock.timers.reset();
  server.closeAllConnections();
  server.close();
});

/** Lets time pass, with room in it for what servers send. @param {number} seconds */
async function pass(seconds) {
  for (let second = 0; second < seconds; second++) {
    for (let turn = 0; turn < 200; turn++) await new Promise((resolve) => setImmediate(resolve));
    mock.timers.tick(1_000);
  }
}

const never = () => new Promise(() => {});

test('a server that goes silent is given up after 20 s', async () => {
  const failed = assert.rejects(download({ url: `${base}/silent.wasm`, bytes: 10 }), { name: 'DownloadFailed', message: 'silent.wasm could not be loaded: nothing came for 20 s' });
  await pass(25);
  await failed;
});

test('a file of another size than it should have is none', async () => {
  await assert.rejects(download({ url: `${base}/whole.bin`, bytes: 12 }), { message: 'whole.bin could not be loaded: 10 of 12 bytes came' });
});

test('work that never ends is looked into, and the file that does not come is named', async () => {
  const parts = [{ url: `${base}/whole.bin`, bytes: 10 }, { url: `${base}/silent.wasm`, bytes: 10 }];
  const failed = assert.rejects(insist(never, parts), { name: 'DownloadFailed', message: /^silent\.wasm .*nothing came for 20 s$/ });
  await pass(50);
  await failed;
});

test('work that is slow for reasons of its own goes on', async () => {
  const slow = new Promise((resolve) => setTimeout(resolve, 70_000, 'done'));
  const answer = insist(() => slow, [{ url: `${base}/whole.bin`, bytes: 10 }]);
  await pass(80);
  assert.equal(await answer, 'done');
});

test('work that fails though its files are sound says its own error', async () => {
  const fails = () => Promise.reject(new RangeError('out of memory'));
  await assert.rejects(insist(fails, [{ url: `${base}/whole.bin`, bytes: 10 }]), { name: 'RangeError', message: 'out of memory' });
});

test('nothing is asked for work that nobody waits for', async () => {
  const given = new AbortController();
  void insist(never, [{ url: `${base}/whole.bin`, bytes: 10 }], given.signal);
  given.abort();
  await pass(60);
  assert.deepEqual(asked, []);
});
