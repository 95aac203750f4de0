/**
 * Translates every text that can be shown, and says what has no translation and which translations nothing uses.
 *
 * Reads `{"texts": [...], "partly": [...]}` from standard input, the latter texts that may have no translation yet, in which `qq` stands for what is known only when the page runs; writes `{"missing", "unused", "all"}`.
 */
import { readdirSync, readFileSync } from 'node:fs';

import { Translator } from '../../web/translate.js';
import { HOLE, shown, textsOf } from './texts.mjs';

const web = new URL('../../web/', import.meta.url);
const { texts, partly = [], catalogue = JSON.parse(readFileSync(new URL('languages/zh-TW.json', web), 'utf8')) } = JSON.parse(readFileSync(0, 'utf8'));
// The service worker is no part of the page, and shows nothing.
const modules = readdirSync(web, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.js') && !path.startsWith('vendor/') && path !== 'service-worker.js');
const all = [
  ...texts,
  ...textsOf(readFileSync(new URL('index.html', web), 'utf8')),
  ...modules.flatMap((path) => shown(path, readFileSync(new URL(path, web), 'utf8'))),
];

const translator = new Translator(catalogue);
const used = new Set();
const missing = new Set();
translator.onUse = (key) => used.add(key);
/** @type {string[]} */
let here = [];
translator.onMissing = (text) => here.push(text);
for (const text of all) {
  // A hole that touches what stands before it is an ending, or a clause that may be there or not.
  for (const one of new Set([text, text.replaceAll(new RegExp(`(?<=[\\w)\\]])${HOLE}`, 'g'), '')])) {
    here = [];
    translator.translate(one);
    here = here.filter((part) => /[A-Za-z]{2}/.test(part.replaceAll(new RegExp(`${HOLE}|ms|UTC`, 'g'), '')));
    if (!here.length) break;
  }
  for (const part of here) missing.add(part);
}
for (const text of partly) translator.translate(text);
const keys = Object.values(catalogue).flatMap((room) => Object.keys(room));
console.log(JSON.stringify({ missing: [...missing], unused: keys.filter((key) => !used.has(key)), all: all.length }));
