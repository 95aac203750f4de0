/** The game's pace and its rounds, under Node.js: they need neither a browser nor an emulator. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pacer } from '../../web/play/pacer.js';
import { Rounds } from '../../web/play/round.js';

/**
 * Plays on a display.
 * @param {Pacer} pacer
 * @param {{hz: number, seconds: number, jitter?: number, ready?: (due: number, now: number) => number}} display
 */
function play(pacer, { hz, seconds, jitter = 0, ready = (due) => due }) {
  let state = 1;
  const random = () => (state = (state * 16807) % 2147483647) / 2147483647;
  const ticks = Math.round(hz * seconds);
  for (let tick = 0; tick < ticks; tick++) {
    const now = 5_000 + (1_000 * tick) / hz + jitter * (random() - 0.5);
    const due = pacer.due(now);
    if (due > 0) pacer.played(now, due, ready(due, now));
  }
}

const near = (found, wanted, by) => assert.ok(Math.abs(found - wanted) <= by, `${found} is not ${wanted} ± ${by}`);

for (const hz of [60, 75, 90, 120, 144, 165, 240]) {
  test(`on a display of ${hz} Hz the game runs at 60 frames a second, none missed`, () => {
    const pacer = new Pacer();
    play(pacer, { hz, seconds: 120, jitter: 2 });
    near(pacer.shown, 7_200, 10);
    assert.equal(pacer.missed, 0);
    assert.ok(pacer.gap < 2_000 / 60 + 2, `${pacer.gap} ms without a frame`);
  });
}

for (const hz of [59.94, 59.8, 60.3]) {
  test(`a display of ${hz} Hz is followed: each of its ticks shows one frame`, () => {
    const pacer = new Pacer();
    play(pacer, { hz, seconds: 600, jitter: 1 });
    near(pacer.shown, hz * 600, 2);
    assert.equal(pacer.missed, 0);
  });
}

test('on a display of 30 Hz every other frame is missed, and the game keeps its speed', () => {
  const pacer = new Pacer();
  let played = 0;
  play(pacer, { hz: 30, seconds: 10, ready: (due) => ((played += due), due) });
  near(played, 600, 2);
  near(pacer.missed, 300, 2);
});

test('at twice the speed a display of 60 Hz shows every other frame', () => {
  const pacer = new Pacer(2);
  let played = 0;
  play(pacer, { hz: 60, seconds: 10, ready: (due) => ((played += due), due) });
  near(played, 1_200, 3);
});

test('a tick that comes late misses what was due before it, and says how long nothing was shown', () => {
  const pacer = new Pacer();
  const at = (now) => {
    const due = pacer.due(now);
    if (due > 0) pacer.played(now, due, due);
    return due;
  };
  for (let tick = 0; tick < 10; tick++) assert.equal(at((tick * 1_000) / 60), 1);
  assert.equal(at((12 * 1_000) / 60), 3);
  assert.equal(pacer.missed, 2);
  near(pacer.gap, 50, 0.01);
  assert.equal(at((13 * 1_000) / 60), 1, 'it is on time again');
});

test('while there is nothing to show every frame is missed, and nothing is caught up afterwards', () => {
  const pacer = new Pacer();
  play(pacer, { hz: 60, seconds: 2, ready: (due, now) => (now < 6_000 ? 0 : due) });
  near(pacer.missed, 60, 1);
  near(pacer.shown, 60, 1);
});

test('what passes while the clock stands is neither late nor a gap', () => {
  const pacer = new Pacer();
  play(pacer, { hz: 60, seconds: 1 });
  pacer.stop();
  assert.ok(pacer.stands);
  assert.equal(pacer.due(60_000), 1);
  pacer.played(60_000, 1, 1);
  assert.equal(pacer.missed, 0);
  assert.ok(pacer.gap < 17);
});

test('counting begins anew without a gap from before', () => {
  const pacer = new Pacer();
  play(pacer, { hz: 20, seconds: 1 });
  pacer.reset();
  assert.deepEqual([pacer.shown, pacer.missed, pacer.gap], [0, 0, 0]);
});

test('a round is won by the higher score, once both games are over', () => {
  const rounds = new Rounds();
  assert.match(rounds.end('you', 12), /agent plays on/);
  assert.ok(rounds.hasEnded('you') && !rounds.over);
  assert.match(rounds.end('agent', 30), /The agent wins the round, 30 to 12/);
  assert.ok(rounds.over);
  rounds.next();
  assert.ok(!rounds.over && !rounds.hasEnded('you'));
  assert.match(rounds.end('agent', 3), /play on/);
  assert.match(rounds.end('you', 4), /You win the round, 4 to 3/);
  assert.deepEqual(rounds.won, { you: 1, agent: 1 });
});

test('a draw is won by nobody', () => {
  const rounds = new Rounds();
  rounds.end('you', 7);
  assert.match(rounds.end('agent', 7), /draw/);
  assert.deepEqual(rounds.won, { you: 0, agent: 0 });
});
