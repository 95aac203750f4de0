"""How long does a first visit take over a slow network, and a second? `python bench/first_load.py` (needs `make build`).

Our page, JupyterLite's REPL and bare Pyodide with numpy take turns, each in a fresh browser with a fresh profile, over one
network of 10 Mbit/s with round trips of 40 ms (`loading/throttle.py`: a proxy, since the driver's throttle leaves out workers).
All three come from the same server with the same compression. JupyterLite is built here from PyPI with the versions and hashes
of `loading/jupyterlite.txt`, and gets a Pyodide of the same version as ours, from its own origin.

Cold is the first page of the browser; second is the next visit, from its HTTP cache; kept is one more of ours, when its service
worker has kept the site, which then answers for it. *Shell*: painted, and its controls are
there. *Ready*: our page says so; JupyterLite has printed 1 after `import numpy`; the bare page has imported numpy. *Check*: a
check of ours with one engine and five runs, begun at ready, is done.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import re
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
from common import PAGES, ROOT, finish, load, overlay, turns
from loading import lite
from loading.throttle import SlowNetwork

from buildtools.cache import project_cache
from buildtools.precompress import precompress
from buildtools.progress import Progress
from pyapp.chromium import BrowserOptions, PageDriver, launch
from pyapp.serve import SiteServer

BOUND = 1.0
"""Ours is ready before JupyterLite is."""

SHELL_LIMIT_MS = 1500.0
SETTLE_S = 2.0
LIMIT_S = 300
POLL_S = 0.25
"""What is measured is noted in the page; this only finds out that it has been."""

QUICK = "?runs=5&warmup=1&engines=wasm-1"
CODE = {"kernel": "python", "toolbar": "1", "code": "import numpy; print(1)"}

#: The first that is found in a path names what was loaded.
GROUPS = (
    (r"\.onnx$", "model"),
    (r"/fixtures/", "states"),
    (r"^runtime/onnxruntime", "onnxruntime-web"),
    (r"pyodide\.(asm\.|m?js)|python_stdlib", "Pyodide"),
    (r"\.(whl|zip)$|pyodide-lock", "packages"),
    (r"", "page"),
)

SEEN = """
    if (document.documentElement.dataset.state === 'failed') throw new Error('the page failed to boot');
    const paint = performance.getEntriesByName('first-contentful-paint')[0];
    return { ...benchLoad, paint: paint ? performance.timeOrigin + paint.startTime : 0 };
"""

OFFLINE = "document.getElementById('offline')"

CHECK = """
    document.getElementById('run').click();
    while (pyappPage.state !== 'running' && !pyappPage.report) await new Promise((resolve) => setTimeout(resolve, 5));
    while (pyappPage.state === 'running') await new Promise((resolve) => setTimeout(resolve, 20));
    if (pyappPage.error) throw new Error(pyappPage.error.message);
    return performance.timeOrigin + performance.now();
"""


@dataclass(frozen=True)
class Load:
    """One visit: milliseconds to each milestone, what had come by then in bytes, and the files asked for, by group."""

    ms: dict[str, float]
    received: dict[str, int]
    asked: dict[str, int]


class Contestant:
    """A page on a server that remembers what was asked of it."""

    def __init__(self, folder: Path, path: str, *, checks: bool = False) -> None:
        self.folder = folder
        self.log: list[str] = []
        self.server = SiteServer(folder, log=self.log.append)
        self.path = path
        self.checks = checks

    @property
    def url(self) -> str:
        """Its address."""
        return self.server.url + self.path

    def asked(self) -> dict[str, int]:
        """Return the bytes of the files that were sent, as they were sent, by group."""
        found: dict[str, int] = defaultdict(int)
        for line in self.log:
            if match := re.match(r'"GET /([^ ?]*)\S* HTTP/1.1" 200', line):
                found[group_of(match[1])] += self._size(match[1])
        return dict(found)

    def _size(self, path: str) -> int:
        file = self.folder / (path if path and not path.endswith("/") else f"{path}index.html")
        packed = file.with_name(file.name + ".br")
        return (packed if packed.exists() else file).stat().st_size


def group_of(path: str) -> str:
    """Name what a file of a site belongs to."""
    return next(name for pattern, name in GROUPS if re.search(pattern, path))


def visit(driver: PageDriver, page: Contestant, network: SlowNetwork) -> Load:
    """Visit a page and wait until it is ready, and until its check is done where it has one."""
    page.log.clear()
    bytes_before, start = network.bytes, time.time() * 1000
    driver.driver.get(page.url)
    deadline = time.monotonic() + LIMIT_S
    # One short look after the other: a page may go on to another address, which would end a script that waits.
    while "ready" not in (found := driver.run(SEEN)):
        if time.monotonic() > deadline:
            raise RuntimeError(f"{page.url} was not ready within {LIMIT_S} s: {found}")
        time.sleep(POLL_S)
    ms = {"ready": found["ready"] - start}
    if "shell" in found:
        ms = {"shell": max(found["shell"], found["paint"]) - start} | ms
    received = {"ready": network.bytes - bytes_before}
    asked = page.asked()
    if page.checks:
        ms["check"] = driver.run(CHECK) - start
        received["check"] = network.bytes - bytes_before
        asked = page.asked()
    return Load(ms, received, asked)


def visits(page: Contestant, mbit_s: float, round_trip_ms: float) -> dict[str, Load]:
    """Visit a page in a browser of its own: cold, once more, and again when the page is kept, where it says that it is."""
    with SlowNetwork(mbit_s, round_trip_ms) as network:
        browser = launch(BrowserOptions(arguments=network.arguments), "none")
        try:
            driver = PageDriver(browser, "about:blank")
            watch = (PAGES / "watch-load.js").read_text(encoding="utf-8")
            browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": watch})
            found = {"cold": visit(driver, page, network)}
            time.sleep(SETTLE_S)
            browser.get("about:blank")
            found["second"] = visit(driver, page, network)
            if driver.run(f"return {OFFLINE} !== null"):
                network.unlimited = True
                wait_kept(driver)
                time.sleep(SETTLE_S)
                network.unlimited = False
                browser.get("about:blank")
                found["kept"] = visit(driver, page, network)
            return found
        finally:
            browser.quit()


def wait_kept(driver: PageDriver) -> None:
    """Wait until the page has been kept for use without a network."""
    deadline = time.monotonic() + LIMIT_S
    while "works without a network" not in (said := driver.run(f"return {OFFLINE}.textContent")):
        if time.monotonic() > deadline:
            raise RuntimeError(f"the page was not kept within {LIMIT_S} s: {said!r}")
        time.sleep(POLL_S)


@contextlib.contextmanager
def contestants(against: Path | None) -> Iterator[dict[str, Contestant]]:
    """Serve all pages, each with the same compression."""
    squeeze = functools.partial(precompress, cache=project_cache(ROOT), progress=Progress(1, verbose=False))
    with contextlib.ExitStack() as stack:
        site = stack.enter_context(overlay())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "lite"
        lite.build(folder)
        bare = "bench/pyodide.html?" + urlencode({"pyodide": site.path("pyodide_path"), "lock": site.path("lock_path")})
        pages = {
            "ours": Contestant(site.folder, QUICK, checks=True),
            "JupyterLite": Contestant(folder, "repl/index.html?" + urlencode(CODE)),
            "bare": Contestant(site.folder, bare),
        }
        if against:
            pages["before"] = Contestant(stack.enter_context(overlay(against)).folder, QUICK, checks=True)
        for page in pages.values():
            squeeze(page.folder)
            stack.enter_context(page.server)
        yield pages


def throughput(mbit_s: float, round_trip_ms: float) -> float:
    """Measure the network as a worker sees it, in Mbit/s."""
    with tempfile.TemporaryDirectory() as temporary, SlowNetwork(mbit_s, round_trip_ms) as network:
        folder = Path(temporary)
        (folder / "index.html").write_text("<!doctype html>")
        (folder / "worker.js").write_text(
            "fetch('data.bin').then((a) => a.arrayBuffer()).then(() => postMessage(performance.now()));"
        )
        (folder / "data.bin").write_bytes(bytes(2_500_000))
        with SiteServer(folder) as server:
            browser = launch(BrowserOptions(arguments=network.arguments), "none")
            try:
                driver = PageDriver(browser, server.url)
                heard = "new Promise((done) => { new Worker('worker.js').onmessage = (event) => done(event.data); })"
                ms = float(driver.run(f"return await {heard}"))
                return 2_500_000 * 8 / ms / 1000
            finally:
                browser.quit()


#: By page and cache: its visits.
Found = dict[tuple[str, str], list[Load]]


def measure(pages: dict[str, Contestant], rounds: int, mbit_s: float, round_trip_ms: float) -> Found:
    """Let the pages take turns."""
    found: Found = {}
    for name in turns(list(pages), rounds):
        for cache, one in visits(pages[name], mbit_s, round_trip_ms).items():
            found.setdefault((name, cache), []).append(one)
    return found


def medians(found: list[dict[str, float]] | list[dict[str, int]]) -> dict[str, float]:
    """Return the medians of what every visit has."""
    return {name: float(np.median([one.get(name, 0) for one in found])) for name in found[0]}


def print_table(found: Found) -> None:
    """Print the medians: seconds and megabytes by milestone, and megabytes by group."""
    for (name, cache), loads in found.items():
        ms, received, asked = (medians([getattr(one, field) for one in loads]) for field in ("ms", "received", "asked"))
        times = ", ".join(f"{stage} {value / 1000:.2f} s" for stage, value in ms.items())
        ready = sorted(one.ms["ready"] / 1000 for one in loads)
        came = ", ".join(f"{value / 1e6:.2f} MB by {stage}" for stage, value in received.items())
        print(f"{name}, {cache} (n {len(loads)}): {times} (ready {ready[0]:.2f} to {ready[-1]:.2f}); {came}")
        print("    files: " + ", ".join(f"{group} {size / 1e6:.2f} MB" for group, size in asked.items() if size))


def main() -> int:
    """Measure, print a table, and return 0 if ours is ready before JupyterLite and shows itself in time on a second visit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="fresh browsers for each page")
    parser.add_argument("--mbit", type=float, default=10, help="megabits a second, for all connections together")
    parser.add_argument("--round-trip", type=float, default=40, metavar="MS", help="of each connection and each request")
    parser.add_argument("--against", type=Path, metavar="DIR", help="another build of the site, to compare with")
    arguments = parser.parse_args()
    before = load()
    seen = throughput(arguments.mbit, arguments.round_trip)
    print(f"a worker's fetch of 2.5 MB came with {seen:.1f} Mbit/s")
    with contestants(arguments.against) as pages:
        found = measure(pages, arguments.rounds, arguments.mbit, arguments.round_trip)
    print_table(found)
    ready = {name: medians([one.ms for one in found[name, "cold"]])["ready"] for name in ("ours", "JupyterLite", "bare")}
    shell = {cache: medians([one.ms for one in found["ours", cache]])["shell"] for cache in ("second", "kept")}
    print(f"ours / bare, cold, until ready: {ready['ours'] / ready['bare']:.3f}")
    for cache, ms in shell.items():
        print(f"the {cache} visit showed itself after {ms:.0f} ms (at most {SHELL_LIMIT_MS:.0f})")
    print(f"{before} before, {load()} after")
    return finish(
        "first_load",
        ratio=ready["ours"] / ready["JupyterLite"],
        bound=BOUND,
        n=arguments.rounds,
        condition=max(shell.values()) <= SHELL_LIMIT_MS,
        against_bare=round(ready["ours"] / ready["bare"], 4),
        second_shell_ms=round(shell["second"]),
        kept_shell_ms=round(shell["kept"]),
        mbit_s=round(seen, 2),
    )


if __name__ == "__main__":
    sys.exit(main())
