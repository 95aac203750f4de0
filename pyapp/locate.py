"""Where does it go wrong? Every value within a model on one engine beside another's, and the first node that errs by itself."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Protocol

from pyapp import report as r
from pyapp.agreement import Tolerance
from pyapp.alone import Alone, Reproducer, called, run_alone
from pyapp.engine import FLOAT32, Engine, EngineError, EngineSpec, OpenEngine, Tensors
from pyapp.graphedit import RANDOM, Value, inputs_of
from pyapp.host import Host, Listener, Settings, require_engines
from pyapp.onnxfile import ModelError
from pyapp.opening import BEST_THREADS, FIRST_RUN_LIMIT_S, introduced, resolved, unnamed
from pyapp.sections import environment_entry, failed_entry
from pyapp.sidebyside import FATAL, Compared, Seen, SideBySide, heat_map

__all__ = ["Locate", "LocateSettings", "Reproducer", "heat_map"]

SOURCE, INHERITED, FUSED, NONE = r.FAULT_KINDS

MOST_CASES = 8
MOST_ALONE = 17
"""Nodes that are run alone: the first beyond the tolerance, and some after it."""

STEPS_BEFORE, STEPS_AFTER = 400, 8


class Given(Protocol):
    """Cases, of which only the inputs are needed: the reference is an engine."""

    @property
    def name(self) -> str:
        """What they are called."""

    def __len__(self) -> int:
        """Return how many there are."""

    def inputs(self, index: int, /) -> Tensors:
        """Return the model's inputs of one case."""


@dataclass(frozen=True, kw_only=True)
class LocateSettings(Settings):
    """Which engine to look into, and beside which one.

    `case` is the one to run; without it, the first in which the outputs differ, of at most `MOST_CASES`. A tolerance that is
    not given is the question's own.
    """

    engine: str = "webgpu-stock"
    reference: str = "wasm-1"
    case: int | None = None
    rtol: float | None = None
    atol: float | None = None

    def __post_init__(self) -> None:
        """Refuse settings that nothing can be located with; raises ValueError that names the value and what is allowed."""
        require_engines([self.engine, self.reference])
        for name in (self.engine, self.reference):
            if name != BEST_THREADS and EngineSpec.parse(name).precision != FLOAT32:
                raise ValueError(f"{name} runs another model than the one to look into; name an engine in float32")
        if self.case is not None and self.case < 0:
            raise ValueError(f"case is {self.case}; give a whole number from 0")
        self.allowed(Tolerance())

    def allowed(self, otherwise: Tolerance) -> Tolerance:
        """Return the tolerance, with numbers of another one where none are given."""
        return Tolerance(otherwise.rtol if self.rtol is None else self.rtol, otherwise.atol if self.atol is None else self.atol)


@dataclass
class Locate:
    """Finds the node at which one engine leaves another; `run` is called once.

    Parameters
    ----------
    settings : LocateSettings
        What to look into.
    model : bytes
        An ONNX file.
    cases : Given
        What is run.
    tolerance : Tolerance
        How far a value may be from the reference's, unless the settings say so.
    open_engine : OpenEngine
        Opens engines; two are open while the model's outputs are compared, later one at a time.
    host : Host
        Where it runs.
    listener : Listener
        Hears of progress, and of each ``engines`` and ``faults`` section that is ready.

    Attributes
    ----------
    reproducer : Reproducer or None
        After `run`: the node alone, for the kinds ``source`` and ``inherited``.

    Raises
    ------
    ValueError
        If there is no such case.
    """

    settings: LocateSettings
    model: bytes
    cases: Given
    tolerance: Tolerance
    open_engine: OpenEngine
    host: Host
    listener: Listener
    reproducer: Reproducer | None = field(default=None, init=False)
    _engines: dict[str, r.EngineEntry] = field(default_factory=dict, init=False)
    _steps_ms: list[float] = field(default_factory=list, init=False)
    _warnings: list[str] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        """Refuse a case that is not there."""
        self.tolerance = self.settings.allowed(self.tolerance)
        if not len(self.cases):
            raise ValueError(f"there are no cases in {self.cases.name!r}")
        case, last = self.settings.case, len(self.cases) - 1
        if case is not None and case > last:
            raise ValueError(f"case is {case}; {self.cases.name!r} has the cases 0 to {last}")
        self._tried = range(min(MOST_CASES, last + 1)) if case is None else range(case, case + 1)

    async def run(self) -> r.Report:
        """Locate and return a report with `engines` and `faults`; an engine that fails is a result, not an exception.

        Raises
        ------
        ModelError
            If the model is none.
        """
        both = (unnamed(self.settings.reference), unnamed(self.settings.engine))
        self._pair = SideBySide(self.model, self.open_engine, self.tolerance, *both)
        faults = []
        try:
            faults.append(await self._located())
            self.listener.section("faults", faults[0])
        except EngineError as error:
            self._introduce(failed_entry(self._pair.asked, error))
        self.listener.progress("located", 1, 1)
        return r.Report(
            schema=r.SCHEMA,
            settings=r.Settings(engines=[self.settings.engine, self.settings.reference], runs=1, warmup=0, seed=0),
            environment=environment_entry(self.host.environment(), self._steps_ms, self.model),
            engines=list(self._engines.values()),
            suites=[],
            parity=[],
            race=[],
            ratios=[],
            faults=faults,
        )

    async def _located(self) -> r.FaultEntry:
        case, outputs = await self._outputs()
        within = await self._pair.within(self.cases.inputs(case), self.listener.progress)
        self._warnings += [f"the value {name!r} was not compared: {why}" for name, why in self._pair.skipped.items()]
        if within.far:
            if not outputs.far:
                self._warnings.append("the model's outputs are within the tolerance all the same")
            return await self._traced(case, within)
        if outputs.far:
            return self._fused(case, within, outputs, steps=[one.step for one in outputs.seen])
        asked = f"{len(self._tried)} cases" if len(self._tried) > 1 else f"case {case}"
        self._say(f"nothing differs: neither the outputs in {asked} nor a value within the model in case {case}")
        return self._entry(NONE, case, within, None)

    # --- the model as it is ---

    async def _outputs(self) -> tuple[int, Compared]:
        """Compare the model's outputs, case by case until they differ; return that case, or else the first, and its outputs."""
        engines: list[Engine] = []
        pair = self._pair
        try:
            pair.reference = await self._opened(self.settings.reference, engines)
            pair.engine = await self._opened(self.settings.engine, engines)
            for place, case in enumerate(self._tried):
                self.listener.progress("comparing outputs", place, len(self._tried))
                answers = []
                for engine in engines:
                    pair.asked = engine.spec
                    answers.append(await engine.run(self.cases.inputs(case), limit_s=FIRST_RUN_LIMIT_S))
                expected, found = answers
                compared = pair.compare(list(expected), found, expected)
                if compared.far:
                    return case, compared
        finally:
            for engine in engines:
                await engine.close()
        return self._tried[0], Compared([])

    async def _opened(self, name: str, engines: list[Engine]) -> EngineSpec:
        inputs = self.cases.inputs(self._tried[0])
        self._pair.asked = unnamed(name)
        spec, thread_sweep = await resolved(name, self.open_engine, self.model, inputs, self.host)
        self._pair.asked = spec
        engines.append(await self.open_engine(spec, self.model))
        self._introduce(await introduced(engines[-1], inputs, thread_sweep, nodes=False))
        self._steps_ms.append(engines[-1].facts.clock_step_ms)
        return spec

    def _introduce(self, entry: r.EngineEntry) -> None:
        self._engines[entry.name] = entry
        self.listener.section("engines", entry)

    # --- the nodes alone ---

    async def _traced(self, case: int, within: Compared) -> r.FaultEntry:
        """Run nodes beyond the tolerance alone, until one of them errs on the reference's own inputs."""
        inputs = self.cases.inputs(case)
        nodes: dict[int, Seen] = {}
        for one in within.far:
            nodes.setdefault(one.value.index, one)
        first = within.far[0]
        first_alone: Alone | None = None
        tried = list(nodes.items())[:MOST_ALONE]
        for place, (index, one) in enumerate(tried):
            self.listener.progress("running nodes alone", place, len(tried))
            try:
                alone = await run_alone(self._pair, one.value, inputs)
            except (EngineError, ModelError) as error:
                self._warnings.append(f"{called(one.value)} could not be run alone: {error.message}")
                if error.kind in FATAL:
                    break
                continue
            if alone.seen.far:
                self._say(f"{called(one.value)} errs on the reference's own inputs: {self._how(alone.seen)}")
                if one.value.op in RANDOM:
                    self._warnings.append(f"{one.value.op} draws random numbers, which are not the same on any two engines")
                self.reproducer = alone.reproducer
                return self._entry(SOURCE, case, within, one, alone=alone.seen, picture=alone.map)
            if index == first.value.index:
                first_alone = alone
        if cause := await self._fused_before(first.value, within, inputs):
            return self._fused(case, within, cause, at=first)
        if first_alone:
            others = f", nor does any of the next {len(tried) - 1} that are" if len(tried) > 1 else ""
            self._say(
                f"{called(first.value)} is the first beyond the tolerance: {self._how(first)}. Alone, on the reference's "
                f"inputs, it does not err{others}: it enlarges smaller errors, or does something else within the model"
            )
            self.reproducer = first_alone.reproducer
        else:
            self._say(f"{called(first.value)} is the first beyond the tolerance: {self._how(first)}. It could not be run alone")
        return self._entry(INHERITED, case, within, first, alone=first_alone.seen if first_alone else None, picture=within.map)

    async def _fused_before(self, value: Value, within: Compared, inputs: Tensors) -> Compared | None:
        """Find what a node takes wrong only while the values before that are not asked for.

        The values of a large model are asked for in several groups. An error that goes as soon as its own surroundings are
        asked for is back in the run of a later group.
        """
        close = {one.value.name for one in within.seen if not one.far}
        names = [name for name in inputs_of(self.model, value.index) if name in close]
        if value.name in self._pair.together or not names:
            return None
        try:
            compared = await self._pair.both(names, inputs)
        except EngineError:
            return None
        return compared if compared.far else None

    # --- what is said of it ---

    def _fused(
        self, case: int, within: Compared, wrong: Compared, *, at: Seen | None = None, steps: list[r.FaultStep] | None = None
    ) -> r.FaultEntry:
        """State that what is `wrong` is right as soon as more is asked for; no node is to blame for it."""
        first = wrong.far[0]
        self._say(
            f"{first.value.name!r} is wrong: {self._how(first)}. As soon as the values before it are asked for, it is right: "
            "what onnxruntime makes of several nodes errs"
        )
        entry = self._entry(FUSED, case, within, at, picture=wrong.map, steps=steps)
        return replace(entry, node="", op="")

    def _say(self, what: str) -> None:
        self._warnings.insert(0, what)

    def _how(self, one: Seen) -> str:
        if one.off.failure:
            return f"its answer is {one.off.failure}"
        by = "it differs" if math.isnan(one.off.max_abs) else f"it differs by up to {one.off.max_abs:.3g}"
        return f"{by} (rtol {self.tolerance.rtol:g}, atol {self.tolerance.atol:g})"

    def _entry(
        self,
        kind: str,
        case: int,
        within: Compared,
        at: Seen | None,
        *,
        alone: Seen | None = None,
        picture: r.HeatMap | None = None,
        steps: list[r.FaultStep] | None = None,
    ) -> r.FaultEntry:
        place = within.seen.index(at) if at else len(within.seen)
        nearby = within.seen[max(place - STEPS_BEFORE, 0) : place + 1 + STEPS_AFTER]
        return r.FaultEntry(
            engine=self._pair.engine.name,
            reference=self._pair.reference.name,
            suite=self.cases.name,
            case=case,
            rtol=self.tolerance.rtol,
            atol=self.tolerance.atol,
            kind=kind,
            node=at.step.node if at else "",
            op=at.value.op if at else "",
            compared=len(within.seen),
            steps=[one.step for one in nearby] if steps is None else steps,
            alone=alone.step if alone else None,
            map=picture,
            valid=kind != INHERITED or alone is not None,
            warnings=self._warnings,
        )
