/**
 * What takes longest begins first: Python boots while the rest of the page's modules are still on their way.
 */
import { isolate } from './isolation.js';
import { PythonHost } from './python-host.js';
import { AppError } from './wire.js';

export const base = new URL('.', import.meta.url);
export const root = new URL('../../', base);

/** @returns {Promise<import('./types.d.ts').Site>} */
async function readSite() {
  const response = await fetch(new URL('site.json', base));
  if (!response.ok) throw new AppError('IncompleteSite', `site.json answered ${response.status}`, 'Build the site with `make build`.');
  return response.json();
}

async function begin() {
  // What began here would be over in a moment.
  if (await isolate(root)) await new Promise(() => {});
  const site = await readSite();
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
