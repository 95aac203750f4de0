/**
 * Injected before a page's own scripts: notes when its controls are there and when it has what was waited for, in
 * milliseconds since 1970, so that a page which goes on to another address loses nothing of the time before.
 */
{
  const now = () => performance.timeOrigin + performance.now();
  /** Our last view; the prompt of JupyterLite's REPL. */
  const shell = () => document.querySelector('#console > *, .jp-CodeConsole-input .cm-content');
  const ready = () =>
    document.documentElement?.dataset.state === 'ready' || [...document.querySelectorAll('.jp-OutputArea-output')].some((one) => one.textContent?.trim() === '1');
  /** @type {{shell?: number, ready?: number}} */
  const load = {};
  Object.assign(globalThis, { benchLoad: load });
  const look = () => {
    if (!load.shell && shell()) load.shell = now();
    if (!load.ready && ready()) load.ready = now();
    if (load.ready) observer.disconnect();
  };
  const observer = new MutationObserver(look);
  observer.observe(document, { subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: ['data-state'] });
}
