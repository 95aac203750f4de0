import { h, milliseconds, table, warningList } from './dom.js';

/** Requested against actual, engine by engine. */
export class RanView {
  #root;
  /** @type {Map<string, any>} */
  #engines = new Map();

  /** @param {HTMLElement} root */
  constructor(root) {
    this.#root = root;
  }

  clear() {
    this.#engines.clear();
    this.#root.replaceChildren();
  }

  /** @param {any} engine an `EngineEntry` of the report */
  add(engine) {
    this.#engines.set(engine.name, engine);
    this.#root.replaceChildren(h('div', { class: 'engines' }, ...[...this.#engines.values()].map(card)));
  }
}

/** @param {any} engine */
function card(engine) {
  const { name, requested, actual, error } = engine;
  const article = h('article', { class: 'engine' }, h('h3', {}, name));
  if (error) {
    article.append(h('p', { class: 'error' }, error.remedy ? `${error.message}. ${error.remedy}` : error.message));
  }
  if (actual) {
    const rows = ['provider', 'build', 'runner', 'threads'].map((key) => row(key, String(requested[key]), String(actual[key])));
    for (const reason of actual.fallbacks ?? []) rows.push(['not taken', '', h('mark', {}, reason)]);
    rows.push(['adapter', '', describeAdapter(actual.adapter)]);
    rows.push(['nodes run by', '', describeNodes(actual.nodes)]);
    rows.push(['created in', '', milliseconds(engine.create_ms)], ['first run', '', milliseconds(engine.first_run_ms)]);
    article.append(table(`What ran as ${name}`, ['', 'requested', 'actual'], rows));
  }
  if (engine.thread_sweep) {
    const tried = Object.entries(engine.thread_sweep).map(([threads, ms]) => `${threads} threads ${milliseconds(ms)}`);
    article.append(h('p', { class: 'note' }, `Thread counts tried, at the median: ${tried.join(', ')}.`));
  }
  if (engine.warnings.length && !error) article.append(warningList(engine.warnings));
  return article;
}

/**
 * @param {string} key
 * @param {string} requested
 * @param {string} actual
 * @returns {(Node | string)[]}
 */
function row(key, requested, actual) {
  // A runner adds how it runs: `fast: capture + nudge`.
  const differs = requested !== actual && requested !== 'auto' && !actual.startsWith(`${requested}: `);
  return [key, requested, differs ? h('mark', {}, actual) : actual];
}

/** @param {Record<string, number>} nodes of each provider, which onnxruntime calls `CPUExecutionProvider` and the like */
function describeNodes(nodes) {
  const parts = Object.entries(nodes).map(([provider, count]) => `${provider.replace(/ExecutionProvider$/, '')}: ${count}`);
  return parts.join(', ') || 'not known';
}

/** @param {any} adapter */
function describeAdapter(adapter) {
  if (!adapter) return 'none (CPU)';
  const names = [adapter.vendor, adapter.architecture, adapter.device, adapter.description].filter(Boolean).join(' · ');
  return adapter.software ? `${names} (software GPU)` : names;
}
