"""Why does a run take as long as it does? Its stages, each measured by itself, beside a total that nobody looked into."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pyapp import report as r
from pyapp.cases import Cases
from pyapp.engine import Engine, EngineError, OpenEngine, StageTimes
from pyapp.host import DEFAULT_ENGINES, Hidden, Host, Listener, Settings, require_engines, require_within
from pyapp.opening import introduced, resolved, unnamed
from pyapp.sections import environment_entry, failed_entry

RUNS = 50
MAX_RUNS = 1_000
SOFTWARE_RUNS = 6
"""A software adapter takes up to a second a run, and its time says nothing about GPUs."""

WARMUP = 3
TOLERANCE = 0.10
"""How far the sum of the stages may be from the total."""

COMPUTE, WAIT = "compute", "wait"


@dataclass(frozen=True, kw_only=True)
class ExplainSettings(Settings):
    """What to explain: engine names, and runs of each kind."""

    engines: list[str] = field(default_factory=lambda: list(DEFAULT_ENGINES))
    runs: int = RUNS

    def __post_init__(self) -> None:
        """Refuse settings that nothing can be explained with; raises ValueError that names the value and what is allowed."""
        require_engines(self.engines)
        require_within("runs", self.runs, 2, MAX_RUNS)


@dataclass
class Explain:
    """Explains where the time of one run goes, engine by engine; `run` is called once.

    Parameters
    ----------
    settings : ExplainSettings
        What to explain.
    model : bytes
        An ONNX file.
    suite : Cases
        Its first case is what is run.
    open_engine : OpenEngine
        Opens engines; one at a time is open.
    host : Host
        Where it runs.
    listener : Listener
        Hears of progress, and of each ``engines`` and ``stages`` section that is ready.
    """

    settings: ExplainSettings
    model: bytes
    suite: Cases
    open_engine: OpenEngine
    host: Host
    listener: Listener
    _engines: dict[str, r.EngineEntry] = field(default_factory=dict)
    _stages: list[r.StagesEntry] = field(default_factory=list)
    _steps_ms: list[float] = field(default_factory=list)

    async def run(self) -> r.Report:
        """Explain and return a report with `engines` and `stages`; an engine that fails is a result, not an exception."""
        for index, name in enumerate(self.settings.engines):
            self.listener.progress(f"explaining {name}", index, len(self.settings.engines))
            spec = unnamed(name)
            try:
                spec, thread_sweep = await resolved(name, self.open_engine, self.model, self.suite.inputs(0), self.host)
                if spec.name not in self._engines:
                    await self._explain(await self.open_engine(spec, self.model), thread_sweep)
            except EngineError as error:
                self._introduce(failed_entry(spec, error))
        self.listener.progress("explained", len(self.settings.engines), len(self.settings.engines))
        return r.Report(
            schema=r.SCHEMA,
            settings=r.Settings(engines=self.settings.engines, runs=self.settings.runs, warmup=WARMUP, seed=0),
            environment=environment_entry(self.host.environment(), self._steps_ms, self.model),
            engines=list(self._engines.values()),
            suites=[],
            parity=[],
            race=[],
            ratios=[],
            stages=self._stages,
        )

    async def _explain(self, engine: Engine, thread_sweep: dict[int, float] | None) -> None:
        inputs = self.suite.inputs(0)
        hidden = Hidden(self.host)
        try:
            self._introduce(await introduced(engine, inputs, thread_sweep))
            self._steps_ms.append(engine.facts.clock_step_ms)
            runs = min(self.settings.runs, SOFTWARE_RUNS) if engine.facts.software else self.settings.runs
            await engine.time(inputs, min(WARMUP, runs))
            # The totals come before and after the stages, so that a machine that drifts drifts for both.
            before = await engine.time(inputs, (runs + 1) // 2)
            found = await engine.stages(inputs, runs)
            await engine.time(inputs, 1)
            after = await engine.time(inputs, runs // 2)
        finally:
            await engine.close()
        entry = stages_entry(engine, found, np.concatenate([before.samples_ms, after.samples_ms]), hidden=hidden.was)
        self._stages.append(entry)
        self.listener.section("stages", entry)

    def _introduce(self, entry: r.EngineEntry) -> None:
        self._engines[entry.name] = entry
        self.listener.section("engines", entry)


def stages_entry(engine: Engine, found: StageTimes, total_ms: NDArray[np.float64], *, hidden: bool) -> r.StagesEntry:
    """State an engine's stages.

    Parameters
    ----------
    engine : Engine
        Whose they are.
    found : StageTimes
        The stages.
    total_ms : float64 [n]
        Milliseconds of whole runs, timed without looking into them.
    hidden : bool
        Whether the page was hidden meanwhile.
    """
    stages = [
        r.StageTime(stage=name, p50_ms=_percentile(ms, 50), p95_ms=_percentile(ms, 95), n=len(ms))
        for name, ms in found.stages_ms.items()
    ]
    sum_ms = sum(stage.p50_ms for stage in stages)
    total = _percentile(total_ms, 50)
    warnings = []
    if abs(sum_ms / total - 1) > TOLERANCE:
        warnings.append(
            f"the stages add up to {sum_ms:.3g} ms, but a run takes {total:.3g} ms: "
            "some overlap, or the machine was busy; ask again on a quiet one"
        )
    if engine.facts.software:
        warnings.append("the GPU is a software adapter: its time says nothing about GPUs")
    if hidden:
        warnings.append("the tab was hidden meanwhile, so the browser may have slowed it down; keep it in front")
    return r.StagesEntry(
        engine=engine.spec.name,
        stages=stages,
        sum_ms=sum_ms,
        total_ms=total,
        total_n=len(total_ms),
        compute_from=found.compute_from,
        floor_ms=None if found.floor_ms is None else _percentile(found.floor_ms, 50),
        valid=not warnings,
        warnings=warnings,
    )


def _percentile(samples: NDArray[np.float64], q: float) -> float:
    return float(np.percentile(samples, q))
