"""The check: open the engines, compare their answers with Python's, race them, and report."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol

from pyapp import report as r
from pyapp.cases import Suite
from pyapp.engine import NAME_PATTERN, Engine, EngineError, EngineFacts, EngineSpec, OpenEngine
from pyapp.parity import parity
from pyapp.race import Lane, RaceSettings, race
from pyapp.sections import engine_entry, failed_entry, failure, no_ratio, parity_entry, race_entry, ratio_entry, suite_entry
from pyapp.strict import structure
from pyapp.threads import best_threads

DEFAULT_ENGINES = ("wasm-1", "wasm-N", "webgpu-stock", "webgpu-fast")
QUESTION = ("webgpu-stock", "wasm-1")
"""The ratio that this project began with; every report has it."""

FOLLOW_UPS = (("webgpu-fast", "wasm-1"), ("webgpu-fast", "webgpu-stock"))
"""What it takes to answer it better; they come next where both engines were asked for."""

SOFTWARE_STRESS_CASES = 60
"""On a software adapter a run takes up to a second, so only the hardest cases of the stress set are asked."""

MAX_RUNS = 100_000
MAX_ENGINES = 16


@dataclass(frozen=True, kw_only=True)
class CheckSettings:
    """What to check: engine names, measured runs, warm-up runs, seed of the order of blocks and of the bootstrap."""

    engines: list[str] = field(default_factory=lambda: list(DEFAULT_ENGINES))
    runs: int = 100
    warmup: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse settings that no check can be run with.

        Raises
        ------
        ValueError
            Naming the value and what is allowed.
        """
        if not 1 <= self.runs <= MAX_RUNS:
            raise ValueError(f"runs is {self.runs}; give a number from 1 to {MAX_RUNS}")
        if not 0 <= self.warmup <= MAX_RUNS:
            raise ValueError(f"warmup is {self.warmup}; give a number from 0 to {MAX_RUNS}")
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed is {self.seed}; give a number from 0 to {2**32 - 1}")
        if not 1 <= len(self.engines) <= MAX_ENGINES:
            raise ValueError(f"{len(self.engines)} engines were named; name 1 to {MAX_ENGINES}")
        for name in self.engines:
            if NAME_PATTERN.fullmatch(name) is None:
                EngineSpec.parse(name)  # raises, naming those that are known
        if len(set(self.engines)) != len(self.engines):
            raise ValueError(f"an engine is named twice in {', '.join(self.engines)}; name each once")

    @classmethod
    def from_data(cls, data: object) -> CheckSettings:
        """Read settings from parsed JSON; raises ValueError that names the value and its place."""
        try:
            return structure(data, cls, lambda faults: ValueError("; ".join(faults)))
        except TypeError as error:
            raise ValueError(str(error)) from error


class Host(Protocol):
    """What a check needs to know of the program that it runs in."""

    def environment(self) -> dict[str, Any]:
        """Return the fields of `pyapp.report.Environment` that the host knows."""

    def hidden_count(self) -> int:
        """How often the page has been hidden so far, a spell that still lasts included."""

    def hidden(self) -> bool:
        """Whether the page is hidden now."""


class Listener(Protocol):
    """Hears of a check's progress."""

    def progress(self, stage: str, done: int, total: int) -> None:
        """Tell that `done` of `total` steps of a stage are done."""

    def section(self, name: str, section: r.Section) -> None:
        """Show a section of the report that is ready: ``engines``, ``suites``, ``parity`` or ``race`` (again and again)."""


@dataclass
class Check:
    """One check; `run` is called once.

    Parameters
    ----------
    settings : CheckSettings
        What to check.
    model : bytes
        An ONNX file.
    suites : sequence of Suite
        The first one's first case is the input of the race.
    open_engine : OpenEngine
        Opens engines.
    host : Host
        Where it runs.
    listener : Listener
        Who hears of it.
    """

    settings: CheckSettings
    model: bytes
    suites: Sequence[Suite]
    open_engine: OpenEngine
    host: Host
    listener: Listener
    _opened: dict[str, Engine] = field(default_factory=dict)
    _entries: list[r.EngineEntry] = field(default_factory=list)

    async def run(self) -> r.Report:
        """Run the check and return its report.

        Engines that cannot be opened, answers that differ and races that are invalid are results. Cancelling the task ends
        the engines; sections already given to the listener stay with it.
        """
        suites = [suite_entry(suite) for suite in self.suites]
        for entry in suites:
            self.listener.section("suites", entry)
        try:
            await self._open_all()
            parities = [entry async for entry in self._parities()]
            lanes, hidden = await self._race()
        finally:
            for engine in self._opened.values():
                await engine.close()
        return r.Report(
            schema=r.SCHEMA,
            settings=r.Settings(**asdict(self.settings)),
            environment=self._environment(),
            engines=self._entries,
            suites=suites,
            parity=parities,
            race=[race_entry(lane, self.settings.warmup, hidden=hidden) for lane in lanes],
            ratios=self._ratios(lanes, hidden=hidden),
        )

    @property
    def _race_inputs(self) -> dict[str, Any]:
        return self.suites[0].inputs(0)

    async def _open_all(self) -> None:
        for index, name in enumerate(self.settings.engines):
            self.listener.progress(f"opening {name}", index, len(self.settings.engines))
            for entry in await self._open(name):
                self._entries.append(entry)
                self.listener.section("engines", entry)
        self.listener.progress("engines opened", len(self.settings.engines), len(self.settings.engines))

    async def _open(self, name: str) -> list[r.EngineEntry]:
        """Open one requested engine; no entry where it is the same as one that is already open."""
        sweep = None
        spec = EngineSpec(name=name, provider="wasm", threads=0)
        try:
            if name == "wasm-N":
                sweep = await self._best_threads()
                name = f"wasm-{next(iter(sweep), 1)}"
            spec = EngineSpec.parse(name)
            if name in self._opened:
                return []
            engine = await self.open_engine(spec, self.model)
            self._opened[name] = engine
            first_run_ms = float((await engine.time(self._race_inputs, 1, limit_s=120)).samples_ms[0])
            facts, missing = await self._with_nodes(engine)
        except EngineError as error:
            return [failed_entry(spec, error)]
        return [engine_entry(engine, facts, first_run_ms, sweep, missing)]

    async def _best_threads(self) -> dict[int, float]:
        environment = self.host.environment()
        if not environment["cross_origin_isolated"]:
            raise EngineError(
                "ThreadsUnavailable",
                "this page is not cross-origin isolated, so there is no shared memory and only one thread",
                "Serve it with the COOP and COEP headers of its _headers file.",
            )
        return await best_threads(self.open_engine, self.model, self._race_inputs, environment["cores"])

    async def _with_nodes(self, engine: Engine) -> tuple[EngineFacts, str | None]:
        """Return the engine's facts with its nodes per provider, or without them and why."""
        try:
            nodes = await engine.profile(self._race_inputs)
        except EngineError as error:
            return engine.facts, f"no profile, so where the nodes ran is not known: {error.message}"
        counts: dict[str, int] = {}
        for node in nodes:
            counts[node.provider] = counts.get(node.provider, 0) + 1
        return replace(engine.facts, nodes=counts), None

    async def _parities(self) -> AsyncIterator[r.ParityEntry]:
        for suite in self.suites:
            for name, engine in list(self._opened.items()):
                stage = f"{suite.name} on {name}"
                adapter = engine.facts.adapter
                asked = suite.first(SOFTWARE_STRESS_CASES) if adapter and adapter.software else suite
                try:
                    result = await parity(engine, asked, on_case=partial(self.listener.progress, stage))
                except EngineError as error:
                    await self._drop(name, error)
                    continue
                entry = parity_entry(result)
                self.listener.section("parity", entry)
                yield entry

    async def _drop(self, name: str, error: EngineError) -> None:
        """Leave out an engine that has stopped, and say so in its entry."""
        await self._opened.pop(name).close()
        for index, entry in enumerate(self._entries):
            if entry.name == name:
                self._entries[index] = replace(
                    entry, error=failure(error), valid=False, warnings=[*entry.warnings, error.message]
                )
                self.listener.section("engines", self._entries[index])

    async def _race(self) -> tuple[list[Lane], bool]:
        hidden_before = self.host.hidden_count()
        hidden_at_start = self.host.hidden()

        def was_hidden() -> bool:
            return hidden_at_start or self.host.hidden_count() != hidden_before

        def show(lanes: list[Lane]) -> None:
            for lane in lanes:
                if lane.rounds or lane.error:
                    self.listener.section("race", race_entry(lane, self.settings.warmup, hidden=was_hidden()))

        def on_block(lanes: list[Lane], done: int, total: int) -> None:
            self.listener.progress("race", done, total)
            show(lanes)

        settings = RaceSettings(self.settings.runs, self.settings.warmup, self.settings.seed)
        lanes = await race(list(self._opened.values()), self._race_inputs, settings, on_block=on_block)
        show(lanes)
        return lanes, was_hidden()

    def _ratios(self, lanes: list[Lane], *, hidden: bool) -> list[r.RatioEntry]:
        by_name = {lane.engine.spec.name: lane for lane in lanes}
        names = list(by_name)
        asked = [pair for pair in FOLLOW_UPS if set(pair) <= set(self.settings.engines)]
        first = [QUESTION, *asked]
        # Each pair is compared once, whichever way round.
        others = [(later, earlier) for i, earlier in enumerate(names) for later in names[i + 1 :]]
        entries = []
        for numerator, denominator in [*first, *(pair for pair in others if pair not in first and pair[::-1] not in first)]:
            missing = [name for name in (numerator, denominator) if name not in by_name]
            if missing:
                entries.append(no_ratio(numerator, denominator, f"{' and '.join(missing)} did not race"))
            else:
                entries.append(ratio_entry(by_name[numerator], by_name[denominator], seed=self.settings.seed, hidden=hidden))
        return entries

    def _environment(self) -> r.Environment:
        known = self.host.environment()
        steps = [engine.facts.clock_step_ms for engine in self._opened.values() if engine.facts.clock_step_ms]
        warnings = []
        if not known["cross_origin_isolated"]:
            warnings.append(
                "the page is not cross-origin isolated: one thread only, and a coarse clock; "
                "serve it with the COOP and COEP headers of its _headers file"
            )
        return r.Environment(
            **known,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            clock_step_ms=max(steps, default=None),
            model_sha256=hashlib.sha256(self.model).hexdigest(),
            valid=not warnings,
            warnings=warnings,
        )
