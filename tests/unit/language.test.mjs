/** How sentences are translated, and which language a visit begins in, under Node.js. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { moment, preferred } from '../../web/language.js';
import { readSettings, writeSettings, DEFAULTS } from '../../web/settings.js';
import { Translator } from '../../web/translate.js';

const CATALOGUE = {
  words: { Cancel: '取消', 'the tab was hidden': '分頁被隱藏', 'Reload the page.': '請重新載入網頁。', 'too far': '差太遠', 'where Python chose': '而 Python 選擇' },
  sentences: {
    '{n} of {m} states agree': '{m} 個狀態中 {n} 個一致',
    '{n} of {m} states agree on {engine}': '在 {engine} 上，{m} 個狀態中 {n} 個一致',
    '{engine} stopped: {reason}': '{engine} 停止：{reason}',
    '{engines} {_verb} right': '{engines} 正確',
    '{n} game{_s}': '{n} 局',
    'A {suite} b': '甲 {suite} 乙',
    'Python stopped: {message}': 'Python 停止了：{message}',
  },
};

function translator() {
  const made = new Translator(CATALOGUE);
  /** @type {string[]} */
  const missing = [];
  made.onMissing = (text) => missing.push(text);
  return { missing, say: (/** @type {string} */ text) => made.translate(text) };
}

test('a text that is known as it stands', () => {
  const { say } = translator();
  assert.equal(say('Cancel'), '取消');
  assert.equal(say('the tab\n   was hidden'), '分頁被隱藏');
});

test('the full stop is the text\'s own, not the catalogue\'s', () => {
  const { say } = translator();
  assert.equal(say('Reload the page'), '請重新載入網頁');
  assert.equal(say('the tab was hidden.'), '分頁被隱藏。');
});

test('numbers, signs and single letters are let through', () => {
  const { say, missing } = translator();
  for (const text of ['', ' ', '12.5', '–', '60 / 60', '12.3 ms', '×4', 'n']) assert.equal(say(text), text);
  assert.deepEqual(missing, []);
});

test('arrows of axes stay where they are', () => {
  const { say, missing } = translator();
  assert.equal(say('↑ too far'), '↑ 差太遠');
  assert.equal(say('3 of 60 states agree →'), '60 個狀態中 3 個一致 →');
  assert.deepEqual(missing, []);
});

test('placeholders change places', () => {
  const { say } = translator();
  assert.equal(say('3 of 60 states agree'), '60 個狀態中 3 個一致');
});

test('of several templates the one that says most is taken', () => {
  const { say } = translator();
  assert.equal(say('3 of 60 states agree on wasm-1'), '在 wasm-1 上，60 個狀態中 3 個一致');
});

test('what a placeholder catches is translated itself', () => {
  const { say } = translator();
  assert.equal(say('wasm-1 stopped: the tab was hidden'), 'wasm-1 停止：分頁被隱藏');
  assert.equal(say('wasm-1 stopped: 3 of 60 states agree; too far.'), 'wasm-1 停止：60 個狀態中 3 個一致；差太遠。');
});

test('a sentence within a sentence that nobody knows is told', () => {
  const { say, missing } = translator();
  assert.equal(say('wasm-1 stopped: nobody knows why'), 'wasm-1 停止：nobody knows why');
  assert.deepEqual(missing, ['nobody knows why']);
});

test('a name is no sentence, and is not told', () => {
  const { say, missing } = translator();
  assert.equal(say('A my own suite b'), '甲 my own suite 乙');
  assert.deepEqual(missing, []);
});

test('lists of names get the signs of the language', () => {
  const { say } = translator();
  assert.equal(say('wasm-1, wasm-2 and webgpu-fast are right'), 'wasm-1、wasm-2 和 webgpu-fast 正確');
});

test('endings that only English has are dropped', () => {
  const { say } = translator();
  assert.deepEqual([say('1 game'), say('2 games')], ['1 局', '2 局']);
});

test('several sentences are translated one by one, before a template reaches over them', () => {
  const { say } = translator();
  assert.equal(say('Python stopped: too far. Reload the page.'), 'Python 停止了：差太遠。請重新載入網頁。');
});

test('a text without a translation falls apart into clauses', () => {
  const { say, missing } = translator();
  assert.equal(say('states on wasm-1: the tab was hidden'), 'states on wasm-1：分頁被隱藏');
  assert.equal(say('wasm-1 (too far)'), 'wasm-1（差太遠）');
  assert.deepEqual(missing, ['states on wasm-1']);
});

test('space around a text is kept but beside wide signs', () => {
  const { say } = translator();
  assert.equal(say(', where Python chose '), '，而 Python 選擇 ');
  assert.equal(say('  Cancel '), ' 取消 ');
});

test('what is not known stays as it is, and is told once', () => {
  const { say, missing } = translator();
  for (let i = 0; i < 3; i++) assert.equal(say('some other text'), 'some other text');
  assert.deepEqual(missing, ['some other text']);
});

test('numbers stay with their units where they were', () => {
  const made = new Translator({ all: { '{time} in the mean': '平均 {time}' } });
  assert.equal(made.translate('12\u00a0ms in the mean'), '平均 12\u00a0ms');
});

test('signs in texts are no patterns', () => {
  const made = new Translator({ all: { 'What (of {n}) + more?': '{n} 的更多？' } });
  assert.equal(made.translate('What (of 3) + more?'), '3 的更多？');
});

test('texts that share much do not take long', () => {
  const { say } = translator();
  const begun = performance.now();
  say(`${'a, b; c: (d) e. '.repeat(400)}end`);
  assert.ok(performance.now() - begun < 2_000);
});

test('the address wins over what is kept, and that over the browser', () => {
  assert.equal(preferred('en', 'zh-TW', ['zh-TW']), 'en');
  assert.equal(preferred(null, 'zh-TW', ['de']), 'zh-TW');
  assert.equal(preferred('xx', 'yy', ['de']), 'en');
});

test('traditional characters are what the browser\'s first language decides', () => {
  for (const first of ['zh-TW', 'zh-Hant', 'zh-HK', 'zh-MO', 'zh-Hant-HK', 'ZH-tw']) assert.equal(preferred(null, null, [first, 'en']), 'zh-TW', first);
  for (const first of ['en-US', 'zh-CN', 'zh', 'zh-Hans-TW', 'de']) assert.equal(preferred(null, null, [first, 'zh-TW']), 'en', first);
  assert.equal(preferred(null, null, []), 'en');
});

test('the address keeps the language beside the settings', () => {
  const { settings, language, unknown } = readSettings(new URLSearchParams('runs=5&lang=zh-TW'));
  assert.deepEqual([settings.runs, language, unknown], [5, 'zh-TW', []]);
  assert.equal(writeSettings(settings, language), '?runs=5&lang=zh-TW');
  assert.equal(writeSettings(DEFAULTS, null), '');
});

test('moments are written by the language', () => {
  assert.equal(moment('2026-12-01T05:12:30Z', 'en'), '1 Dec 2026, 05:12 UTC');
  assert.match(moment('2026-12-01T05:12:30Z', 'zh-TW'), /^2026(?:年12月1日|\/12\/1)\s05:12 UTC$/);
  assert.equal(moment('yesterday', 'en'), 'yesterday');
});
