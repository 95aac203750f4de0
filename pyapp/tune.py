"""What is the fastest right way to run this model here? Every configuration that makes sense, raced by successive halving."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyapp import report as r
from pyapp.candidates import candidate_names, simplicity, why_wrong
from pyapp.cases import Cases
from pyapp.engine import Engine, EngineError, EngineSpec, OpenEngine, Tensors
from pyapp.host import Hidden, Host, Listener, Settings, require_seed, require_within
from pyapp.opening import introduced
from pyapp.parity import Answers, parity
from pyapp.race import Lane, RaceSettings, lane_faults, race
from pyapp.sections import environment_entry, failed_entry
from pyapp.stats import percentile_interval, ratio_interval

RACED, DROPPED, WRONG, FAILED = r.TUNE_STATUSES
SINGLE, TAIL, BATCH = r.PURPOSES
PERCENTILES = {SINGLE: 50, TAIL: 95, BATCH: 50}

BUDGET_S = 110.0
MAX_BUDGET_S = 3_600.0
TRIAL_RUNS = 20
"""Measured runs of a candidate that is open alone; the faster half by these is raced."""

TRIAL_MS = 3_000.0
"""A trial takes no longer, but has three runs at least."""

RUNGS = (40, 100)
"""Measured runs per engine, race by race; between two races, the slower half leaves."""

BATCH_RUNGS = (10, 20)
MIN_RUNS = 10
"""One in each round of a race."""

COST = 2
"""How many times its runs a block takes: it has a lead-in of about its own length."""

SLOW_BATCH_MS = 5_000.0
"""A batch that is expected to take longer is not tried."""

WARMUP = 5
FINALISTS = 3
"""So many are never halved."""

JUDGING = 0.5
"""Part of the budget that trials may take; who has not been tried by then is left out."""

BATCHING = 0.3
"""Part of the rest that the race of batches may take."""

SOFTWARE_CASES = 10
"""On a software adapter, which cannot win, so many of the hardest cases of each suite are asked."""

OPEN_LIMIT_S = 120

MAX_BATCH = 1024
HIDDEN = "the tab was hidden during the race, so the browser may have slowed it down; keep it in front"


@dataclass(frozen=True, kw_only=True)
class TuneSettings(Settings):
    """How to search.

    Attributes
    ----------
    engines : list of str
        The candidates; empty for all that make sense on this machine.
    precision : bool
        Whether variants of the model in 8 and 16 bits may be recommended.
    batch : int
        States in a batch.
    budget_s : float
        Seconds for all of it.
    seed : int
        Seed of orders and intervals.
    fresh : bool
        Whether to forget what a search with the same settings had found when it was cancelled.
    """

    engines: list[str] = field(default_factory=list)
    precision: bool = False
    batch: int = 64
    budget_s: float = BUDGET_S
    seed: int = 0
    fresh: bool = False

    def __post_init__(self) -> None:
        """Refuse settings that nothing can be tuned with; raises ValueError that names the value and what is allowed."""
        for name in self.engines:
            EngineSpec.parse(name)
        require_within("batch", self.batch, 2, MAX_BATCH)
        require_within("budget_s", self.budget_s, 1, MAX_BUDGET_S)
        require_seed(self.seed)


@dataclass
class _Candidate:
    """What is known of a configuration; it outlives a cancelled search."""

    spec: EngineSpec
    judged: list[Answers] = field(default_factory=list)
    status: str = ""
    reason: str | None = None
    trial_ms: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    batch_ms: float | None = None
    rounds: list[NDArray[np.float64]] = field(default_factory=list)
    batch_rounds: list[NDArray[np.float64]] = field(default_factory=list)
    rungs: int = 0
    entry: r.EngineEntry | None = None

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def alive(self) -> bool:
        """Whether it can still win with one state at a time."""
        return not self.status and bool(self.trial_ms.size)

    @property
    def right(self) -> bool:
        return self.status in ("", DROPPED) and bool(self.trial_ms.size)

    @property
    def samples_ms(self) -> NDArray[np.float64]:
        """Its races, or its trial where there was none."""
        return np.concatenate(self.rounds) if self.rounds else self.trial_ms

    @property
    def typical_ms(self) -> float:
        return float(np.median(self.samples_ms))

    def leave(self, status: str, reason: str | None = None) -> None:
        self.status, self.reason = status, reason


@dataclass
class Tune:
    """A search; `run` may be called again after it was cancelled, and goes on from where it was.

    Parameters
    ----------
    settings : TuneSettings
        How to search.
    model : bytes
        An ONNX file.
    suites : sequence of Cases
        A candidate that disagrees with Python on any of them is dropped. The first one's states are what is timed.
    open_engine : OpenEngine
        Opens engines.
    host : Host
        Where it runs.
    listener : Listener
        Hears of progress, and of the ``engines`` and ``tune`` sections.
    clock : callable
        Seconds, from anywhere on.
    """

    settings: TuneSettings
    model: bytes
    suites: Sequence[Cases]
    open_engine: OpenEngine
    host: Host
    listener: Listener
    clock: Callable[[], float] = time.monotonic

    _candidates: list[_Candidate] = field(default_factory=list)
    _open: dict[str, Engine] = field(default_factory=dict)
    _spent_s: float = 0.0
    _started: float = 0.0
    _steps_ms: list[float] = field(default_factory=list)
    _warnings: list[str] = field(default_factory=list)

    async def run(self) -> r.Report:
        """Search and return a report with `engines` and `tune`; candidates that fail or disagree are results."""
        if not self._candidates:
            names = self.settings.engines or candidate_names(self.host.environment(), precision=self.settings.precision)
            self._candidates = [_Candidate(EngineSpec.parse(name)) for name in names]
        self._started = self.clock()
        hidden = Hidden(self.host)
        recipe = []
        try:
            for index, candidate in enumerate(self._candidates):
                await self._try_alone(candidate, index)
            await self._race_singles(hidden)
            recipe = [*self._choose(SINGLE), *self._choose(TAIL)]
            await self._race_batches(hidden)
            recipe += self._choose(BATCH)
        finally:
            self._spent_s += self.clock() - self._started
            await self._close()
        if recipe and recipe[-1].purpose != BATCH:
            self._warnings.append(f"no time was left to race batches of {self.settings.batch}; give it more seconds")
        for candidate in self._candidates:
            if candidate.alive:
                candidate.leave(RACED)
        section = self._section(recipe)
        self.listener.section("tune", section)
        return r.Report(
            schema=r.SCHEMA,
            settings=r.Settings(
                engines=[candidate.name for candidate in self._candidates], runs=sum(RUNGS), warmup=1, seed=self.settings.seed
            ),
            environment=environment_entry(self.host.environment(), self._steps_ms, self.model),
            engines=[candidate.entry for candidate in self._candidates if candidate.entry],
            suites=[],
            parity=[],
            race=[],
            ratios=[],
            tune=section,
        )

    @property
    def _left_s(self) -> float:
        return self.settings.budget_s - self._spent_s - (self.clock() - self._started)

    async def _close(self, keep: Collection[str] = ()) -> None:
        ended = [name for name in self._open if name not in keep]
        for name in ended:
            await self._open.pop(name).close()

    def _progress(self, stage: str, done: int, total: int) -> None:
        self.listener.progress(stage, done, total)

    def _show(self) -> None:
        self.listener.section("tune", self._section([]))

    async def _try_alone(self, candidate: _Candidate, index: int) -> None:
        """Open a candidate, compare its answers with Python's and time it, unless an earlier run has.

        No other engine is open meanwhile: on an H200, the fast WebGPU runner took 1.7 ms beside fourteen others that did
        nothing, and 0.96 ms alone.
        """
        if candidate.status or candidate.trial_ms.size:
            return
        self._progress("trying each alone", index, len(self._candidates))
        if self._left_s < self.settings.budget_s * (1 - JUDGING):
            candidate.leave(FAILED, f"the {self.settings.budget_s * JUDGING:.0f} s for trials were used up")
            return
        try:
            engine = await self.open_engine(candidate.spec, self.model)
            self._open[candidate.name] = engine
            await self._judge(candidate, engine)
            if not candidate.status:
                await self._time_alone(candidate, engine)
        except EngineError as error:
            self._fail(candidate, error)
        await self._close()
        self._show()

    async def _judge(self, candidate: _Candidate, engine: Engine) -> None:
        candidate.entry = await introduced(engine, self._inputs(1), nodes=not engine.facts.software)
        self.listener.section("engines", candidate.entry)
        self._steps_ms.append(engine.facts.clock_step_ms)
        judged = []
        for suite in self.suites:
            judged.append(await parity(engine, suite.hardest(SOFTWARE_CASES) if engine.facts.software else suite))
            if wrong := why_wrong(judged[-1], candidate.spec.precision):
                candidate.leave(WRONG, f"{suite.name}: {wrong}")
                break
        candidate.judged = judged
        if candidate.status:
            return
        if engine.facts.software:
            candidate.leave(DROPPED, "the GPU is a software adapter: its time is never compared")
        elif engine.facts.runner.endswith("stock") and candidate.spec.runner != "stock":
            candidate.leave(FAILED, f"it fell back to stock: {'; '.join(engine.facts.fallbacks)}")

    async def _time_alone(self, candidate: _Candidate, engine: Engine) -> None:
        first = (await engine.time(self._inputs(1), 3)).samples_ms
        expected_ms = max(float(np.median(first)), 1e-3)
        runs = min(TRIAL_RUNS, math.floor(TRIAL_MS / expected_ms))
        trial_ms = (await engine.time(self._inputs(1), runs)).samples_ms if runs > len(first) else first
        if self.suites[0].batchable and expected_ms * self.settings.batch <= SLOW_BATCH_MS:
            inputs = self._inputs(self.settings.batch)
            await engine.time(inputs, 1, limit_s=OPEN_LIMIT_S)
            candidate.batch_ms = float((await engine.time(inputs, 1, limit_s=OPEN_LIMIT_S)).samples_ms[0])
        candidate.trial_ms = trial_ms  # last: with it, the trial is over

    def _fail(self, candidate: _Candidate, error: EngineError) -> None:
        candidate.leave(FAILED, f"{error.message}. {error.remedy}".strip())
        candidate.entry = candidate.entry or failed_entry(candidate.spec, error)

    async def _contend(self, field_: list[_Candidate]) -> list[_Candidate]:
        """Have just these open; returns those that could be opened again."""
        await self._close(keep={candidate.name for candidate in field_})
        for candidate in field_:
            if candidate.name in self._open:
                continue
            try:
                engine = await self.open_engine(candidate.spec, self.model)
                self._open[candidate.name] = engine
                await engine.time(self._inputs(1), 1, limit_s=OPEN_LIMIT_S)
            except EngineError as error:
                self._fail(candidate, error)
        return [candidate for candidate in field_ if candidate.right]

    async def _race_singles(self, hidden: Hidden) -> None:
        for rung, wanted in enumerate(RUNGS):
            runners = [candidate for candidate in self._candidates if candidate.alive]
            if any(candidate.rungs > rung for candidate in runners):
                continue  # before it was cancelled
            self._halve(runners)
            # An equal share of the time for each race that is to come, the batches' left out.
            share_s = self._left_s * (1 - BATCHING) / (len(RUNGS) - rung)
            fitting = fitting_names({candidate.name: candidate.typical_ms for candidate in runners if candidate.alive}, share_s)
            for candidate in runners:
                if candidate.alive and candidate.name not in fitting:
                    candidate.leave(DROPPED, "too slow to be raced in the time")
            runners = await self._contend([candidate for candidate in runners if candidate.alive])
            if not runners or (rung and self._left_s < least_s([candidate.typical_ms for candidate in runners])):
                break
            runs = affordable_runs(wanted, share_s, [candidate.typical_ms for candidate in runners])
            settings = RaceSettings(runs, warmup=0 if rung else WARMUP, seed=self.settings.seed + rung)
            lanes = await self._race(f"race {rung + 1} of {len(RUNGS)}", runners, self._inputs(1), settings)
            for candidate, lane in zip(runners, lanes, strict=True):
                if not self._faulty(candidate, lane, hidden):
                    candidate.rounds += lane.rounds
                    candidate.rungs = rung + 1
            self._show()

    def _halve(self, runners: list[_Candidate]) -> None:
        """Drop the slower half, but nobody who is among the first by P50 or by P95."""
        kept = max(FINALISTS, math.ceil(len(runners) / 2))
        stay = {candidate.name for candidate in sorted(runners, key=lambda one: one.typical_ms)[:kept]}
        by_tail = sorted(runners, key=lambda one: float(np.percentile(one.samples_ms, 95)))
        stay |= {candidate.name for candidate in by_tail[: max(1, kept // 2)]}
        for candidate in runners:
            if candidate.name not in stay:
                candidate.leave(DROPPED, "slower than the faster half")

    async def _race_batches(self, hidden: Hidden) -> None:
        """Race those that are right and fast on one batch; they may have been slow on one state."""
        typical_ms = {one.name: one.batch_ms for one in self._candidates if one.right and one.batch_ms is not None}
        fitting = fitting_names(typical_ms, self._left_s / len(BATCH_RUNGS))
        best = sorted(fitting, key=typical_ms.__getitem__)[: max(FINALISTS, math.ceil(len(typical_ms) / 2))]
        if not best or self._left_s < least_s([typical_ms[best[0]]]):
            return
        runners = await self._contend([candidate for candidate in self._candidates if candidate.name in best])
        inputs = self._inputs(self.settings.batch)
        for rung, wanted in enumerate(BATCH_RUNGS):
            expected_ms = [typical_ms[candidate.name] for candidate in runners]
            if not runners or (rung and self._left_s < least_s(expected_ms)):
                break
            runs = affordable_runs(wanted, self._left_s / (len(BATCH_RUNGS) - rung), expected_ms)
            lanes = await self._race("race of batches", runners, inputs, RaceSettings(runs, 1, self.settings.seed + rung))
            finished = []
            for candidate, lane in zip(runners, lanes, strict=True):
                if lane.rounds and not lane_faults(lane, hidden=hidden.was):
                    candidate.batch_rounds += lane.rounds
                    finished.append(candidate)
            finished.sort(key=lambda one: float(np.median(np.concatenate(one.batch_rounds))))
            runners = finished[: max(FINALISTS, math.ceil(len(finished) / 2))]
            for candidate in finished[len(runners) :]:
                candidate.batch_rounds = []

    async def _race(self, stage: str, runners: list[_Candidate], inputs: Tensors, settings: RaceSettings) -> list[Lane]:
        engines = [self._open[candidate.name] for candidate in runners]
        return await race(engines, inputs, settings, on_block=lambda _, done, total: self._progress(stage, done, total))

    def _faulty(self, candidate: _Candidate, lane: Lane, hidden: Hidden) -> bool:
        """Whether a lane may not be compared; if so, its candidate has left."""
        if hidden.was and HIDDEN not in self._warnings:
            self._warnings.append(HIDDEN)
        if lane.error:
            self._fail(candidate, lane.error)
        elif faults := lane_faults(lane, hidden=False):
            candidate.leave(FAILED, faults[0])
        return not candidate.alive

    def _inputs(self, batch: int) -> dict[str, NDArray[Any]]:
        cases = self.suites[0]
        return cases.inputs(0) if batch == 1 else cases.taken(np.arange(batch) % len(cases)).stacked()

    def _choose(self, purpose: str) -> list[r.Choice]:
        """Choose the fastest for a purpose; of those that are as fast within the interval, the simplest."""
        rounds = {one.name: one.batch_rounds if purpose == BATCH else one.rounds for one in self._candidates}
        # Only who has run to the end has as many rounds as the winner.
        most = max((len(found) for found in rounds.values()), default=0)
        finalists = [one for one in self._candidates if one.right and 0 < len(rounds[one.name]) == most]
        if not finalists:
            return []
        q = PERCENTILES[purpose]
        fastest = min(finalists, key=lambda one: float(np.percentile(np.concatenate(rounds[one.name]), q)))
        equals = [
            one
            for one in finalists
            if one is fastest or ratio_interval(rounds[one.name], rounds[fastest.name], q, seed=self.settings.seed).spans_one
        ]
        chosen = min(equals, key=lambda one: simplicity(one.spec))
        interval = percentile_interval(rounds[chosen.name], q, seed=self.settings.seed)
        return [
            r.Choice(
                purpose=purpose,
                engine=chosen.name,
                batch=self.settings.batch if purpose == BATCH else 1,
                ms=interval.value,
                low=interval.low,
                high=interval.high,
                ties=[one.name for one in equals if one is not chosen],
            )
        ]

    def _section(self, recipe: list[r.Choice]) -> r.Tune:
        spent_s = self._spent_s + (self.clock() - self._started if self._open else 0.0)
        warnings = list(self._warnings)
        return r.Tune(
            candidates=[_stated(candidate) for candidate in self._candidates],
            recipe=recipe,
            seconds=round(float(spent_s), 1),
            valid=bool(recipe) and not warnings,
            warnings=warnings,
        )


def fitting_names(typical_ms: Mapping[str, float], share_s: float) -> set[str]:
    """Return the fastest engines, as many as can have the least number of runs in `share_s` seconds; one always can."""
    fitting: set[str] = set()
    needed_ms = 0.0
    for name in sorted(typical_ms, key=typical_ms.__getitem__):
        needed_ms += COST * MIN_RUNS * typical_ms[name]
        if fitting and needed_ms > share_s * 1000:
            break
        fitting.add(name)
    return fitting


def least_s(typical_ms: Sequence[float]) -> float:
    """Return the least seconds that a race takes."""
    return COST * MIN_RUNS * sum(typical_ms) / 1000


def affordable_runs(wanted: int, share_s: float, typical_ms: Sequence[float]) -> int:
    """Return how many runs each engine can have in `share_s` seconds, where one takes `typical_ms`."""
    return max(MIN_RUNS, min(wanted, math.floor(share_s * 1000 / max(COST * sum(typical_ms), 1e-3))))


def _stated(candidate: _Candidate) -> r.Candidate:
    samples_ms = candidate.samples_ms
    diffs = [answers.max_abs_diff for answers in candidate.judged if math.isfinite(answers.max_abs_diff)]
    return r.Candidate(
        engine=candidate.name,
        simplicity=simplicity(candidate.spec),
        status=candidate.status or RACED,
        reason=candidate.reason,
        agree=sum(answers.agree for answers in candidate.judged),
        cases=sum(answers.cases for answers in candidate.judged),
        max_abs_diff=max(diffs, default=None),
        runs=len(samples_ms),
        rungs=candidate.rungs,
        p50_ms=float(np.percentile(samples_ms, 50)) if samples_ms.size else None,
        p95_ms=float(np.percentile(samples_ms, 95)) if samples_ms.size else None,
        valid=candidate.status not in (WRONG, FAILED),
        warnings=[],
    )
