// The emulator's module and web/ale.js, as dist/ holds them, in Node.js. That it plays like ale_py is tested in test_emulator.py.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import test from 'node:test';

const APP = new URL('../../dist/app/', import.meta.url);
const DIST = new URL(`${readdirSync(APP)[0]}/`, APP);
const { loadAle } = await import(new URL('ale.js', DIST).href);
const WASM = readFileSync(new URL('ale/ale.wasm', DIST));
const ROM = new Uint8Array(readFileSync(new URL('ale/breakout.bin', DIST)));
const FIRE = 1;

const ale = await loadAle(WASM);

/** Plays on, one line of all that came of it for every step. */
function* turns(game, steps) {
  for (let step = 0; step < steps; step++) {
    const reward = game.play([0, 1, 3, 4][(step * 7 + (step >> 3)) % 4], 1 + (step % 5));
    const { played, lives, over, frame, episode } = game;
    yield [reward, played, lives, over, frame, episode, ...[game.ram(), game.screens(), game.small(), game.screen()].map(digest)].join();
    if (over) game.reset();
  }
}

const play = (game, steps) => [...turns(game, steps)];

function digest(bytes) {
  let hash = 0;
  for (const byte of bytes) hash = (Math.imul(hash, 31) + byte) | 0;
  return hash;
}

const refusal = (name, ...words) => (error) => {
  assert.equal(error.name, name);
  for (const word of words) assert.match(error.message, new RegExp(word));
  assert.notEqual(error.remedy, '');
  return true;
};

test('games in one module do not disturb one another', () => {
  const alone = [1, 2, 3].map((seed) => play(ale.open(ROM, 0.25, seed), 60));
  const games = [1, 2, 3].map((seed) => ale.open(ROM, 0.25, seed));
  const playing = games.map((game) => turns(game, 60));
  const together = Array.from({ length: 60 }, () => playing.map((turn) => turn.next().value));
  assert.deepEqual(together, alone[0].map((_, step) => alone.map((lines) => lines[step])));
  for (const game of games) game.close();
});

test('what is refused is quoted, and changes nothing', () => {
  const game = ale.open(ROM, 0.25, 5);
  const twin = ale.open(ROM, 0.25, 5);
  const other = ROM.slice();
  other[7] ^= 1;
  assert.throws(() => ale.open(other, 0, 1), refusal('BadRom', '2048 bytes', 'f34f08e5eb96e500e851a80be3277a56'));
  assert.throws(() => ale.open(new Uint8Array(2 ** 20), 0, 1), refusal('BadRom', '1048576 bytes'));
  for (const rom of [null, 'rom', [1]]) assert.throws(() => ale.open(rom, 0, 1), refusal('BadRom'));
  for (const sticky of [-0.1, 1.01, NaN, '0.5', null]) assert.throws(() => ale.open(ROM, sticky, 1), refusal('BadSticky', String(sticky)));
  for (const seed of [-2, 2 ** 31, 1.5, '3', 5n]) assert.throws(() => game.load(seed), refusal('BadSeed', String(seed)));
  for (const action of [2, 5, 18, 40, -1, 2 ** 32 + 1, 1.5, '1', null]) assert.throws(() => game.play(action, 4), refusal('BadAction', String(action), '0, 1, 3, 4'));
  for (const frames of [0, -1, 1.5, '4', 2 ** 31]) assert.throws(() => game.play(0, frames), refusal('BadFrames', String(frames)));
  assert.deepEqual(play(game, 40), play(twin, 40));
  game.close();
  game.close();
  assert.throws(() => game.lives, refusal('GameClosed'));
  twin.close();
});

test('a state goes back in any game, and a damaged one nowhere', () => {
  for (const rng of [true, false]) {
    const game = ale.open(ROM, rng ? 0.25 : 0, 7);
    const other = ale.open(ROM, rng ? 0.25 : 0, 8);
    game.play(FIRE, 30);
    const state = game.save(rng);
    for (const one of [game, other]) {
      one.restore(state, rng);
      one.play(0, 1); // the previous action is no part of a state: here it is NOOP for both
      one.restore(state, rng);
      one.look();
    }
    assert.deepEqual(play(game, 60), play(other, 60));
    for (let at = 0; at < state.length; at += 13) {
      const damaged = state.slice();
      damaged[at] ^= 1 << at % 8;
      assert.throws(() => game.restore(damaged, rng), refusal('BadState', `${state.length} bytes`));
    }
    assert.throws(() => game.restore(state, !rng), refusal('BadState', `${state.length} bytes`));
    assert.throws(() => game.restore(state.slice(1), rng), refusal('BadState', `${state.length - 1} bytes`));
    assert.equal(game.save(rng).length, state.length);
    for (const one of [game, other]) one.close();
  }
});

test('each frame of a play can be painted, the last sixteen of a long one', () => {
  const [game, slow] = [ale.open(ROM, 0, 9), ale.open(ROM, 0, 9)];
  assert.throws(() => game.paint(0), refusal('BadFrame', 'none was played'));
  game.play(FIRE, 20);
  for (let frame = 0; frame < 20; frame++) {
    slow.play(FIRE, 1);
    if (frame >= 4) assert.deepEqual(game.paint(frame).slice(), slow.screen().slice());
    else assert.throws(() => game.paint(frame), refusal('BadFrame', '4 to 19'));
  }
  for (const index of [-1, 20, 0.5, '5']) assert.throws(() => game.paint(index), refusal('BadFrame'));
  for (const one of [game, slow]) one.close();
});

test('pooling takes the brighter of the last two frames', () => {
  const [game, slow] = [ale.open(ROM, 0, 9), ale.open(ROM, 0, 9)];
  const grey = [];
  for (let frame = 0; frame < 40; frame++) {
    slow.play(FIRE, 1);
    slow.look();
    assert.ok(slow.screens().subarray(0, 33_600).every((byte) => byte === 0));
    grey.push(slow.pooled().slice());
  }
  for (let frame = 4; frame <= 40; frame += 4) {
    game.play(FIRE, 4);
    const [before, latest] = grey.slice(frame - 2, frame);
    assert.deepEqual(game.screens().slice(0, 33_600), before);
    assert.deepEqual(game.pooled().slice(), latest.map((byte, index) => Math.max(byte, before[index])));
  }
  for (const one of [game, slow]) one.close();
});

test('a crash is told, and the module is left alone afterwards', async () => {
  const broken = await loadAle(await WebAssembly.compile(WASM));
  const game = broken.open(ROM, 0, 1);
  assert.throws(() => broken.run((exports) => exports.ale_md5(-16, 64)), refusal('AleCrashed', 'out of bounds'));
  assert.throws(() => game.play(0, 1), refusal('AleCrashed'));
  assert.equal(broken.crashed, true);
  game.close();
  await assert.rejects(loadAle(new Response('no module')), refusal('BadModule'));
});

test('random seeds differ, and closed games give their memory back', () => {
  const [one, two] = [ale.open(ROM, 0.25, -1), ale.open(ROM, 0.25, -1)];
  assert.notDeepEqual(play(one, 60), play(two, 60));
  for (const game of [one, two]) game.close();
  const before = ale.bytes;
  for (let seed = 0; seed < 20; seed++) ale.open(ROM, 0, seed).close();
  assert.equal(ale.bytes, before);
});
