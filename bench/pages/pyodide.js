/**
 * What the boot is measured against: Pyodide and numpy in a worker, as little as a page can do to have them.
 * It says "ready", and lists its stages, the way that our page does, so that both are watched by the same script.
 */
const worker = new Worker(new URL('./pyodide-worker.js', import.meta.url), { type: 'module' });

worker.onmessage = ({ data: { stage, error } }) => {
  if (stage === 'ready' || error) {
    document.documentElement.dataset.state = error ? 'failed' : 'ready';
    return;
  }
  const item = document.createElement('li');
  item.className = 'done';
  item.textContent = stage;
  document.getElementById('boot')?.append(item);
};
worker.onerror = () => {
  document.documentElement.dataset.state = 'failed';
};
worker.postMessage(Object.fromEntries(new URLSearchParams(location.search)));
