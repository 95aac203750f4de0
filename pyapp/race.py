"""Which engine is faster? Interleaved timing, so that a machine that drifts drifts for all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pyapp.engine import Engine, EngineError, Tensors
from pyapp.stats import RatioInterval, Summary, clock_is_coarse, ratio_interval, summarize

ROUNDS = 10
"""A race has this many rounds; in each, every engine runs one block, in an order drawn anew."""

LEAD_IN_MS = 10.0
"""Each block begins with unmeasured runs of about this long, and at least one: an engine that has waited for its turn is
slower for some milliseconds (caches, clock frequency), which would be a cost of interleaving, not of the engine."""

LEAD_IN_MAX_RUNS = 100

CHUNK_MS = 250.0
"""A block of a slow engine is timed in chunks of about this long, so that progress shows and a cancel takes effect."""


@dataclass
class Lane:
    """One engine's timings in a race.

    Attributes
    ----------
    engine : Engine
        The engine.
    warmup_ms : list of float
        Warm-up runs in run order, kept apart.
    rounds : list of float64 [block]
        Measured runs in milliseconds, in run order, one array a round.
    lead_in : int
        Unmeasured runs at the beginnings of the blocks, in all.
    bad : int
        Runs of its blocks whose scores were non-finite or all zero.
    error : EngineError or None
        Why the engine left the race.
    """

    engine: Engine
    warmup_ms: list[float] = field(default_factory=list)
    rounds: list[NDArray[np.float64]] = field(default_factory=list)
    lead_in: int = 0
    bad: int = 0
    error: EngineError | None = None

    @property
    def typical_ms(self) -> float | None:
        """Median of the newest runs, in milliseconds; None before the first."""
        newest = self.rounds[-1] if self.rounds else np.array(self.warmup_ms)
        return max(float(np.median(newest)), 1e-3) if newest.size else None

    @property
    def samples_ms(self) -> NDArray[np.float64]:
        """Measured runs in run order: float64 [n], milliseconds."""
        return np.concatenate(self.rounds) if self.rounds else np.empty(0)

    @property
    def summary(self) -> Summary | None:
        """Summary of the measured runs; None before the first."""
        return summarize(self.samples_ms) if self.rounds else None


@dataclass(frozen=True)
class RaceSettings:
    """How a race is run: measured runs and warm-up runs per engine, and the seed of the order of blocks."""

    runs: int = 100
    warmup: int = 10
    seed: int = 0


async def race(
    engines: Sequence[Engine],
    inputs: Tensors,
    settings: RaceSettings,
    *,
    on_block: Callable[[list[Lane], int, int], None] = lambda lanes, done, total: None,
) -> list[Lane]:
    """Time engines against each other on one input.

    Every engine first runs its warm-up. Then come rounds; in each, every engine runs one block, in an order shuffled with
    the seed; each block begins with a few unmeasured runs (`LEAD_IN_MS`). An engine that fails leaves the race with its
    error; the others go on.

    Parameters
    ----------
    engines : sequence of Engine
        Already opened, each with its first run behind it.
    inputs : mapping of str to array
        The model's inputs, batch 1.
    settings : RaceSettings
        Runs, warm-up and seed.
    on_block : callable
        Called with the lanes and the numbers of runs done and in all, at least a few times a second for slow engines.
    """
    lanes = [Lane(engine) for engine in engines]
    total = len(lanes) * (settings.runs + settings.warmup)
    done = 0

    async def timed(lane: Lane, runs: int, lead_in: int = 0) -> NDArray[np.float64]:
        nonlocal done
        samples = np.empty(0)
        while (left := lead_in + runs - samples.size) > 0:
            block = await lane.engine.time(inputs, min(left, _chunk(lane, samples)))
            samples = np.concatenate([samples, block.samples_ms])
            lane.bad += block.bad
            on_block(lanes, done + max(0, samples.size - lead_in), total)
        done += runs
        return samples[lead_in:]

    for lane in lanes:
        try:
            if settings.warmup:
                lane.warmup_ms = [float(ms) for ms in await timed(lane, settings.warmup)]
                lane.bad = 0  # warm-up is no part of the result; the parity check has judged the answers
        except EngineError as error:
            lane.error = error
    rng = np.random.default_rng(settings.seed)
    for size in block_sizes(settings.runs):
        for index in rng.permutation(len(lanes)):
            lane = lanes[index]
            if lane.error:
                continue
            try:
                lead_in = _lead_in(lane)
                lane.rounds.append(await timed(lane, size, lead_in))
                lane.lead_in += lead_in
            except EngineError as error:
                lane.error = error
    return lanes


def block_sizes(runs: int) -> list[int]:
    """Split measured runs into up to `ROUNDS` blocks whose sizes differ by at most one."""
    rounds = min(ROUNDS, runs)
    return [runs // rounds + (index < runs % rounds) for index in range(rounds)]


def _lead_in(lane: Lane) -> int:
    """How many unmeasured runs a block begins with."""
    typical = lane.typical_ms
    return 1 if typical is None else max(1, min(LEAD_IN_MAX_RUNS, math.ceil(LEAD_IN_MS / typical)))


def _chunk(lane: Lane, samples: NDArray[np.float64]) -> int:
    """How many runs the next call should time, with the samples of this block so far."""
    typical = float(np.median(samples)) if samples.size else lane.typical_ms
    return 1 if typical is None else max(1, math.floor(CHUNK_MS / max(typical, 1e-3)))


@dataclass(frozen=True)
class Ratio:
    """How many times as long one engine takes as another, or why that cannot be said.

    `p50` and `p95` are ratios of percentiles with 95 % intervals; None with a `reason`.
    """

    numerator: str
    denominator: str
    p50: RatioInterval | None
    p95: RatioInterval | None
    reason: str | None


def lane_faults(lane: Lane, *, hidden: bool) -> list[str]:
    """Why a lane's timings may not be compared, in words; empty where they may.

    Parameters
    ----------
    lane : Lane
        An engine's timings.
    hidden : bool
        Whether the tab was hidden at any time during the race.
    """
    facts = lane.engine.facts
    faults = []
    if lane.error:
        faults.append(f"the engine failed: {lane.error.message}")
    if hidden:
        faults.append("the tab was hidden during the race, so the browser may have slowed it down; keep it in front")
    if lane.rounds and clock_is_coarse(lane.samples_ms, facts.clock_step_ms):
        faults.append(
            f"the clock steps by {facts.clock_step_ms:.3g} ms, too coarse for these runs; "
            "serve the page cross-origin isolated (COOP and COEP)"
        )
    if facts.software:
        faults.append("the GPU is a software adapter: its time says nothing about GPUs")
    if lane.bad:
        faults.append(f"{lane.bad} runs gave scores that were non-finite or all zero")
    if facts.fallback_nodes:
        faults.append(f"{facts.fallback_nodes} nodes ran on the CPU although the GPU was asked for")
    return faults


def ratio(numerator: Lane, denominator: Lane, *, seed: int, hidden: bool) -> Ratio:
    """Compare two lanes of one race; a fault of either one is the reason why there is no ratio."""
    names = numerator.engine.spec.name, denominator.engine.spec.name
    for name, lane in zip(names, (numerator, denominator), strict=True):
        if faults := lane_faults(lane, hidden=hidden):
            return Ratio(*names, None, None, f"{name}: {faults[0]}")
    return Ratio(
        *names,
        ratio_interval(numerator.rounds, denominator.rounds, 50, seed=seed),
        ratio_interval(numerator.rounds, denominator.rounds, 95, seed=seed),
        None,
    )
