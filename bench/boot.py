"""How long until the page is ready, against bare Pyodide with numpy? `python bench/boot.py` (needs `make build`).

From navigation to *ready*, on the page's own clock: ours when its button is enabled, the bare page when `import numpy` is done
in a worker. Cold is the first page of a fresh browser with a fresh profile; warm are later visits in the same browser. The
two take turns (AB, BA, …). Once, a click shows that ready means ready: Python answers it within 100 ms. `--against DIR`
lets another build of the site take its turns as well.

Everything comes over the loopback: this measures work, not a network, on which both would wait for their bytes.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from common import PAGES, Overlay, finish, load, overlay, turns

from pyapp.chromium import BrowserOptions, PageDriver, launch
from pyapp.stats import RatioInterval, ratio_interval

BOUND = 1.15
CLICK_LIMIT_MS = 100.0
SETTLE_S = 1.5
"""Between two visits: what the last one left to do (compiled code is written to the cache) is no part of the next."""

SIDES = ("ours", "bare", "before")
"""The last one only where another build is given."""

CACHES = ("cold", "warm")

CLICK = """
    const button = document.getElementById('run');
    if (button.disabled) throw new Error('the page says ready, and its button is disabled');
    let first;
    const answered = new Promise((resolve) => { first = resolve; });
    Object.defineProperty(pyappPage, 'progress', { set: () => first(performance.now()) });
    const start = performance.now();
    button.click();
    const milliseconds = await answered - start;
    await pyappPage.cancel();
    return milliseconds;
"""


@dataclass(frozen=True)
class Boot:
    """One boot: when it was ready, and when each of its stages was done, in milliseconds from navigation."""

    ready_ms: float
    stages_ms: dict[str, float]


#: By side and cache: for each browser, its visits.
Found = dict[tuple[str, str], list[list[Boot]]]


def visit(driver: PageDriver, url: str) -> Boot:
    """Load a page and wait until it says that it is ready."""
    driver.driver.get(url)
    ready, stages = driver.run("return [await benchBoot.ready, benchBoot.stages]")
    return Boot(ready, dict(stages))


def boots(url: str, warm: int, *, click: bool) -> tuple[dict[str, list[Boot]], float | None]:
    """Visit a page in a browser of its own, cold and then warm; returns the boots, and how long a click took if asked."""
    browser = launch(BrowserOptions(), "none")
    try:
        driver = PageDriver(browser, "about:blank")
        watch = (PAGES / "watch-boot.js").read_text(encoding="utf-8")
        browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": watch})
        found: dict[str, list[Boot]] = {cache: [] for cache in CACHES}
        for cache in ("cold", *["warm"] * warm):
            found[cache].append(visit(driver, url))
            time.sleep(SETTLE_S)
        if not click:
            return found, None
        visit(driver, url)
        return found, driver.run(CLICK)
    finally:
        browser.quit()


def measure(site: Overlay, rounds: int, warm: int, before: Overlay | None = None) -> tuple[Found, float]:
    """Measure all pages; returns the boots and how many milliseconds a click took."""
    bare = site.page("pyodide.html", pyodide=site.path("pyodide_path"), lock=site.path("lock_path"))
    urls = dict(zip(SIDES, (site.url, bare, *([before.url] if before else [])), strict=False))
    found: Found = {(side, cache): [] for side in urls for cache in CACHES}
    click_ms = None
    for side in turns(list(urls), rounds):
        boot, clicked = boots(urls[side], warm, click=side == "ours" and click_ms is None)
        click_ms = clicked if click_ms is None else click_ms
        for cache in CACHES:
            found[side, cache].append(boot[cache])
    return found, click_ms or 0.0


def print_boots(label: str, found: list[Boot]) -> None:
    """Print a row of the table: quartiles of ready, and the median of each stage's end."""
    low, median, high = np.percentile([boot.ready_ms for boot in found], [25, 50, 75])
    stages = {name: np.median([boot.stages_ms[name] for boot in found]) for name in found[0].stages_ms}
    done = ", ".join(f"{name} {ms:.0f}" for name, ms in stages.items())
    print(f"{label:12} {len(found):3} {median:9.0f} {low:7.0f} {high:7.0f}   {done}")


def unimported_ratio(found: Found, cache: str) -> float:
    """Return ours over the bare page's time until numpy is loaded but cannot be used yet: the strictest reading of "bare"."""
    ours = np.median([boot.ready_ms for browser in found["ours", cache] for boot in browser])
    bare = np.median([boot.stages_ms["packages"] for browser in found["bare", cache] for boot in browser])
    return float(ours / bare)


def print_table(found: Found) -> dict[str, RatioInterval]:
    """Print all boots and their ratios; returns the ratio of the medians by cache."""
    print(f"{'page, cache':12} {'n':>3} {'ready, ms':>9} {'P25':>7} {'P75':>7}   stage done at, ms from navigation")
    for (side, cache), browsers in found.items():
        print_boots(f"{side}, {cache}", [boot for browser in browsers for boot in browser])
    ratios = {}
    for cache in CACHES:
        ratios[cache] = print_ratio(found, "ours", "bare", cache)
        print(f"  and {unimported_ratio(found, cache):.3f} against the bare page before it imports numpy")
        if ("before", cache) in found:
            print_ratio(found, "before", "bare", cache)
            print_ratio(found, "ours", "before", cache)
    return ratios


def print_ratio(found: Found, numerator: str, denominator: str, cache: str) -> RatioInterval:
    """Print the ratio of two pages' medians, and return it."""
    one, other = (
        [np.array([boot.ready_ms for boot in boots]) for boots in found[side, cache]] for side in (numerator, denominator)
    )
    ratio = ratio_interval(one, other, 50, seed=0)
    interval = f"{ratio.low:.3f} to {ratio.high:.3f}, 95 % bootstrap over browsers"
    print(f"{numerator} / {denominator}, {cache}: {ratio.value:.3f} ({interval})")
    return ratio


def main() -> int:
    """Measure, print a table, and return 0 if the worse of the ratios is within the bound and a click is answered in time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=8, help="fresh browsers for each page")
    parser.add_argument("--warm", type=int, default=2, help="warm visits in each browser")
    parser.add_argument("--against", type=Path, metavar="DIR", help="another build of the site, to compare with")
    arguments = parser.parse_args()
    before = load()
    with overlay() as site, overlay(arguments.against) if arguments.against else contextlib.nullcontext() as other:
        found, click_ms = measure(site, arguments.rounds, arguments.warm, other)
    ratios = print_table(found)
    print(f"a click was answered by Python after {click_ms:.0f} ms (at most {CLICK_LIMIT_MS:.0f})")
    print(f"{before} before, {load()} after")
    return finish(
        "boot",
        ratio=max(ratio.value for ratio in ratios.values()),
        bound=BOUND,
        n=arguments.rounds,
        condition=click_ms <= CLICK_LIMIT_MS,
        **{cache: round(ratio.value, 4) for cache, ratio in ratios.items()},
        click_ms=round(click_ms, 1),
    )


if __name__ == "__main__":
    sys.exit(main())
