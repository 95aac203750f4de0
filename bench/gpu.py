"""How fast is the fast WebGPU runner, and what is each part of it worth? `python bench/gpu.py` (needs `make build`).

In each of several fresh browsers, one interleaved race of webgpu-stock, webgpu-fast, the ways that webgpu-fast falls back to
(without graph capture; without nudging), wasm-1 and the best thread count of WASM. With `--ideas` also what has been thought of
beyond that: uploads through mapped buffers, two staging buffers that take turns, pixels as bytes that the graph casts, and
convolutions with their Relu as one node. `--only` races fewer engines, since many open at once make all of them slower.

On a software adapter the answers are checked and the times say nothing; the ratio in the last line is then that of the largest
error of a score to what is accepted.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from common import dist, finish, load, machine, run_inside
from numpy.typing import NDArray

from pyapp.chromium import BrowserOptions, PageDriver, open_page
from pyapp.serve import SiteServer
from pyapp.sitefolder import app_folder
from pyapp.stats import ratio_interval

BOUND = 1.0
ACCEPTED_ERROR = 1e-4
"""Of a score, against Python's."""

STOCK, FAST = "webgpu-stock", "webgpu-fast"
LADDER = (
    ("wasm-1", "stock", "model"),
    ("wasm-N", "stock", "model"),
    (STOCK, "stock", "model"),
    (FAST, "fast", "model"),
    ("webgpu-fast-nocapture", "fast-nocapture", "model"),
    ("webgpu-fast-plain", "fast-plain", "model"),
)
"""Name, runner, and which form of the model: as it is, with bytes as its input, or with fused nodes."""

IDEAS = (
    ("webgpu-fast-mapped-upload", "fast-mapped-upload", "model"),
    ("webgpu-fast-two-stagings", "fast-two-stagings", "model"),
    ("webgpu-fast-bytes", "fast", "bytes"),
    ("webgpu-fast-fused", "fast", "fused"),
)
BEST_WAY = "fast: capture + nudge"


@dataclass(frozen=True)
class Row:
    """One engine over all browsers: percentiles in milliseconds, one a browser, and what the browsers said of it."""

    name: str
    runners: list[str]
    p50: NDArray[np.float64]
    p95: NDArray[np.float64]
    error: float


@contextlib.contextmanager
def page(options: BrowserOptions) -> Iterator[PageDriver]:
    """Open the built site in a fresh browser."""
    with SiteServer(dist()) as server, open_page(options, server.url) as driver:
        yield driver


def measure(options: BrowserOptions, browsers: int, runs: int, warmup: int, *, names: Sequence[str]) -> list[dict[str, Any]]:
    """Race all engines in fresh browsers; returns what each browser found."""
    found: list[dict[str, Any]] = []
    for seed in range(browsers):
        with page(options) as driver:
            # The first browser looks for the best thread count, for all of them.
            threads = found[0]["threads"] if found else 0
            wanted = [one for one in (*LADDER, *IDEAS) if one[0] in names]
            found.append(run_inside(driver, "gpu", wanted=wanted, threads=threads, runs=runs, warmup=warmup, seed=seed))
        print(f"browser {seed + 1} of {browsers}", file=sys.stderr)
        if found[0]["adapter"]["software"]:
            break  # its answers are the same in the next one
    return found


def rows(found: list[dict[str, Any]]) -> list[Row]:
    """Collect each engine's figures over the browsers."""
    collected = []
    for index, engine in enumerate(found[0]["engines"]):
        each = [browser["engines"][index] for browser in found]
        samples = [np.concatenate(entry["rounds_ms"]) for entry in each]
        p50, p95 = np.array([np.percentile(values, [50, 95]) for values in samples]).T
        runners = list(dict.fromkeys(entry["runner"] for entry in each))
        collected.append(Row(engine["name"], runners, p50, p95, max(entry["max_abs_diff"] for entry in each)))
    return collected


def print_table(found: list[dict[str, Any]]) -> None:
    """Print percentiles and ratios (medians over the browsers, with their range), and what did not go as hoped."""
    table = rows(found)
    by_name = {row.name: row for row in table}
    spans = f"{'P50 ms (range)':24} {'P95 ms (range)':24}"
    print(f"{'engine':26} {'ran as':22} {spans} {'/ stock':>8} {'/ wasm-1':>9} {'max |dQ|':>9}")
    for row in table:
        ratios = [f"{np.median(row.p50 / by_name[other].p50):.3f}" for other in (STOCK, "wasm-1")]
        runner = ", ".join(row.runners)
        spans = f"{_span(row.p50):24} {_span(row.p95):24}"
        print(f"{row.name:26} {runner:22} {spans} {ratios[0]:>8} {ratios[1]:>9} {row.error:9.1e}")
    for seed, browser in enumerate(found):
        if browser["hidden"]:
            print(f"browser {seed + 1}: the page was hidden, so its times are not valid")
        for engine in browser["engines"]:
            for reason in engine["fallbacks"]:
                print(f"browser {seed + 1}, {engine['name']}: not run as {reason}")
            if engine["bad"]:
                print(f"browser {seed + 1}, {engine['name']}: {engine['bad']} runs without usable scores")
    halves = found[0]["halves"]
    how = f"ran as {halves['runner']}, largest error {halves['error']}" if halves["failure"] is None else halves["failure"]
    print(f"float16 on {FAST}: {how}")
    print(f"{FAST} / {STOCK}, browser by browser: " + ", ".join(_ratio(browser) for browser in found))


def _span(values: NDArray[np.float64]) -> str:
    return f"{np.median(values):.3f} ({values.min():.3f}-{values.max():.3f})"


def _ratio(browser: dict[str, Any]) -> str:
    """Name the ratio of medians in one browser with its interval over rounds."""
    blocks = {engine["name"]: [np.array(block) for block in engine["rounds_ms"]] for engine in browser["engines"]}
    found = ratio_interval(blocks[FAST], blocks[STOCK], 50, seed=0)
    return f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"


def record(found: list[dict[str, Any]], loads: list[str]) -> dict[str, Any]:
    """State everything that a reader of a stored result needs."""
    model = app_folder(dist()) / "fixtures" / "breakout_dqn.onnx"
    return {
        "what": "bench/gpu.py, fresh browsers one after the other, one interleaved race in each",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": shlex.join(["python", *sys.argv]),
        "machine": machine(),
        "load": loads,
        "adapter": found[0]["adapter"],
        "user_agent": found[0]["user_agent"],
        "versions": found[0]["versions"],
        "model_sha256": hashlib.sha256(model.read_bytes()).hexdigest() if model.is_file() else None,
        "summary": [
            {
                "name": row.name,
                "runners": row.runners,
                "p50_ms": row.p50.round(4).tolist(),
                "p95_ms": row.p95.round(4).tolist(),
                "max_abs_diff": row.error,
            }
            for row in rows(found)
        ],
        "browsers": found,
    }


def main() -> int:
    """Measure, print a table, and return 0 if the fast runner is no slower than the stock one and both are right."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--browsers", type=int, default=5, help="fresh browsers")
    parser.add_argument("--runs", type=int, default=200, help="measured runs of each engine in one browser")
    parser.add_argument("--warmup", type=int, default=10, help="warm-up runs of each engine")
    parser.add_argument("--ideas", action="store_true", help="race the ideas beyond the fast runner too")
    parser.add_argument(
        "--only", type=lambda text: text.split(","), metavar="A,B", help="race only these beside wasm-1, stock and fast"
    )
    parser.add_argument("--gpu", choices=("auto", "software"), default="auto", help="auto: the machine's, where there is one")
    parser.add_argument("--browser", default="", help="path of Chromium")
    parser.add_argument("--driver", default="", help="path of chromedriver")
    parser.add_argument("--browser-arg", action="append", default=[], help="argument for Chromium; may be given several times")
    parser.add_argument("--json", type=Path, help="write everything to this file")
    arguments = parser.parse_args()
    options = BrowserOptions(
        gpu=arguments.gpu, arguments=arguments.browser_arg, browser=arguments.browser, driver=arguments.driver
    )
    known = [name for name, _, _ in (*LADDER, *IDEAS)]
    if unknown := sorted(set(arguments.only or ()) - set(known)):
        parser.error(f"--only names {', '.join(unknown)}; give some of {', '.join(known)}")
    if arguments.only:
        names = ["wasm-1", STOCK, FAST, *arguments.only]
    else:
        names = known if arguments.ideas else [name for name, _, _ in LADDER]
    before = load()
    found = measure(options, arguments.browsers, arguments.runs, arguments.warmup, names=names)
    print_table(found)
    loads = [f"{before} before", f"{load()} after"]
    print(", ".join(loads))
    if arguments.json:
        arguments.json.write_text(json.dumps(record(found, loads), separators=(",", ":")) + "\n", encoding="utf-8")
    by_name = {row.name: row for row in rows(found)}
    software = bool(found[0]["adapter"]["software"])
    error = max(row.error for row in by_name.values()) / ACCEPTED_ERROR
    ratio = error if software else float(np.median(by_name[FAST].p50 / by_name[STOCK].p50))
    halves_right = all(not browser["halves"]["error"] for browser in found)  # doubling is exact
    right = error <= 1 and halves_right and not any(engine["bad"] for browser in found for engine in browser["engines"])
    return finish(
        "gpu",
        ratio=ratio,
        bound=BOUND,
        n=sum(len(block) for browser in found for block in browser["engines"][0]["rounds_ms"]),
        condition=right and by_name[FAST].runners == [BEST_WAY],
        what="largest error of a score / what is accepted" if software else f"P50 of {FAST} / {STOCK}",
        software=software,
        browsers=len(found),
    )


if __name__ == "__main__":
    sys.exit(main())
