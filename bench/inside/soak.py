"""Runs in the page's Python, for the soak: engines opened and closed, fewer states to check, what Python's memory holds."""

import gc

import pyodide_js


async def main(verb, **values):
    """Do what is asked; returns plain data."""
    return await {"cut": cut, "engines": engines, "memory": memory}[verb](**values)


async def cut(count):
    """Leave so many states to a check, of each suite: on a software GPU 660 of them take minutes."""
    page.suites = {name: suite.first(count) for name, suite in page.suites.items()}  # noqa: F821 - the console's


async def engines(names):
    """Open engines one after the other, ask each once, close it; returns how far each was from Python's scores."""
    found = []
    for name in names:
        engine = await open_engine(name)  # noqa: F821 - the console's
        try:
            scores = (await engine.run(states.inputs(0)))["q_values"]  # noqa: F821 - the console's
        finally:
            await engine.close()
        found.append(float(abs(scores - states.q_values[:1]).max()))  # noqa: F821 - the console's
    return found


async def memory():
    """Count what Python holds after a collection: bytes of its heap, objects that the collector knows."""
    gc.collect()
    return {"heap": pyodide_js._module.HEAP8.length, "objects": len(gc.get_objects())}
