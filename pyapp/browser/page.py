"""What the page can ask of Python: its questions, a cancel, reports. Answers are JSON."""

from __future__ import annotations

import asyncio
import contextlib
import json
import platform
from collections.abc import Callable
from dataclasses import asdict, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Protocol, Unpack

import numpy as np
from numpy.typing import NDArray
from pyodide.ffi import JsException, JsProxy

import pyapp
from pyapp.agreement import Tolerance
from pyapp.breakout import Breakout, Options
from pyapp.browser.atari import open_breakout
from pyapp.browser.bridge import JsBridge, from_js_error, to_plain
from pyapp.browser.engines import BrowserEngines
from pyapp.browser.play import AgentSide
from pyapp.browser.repl import Repl
from pyapp.browser.workbench import Workbench
from pyapp.cases import Cases, Suite, load_suite
from pyapp.check import Check, CheckSettings
from pyapp.engine import Engine, EngineError, EngineSpec
from pyapp.errors import AppError
from pyapp.export import report_csv
from pyapp.foreign import read_foreign
from pyapp.host import DEFAULT_ENGINES
from pyapp.report import Report, ReportError, Section, merged, parse_report, section_json
from pyapp.summary import summarize
from pyapp.tables import report_markdown
from pyapp.variants import VariantEngines
from pyapp.verdict import verdict

if TYPE_CHECKING:
    from pyapp.breakout.question import Games
    from pyapp.locate import Locate
    from pyapp.subject import Subject
    from pyapp.tune import Tune

MODEL_PATH = "fixtures/breakout_dqn.onnx"
SUITE_PATHS = {"states": "fixtures/states.npz", "stress": "fixtures/stress.npz"}
SHOWN_FAULTS = 3
SHOWN_LENGTH = 200
WRITERS: dict[str, Callable[[Report], str]] = {
    "json": lambda report: report.to_json(indent=1) + "\n",
    "csv": report_csv,
    "markdown": report_markdown,
}


class Question(Protocol):
    """What can be asked once."""

    async def run(self) -> Report:
        """Find the answer."""


class Page:
    """Python's side of one page.

    Attributes
    ----------
    model : bytes
        The ONNX file that questions are about: the worked example's, or the visitor's.
    suites : dict of str to Suite
        The worked example's cases: ``states`` and ``stress``.
    open_engines, open_variants : OpenEngine
        Open engines; the second one on the variants of the model that engines' names ask for.
    agent : AgentSide
        The agent's board.
    report : Report or None
        What was found on this page so far.
    bench : Workbench
        The visitor's model, where there is one.
    repl : Repl
        The console's and the editor's Python.
    """

    def __init__(self, bridge: JsBridge) -> None:
        self._bridge = bridge
        self._task: asyncio.Task[Report] | None = None
        self.model = self._example = b""
        self.suites: dict[str, Suite] = {}
        self.open_engines = BrowserEngines(bridge)
        self.open_variants = VariantEngines(self.open_engines, self._fetch)
        self.agent = AgentSide(bridge, self.open_variants, self.worked_example)
        self.report: Report | None = None
        self._search: Tune | None = None
        self._games: Games | None = None
        self._located: Locate | None = None
        self._asked: Question | None = None
        self._about: tuple[object, ...] = ()
        self._loading: asyncio.Future[None] | None = None
        self._questions: dict[str, Callable[[object], Question]] = {
            "check": self._check,
            "explain": self._explain,
            "sweep": self._sweep,
            "tune": self._tune,
            "tournament": self._tournament,
            "placement": self._placement,
            "locate": self._locate,
        }
        self.bench = Workbench(self.open_engines, self, self._look_at)
        self.repl = Repl({"__name__": "__console__", "pyapp": pyapp, "np": np, "page": self}, self._model_or_none)

    def load(self) -> asyncio.Future[str]:
        """Fetch the cases of the worked example, and begin to fetch its model; returns JSON: why, where it cannot."""
        return asyncio.ensure_future(self._loaded())

    async def _loaded(self) -> str:
        try:
            await self._load()
        except EngineError as error:
            return _error(error.kind, error.message, error.remedy)
        return "{}"

    async def _load(self) -> None:
        archives = await asyncio.gather(*map(self._fetch, SUITE_PATHS.values()))
        self.suites = {name: load_suite(name, npz) for name, npz in zip(SUITE_PATHS, archives, strict=True)}
        namespace = self.repl.namespace
        namespace |= {"model": None, "cases": None, "states": self.suites["states"], "stress": self.suites["stress"]}
        namespace |= {"engines": list(DEFAULT_ENGINES), "open_engine": self.open_engine, "open_breakout": self.open_breakout}
        # A page's own: on CPython there is no board to play on.
        vars(pyapp)["play"] = self.agent.play
        self.repl.settle()
        self._begin_model()

    async def worked_example(self) -> bytes:
        """Return the worked example's model once it is here; raises `EngineError` where it cannot be had.

        The page is ready without it, since it is as large as much of Python and nothing needs it before somebody asks. One that
        could not be had is fetched again.
        """
        if self._loading is None or (self._loading.done() and not self._example):
            self._begin_model()
        assert self._loading
        # Who waits may be cancelled; what is on its way is still wanted.
        await asyncio.shield(self._loading)
        return self._example

    def _begin_model(self) -> None:
        self._loading = asyncio.ensure_future(self._load_model())
        # Whoever waits for it hears of a failure; before that, nobody needs to.
        self._loading.add_done_callback(lambda loading: loading.cancelled() or loading.exception())

    async def _load_model(self) -> None:
        self._example = self.open_variants.model = await self._fetch(MODEL_PATH)
        if not self.bench.subject:
            self.model = self.repl.namespace["model"] = self._example
            self._about = (self._example,)

    async def _model_or_none(self) -> None:
        """Wait for the model before something is run that may use it; without it the rest of Python is as good."""
        if not self.bench.subject:
            with contextlib.suppress(EngineError):
                await self.worked_example()

    async def _fetch(self, path: str) -> bytes:
        try:
            array = await self._bridge.fetch(path)
        except JsException as error:
            raise from_js_error(error, EngineError) from None
        content: bytes = array.to_bytes()
        return content

    async def open_engine(self, name: str, model: bytes | None = None) -> Engine:
        """Open an engine by name, on the worked example's model unless another one is given; close it after use."""
        if model is None and not self.bench.subject:
            await self.worked_example()
        return await self.open_variants(EngineSpec.parse(name), self.model if model is None else model)

    async def open_breakout(self, **options: Unpack[Options]) -> Breakout:
        """Open a game of Breakout; the arguments are those of `pyapp.breakout.Breakout`; close it after use."""
        return await open_breakout(self._bridge, **options)

    def ask(self, question: str, settings: str) -> asyncio.Future[str]:
        """Ask a question. It counts as running as soon as this returns, so that a cancel which follows at once finds it.

        Parameters
        ----------
        question : str
            ``check``, ``explain``, ``sweep``, ``tune``, ``tournament``, ``placement`` or ``locate``.
        settings : str
            Its settings as JSON; what is left out has its default.

        Returns
        -------
        future of str
            JSON: ``{"report": …}`` or ``{"error": {"name", "message", "remedy"}}``; the name is ``Cancelled`` after `cancel`.
            A check begins a report anew; the other questions add their sections to it.
        """
        if self._task:
            return asyncio.ensure_future(self._answer(asyncio.ensure_future(_refuse_second())))
        self._task = asyncio.ensure_future(self._run(question, settings))
        return asyncio.ensure_future(self._answer(self._task))

    def _look_at(self, subject: Subject | None) -> None:
        """Ask about another model from now on; what was found about the former one is no part of what comes."""
        about = (subject.model, subject.inputs, subject.tolerance) if subject else (self._example,)
        if [id(part) for part in about] != [id(part) for part in self._about]:
            self.report = self._search = self._located = None
        self._about = about
        self.model = subject.model if subject else self._example
        model = self.model
        if subject:
            self.open_engines.learn(model, sizes=subject.sizes, zeros=subject.zeros)
        self.repl.namespace |= {"model": model, "cases": subject.cases() if subject and subject.inputs else None}
        self.repl.settle()

    @property
    def _asked_about(self) -> list[Cases]:
        """What the questions ask: the visitor's cases, or the worked example's."""
        return [self.bench.subject.cases()] if self.bench.subject else list(self.suites.values())

    async def _run(self, question: str, settings: str) -> Report:
        if self.bench.subject:
            if question == "tournament":
                what = "a tournament is Breakout's, and the page looks at a model of yours"
                raise EngineError("NotBreakout", what, "Go back to the worked example first.")
            await self.bench.settle()
        elif not self._example:
            self.progress("waiting for the model", 0, 1)
            await self.worked_example()
        self._asked = asked = self._questions[question](json.loads(settings))
        found = await asked.run()
        # Only what was cancelled is gone on with.
        if question == "tune":
            self._search = None
        if self._games and self._games.complete:
            self._games = None
        report = found if question == "check" else merged(self.report, found)
        subject = self.bench.subject
        # The agent's loop is the worked example's.
        loop = [] if subject else self.agent.loop_entries()
        self.report = replace(report, loop=loop, model=subject.entry() if subject else None)
        return self.report

    def _check(self, settings: object) -> Check:
        wanted = CheckSettings.from_data(settings)
        return Check(wanted, self.model, self._asked_about, self.open_variants, self, self)

    # Modules of questions that are asked later, if at all, are not imported before: the page boots without them.

    def _explain(self, settings: object) -> Question:
        from pyapp.stages import Explain, ExplainSettings

        wanted = ExplainSettings.from_data(settings)
        return Explain(wanted, self.model, self._asked_about[0], self.open_variants, self, self)

    def _sweep(self, settings: object) -> Question:
        from pyapp.sweep import Sweep, SweepSettings

        wanted = SweepSettings.from_data(settings)
        return Sweep(wanted, self.model, self._asked_about[0], self.open_variants, self, self)

    def _tune(self, settings: object) -> Question:
        from pyapp.tune import Tune, TuneSettings

        wanted = TuneSettings.from_data(settings)
        if wanted.fresh or self._search is None or self._search.settings != wanted:
            wanted = replace(wanted, fresh=False)
            self._search = Tune(wanted, self.model, self._asked_about, self.open_variants, self, self)
        return self._search

    def _placement(self, settings: object) -> Question:
        from pyapp.placement import Placement, PlacementSettings

        wanted = PlacementSettings.from_data(settings)
        return Placement(wanted, self.model, self._asked_about[0], self.open_variants, self, self)

    def _locate(self, settings: object) -> Question:
        from pyapp.locate import Locate, LocateSettings

        wanted = LocateSettings.from_data(settings)
        subject = self.bench.subject
        tolerance = subject.tolerance if subject else Tolerance()
        self._located = Locate(wanted, self.model, self._asked_about[0], tolerance, self.open_variants, self, self)
        return self._located

    def _tournament(self, settings: object) -> Question:
        from pyapp.breakout.question import Games, GamesSettings

        wanted = GamesSettings.from_data(settings)
        if self._games is None or self._games.settings != wanted or self._games.model is not self.model:
            suite = self.suites["states"]
            self._games = Games(wanted, self.model, suite, self._fetch, self.open_variants, self.open_breakout, self, self)
        return self._games

    async def _answer(self, task: asyncio.Task[Report]) -> str:
        try:
            return '{"report": ' + (await task).to_json() + "}"
        except asyncio.CancelledError:
            return _error("Cancelled", "it was cancelled", "What was finished before is still shown.")
        except AppError as error:
            return _error(error.kind, error.message, error.remedy)
        except ValueError as error:
            return _error("BadSettings", str(error), "Correct it and ask again.")
        finally:
            if self._task is task:
                self._task = self._asked = None

    def adopt(self, report: str) -> None:
        """Go on with a report (JSON) that this page had before Python was started anew."""
        self.report = parse_report(report)

    def read_report(self, text: str) -> str:
        """Read a saved report, which anybody may have written.

        Returns
        -------
        str
            JSON: ``{"report": …}``, or ``{"error": {"name": "BadReport", "message", "remedy", "faults"}}``, whose message and
            faults are the first few, each with its place.
        """
        try:
            return '{"report": ' + read_foreign(text).to_json() + "}"
        except ReportError as error:
            return _bad_report(error.faults)

    def export_report(self, report: str, form: str) -> str:
        """Write a report (JSON) in a form of `WRITERS`; returns JSON, ``{"text": …}``."""
        return json.dumps({"text": WRITERS[form](parse_report(report))})

    async def recipe(self, report: str, engine: str) -> str:
        """Write the recipe of an engine of a report (JSON).

        Returns
        -------
        str
            JSON: ``{"json", "module"}``, the recipe as data and as a JavaScript module, or ``{"error": …}``.
        """
        from pyapp.recipe import from_engine, module_text, template_path

        found = parse_report(report)
        entries = {entry.name: entry for entry in found.engines if entry.actual}
        if engine not in entries:
            return _error(
                "NoRecipe", f"the report has no engine {engine!r} that ran", "Tune again, and use one of its recipes."
            )
        wanted = from_engine(entries[engine], found.environment.versions)
        try:
            template = (await self._fetch(template_path(wanted))).decode()
        except EngineError as error:
            return _error(error.kind, error.message, error.remedy)
        return json.dumps({"json": json.dumps(asdict(wanted), indent=1) + "\n", "module": module_text(wanted, template)})

    def reproducer(self) -> JsProxy | None:
        """Return the files that show the fault found last: an object of ``name``, ``model`` and ``cases``; or null."""
        found = self._located.reproducer if self._located else None
        if found is None:
            return None
        name, model, cases = found.name, found.model, found.npz
        return to_plain({"name": name, "model": memoryview(model), "cases": memoryview(cases)})

    def summarize(self, report: str) -> str:
        """Say what a report (JSON) means: a JSON list of ``{"topic", "tone", "text"}``."""
        return json.dumps([asdict(sentence) for sentence in summarize(parse_report(report))])

    def verdict(self, report: str) -> str:
        """Say which engine of a report (JSON) to ship: `pyapp.verdict.Verdict` as JSON."""
        return json.dumps(asdict(verdict(parse_report(report))))

    def cancel(self) -> None:
        """End what was asked; where nothing was, nothing happens. A tournament answers with the games that are finished."""
        if self._task and not (self._games and self._asked is self._games and self._games.cancel()):
            self._task.cancel()

    def pause(self, on: bool) -> None:
        """Hold the running tournament, or let it go on; without one, nothing happens."""
        if self._games and self._asked is self._games:
            self._games.pause(on)

    def picture(self, suite: str, case: int) -> NDArray[np.uint8]:
        """Return the newest frame of a state: uint8 [7056], 84 rows of 84 grey values."""
        return np.ascontiguousarray(self.suites[suite].observation[case, -1]).ravel()

    def environment(self) -> dict[str, Any]:
        """Describe the browser and what runs in it, as `pyapp.check.Host` wants it."""
        known = self._bridge.environment().to_py()
        versions = {
            "pyapp": version("pyapp"),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "pyodide": known.pop("pyodide"),
            "onnxruntime_web": known.pop("onnxruntime_web"),
        }
        return {**known, "versions": versions}

    def hidden_count(self) -> int:
        """How often the tab has been hidden so far."""
        return int(self._bridge.hidden_count())

    def hidden(self) -> bool:
        """Whether the tab is hidden now."""
        return bool(self._bridge.hidden())

    def progress(self, stage: str, done: int, total: int) -> None:
        """Tell the page how far a check is."""
        self._bridge.emit("progress", json.dumps({"stage": stage, "done": done, "total": total}))

    def section(self, name: str, section: Section) -> None:
        """Give the page a section of the report that is ready."""
        self._bridge.emit("section", f'{{"name": "{name}", "section": {section_json(section)}}}')


async def _refuse_second() -> Report:
    raise EngineError("Busy", "another question is being answered", "Wait for it, or cancel it.")


def _error(name: str, message: str, remedy: str) -> str:
    return json.dumps({"error": {"name": name, "message": message, "remedy": remedy}})


def _bad_report(faults: list[str]) -> str:
    # A file that is no report at all can have a fault in every line, and a fault can quote a whole line.
    shown = [fault if len(fault) <= SHOWN_LENGTH else f"{fault[:SHOWN_LENGTH]} …" for fault in faults[:SHOWN_FAULTS]]
    more = len(faults) - len(shown)
    message = "; ".join(shown) + (f"; and {more} more" if more else "")
    remedy = "Choose a file that this page or `pyapp check --json` has written."
    error = {"name": "BadReport", "message": f"not a valid report: {message}", "remedy": remedy, "faults": shown}
    return json.dumps({"error": error})
