"""Where did it run? Every node with its operator, shape, provider and time, and the copies between CPU and GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pyapp import report as r
from pyapp.cases import Cases
from pyapp.engine import EngineError, EngineSpec, NodeProfile, OpenEngine
from pyapp.host import DEFAULT_ENGINES, Host, Listener, Settings, require_engines
from pyapp.opening import FIRST_RUN_LIMIT_S, resolved, unnamed
from pyapp.sections import engine_entry, environment_entry, failed_entry

COPIES = frozenset({"MemcpyToHost", "MemcpyFromHost"})
"""Nodes that onnxruntime puts where a tensor has to cross between CPU and GPU."""

NAMED = 5
"""So many operators are named in a warning."""


@dataclass(frozen=True, kw_only=True)
class PlacementSettings(Settings):
    """What to look at: engine names, and whether an engine may run no node on the CPU where a GPU was asked for."""

    engines: list[str] = field(default_factory=lambda: list(DEFAULT_ENGINES))
    strict: bool = False

    def __post_init__(self) -> None:
        """Refuse settings that nothing can be looked at with; raises ValueError that names the value and what is allowed."""
        require_engines(self.engines)


@dataclass
class Placement:
    """Finds out which provider runs which node, engine by engine; `run` is called once.

    Parameters
    ----------
    settings : PlacementSettings
        What to look at.
    model : bytes
        An ONNX file.
    suite : Cases
        Its first case is what is run.
    open_engine : OpenEngine
        Opens engines; one at a time is open, and another one for its profile.
    host : Host
        Where it runs.
    listener : Listener
        Hears of progress, and of each ``engines`` and ``placement`` section that is ready.
    """

    settings: PlacementSettings
    model: bytes
    suite: Cases
    open_engine: OpenEngine
    host: Host
    listener: Listener
    _engines: dict[str, r.EngineEntry] = field(default_factory=dict)
    _found: list[r.PlacementEntry] = field(default_factory=list)
    _steps_ms: list[float] = field(default_factory=list)

    async def run(self) -> r.Report:
        """Look and return a report with `engines` and `placement`; an engine that fails is a result, not an exception."""
        names = self.settings.engines
        for index, name in enumerate(names):
            self.listener.progress(f"where {name} runs", index, len(names))
            spec = unnamed(name)
            try:
                spec, sweep = await resolved(name, self.open_engine, self.model, self.suite.inputs(0), self.host)
                if spec.name not in self._engines:
                    await self._look(spec, sweep)
            except EngineError as error:
                self._fail(spec, error)
        self.listener.progress("looked", len(names), len(names))
        return r.Report(
            schema=r.SCHEMA,
            settings=r.Settings(engines=names, runs=1, warmup=0, seed=0),
            environment=environment_entry(self.host.environment(), self._steps_ms, self.model),
            engines=list(self._engines.values()),
            suites=[],
            parity=[],
            race=[],
            ratios=[],
            placement=self._found,
        )

    async def _look(self, spec: EngineSpec, sweep: dict[int, float] | None) -> None:
        inputs = self.suite.inputs(0)
        engine = await self.open_engine(replace(spec, strict=self.settings.strict), self.model)
        try:
            first_run_ms = float((await engine.time(inputs, 1, limit_s=FIRST_RUN_LIMIT_S)).samples_ms[0])
            profile = await engine.profile(inputs)
            facts = replace(engine.facts, nodes=dict(Counter(node.provider for node in profile)))
            self._introduce(engine_entry(engine, facts, first_run_ms, sweep, None))
            self._steps_ms.append(facts.clock_step_ms)
        finally:
            await engine.close()
        self._keep(placement_entry(spec, profile, strict=self.settings.strict, software=facts.software))

    def _fail(self, spec: EngineSpec, error: EngineError) -> None:
        reason = f"{error.message}. {error.remedy}".strip()
        if self.settings.strict:
            reason = f"not without the CPU: {reason}"
        self._introduce(failed_entry(spec, error))
        self._keep(
            r.PlacementEntry(
                engine=spec.name, strict=self.settings.strict, nodes=[], copies=0, reason=reason, valid=False, warnings=[reason]
            )
        )

    def _introduce(self, entry: r.EngineEntry) -> None:
        self._engines[entry.name] = entry
        self.listener.section("engines", entry)

    def _keep(self, entry: r.PlacementEntry) -> None:
        self._found.append(entry)
        self.listener.section("placement", entry)


def placement_entry(spec: EngineSpec, profile: Sequence[NodeProfile], *, strict: bool, software: bool) -> r.PlacementEntry:
    """State where an engine's nodes ran, the most expensive first.

    Parameters
    ----------
    spec : EngineSpec
        What was asked for.
    profile : sequence of NodeProfile
        One run of it.
    strict : bool
        Whether no node was allowed on the CPU.
    software : bool
        Whether the CPU imitates the GPU, so that times say nothing.
    """
    copies = [node for node in profile if node.op in COPIES]
    on_cpu = [node for node in profile if node not in copies and spec.provider == "webgpu" and "WebGpu" not in node.provider]
    warnings = []
    if on_cpu:
        counted = Counter(node.op for node in on_cpu).most_common(NAMED)
        named = ", ".join(f"{op} ({count})" for op, count in counted)
        warnings.append(f"{len(on_cpu)} of {len(profile)} nodes ran on the CPU although the GPU was asked for: {named}")
    if copies:
        copied = sum(node.us for node in copies) / 1000
        warnings.append(f"{len(copies)} copies between CPU and GPU within one run took {copied:.2f} ms")
    if software:
        warnings.append("the GPU is a software adapter: where nodes ran counts, their time does not")
    return r.PlacementEntry(
        engine=spec.name,
        strict=strict,
        nodes=[
            r.PlacedNode(name=node.name, op=node.op, provider=node.provider, shape=node.shape, ms=node.us / 1000)
            for node in sorted(profile, key=lambda node: -node.us)
        ],
        copies=len(copies),
        reason=None,
        valid=not on_cpu,
        warnings=warnings,
    )
