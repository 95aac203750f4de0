"""What the benchmarks share: pages to measure in, and the line that each ends with."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import json
import math
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlencode, urljoin

from pyapp.chromium import BrowserOptions, PageDriver, open_page
from pyapp.serve import SiteServer
from pyapp.sitefolder import app_folder

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "bench" / "pages"


def dist() -> Path:
    """Return the built site's folder; the environment variable `PYAPP_DIST` names another one."""
    return Path(os.environ.get("PYAPP_DIST", ROOT / "dist"))


@contextlib.contextmanager
def page(gpu: str = "none") -> Iterator[PageDriver]:
    """Open the built site in a fresh browser."""
    with SiteServer(dist()) as server, open_page(BrowserOptions(gpu=gpu), server.url) as driver:
        yield driver


@dataclass(frozen=True)
class Overlay:
    """A copy of the built site that also holds `bench/pages`, as it is served.

    Attributes
    ----------
    url : str
        The address of the site's own page.
    folder : Path
        Where the copy is.
    facts : dict
        The site's manifest, ``site.json``.
    """

    url: str
    folder: Path
    facts: dict[str, Any]

    def page(self, name: str, **settings: str) -> str:
        """Return the address of a page of `bench/pages`, with its settings."""
        return f"{self.url}bench/{name}?{urlencode(settings)}"

    def path(self, fact: str) -> str:
        """Return the address, on this origin, of a folder or file that the manifest names."""
        return self.address(self.facts[fact])

    def address(self, path: str) -> str:
        """Return the address, on this origin, of a folder or file; its path is relative to the folder of the site's version."""
        return urljoin(f"/{app_folder(self.folder).relative_to(self.folder).as_posix()}/", path)


@contextlib.contextmanager
def overlay(built: Path | None = None) -> Iterator[Overlay]:
    """Serve the built site, or another one, together with `bench/pages`: one origin, and no build can change it meanwhile."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "site"
        shutil.copytree(built or dist(), folder)
        shutil.copytree(PAGES, folder / "bench")
        facts = json.loads((app_folder(folder) / "site.json").read_text(encoding="utf-8"))
        with SiteServer(folder) as server:
            yield Overlay(server.url, folder, facts)


def run_inside(driver: PageDriver, script: str, **values: object) -> Any:
    """Run `bench/inside/SCRIPT.py` in the page's Python and return its `main(**values)`, by way of JSON."""
    source = (ROOT / "bench" / "inside" / f"{script}.py").read_text(encoding="utf-8")
    for step in (source, f"__import__('json').dumps(await main(**{values!r}))"):
        answer = driver.evaluate(step)
        if traceback := answer.get("traceback"):
            raise RuntimeError(traceback)
    # The console answers with the repr of a string of JSON.
    return json.loads(ast.literal_eval(answer["repr"] or ""))


def inside(script: str) -> ModuleType:
    """Import a script that the page runs, `bench/inside/SCRIPT.py`, to run it here."""
    path = ROOT / "bench" / "inside" / f"{script}.py"
    spec = importlib.util.spec_from_file_location(f"bench_inside_{script}", path)
    if spec is None or spec.loader is None:
        raise RuntimeError(f"cannot import {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def abba(rounds: int) -> list[tuple[int, int]]:
    """Return the order of two contestants in each round: AB, BA, AB … so that neither always comes first."""
    return [(0, 1) if index % 2 == 0 else (1, 0) for index in range(rounds)]


def turns(contestants: Sequence[str], rounds: int) -> Iterator[str]:
    """Give the contestants in the order in which they come: forwards, then backwards, and so on."""
    for index in range(rounds):
        yield from contestants if index % 2 == 0 else reversed(contestants)


def machine() -> str:
    """Name this machine as far as a benchmark's reader needs it."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors"


def load() -> str:
    """Say how busy the machine is, which a reader has to know of any figure: its load averages."""
    return "load " + ", ".join(f"{value:.2f}" for value in os.getloadavg())


def finish(name: str, *, ratio: float, bound: float, n: int, condition: bool = True, **facts: object) -> int:
    """Print the benchmark's last line, one JSON object, and return its exit code: 0 if all is well, else 1.

    Parameters
    ----------
    name : str
        The benchmark's.
    ratio, bound : float
        What was found, and the largest ratio that is accepted.
    n : int
        Measurements on each side.
    condition : bool
        What else `ok` depends on.
    **facts : object
        What else a reader has to know; follows the fields that every benchmark has.
    """
    ok = bool(ratio <= bound and condition)
    found = round(ratio, 4) if math.isfinite(ratio) else None  # JSON has no NaN
    line = {"name": name, "ratio": found, "bound": bound, "ok": ok, "n": n, "machine": machine()}
    print(json.dumps(line | facts))
    return 0 if ok else 1
