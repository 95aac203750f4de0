"""Which method of timing gives the same ratio again in the next browser? `python bench/peers.py` (needs `make build`).

A peer's method: a fixed order, one engine after the other, three warm-ups (`--peer-warmup`), the mean of N runs. Ours: a race
in shuffled blocks, and medians. Both time the same model and state with the same engine workers, N runs of each engine, in
fresh browsers that take turns; each browser gives one ratio WebGPU / WASM. The scatter is the standard deviation of the
ratios' logarithms, which is about their relative spread, and is the same for A / B as for B / A.

Without a GPU, WebGPU is a software adapter, whose time says nothing about GPUs: there wasm-2 / wasm-1 stands in for it.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from common import abba, finish, load, page, run_inside
from numpy.typing import ArrayLike, NDArray

from pyapp.race import RaceSettings

BOUND = 1.0
METHODS = ("ours", "peer")
OUR_WARMUP = RaceSettings().warmup
PEER_WARMUP = 3

QUESTION = ("webgpu-stock", "wasm-1")
STAND_IN = ("wasm-2", "wasm-1")
RESAMPLES = 5_000
MIN_BROWSERS = 5
"""With fewer, resamples that hold one ratio again and again make the interval endless."""

HARDWARE = "engine.facts.adapter is not None and not engine.facts.adapter.software"


def log_scatter(ratios: ArrayLike) -> float:
    """Return the standard deviation (n - 1) of the natural logarithms of ratios, at least two."""
    values = np.asarray(ratios, dtype=np.float64)
    if values.size < 2 or not (values > 0).all():
        raise ValueError(f"scatter needs at least two ratios, all of them positive, got {values.tolist()}")
    return float(np.std(np.log(values), ddof=1))


def quartile_scatter(ratios: ArrayLike) -> float:
    """Return the interquartile range of ratios over their median: what outliers do not move."""
    low, median, high = np.percentile(np.asarray(ratios, dtype=np.float64), [25, 50, 75])
    return float((high - low) / median)


def scatter_interval(ours: ArrayLike, peer: ArrayLike, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of ours' scatter over the peer's; the browsers of each are resampled."""
    rng = np.random.default_rng(seed)
    low, high = np.percentile(_scatters(ours, rng) / _scatters(peer, rng), [2.5, 97.5])
    return float(low), float(high)


def _scatters(ratios: ArrayLike, rng: np.random.Generator) -> NDArray[np.float64]:
    """Scatter of each resample: float64 [RESAMPLES]."""
    logs = np.log(np.asarray(ratios, dtype=np.float64))
    return np.asarray(np.std(rng.choice(logs, size=(RESAMPLES, logs.size)), axis=1, ddof=1))


def has_gpu() -> bool:
    """Whether WebGPU reaches real hardware in a browser of this machine."""
    with page("auto") as driver:
        answer = driver.evaluate("engine = await open_engine('webgpu-stock')\nawait engine.close()\n" + HARDWARE)
    return answer.get("repr") == "True"


def measure(names: tuple[str, str], gpu: str, browsers: int, runs: int, warmup: dict[str, int]) -> dict[str, list[float]]:
    """Take one ratio in each of `browsers` fresh browsers a method; returns them by method, in order."""
    found: dict[str, list[float]] = {method: [] for method in METHODS}
    for order in abba(browsers):
        for method in (METHODS[index] for index in order):
            with page(gpu) as driver:
                values = {"method": method, "names": names, "runs": runs, "warmup": warmup[method]}
                found[method].append(run_inside(driver, "peers", **values))
    return found


def print_table(found: dict[str, list[float]]) -> None:
    """Print each method's ratios: their median, range and scatter."""
    print(f"{'method':8} {'n':>3} {'median':>8} {'min':>8} {'max':>8} {'SD of log':>10} {'IQR/median':>11}")
    for method, ratios in found.items():
        spread = f"{log_scatter(ratios):10.4f} {quartile_scatter(ratios):11.4f}"
        print(f"{method:8} {len(ratios):3} {np.median(ratios):8.3f} {min(ratios):8.3f} {max(ratios):8.3f} {spread}")


def main() -> int:
    """Measure, print a table, and return 0 if our ratio scatters no more than the peer's."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--browsers", type=int, default=20, help="fresh browsers for each method")
    parser.add_argument("--runs", type=int, default=100, help="measured runs of each engine in one browser")
    parser.add_argument("--peer-warmup", type=int, default=PEER_WARMUP, help="the peer's warm-up runs")
    parser.add_argument("--gpu", choices=("auto", "none"), default="auto", help="none: do not look for a GPU")
    arguments = parser.parse_args()
    if arguments.browsers < MIN_BROWSERS:
        parser.error(f"--browsers is at least {MIN_BROWSERS}: fewer say nothing about scatter")
    before = load()
    gpu = arguments.gpu == "auto" and has_gpu()
    names = QUESTION if gpu else STAND_IN
    warmup = {"ours": OUR_WARMUP, "peer": arguments.peer_warmup}
    found = measure(names, "auto" if gpu else "none", arguments.browsers, arguments.runs, warmup)
    question = "/".join(names)
    print(f"ratio {question}" + ("" if gpu else ", a stand-in: this machine has no GPU, so nothing is said about WebGPU"))
    print_table(found)
    low, high = scatter_interval(found["ours"], found["peer"])
    ratio = log_scatter(found["ours"]) / log_scatter(found["peer"])
    print(f"scatter, ours / peer: {ratio:.3f} ({low:.3f} to {high:.3f}, 95 % bootstrap over browsers)")
    for method, ratios in found.items():
        print(f"{method}: " + " ".join(f"{value:.3f}" for value in ratios))
    print(f"{before} before, {load()} after")
    interval = [round(low, 4), round(high, 4)]
    return finish(
        "peers", ratio=ratio, bound=BOUND, n=arguments.browsers, engines=question, stand_in=not gpu, interval=interval
    )


if __name__ == "__main__":
    sys.exit(main())
