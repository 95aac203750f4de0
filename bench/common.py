"""What the benchmarks share: a page to measure in, and the line that each ends with."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyapp.chromium import BrowserOptions, PageDriver, open_page
from pyapp.serve import SiteServer

ROOT = Path(__file__).resolve().parent.parent


@contextlib.contextmanager
def page(gpu: str = "none") -> Iterator[PageDriver]:
    """Open the built site in a fresh browser."""
    with (
        SiteServer(Path(os.environ.get("PYAPP_DIST", ROOT / "dist"))) as server,
        open_page(BrowserOptions(gpu=gpu), server.url) as driver,
    ):
        yield driver


def run_inside(driver: PageDriver, script: str, **values: object) -> Any:
    """Run `bench/inside/SCRIPT.py` in the page's Python and return its `main(**values)`, by way of JSON."""
    source = (ROOT / "bench" / "inside" / f"{script}.py").read_text(encoding="utf-8")
    for step in (source, f"__import__('json').dumps(await main(**{values!r}))"):
        answer = driver.evaluate(step)
        if traceback := answer.get("traceback"):
            raise RuntimeError(traceback)
    # The console answers with the repr of a string of JSON.
    return json.loads(ast.literal_eval(answer["repr"] or ""))


def machine() -> str:
    """Name this machine as far as a benchmark's reader needs it."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors"


def finish(name: str, *, ratio: float, bound: float, n: int) -> int:
    """Print the benchmark's last line, one JSON object, and return its exit code: 0 within the bound, else 1."""
    ok = ratio <= bound
    print(json.dumps({"name": name, "ratio": round(ratio, 4), "bound": bound, "ok": ok, "n": n, "machine": machine()}))
    return 0 if ok else 1
