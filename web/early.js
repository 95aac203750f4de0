/**
 * What takes longest begins first: Python boots while the rest of the page's modules are still on their way.
 */
import { PythonHost } from './python-host.js';
import { AppError } from './wire.js';

export const base = new URL('.', import.meta.url);

/** @returns {Promise<import('./types.d.ts').Site>} */
async function readSite() {
  const response = await fetch(new URL('site.json', base));
  if (!response.ok) throw new AppError('IncompleteSite', `site.json answered ${response.status}`, 'Build the site with `make build`.');
  return response.json();
}

async function begin() {
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
