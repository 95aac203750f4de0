/** Bare Pyodide: started, numpy loaded, numpy imported – what any page that computes with numpy has to wait for. */
self.onmessage = async ({ data: { pyodide: path, lock } }) => {
  try {
    const indexURL = new URL(path, location.href).href;
    const { loadPyodide } = await import(new URL('pyodide.mjs', indexURL).href);
    const pyodide = await loadPyodide({ indexURL, lockFileURL: new URL(lock, location.href).href });
    self.postMessage({ stage: 'Python' });
    await pyodide.loadPackage('numpy', { messageCallback: () => {} });
    self.postMessage({ stage: 'packages' });
    pyodide.pyimport('numpy').destroy();
    self.postMessage({ stage: 'import' });
    self.postMessage({ stage: 'ready' });
  } catch (error) {
    console.error(error);
    self.postMessage({ error: String(error) });
  }
};
