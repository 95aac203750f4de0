/**
 * What takes longest begins first: Python boots while the rest of the page's modules are still on their way.
 */
import { downloadText } from './download.js';
import { isolate } from './isolation.js';
import { PythonHost } from './python-host.js';

export const base = new URL('.', import.meta.url);
export const root = new URL('../../', base);

async function begin() {
  // What began here would be over in a moment.
  if (await isolate(root)) await new Promise(() => {});
  /** @type {import('./types.d.ts').Site} */
  const site = JSON.parse(await downloadText(new URL('site.json', base)));
  const python = new PythonHost(site, base);
  const booted = python.boot();
  hush(booted);
  return { site, python, booted };
}

/** Whoever waits for it hears of its failure, and may come later. @param {Promise<unknown>} promise */
function hush(promise) {
  promise.catch(() => {});
}

export const early = begin();
hush(early);
