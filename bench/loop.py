"""What does a decision cost beside its inference, and are 60 frames a second kept? `python bench/loop.py` (needs `make build`).

The page plays as a visitor starts it. First both boards play 60 seconds at the game's own speed: which frames missed their 60th
of a second? Then, as fast as it goes, blocks of decisions take turns with blocks of inference alone on the same engine, and
with blocks of decisions whose stages are not timed: the difference is what the measuring costs.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np
from common import finish, load, page, run_inside
from numpy.typing import NDArray

from pyapp.breakout.loop import STAGES
from pyapp.chromium import PageDriver
from pyapp.stats import ratio_interval

BOUND = 2.2
"""A whole decision may take that many times as long as the inference alone, at the median."""

MISSED_SHARE = 0.005
"""Of the frames at normal speed, on each board."""

MEASURING_SHARE = 0.02
"""What the measuring may cost of the loop."""


def start_game(driver: PageDriver, engine: str) -> None:
    """Start both games, with the agent on an engine."""
    driver.run(
        """
        const choice = document.querySelector('#play select');
        choice.value = argument;
        await pyappPage.play.start();
        """,
        engine,
    )
    if driver.run("return pyappPage.play.state") != "playing":
        raise RuntimeError(driver.run("return document.querySelector('#play .error').textContent"))


def play_at_normal_speed(driver: PageDriver, seconds: float) -> dict[str, Any]:
    """Let both boards play; returns what each counted, and the stages' times at this speed."""
    driver.run("await pyappPage.play.countAnew()")
    time.sleep(seconds)
    found: dict[str, Any] = driver.run("return await pyappPage.play.counts()")
    return found


def stages_table(stages: NDArray[np.float64], alone: NDArray[np.float64]) -> None:
    """Print what each stage takes."""
    print(f"{'stage, as fast as it goes':28} {'P50 ms':>8} {'P95 ms':>8}")
    for name, times in zip(STAGES, stages.T, strict=True):
        print(f"{name:28} {np.percentile(times, 50):8.3f} {np.percentile(times, 95):8.3f}")
    print(f"{'inference alone':28} {np.percentile(alone, 50):8.3f} {np.percentile(alone, 95):8.3f}")


def main() -> int:
    """Measure, print tables, and return 0 if all bounds are kept."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", default="wasm-1", help="whom the agent asks")
    parser.add_argument("--gpu", default="none", choices=("auto", "software", "none"))
    parser.add_argument("--seconds", type=float, default=60.0, help="at normal speed")
    parser.add_argument("--blocks", type=int, default=20, help="blocks of each kind")
    parser.add_argument("--decisions", type=int, default=100, help="decisions of a block")
    parser.add_argument("--runs", type=int, default=100, help="runs of a block of inference alone")
    arguments = parser.parse_args()
    before = load()
    with page(arguments.gpu) as driver:
        driver.driver.set_script_timeout(600)
        start_game(driver, arguments.engine)
        time.sleep(2)
        counts = play_at_normal_speed(driver, arguments.seconds)
        driver.run("await pyappPage.play.pause()")
        driver.evaluate("page.agent.speed(0)")
        found = run_inside(driver, "loop", blocks=arguments.blocks, decisions=arguments.decisions, runs=arguments.runs)
    alone, stages, measured, plain = (
        [np.array(block) for block in found[name]] for name in ("alone", "stages", "measured", "plain")
    )

    shares = {}
    print(f"{'board, at normal speed':28} {'frames':>8} {'missed':>8} {'share':>8} {'worst gap ms':>13}")
    for name in ("you", "agent"):
        board = counts[name]
        shares[name] = board["missed"] / max(1, board["shown"] + board["missed"])
        print(f"{name:28} {board['shown']:8} {board['missed']:8} {shares[name]:8.4f} {board['gap']:13.1f}")
    stages_table(np.concatenate(stages), np.concatenate(alone))
    decision = [block[:, STAGES.index("decision")] for block in stages]
    ratio = ratio_interval(decision, alone, 50, seed=0)
    print(f"decision / inference alone, P50: {ratio.value:.3f} ({ratio.low:.3f} to {ratio.high:.3f})")
    costs = [float(a / b) for a, b in zip(measured, plain, strict=True)]
    cost = float(np.median(costs)) - 1
    print(f"with the stages timed, a decision takes {cost:+.2%} as long (median of {len(costs)} pairs of blocks)")
    print(f"{before} before, {load()} after")
    return finish(
        "loop",
        ratio=ratio.value,
        bound=BOUND,
        n=arguments.blocks * arguments.decisions,
        condition=max(shares.values()) <= MISSED_SHARE and cost <= MEASURING_SHARE,
        interval=[round(ratio.low, 4), round(ratio.high, 4)],
        missed_share={name: round(share, 5) for name, share in shares.items()},
        missed_share_bound=MISSED_SHARE,
        worst_gap_ms=round(max(counts[name]["gap"] for name in shares), 1),
        measuring_share=round(cost, 4),
        measuring_share_bound=MEASURING_SHARE,
    )


if __name__ == "__main__":
    sys.exit(main())
