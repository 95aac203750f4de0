/**
 * Injected before a page's own scripts: notes when each stage of its boot was done and when it said that it is ready.
 * A MutationObserver hears of both at once; polling from outside would round every boot up to its next look.
 */
{
  /** @type {{stages: [string, number][], ready: Promise<number>}} */
  const boot = { stages: [], ready: new Promise((resolve, reject) => observe(resolve, reject)) };
  Object.assign(globalThis, { benchBoot: boot });

  /** @param {(ms: number) => void} resolve @param {(error: Error) => void} reject */
  function observe(resolve, reject) {
    const observer = new MutationObserver((records) => {
      const now = performance.now();
      for (const item of records.flatMap(({ addedNodes }) => [...addedNodes])) {
        if (item instanceof HTMLElement && item.matches('#boot > li.done')) boot.stages.push([nameOf(item), now]);
      }
      const { state } = document.documentElement.dataset;
      if (state === 'ready') resolve(now);
      if (state === 'failed') reject(new Error('the page failed to boot'));
    });
    observer.observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ['data-state'] });
  }

  /** @param {HTMLElement} item */
  function nameOf(item) {
    return (item.querySelector('.name') ?? item).textContent ?? '';
  }
}
