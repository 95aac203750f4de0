"""Let a model play whole games in the page's own environment, and say how well.

Usage::

    python training/evaluate.py MODEL.onnx [--games 30] [--epsilon 0.01] [--workers N] [--json FILE]

Needs the project's environment with the extra "native", not PyTorch. The environment and its preprocessing are the page's
(`pyapp.breakout.Breakout` on ale_py); the model runs on onnxruntime's CPU provider, one thread, one state at a time.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a checkout is enough: no need to install the package

from pyapp.breakout import ACTIONS
from pyapp.breakout.preprocess import FRAME_SHAPE, STACK
from pyapp.stats import mean_interval

RESAMPLES = 10_000
STARTS = 29
"""Without sticky actions and epsilon a game hangs on its idle frames alone, and the training's reset knows so many."""


@dataclass(frozen=True, slots=True)
class Played:
    """One game: its seed, score, decisions, and whether it was cut off at the environment's frame cap."""

    seed: int
    score: float
    decisions: int
    truncated: bool


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What some games came to; games that were cut off are counted, and their scores so far are part of the statistics.

    `low` and `high` bound the 95 % bootstrap interval of the mean over games.
    """

    games: int
    truncated: int
    mean: float
    low: float
    high: float
    median: float
    min: float
    max: float
    decisions: int


def summarize(games: Sequence[Played], *, seed: int = 0) -> Evaluation:
    """Summarize games.

    Raises
    ------
    ValueError
        There are none.
    """
    if not games:
        raise ValueError("no games were played; play at least one")
    scores = np.array([game.score for game in games])
    mean = mean_interval(scores, seed=seed, resamples=RESAMPLES)
    return Evaluation(
        games=len(games),
        truncated=sum(game.truncated for game in games),
        mean=mean.value,
        low=mean.low,
        high=mean.high,
        median=float(np.median(scores)),
        min=float(scores.min()),
        max=float(scores.max()),
        decisions=sum(game.decisions for game in games),
    )


def play(model: Path, seed: int, epsilon: float) -> Played:
    """Play one whole game from a seed; with `epsilon` 0, from the `seed`-th of the `STARTS` different starts.

    The random actions have a stream of their own, drawn for every decision, so that every engine is given the same.
    """
    from pyapp.native.atari import NativeBreakout

    session = _session(model)
    random = np.random.Generator(np.random.PCG64([seed, 1]))
    with NativeBreakout() as environment:
        observation, _ = environment.reset(seed, None if epsilon else {"idle": 1 + seed % STARTS})
        score, decisions, terminated, truncated = 0.0, 0, False, False
        while not (terminated or truncated):
            chance, choice = random.random(2)
            action = int(choice * len(ACTIONS)) if chance < epsilon else _best(session, observation)
            observation, reward, terminated, truncated, _ = environment.step(action)
            score += reward
            decisions += 1
    return Played(seed, score, decisions, truncated)


def _session(model: Path) -> Any:  # noqa: ANN401 - onnxruntime has no types
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _best(session: Any, observation: NDArray[np.uint8]) -> int:  # noqa: ANN401
    (q_values,) = session.run(["q_values"], {"observation": observation[np.newaxis].astype(np.float32)})
    return int(q_values.argmax())


def evaluate(model: Path, seeds: Sequence[int], epsilon: float, workers: int) -> list[Played]:
    """Play a game for every seed, in so many processes; returns them in the order of the seeds."""
    start = time.monotonic()
    games: dict[int, Played] = {}
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        jobs = [pool.submit(play, model, seed, epsilon) for seed in seeds]
        for job in as_completed(jobs):
            game = job.result()
            games[game.seed] = game
            left = (time.monotonic() - start) / len(games) * (len(seeds) - len(games))
            cut = ", cut off" if game.truncated else ""
            print(
                f"{len(games)} of {len(seeds)}: seed {game.seed} scored {game.score:.0f}{cut}, {left:.0f} s left",
                file=sys.stderr,
            )
    return [games[seed] for seed in seeds]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 2 with the reason on stderr."""
    parser = argparse.ArgumentParser(description="Let a model play whole games, and say how well.")
    parser.add_argument("model", type=Path)
    parser.add_argument("--games", type=int, default=30, help="seeds 1 to N (default: 30)")
    parser.add_argument(
        "--epsilon", type=float, default=0.01, help="chance of a random action; 0 is pure greed (default: 0.01)"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes (default: one a processor)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every game and the summary")
    options = parser.parse_args(arguments)
    if not options.model.is_file():
        return _refused(f"there is no model {options.model}; export one with training/export_onnx.py")
    if not 0 <= options.epsilon <= 1:
        return _refused(f"epsilon must be in 0..1, got {options.epsilon}")
    if options.games < 1 or options.workers < 1:
        return _refused(f"games and workers must be at least 1, got {options.games} and {options.workers}")
    if options.epsilon == 0 and options.games > STARTS:
        return _refused(f"without epsilon there are {STARTS} different games, got --games {options.games}")
    try:
        _best(_session(options.model), np.zeros((STACK, *FRAME_SHAPE), np.uint8))
    except Exception as error:  # onnxruntime's errors have no common class
        return _refused(f"{options.model} is no model of this game ({str(error).splitlines()[0]})")
    games = evaluate(options.model, range(1, options.games + 1), options.epsilon, options.workers)
    found = summarize(games)
    print("| epsilon | games | mean | 95 % interval | median | min | max | truncated | decisions |")
    print("|---|---|---|---|---|---|---|---|---|")
    counts = f"{options.epsilon:g} | {found.games}"
    scores = f"{found.mean:.1f} | {found.low:.1f} to {found.high:.1f} | {found.median:.0f} | {found.min:.0f} | {found.max:.0f}"
    print(f"| {counts} | {scores} | {found.truncated} | {found.decisions} |")
    if options.json:
        text = json.dumps(
            {"epsilon": options.epsilon, "summary": asdict(found), "games": [asdict(game) for game in games]}, indent=1
        )
        options.json.write_text(text + "\n", encoding="utf-8")
    return 0


def _refused(why: str) -> int:
    print(f"error: {why}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
