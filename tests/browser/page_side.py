"""The page's half of this level: `conftest.py` has the page run this file once, in its console's namespace.

A test's arguments are names of that namespace, as elsewhere in pytest they are fixtures. `opened`, `faulty` and `small` are
added to it.
"""

import asyncio
import contextlib
import inspect
import traceback
import types
from base64 import b64decode
from pathlib import Path

FOLDER = Path("/inside")
LOADED = {}


@contextlib.asynccontextmanager
async def opened(engine, model=None):
    """Open an engine by name or by spec, and close it whatever happens."""
    if isinstance(engine, str):
        found = await page.open_engine(engine, model)  # noqa: F821 - the console's
    else:
        found = await page.open_engines(engine, page.model if model is None else model)  # noqa: F821
    try:
        yield found
    finally:
        await found.close()


class Faulty:
    """Models with a fault, made by `models.py`: ``changed_weight``, ``nan_weight``, ``zero_scores`` and ``endless``."""


faulty = Faulty()
small = types.SimpleNamespace()


def add_patched(name, patches):
    """Add the committed model with some bytes changed; `patches` are offsets with base64."""
    model = bytearray(page.model)  # noqa: F821
    for offset, encoded in patches:
        content = b64decode(encoded)
        model[offset : offset + len(content)] = content
    setattr(faulty, name, bytes(model))


def add_model(name, encoded, group="faulty"):
    """Add a whole model, in base64, to `faulty` or `small`."""
    setattr(globals()[group], name, b64decode(encoded))


def load(name, source):
    """Execute a test module; its file is written too, because tracebacks quote from it."""
    path = FOLDER / f"{name}.py"
    FOLDER.mkdir(exist_ok=True)
    path.write_text(source)
    LOADED[name] = {"__name__": name, "__file__": str(path)}
    exec(compile(source, path, "exec"), LOADED[name])


async def run_test(name, function, limit_s):
    """Run one test; returns None, or the traceback from the test's own frames on."""
    test = LOADED[name][function]
    try:
        arguments = {key: globals()[key] for key in inspect.signature(test).parameters}
        async with asyncio.timeout(limit_s):
            await test(**arguments)
    except BaseException as error:
        frames = error.__traceback__
        while frames and not frames.tb_frame.f_code.co_filename.startswith(str(FOLDER)):
            frames = frames.tb_next
        return "".join(traceback.format_exception(type(error), error, frames or error.__traceback__))
