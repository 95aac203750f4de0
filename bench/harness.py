"""What does our race cost the engine it times? `python bench/harness.py` (needs `make build`).

Our page, with its Python, worker and messages, against a bare page that has onnxruntime-web alone: the same build, threads,
model, state and session options, the same warm-up and lead-in, each in a worker of its own. Both pages are tabs of one browser
and take turns (AB, BA, …), each in the foreground while it runs. One block of ours is a whole `race` of `wasm-1`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import numpy as np
from common import Overlay, abba, finish, load, overlay, run_inside
from numpy.typing import NDArray

from pyapp.cases import load_suite
from pyapp.chromium import BrowserOptions, PageDriver, open_page
from pyapp.race import LEAD_IN_MAX_RUNS, LEAD_IN_MS, block_sizes
from pyapp.sitefolder import app_folder
from pyapp.stats import RatioInterval, ratio_interval, summarize

BOUND = 1.05
OBSERVATION = "observation.f32"
SETTLE_S = 0.2
"""A tab that has just come to the front draws itself; neither page is timed while it does."""

VISIBLE_LIMIT_S = 10.0

Block = Callable[[], list[float]]


def write_observation(site: Overlay) -> None:
    """Put the first state beside the bare page as plain float32: it reads no npz."""
    suite = load_suite("states", (app_folder(site.folder) / "fixtures" / "states.npz").read_bytes())
    (site.folder / "bench" / OBSERVATION).write_bytes(suite.inputs(0)["observation"].tobytes())


def bring_to_front(tab: PageDriver, handle: str) -> None:
    """Show a tab, and wait until its page knows that it is visible."""
    tab.driver.switch_to.window(handle)
    tab.driver.execute_cdp_cmd("Page.bringToFront", {})
    deadline = time.monotonic() + VISIBLE_LIMIT_S
    while tab.driver.execute_script("return document.visibilityState") != "visible":
        if time.monotonic() > deadline:
            raise RuntimeError("the tab did not become visible")
        time.sleep(0.02)
    time.sleep(SETTLE_S)


def in_front(tab: PageDriver, handle: str, work: Block) -> NDArray[np.float64]:
    """Run a block with its tab in the foreground; raises RuntimeError if it did not stay there."""
    if tab.driver.current_window_handle != handle:
        bring_to_front(tab, handle)
    samples = work()
    if tab.driver.execute_script("return document.visibilityState") != "visible":
        raise RuntimeError("the tab was hidden while it ran")
    return np.array(samples)


def open_ours(driver: PageDriver) -> str:
    """Open the engine in our page; returns the tab."""
    if traceback := driver.evaluate("engine = await open_engine('wasm-1')").get("traceback"):
        raise RuntimeError(traceback)
    return driver.driver.current_window_handle


def open_bare(driver: PageDriver, site: Overlay) -> str:
    """Open the bare page in another tab, and the engine in it; returns the tab."""
    driver.driver.switch_to.new_window("tab")
    driver.driver.get(
        site.page(
            "bare.html", ort=site.path("ort_path"), model=site.address("fixtures/breakout_dqn.onnx"), observation=OBSERVATION
        )
    )
    threads = driver.run("return await bare.open()")
    if threads != 1:
        raise RuntimeError(f"the bare page runs {threads} threads")
    return driver.driver.current_window_handle


def measure(blocks: int, runs: int, warmup: int) -> list[list[NDArray[np.float64]]]:
    """Time both pages; returns the blocks of ours and of the bare one, in milliseconds."""
    bare_block = {"warmup": warmup, "sizes": block_sizes(runs), "leadInMs": LEAD_IN_MS, "leadInMaxRuns": LEAD_IN_MAX_RUNS}
    with overlay() as site, open_page(BrowserOptions(gpu="none"), site.url) as driver:
        write_observation(site)
        tabs = (open_ours(driver), open_bare(driver, site))
        work: tuple[Block, Block] = (
            lambda: run_inside(driver, "harness", runs=runs, warmup=warmup),
            lambda: driver.run("return await bare.run(argument)", bare_block),
        )
        found: list[list[NDArray[np.float64]]] = [[], []]
        for order in [(0, 1), *abba(blocks)]:  # the first round is not kept: both compile their code in it
            for side in order:
                found[side].append(in_front(driver, tabs[side], work[side]))
    return [side[1:] for side in found]


def print_table(ours: list[NDArray[np.float64]], bare: list[NDArray[np.float64]]) -> RatioInterval:
    """Print both pages' percentiles and their ratios; returns the ratio of the medians."""
    print(f"{'page':20} {'runs':>6} {'P50 ms':>8} {'P95 ms':>8}")
    for name, blocks in (("ours, wasm-1", ours), ("bare, 1 thread", bare)):
        summary = summarize(np.concatenate(blocks))
        print(f"{name:20} {summary.n:6} {summary.p50:8.3f} {summary.p95:8.3f}")
    ratios = {percentile: ratio_interval(ours, bare, percentile, seed=0) for percentile in (50, 95)}
    for percentile, ratio in ratios.items():
        interval = f"{ratio.low:.3f} to {ratio.high:.3f}, 95 % bootstrap over blocks"
        print(f"ours / bare, P{percentile}: {ratio.value:.3f} ({interval})")
    return ratios[50]


def main() -> int:
    """Measure, print a table, and return 0 if our P50 is within the bound."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=40, help="blocks of each page")
    parser.add_argument("--runs", type=int, default=50, help="measured runs of a block")
    parser.add_argument("--warmup", type=int, default=10, help="warm-up runs of a block")
    arguments = parser.parse_args()
    before = load()
    ours, bare = measure(arguments.blocks, arguments.runs, arguments.warmup)
    ratio = print_table(ours, bare)
    print(f"{before} before, {load()} after")
    interval = [round(ratio.low, 4), round(ratio.high, 4)]
    return finish("harness", ratio=ratio.value, bound=BOUND, n=arguments.blocks * arguments.runs, interval=interval)


if __name__ == "__main__":
    sys.exit(main())
