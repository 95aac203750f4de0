"""How fast is the emulator in wasm, and a decision of the environment in Pyodide? `python bench/ale.py` (needs `make build`).

The same code (`bench/inside/ale.py`) runs on CPython with ale_py and in the page with wasm, in turns (AB, BA, …).
"""

from __future__ import annotations

import argparse
import sys
from typing import NamedTuple

import numpy as np
from common import abba, finish, inside, load, page, run_inside
from numpy.typing import NDArray

from pyapp.native.atari import NativeBreakout
from pyapp.stats import ratio_interval

BOUND = 2.5
"""A decision in Pyodide may take that many times as long as on CPython."""

FRAMES_SHARE = 0.6
"""The least share of native frames a second."""


class Side(NamedTuple):
    """One side's blocks: milliseconds of a frame (one number a block), of each decision, of each resize in numpy."""

    frames: list[NDArray[np.float64]]
    decisions: list[NDArray[np.float64]]
    resizes: list[NDArray[np.float64]]


def measure(blocks: int, frames: int, decisions: int) -> list[Side]:
    """Time both sides in turns; returns the native one and the page's."""
    script = inside("ale")
    found = [Side([], [], []), Side([], [], [])]
    with page() as driver, NativeBreakout() as environment:
        environment.reset(0)
        sides = (
            lambda seed: script.block(environment, frames, decisions, seed),
            lambda seed: run_inside(driver, "ale", frames=frames, decisions=decisions, seed=seed),
        )
        for seed, order in enumerate([(0, 1), *abba(blocks)]):  # the first round only warms both up
            for side in order:
                frame, decision, resize = sides[side](seed)
                if seed:
                    for kept, values in zip(found[side], ([frame], decision, resize), strict=True):
                        kept.append(np.array(values))
    return found


def main() -> int:
    """Measure, print a table, and return 0 if both bounds are kept."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=20, help="blocks of each side")
    parser.add_argument("--frames", type=int, default=2000, help="frames of a block")
    parser.add_argument("--decisions", type=int, default=200, help="decisions of a block")
    arguments = parser.parse_args()
    before = load()
    native, wasm = measure(arguments.blocks, arguments.frames, arguments.decisions)
    ratios = {}
    print(f"{'what':34} {'native ms':>10} {'page ms':>10} {'ratio':>7}")
    for name, ours, theirs in zip(("frame", "decision", "resize and stack, numpy alone"), wasm, native, strict=True):
        ratio = ratio_interval(ours, theirs, 50, seed=0)
        ratios[name] = ratio
        here, there = (float(np.median(np.concatenate(side))) for side in (theirs, ours))
        print(f"{name:34} {here:10.3f} {there:10.3f} {ratio.value:7.3f} ({ratio.low:.3f} to {ratio.high:.3f})")
    share = 1 / ratios["frame"].value
    print(
        f"frames/s: native {1000 / np.median(native.frames):.0f}, page {1000 / np.median(wasm.frames):.0f}: {share:.3f} of it"
    )
    print(f"{before} before, {load()} after")
    decision = ratios["decision"]
    return finish(
        "ale",
        ratio=decision.value,
        bound=BOUND,
        n=arguments.blocks * arguments.decisions,
        condition=share >= FRAMES_SHARE,
        interval=[round(decision.low, 4), round(decision.high, 4)],
        frames_share=round(share, 4),
        frames_share_bound=FRAMES_SHARE,
    )


if __name__ == "__main__":
    sys.exit(main())
