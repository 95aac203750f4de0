"""Does an idle engine with threads disturb the one that runs next? `python bench/spinning.py` (needs `make build`).

onnxruntime's threads spin for a while after a run, in the hope of more work. In a race the next block belongs to another
engine. This times wasm-1 by itself, after a neighbour whose threads spin, and after one whose threads block; and the
neighbour itself both ways, since spinning is there to make it faster.
"""

from __future__ import annotations

import argparse
import os
import sys

import numpy as np
from common import finish, page, run_inside

BOUND = 1.1


def main() -> int:
    """Measure, print a table, and return 0 if a blocking neighbour leaves wasm-1 within the bound."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--runs", type=int, default=10)
    arguments = parser.parse_args()
    with page() as driver:
        threads = max(2, (os.cpu_count() or 2) // 2)
        found = run_inside(driver, "spinning", rounds=arguments.rounds, runs=arguments.runs, threads=threads)
    alone = np.median(found["victim"]["alone"])
    print(f"{'engine':34} {'P50 ms':>8} {'P95 ms':>8} {'P50 ratio':>10}")
    for name, samples in found["victim"].items():
        p50, p95 = np.percentile(samples, [50, 95])
        label = "wasm-1 alone" if name == "alone" else f"wasm-1 after a {name} neighbour"
        print(f"{label:34} {p50:8.3f} {p95:8.3f} {p50 / alone:10.2f}")
    blocking = np.median(found["neighbour"]["blocking"])
    for name, samples in found["neighbour"].items():
        p50, p95 = np.percentile(samples, [50, 95])
        print(f"{f'wasm-{threads} {name}':34} {p50:8.3f} {p95:8.3f} {p50 / blocking:10.2f}")
    ratio = float(np.median(found["victim"]["blocking"]) / alone)
    return finish("spinning", ratio=ratio, bound=BOUND, n=arguments.rounds * arguments.runs)


if __name__ == "__main__":
    sys.exit(main())
