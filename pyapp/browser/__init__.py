"""What runs in Pyodide only: the one folder that may import `js` and `pyodide`."""
