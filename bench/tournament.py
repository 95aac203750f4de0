"""How many decisions a second in the page, of those in native Python? `python bench/tournament.py` (needs `make build`).

The same code (`bench/inside/tournament.py`) plays the same games on CPython with ale_py and onnxruntime (1 thread) and in the
page with wasm and onnxruntime-web (``wasm-1``), in turns (AB, BA, …). Then it says where the difference goes.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Any

import numpy as np
from common import ROOT, abba, finish, inside, load, page, run_inside

from pyapp.engine import EngineSpec
from pyapp.native.atari import NativeBreakout
from pyapp.native.engine import open_engine
from pyapp.stats import ratio_interval

BOUND = 2.5
"""A decision in the page may take that many times as long as on CPython: 0.4 of its speed."""

PARTS = ("whole", "infer", "compute", "step")

type Blocks = dict[str, list[np.ndarray[Any, np.dtype[np.float64]]]]


async def natively(decisions: int, seed: int) -> dict[str, list[float]]:
    """Time one block on CPython."""

    async def open_environment(*, max_frames: int) -> NativeBreakout:
        return NativeBreakout(max_frames=max_frames)

    engine = await open_engine(EngineSpec.parse("wasm-1"), (ROOT / "fixtures" / "breakout_dqn.onnx").read_bytes())
    try:
        await engine.time({"observation": np.zeros((1, 4, 84, 84), np.float32)}, 20)
        found: dict[str, list[float]] = await inside("tournament").block(engine, open_environment, decisions, seed)
    finally:
        await engine.close()
    return found


def measure(blocks: int, decisions: int) -> list[Blocks]:
    """Time both sides in turns; returns the native one's blocks and the page's."""
    found: list[Blocks] = [{name: [] for name in PARTS} for _ in range(2)]
    with page() as driver:
        sides = (
            lambda seed: asyncio.run(natively(decisions, seed)),
            lambda seed: run_inside(driver, "tournament", decisions=decisions, seed=seed),
        )
        for seed, order in enumerate([(0, 1), *abba(blocks)]):  # the first round only warms both up
            for side in order:
                block = sides[side](seed)
                for name in PARTS if seed else ():
                    found[side][name].append(np.array([np.mean(block[name])]))  # means add up, medians do not
    return found


def main() -> int:
    """Measure, print a table, and return 0 if the bound is kept."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=10, help="blocks of each side")
    parser.add_argument("--decisions", type=int, default=400, help="decisions of a block")
    arguments = parser.parse_args()
    before = load()
    native, wasm = measure(arguments.blocks, arguments.decisions)
    print(f"{'ms of a decision':42} {'native':>8} {'page':>8} {'ratio':>7} {'part of the difference':>24}")
    medians = [{name: float(np.median(np.concatenate(side[name]))) for name in PARTS} for side in (native, wasm)]
    for side in medians:  # what neither the engine nor the environment takes: Python between them, and the way to the worker
        side["bridge"] = side["infer"] - side["compute"]
        side["rest"] = side["whole"] - side["infer"] - side["step"]
    here, there = medians
    labels = {
        "whole": "whole decision",
        "compute": "- the engine's arithmetic",
        "bridge": "- the way to the engine",
        "step": "- the environment",
        "rest": "- Python, less what runs at the same time",
    }
    for name, label in labels.items():
        ratio = f"{there[name] / here[name]:.2f}" if here[name] > 0 and there[name] > 0 else "-"
        part = (there[name] - here[name]) / (there["whole"] - here["whole"])
        print(f"{label:42} {here[name]:8.3f} {there[name]:8.3f} {ratio:>7} {part:24.0%}")
    found = ratio_interval(wasm["whole"], native["whole"], 50, seed=0)
    share = 1 / found.value
    print(f"decisions/s: native {1000 / here['whole']:.0f}, page {1000 / there['whole']:.0f}: {share:.3f} of it")
    print(f"{before} before, {load()} after")
    return finish(
        "tournament",
        ratio=found.value,
        bound=BOUND,
        n=arguments.blocks * arguments.decisions,
        interval=[round(found.low, 4), round(found.high, 4)],
        decisions_share=round(share, 4),
    )


if __name__ == "__main__":
    sys.exit(main())
