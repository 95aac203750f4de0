/** Reports as files: how they are named, saved and read, and how one says where it comes from. */
import { display, moment } from '../language.js';
import { AppError } from '../wire.js';
import { h } from './dom.js';

/** A report of 1,000 samples and 660 states of ten engines has 2 MB. */
const MAX_BYTES = 50e6;
/** Some browsers read a Blob's address only after the click has been handled. */
const KEPT_MS = 60_000;

const BROWSERS = /** @type {[string, RegExp][]} */ ([
  ['Edge', /Edg\/(\d+)/],
  ['Firefox', /Firefox\/(\d+)/],
  ['Chrome', /Chrome\/(\d+)/],
  ['Safari', /Version\/(\d+).*Safari/],
]);

/**
 * @param {any} report
 * @param {string} extension
 * @returns {string} as in `pyapp-report-2026-12-01T05-12.json`
 */
export function fileName(report, extension) {
  const created = report.environment.created.slice(0, 16).replaceAll(/[^0-9T]/g, '-');
  return `pyapp-report-${created}.${extension}`;
}

/**
 * Has the browser save a text, or bytes.
 * @param {string} name
 * @param {string} type its MIME type
 * @param {BlobPart} content
 */
export function save(name, type, content) {
  const href = URL.createObjectURL(new Blob([content], { type }));
  h('a', { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), KEPT_MS);
}

/** @param {File} file @returns {Promise<string>} */
export async function read(file) {
  if (file.size > MAX_BYTES) {
    throw new AppError('TooLarge', `${file.name} has ${Math.ceil(file.size / 1e6)} MB; reports up to ${MAX_BYTES / 1e6} MB are read`, 'Choose another file.');
  }
  return file.text();
}

/** @param {any} report @returns {(Node | string)[]} as in `1 Dec 2026, 05:12 UTC, Chrome 156` */
export function origin({ environment }) {
  return [when(environment.created), `, ${browserOf(environment.user_agent)}`];
}

/** A moment, written as the page's language does. @param {string} created */
export function when(created) {
  return h('time', { datetime: created }, moment(created, display.language));
}

/** @param {string} agent */
function browserOf(agent) {
  for (const [name, pattern] of BROWSERS) {
    const version = pattern.exec(agent)?.[1];
    if (version) return `${name} ${version}`;
  }
  return agent;
}
