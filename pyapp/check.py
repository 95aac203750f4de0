"""The check: open the engines, compare their answers with Python's, race them, and report."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from pyapp import report as r
from pyapp.cases import Cases
from pyapp.engine import Engine, EngineError, OpenEngine
from pyapp.host import DEFAULT_ENGINES, Hidden, Host, Listener, Settings, require_engines, require_seed, require_within
from pyapp.opening import introduced, resolved, unnamed
from pyapp.parity import Answers, parity
from pyapp.race import Lane, RaceSettings, race
from pyapp.sections import (
    agreement_entries,
    environment_entry,
    failed_entry,
    failure,
    no_ratio,
    parity_entry,
    race_entry,
    ratio_entry,
    suite_entry,
)

QUESTION = ("webgpu-stock", "wasm-1")
"""The ratio that this project began with; every report has it."""

FOLLOW_UPS = (("webgpu-fast", "wasm-1"), ("webgpu-fast", "webgpu-stock"))
"""What it takes to answer it better; they come next where both engines were asked for."""

SOFTWARE_STRESS_CASES = 60
"""On a software adapter a run takes up to a second, so only the hardest cases of the stress set are asked."""

MAX_RUNS = 100_000


@dataclass(frozen=True, kw_only=True)
class CheckSettings(Settings):
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
        require_within("runs", self.runs, 1, MAX_RUNS)
        require_within("warmup", self.warmup, 0, MAX_RUNS)
        require_seed(self.seed)
        require_engines(self.engines)


@dataclass
class Check:
    """One check; `run` is called once.

    Parameters
    ----------
    settings : CheckSettings
        What to check.
    model : bytes
        An ONNX file.
    suites : sequence of Cases
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
    suites: Sequence[Cases]
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
            answers = [result async for result in self._answers()]
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
            parity=[parity_entry(result) for result in answers],
            agreement=[entry for result in answers for entry in agreement_entries(result)],
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
        spec, thread_sweep = unnamed(name), None
        try:
            spec, thread_sweep = await resolved(name, self.open_engine, self.model, self._race_inputs, self.host)
            if spec.name in self._opened:
                return []
            engine = await self.open_engine(spec, self.model)
            self._opened[spec.name] = engine
            return [await introduced(engine, self._race_inputs, thread_sweep)]
        except EngineError as error:
            return [failed_entry(spec, error)]

    async def _answers(self) -> AsyncIterator[Answers]:
        for suite in self.suites:
            for name, engine in list(self._opened.items()):
                stage = f"{suite.name} on {name}"
                asked = suite.first(SOFTWARE_STRESS_CASES) if engine.facts.software else suite
                try:
                    result = await parity(engine, asked, on_case=partial(self.listener.progress, stage))
                except EngineError as error:
                    await self._drop(name, error)
                    continue
                for entry in agreement_entries(result):
                    self.listener.section("agreement", entry)
                self.listener.section("parity", parity_entry(result))
                yield result

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
        hidden = Hidden(self.host)

        def show(lanes: list[Lane]) -> None:
            for lane in lanes:
                if lane.rounds or lane.error:
                    self.listener.section("race", race_entry(lane, self.settings.warmup, hidden=hidden.was))

        def on_block(lanes: list[Lane], done: int, total: int) -> None:
            self.listener.progress("race", done, total)
            show(lanes)

        settings = RaceSettings(self.settings.runs, self.settings.warmup, self.settings.seed)
        lanes = await race(list(self._opened.values()), self._race_inputs, settings, on_block=on_block)
        show(lanes)
        return lanes, hidden.was

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
        steps = [engine.facts.clock_step_ms for engine in self._opened.values()]
        return environment_entry(self.host.environment(), steps, self.model)
