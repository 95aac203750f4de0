"""From which batch size and network width on is a GPU worth it? Every engine, point by point, within a budget of time."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyapp import report as r
from pyapp.cases import Cases, split
from pyapp.crossover import NONE, Compared, find_crossover
from pyapp.engine import Engine, EngineError, EngineFacts, EngineSpec, OpenEngine, Tensors
from pyapp.errors import AppError
from pyapp.host import DEFAULT_ENGINES, Hidden, Host, Listener, Settings, require_engines, require_seed, require_within
from pyapp.opening import introduced, resolved, unnamed
from pyapp.parity import Answers, judged
from pyapp.precision import compare_variant
from pyapp.race import LEAD_IN_MS, ROUNDS, Lane, RaceSettings, lane_faults, race
from pyapp.sections import environment_entry, failed_entry, failure
from pyapp.widen import widened, widened_parameters

MEASURED, NOT_MEASURED, FAILED = r.SWEEP_STATUSES

BATCHES = tuple(1 << power for power in range(9))
WIDTHS = (1, 2, 4, 8)
BUDGET_S = 180.0
SLOW_MS = 5_000.0
"""A run that is projected to take longer than this is not tried."""

MIN_RUNS, MAX_RUNS = 5, 50
"""Measured runs per engine at one point."""

SOFTWARE_RUNS = 2
"""On a software adapter, whose time is never compared and may be a second a run."""

MIN_CASES = 8
"""So many states are asked at least, in several runs where the batch is smaller."""

RUN_LIMIT_S = 30.0
ONE_AT_A_TIME = "the model takes one case at a time: its first dimension is not free"
RESERVE = 0.03
"""Part of the budget that is not planned with: engines are closed and crossovers found in it."""

GREEDY = 2.0
"""A slow point may take so many times its share of what is left of the budget."""

ASSUMED_MEMORY_GIB = 4.0
"""Where the browser does not say; some round what they say down to this."""

WEIGHT_COPIES = 2
"""Onnxruntime holds the weights, and for a while what it makes of them."""

MAX_BATCH, MAX_WIDTH = 1024, 16
MAX_BUDGET_S = 3_600.0


@dataclass(frozen=True, kw_only=True)
class SweepSettings(Settings):
    """What to measure: engine names, batch sizes, network widths, seconds for all of it, seed of orders and bootstrap.

    `precision` says whether the model's variants in fewer bits are compared too.
    """

    engines: list[str] = field(default_factory=lambda: list(DEFAULT_ENGINES))
    batches: list[int] = field(default_factory=lambda: list(BATCHES))
    widths: list[int] = field(default_factory=lambda: list(WIDTHS))
    budget_s: float = BUDGET_S
    seed: int = 0
    precision: bool = True

    def __post_init__(self) -> None:
        """Refuse settings that no sweep can be run with.

        Raises
        ------
        ValueError
            Naming the value and what is allowed.
        """
        require_engines(self.engines)
        for name, values, most in (("batches", self.batches, MAX_BATCH), ("widths", self.widths, MAX_WIDTH)):
            if not values or sorted(set(values)) != values or not 1 <= values[0] <= values[-1] <= most:
                raise ValueError(f"{name} are {values}; give ascending whole numbers from 1 to {most}")
        require_within("budget_s", self.budget_s, 1, MAX_BUDGET_S)
        require_seed(self.seed)


Point = tuple[int, int]
"""Width and batch size."""


def projected_ms(known: Mapping[Point, float], width: int, batch: int) -> float | None:
    """Project what one run takes from what smaller points took.

    From the next smaller batch of the same width: as the last two batches grew, or in proportion where there is one. With none,
    from the same batch of the next narrower network: as the arithmetic of its hidden layers grows, by the square of the width.

    Parameters
    ----------
    known : mapping of (int, int) to float
        Milliseconds of one run by width and batch size.
    width, batch : int
        The point.

    Returns
    -------
    float or None
        Milliseconds; None without a smaller point.
    """
    smaller = sorted(size for wide, size in known if wide == width and size < batch)
    if smaller:
        last = smaller[-1]
        power = 1.0
        if len(smaller) > 1:
            growth = math.log(known[width, last] / known[width, smaller[-2]]) / math.log(last / smaller[-2])
            power = min(max(growth, 0.0), 1.25)
        return known[width, last] * float((batch / last) ** power)
    narrower = [wide for wide, _ in known if wide < width]
    if not narrower:
        return None
    wide = max(narrower)
    ms = known.get((wide, batch)) or projected_ms(known, wide, batch)
    return None if ms is None else ms * (width / wide) ** 2


def affordable_runs(typical_ms: Sequence[float], share_s: float) -> int:
    """Say how many runs each engine can have at a point that should take `share_s` seconds, the blocks' lead-ins included."""
    run, lead_in = sum(typical_ms), sum(max(ms, LEAD_IN_MS) for ms in typical_ms)
    left = share_s * 1000
    runs = (
        math.floor(left / (run + lead_in)) if left < ROUNDS * (run + lead_in) else math.floor((left - ROUNDS * lead_in) / run)
    )
    return min(max(runs, MIN_RUNS), MAX_RUNS)


def batch_of[C: Cases](suite: C, start: int, batch: int) -> C:
    """Return `batch` cases from number `start` on; after the last one comes the first."""
    return suite.taken((start + np.arange(batch)) % len(suite))


@dataclass
class _Contender:
    """An engine that is open on a network of one width."""

    engine: Engine
    known: dict[Point, float]
    """Milliseconds of one run at points that were tried, of all widths; shared by the engine's openings."""

    @property
    def name(self) -> str:
        return self.engine.spec.name

    @property
    def software(self) -> bool:
        return self.engine.facts.software


@dataclass
class Sweep:
    """One sweep; `run` is called once.

    Parameters
    ----------
    settings : SweepSettings
        What to measure.
    model : bytes
        An ONNX file of a kind that `pyapp.widen.widened` can make wider.
    suite : Cases
        States with Python's answers; a batch larger than it has some of them several times.
    open_engine : OpenEngine
        Opens engines; those that the sweep opens, it closes.
    host : Host
        What it runs in.
    listener : Listener
        Hears of progress, and of each ``engines`` and ``sweep`` section that is ready.
    clock : callable
        Seconds, from anywhere on.
    """

    settings: SweepSettings
    model: bytes
    suite: Cases
    open_engine: OpenEngine
    host: Host
    listener: Listener
    clock: Callable[[], float] = time.monotonic

    _entries: dict[tuple[str, int, int], r.SweepEntry] = field(default_factory=dict)
    _rounds: dict[tuple[str, int, int], list[NDArray[np.float64]]] = field(default_factory=dict)
    _engines: dict[str, r.EngineEntry] = field(default_factory=dict)
    _facts: dict[str, EngineFacts] = field(default_factory=dict)
    _known: dict[str, dict[Point, float]] = field(default_factory=dict)
    _open: list[_Contender] = field(default_factory=list)
    _variants: list[r.PrecisionEntry] = field(default_factory=list)
    _order: list[str] = field(default_factory=list)
    _started: float = 0.0
    _points_done: int = 0

    async def run(self) -> r.Report:
        """Measure and return the report, whose `sweep` has an entry for every engine at every point.

        An engine that fails is a result, not an exception. Once it has run at all, it is tried again on the next width.

        Raises
        ------
        AppError
            If the model cannot be read at all.
        """
        self._started = self.clock()
        environment = self.host.environment()
        try:
            # Against an engine that hangs; a sweep that goes as planned plans within its budget.
            async with asyncio.timeout(self.settings.budget_s):
                names = await self._names()
                self._order += names
                await self._compare_variants(names)
                for width in self.settings.widths:
                    await self._width(width, names, environment.get("memory_gib"))
        except TimeoutError:
            pass
        finally:
            await self._close()
        for name in self._order:
            for width in self.settings.widths:
                for batch in self.settings.batches:
                    if (name, width, batch) not in self._entries:
                        self._skip(name, width, batch, self._out_of_time)
        steps = [facts.clock_step_ms for facts in self._facts.values()]
        return r.Report(
            schema=r.SCHEMA,
            settings=r.Settings(engines=self.settings.engines, runs=MAX_RUNS, warmup=0, seed=self.settings.seed),
            environment=environment_entry(environment, steps, self.model),
            engines=list(self._engines.values()),
            suites=[],
            parity=[],
            race=[],
            ratios=[],
            sweep=[
                self._entries[name, width, batch]
                for width in self.settings.widths
                for name in self._order
                for batch in self.settings.batches
            ],
            crossover=self._crossovers(),
            precision=self._variants,
        )

    @property
    def _left_s(self) -> float:
        return self.settings.budget_s * (1 - RESERVE) - (self.clock() - self._started)

    @property
    def _points_left(self) -> int:
        return max(len(self.settings.widths) * len(self.settings.batches) - self._points_done, 1)

    @property
    def _out_of_time(self) -> str:
        return f"the sweep's {self.settings.budget_s:g} s were used up"

    async def _names(self) -> list[str]:
        """Return the engines' names, with the best thread count in the place of ``wasm-N``."""
        names: list[str] = []
        for name in self.settings.engines:
            self.listener.progress(f"opening {name}", 0, self._total)
            try:
                spec, _ = await resolved(name, self.open_engine, self.model, self.suite.inputs(0), self.host)
            except EngineError as error:
                self._order.append(name)
                self._fail_engine(unnamed(name), error)
                continue
            names.append(spec.name)
        return list(dict.fromkeys(names))

    async def _compare_variants(self, names: list[str]) -> None:
        """Begin with what takes the least time: variants in fewer bits, one state at a time."""
        if not self.settings.precision:
            return
        for name in names:
            self.listener.progress(f"fewer bits on {name}", 0, self._total)
            entry = await compare_variant(name, self.model, self.suite, self.open_engine, self.host, seed=self.settings.seed)
            self._variants.append(entry)
            self.listener.section("precision", entry)

    async def _width(self, width: int, names: list[str], memory_gib: float | None) -> None:
        reason = None
        try:
            model = widened(self.model, width)
            reason = too_large(width, widened_parameters(self.model, width) if width > 1 else 0, len(names), memory_gib)
        except AppError as error:
            if width == 1:
                raise
            reason = f"{error.message}. {error.remedy}"
        if reason:
            for name in names:
                for batch in self.settings.batches:
                    self._skip(name, width, batch, reason)
            self._points_done += len(self.settings.batches)
            return
        try:
            for name in names:
                self.listener.progress(f"width ×{width}: opening {name}", self._points_done, self._total)
                await self._open_engine(name, width, model)
            for batch in self.settings.batches:
                self.listener.progress(f"width ×{width}, batch {batch}", self._points_done, self._total)
                await self._point(width, batch)
                self._points_done += 1
        finally:
            await self._close()

    @property
    def _total(self) -> int:
        return len(self.settings.widths) * len(self.settings.batches)

    async def _open_engine(self, name: str, width: int, model: bytes) -> None:
        spec = EngineSpec.parse(name)
        if name in self._engines and name not in self._facts:
            return  # it could not be had on another width, and was stated as failed
        try:
            engine = await self.open_engine(spec, model)
        except EngineError as error:
            if name in self._facts:
                for batch in self.settings.batches:
                    self._fail(name, width, batch, error)
            else:
                self._fail_engine(spec, error)
            return
        contender = _Contender(engine, self._known.setdefault(name, {}))
        self._open.append(contender)
        if name in self._facts:
            return
        try:
            await self._introduce(contender, width)
        except EngineError as error:
            self._open.remove(contender)
            await engine.close()
            self._fail_engine(spec, error)

    async def _introduce(self, contender: _Contender, width: int) -> None:
        """State an engine in the report, with the providers that its nodes run on."""
        # The time of a software adapter is not compared, so it need not take more of it.
        entry = await introduced(contender.engine, self.suite.inputs(0), nodes=not contender.software)
        second_run_ms = (await contender.engine.time(self.suite.inputs(0), 1)).samples_ms[0]
        contender.known[width, 1] = max(float(second_run_ms), 1e-3)
        self._facts[contender.name] = replace(contender.engine.facts, nodes=entry.actual.nodes if entry.actual else {})
        self._engines[contender.name] = entry
        self.listener.section("engines", entry)

    async def _close(self) -> None:
        contenders, self._open = self._open, []
        for contender in contenders:
            await contender.engine.close()

    async def _point(self, width: int, batch: int) -> None:
        """Measure all engines at one point: their answers, one by one, then their times, in turns."""
        if batch > 1 and not self.suite.batchable:
            for contender in self._open:
                self._skip(contender.name, width, batch, ONE_AT_A_TIME)
            return
        share_s = self._left_s / self._points_left
        hidden = Hidden(self.host)
        asked: list[tuple[_Contender, Answers, float]] = []
        promised_s = 0.0
        for contender in list(self._open):
            ms = projected_ms(contender.known, width, batch) or contender.known.get((width, batch))
            needed_s = _needed_s(ms, software=contender.software)
            if reason := self._too_slow(ms, needed_s, promised_s, share_s, software=contender.software):
                self._skip(contender.name, width, batch, reason, ms)
                continue
            promised_s += needed_s
            try:
                answers, ms = await self._ask(contender, width, batch)
            except EngineError as error:
                await self._drop(contender, width, batch, error)
                continue
            contender.known[width, batch] = ms
            if ms > SLOW_MS:
                self._skip(contender.name, width, batch, f"a run takes {ms / 1000:.1f} s")
            else:
                asked.append((contender, answers, ms))
        timed = [(contender, ms) for contender, _, ms in asked if not contender.software]
        lanes = []
        if timed:
            runs = affordable_runs([ms for _, ms in timed], share_s)
            seed = self.settings.seed + self._points_done
            lanes = await race([contender.engine for contender, _ in timed], self._inputs(batch), RaceSettings(runs, 1, seed))
        for contender, _, _ in asked:
            if contender.software:
                lanes.append(await self._time_software(contender.engine, batch))
        by_name = {lane.engine.spec.name: lane for lane in lanes}
        for contender, answers, _ in asked:
            lane = by_name[contender.name]
            if lane.error:
                await self._drop(contender, width, batch, lane.error)
                continue
            contender.known[width, batch] = float(np.median(lane.samples_ms))
            self._rounds[contender.name, width, batch] = lane.rounds
            self._keep(measured_entry(lane, self._facts[contender.name], answers, width, batch, hidden=hidden.was))

    def _inputs(self, batch: int) -> dict[str, NDArray[Any]]:
        return self._batch_inputs(0, batch)

    def _batch_inputs(self, start: int, batch: int) -> dict[str, NDArray[Any]]:
        # A model whose batch is fixed takes one case as it is.
        return (
            batch_of(self.suite, start, batch).stacked() if self.suite.batchable else self.suite.inputs(start % len(self.suite))
        )

    def _too_slow(self, ms: float | None, needed_s: float, promised_s: float, share_s: float, *, software: bool) -> str | None:
        """Say why a point is not tried on an engine, None where it is; `promised_s` is for the engines before it."""
        left_s = self._left_s - promised_s
        if left_s <= 0:
            return self._out_of_time
        if ms is not None and ms > SLOW_MS:
            return f"a run is projected to take {ms / 1000:.1f} s, more than {SLOW_MS / 1000:.0f} s"
        allowed_s = share_s if software else max(GREEDY * share_s, left_s / 4)
        if needed_s > min(allowed_s, left_s):
            whose = "a software adapter may take" if software else "one point may take"
            return f"it would take about {needed_s:.0f} s, more than {whose} of the {left_s:.0f} s that are left"
        return None

    async def _ask(self, contender: _Contender, width: int, batch: int) -> tuple[Answers, float]:
        """Ask an engine for its answers; return them judged, and the milliseconds of a run once it is warm."""
        cases = batch if contender.software else max(batch, MIN_CASES)
        answers: list[Tensors] = []
        for start in range(0, cases, batch):
            outputs = await contender.engine.run(self._batch_inputs(start, batch), limit_s=RUN_LIMIT_S)
            answers += split(outputs, batch) if self.suite.batchable else [outputs]
        found = judged(contender.name, batch_of(self.suite, 0, len(answers)), answers)
        block = await contender.engine.time(self._inputs(batch), 1, limit_s=RUN_LIMIT_S)
        return found, max(float(block.samples_ms[0]), 1e-3)

    async def _time_software(self, engine: Engine, batch: int) -> Lane:
        lane = Lane(engine)
        try:
            block = await engine.time(self._inputs(batch), SOFTWARE_RUNS, limit_s=RUN_LIMIT_S)
            lane.rounds.append(block.samples_ms)
            lane.bad = block.bad
        except EngineError as error:
            lane.error = error
        return lane

    def _keep(self, entry: r.SweepEntry) -> None:
        self._entries[entry.engine, entry.width, entry.batch] = entry
        self.listener.section("sweep", entry)

    def _skip(self, name: str, width: int, batch: int, reason: str, ms: float | None = None) -> None:
        entry = r.SweepEntry(
            engine=name, width=width, batch=batch, status=NOT_MEASURED, reason=reason, projected_ms=ms, valid=False
        )
        self._keep(entry)

    def _fail(self, name: str, width: int, batch: int, error: EngineError) -> None:
        reason = f"{error.message}. {error.remedy}".strip()
        self._keep(r.SweepEntry(engine=name, width=width, batch=batch, status=FAILED, reason=reason, valid=False))

    def _fail_engine(self, spec: EngineSpec, error: EngineError) -> None:
        self._engines[spec.name] = failed_entry(spec, error)
        self.listener.section("engines", self._engines[spec.name])
        for width in self.settings.widths:
            for batch in self.settings.batches:
                self._fail(spec.name, width, batch, error)

    async def _drop(self, contender: _Contender, width: int, batch: int, error: EngineError) -> None:
        """Leave an engine that has stopped out of the rest of this width; what it measured stays."""
        self._open.remove(contender)
        await contender.engine.close()
        self._fail(contender.name, width, batch, error)
        for larger in self.settings.batches:
            if larger > batch:
                self._skip(contender.name, width, larger, f"the engine stopped at batch {batch}")
        entry = self._engines[contender.name]
        note = f"stopped at width ×{width}, batch {batch}: {error.message}"
        self._engines[contender.name] = replace(entry, error=failure(error), warnings=[*entry.warnings, note])
        self.listener.section("engines", self._engines[contender.name])

    def _crossovers(self) -> list[r.CrossoverEntry]:
        providers = {name: EngineSpec.parse(name).provider for name in self._facts}
        gpus = [name for name, provider in providers.items() if provider == "webgpu"]
        cpus = [name for name, provider in providers.items() if provider == "wasm"]
        return [self._crossover(gpu, cpu, width) for width in self.settings.widths for gpu in gpus for cpu in cpus]

    def _crossover(self, gpu: str, cpu: str, width: int) -> r.CrossoverEntry:
        pairs = [[self._entries[name, width, batch] for name in (gpu, cpu)] for batch in self.settings.batches]
        both = [pair for pair in pairs if all(entry.status == MEASURED for entry in pair)]
        sound = [pair for pair in both if all(entry.valid for entry in pair)]
        points = [
            Compared(entry.batch, self._rounds[gpu, width, entry.batch], self._rounds[cpu, width, entry.batch])
            for entry, _ in sound
        ]
        found = find_crossover(points, seed=self.settings.seed)
        return r.CrossoverEntry(
            numerator=gpu,
            denominator=cpu,
            width=width,
            answer=found.answer,
            batch=found.batch,
            low=found.low,
            high=found.high,
            first=sound[0][0].batch if sound else None,
            last=sound[-1][0].batch if sound else None,
            points=len(sound),
            reason=_why_not(both) if found.answer == NONE else None,
            valid=found.answer != NONE,
        )


def _why_not(both: Sequence[Sequence[r.SweepEntry]]) -> str:
    for pair in both:
        for entry in pair:
            if not entry.valid:
                return f"{entry.engine}: {entry.warnings[0]}"
    return "no batch size was measured on both"


def too_large(width: int, parameters: int, engines: int, memory_gib: float | None) -> str | None:
    """Say why a network is too wide for a machine's memory, None where it fits: its weights may fill half of it."""
    needed = parameters * 4 * engines * WEIGHT_COPIES / 2**30
    memory = memory_gib or ASSUMED_MEMORY_GIB
    if needed <= memory / 2:
        return None
    what = f"the weights of a network ×{width} would take {needed:.1f} GiB in {engines} engines"
    return f"{what}, over half of {memory:g} GiB of memory"


def _needed_s(ms: float | None, *, software: bool) -> float:
    """Return the least seconds that a point takes on an engine whose run takes `ms`: answers, warm-up, lead-ins and runs."""
    runs = 2 + SOFTWARE_RUNS if software else 3 + 2 * MIN_RUNS
    return (ms or 0.0) / 1000 * runs


def measured_entry(lane: Lane, facts: EngineFacts, answers: Answers, width: int, batch: int, *, hidden: bool) -> r.SweepEntry:
    """State a point that was measured; one whose answers are wrong, or whose time may not be compared, is not valid."""
    summary = lane.summary
    assert summary
    warnings = [*lane_faults(lane, hidden=hidden), *answers.problems]
    if facts.fallback_nodes:
        warnings.append(f"{facts.fallback_nodes} nodes ran on the CPU although the GPU was asked for")
    return r.SweepEntry(
        engine=lane.engine.spec.name,
        width=width,
        batch=batch,
        status=MEASURED,
        runs=summary.n,
        blocks=[len(samples) for samples in lane.rounds],
        p50_ms=summary.p50,
        p95_ms=summary.p95,
        per_state_ms=summary.p50 / batch,
        per_state_p95_ms=summary.p95 / batch,
        agree=answers.agree,
        cases=answers.cases,
        passed=answers.passed,
        max_abs_diff=answers.max_abs_diff if math.isfinite(answers.max_abs_diff) else None,
        valid=not warnings,
        warnings=warnings,
    )
