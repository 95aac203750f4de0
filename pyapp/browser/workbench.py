"""The visitor's model in the page: what the page's controls do to it, and how it is answered. Answers are JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Protocol

from pyapp.agreement import Tolerance
from pyapp.engine import EngineError, EngineSpec, OpenEngine
from pyapp.errors import AppError
from pyapp.host import settings_from

if TYPE_CHECKING:
    # Without a model of the visitor's, the page does without all this and boots sooner.
    from pyodide.ffi import JsProxy

    from pyapp.subject import Subject


class Teller(Protocol):
    """Hears how far it is."""

    def progress(self, stage: str, done: int, total: int) -> None:
        """Tell that `done` of `total` steps of a stage are done."""


class Workbench:
    """The visitor's model, or none: then the page looks at the worked example.

    Parameters
    ----------
    open_engine : OpenEngine
        Opens engines.
    teller : Teller
        Hears of the reference's answers.
    on_change : callable
        Called with the new subject, or None, whenever it changes.

    Attributes
    ----------
    subject : Subject or None
        The model.
    """

    def __init__(self, open_engine: OpenEngine, teller: Teller, on_change: Callable[[Subject | None], None]) -> None:
        self._open_engine = open_engine
        self._teller = teller
        self._on_change = on_change
        self.subject: Subject | None = None

    def load(self, name: str, content: JsProxy, files: JsProxy) -> str:
        """Take a model: ONNX, and an object of the other files that hold its weights. On an error the former one stays."""
        from pyapp.subject import opened

        others = {entry[0]: entry[1].to_bytes() for entry in files.object_entries()}
        return self._changed(lambda: opened(name, content.to_bytes(), others))

    def drop(self) -> None:
        """Go back to the worked example."""
        self._set(None)

    def take_cases(self, filename: str, content: JsProxy) -> str:
        """Take cases from a file."""
        from pyapp.subject import with_file

        return self._changed(lambda: with_file(self._here(), filename, content.to_bytes()))

    def make_cases(self, settings: str) -> str:
        """Make cases anew; settings are JSON, ``{"sizes", "count", "seed"}``."""
        from pyapp.subject import CasesSettings, with_made

        def make() -> Subject:
            wanted = settings_from(json.loads(settings), CasesSettings)
            return with_made(self._here(), wanted.sizes, count=wanted.count, seed=wanted.seed)

        return self._changed(make)

    def allow(self, tolerance: str) -> str:
        """Set the tolerance; it is JSON, ``{"rtol", "atol"}``."""
        return self._changed(lambda: replace(self._here(), tolerance=settings_from(json.loads(tolerance), Tolerance)))

    def read(self, float16: bool | None) -> str:
        """Say what the model is, and what the doctor finds; `float16` tells whether the adapter has 16-bit floats, if known."""
        return self._answer(lambda: described(self._here(), float16))

    async def fix(self, name: str) -> str:
        """Apply a fix, and prove on the cases that the outputs are the same, to the bit."""
        from pyapp.subject import require_same_outputs, with_fix

        try:
            subject = self._here()
            fixed = with_fix(subject, name)
            before, after = await self._answers(subject, "before the fix"), await self._answers(fixed, "after the fix")
            numbers = require_same_outputs(before, after)
        except (AppError, ValueError) as error:
            return _error(error)
        self._set(fixed)
        changes = fixed.fixes[len(subject.fixes) :]
        return json.dumps({"changes": changes, "proof": {"cases": len(before), "numbers": numbers}})

    async def settle(self) -> None:
        """Have the reference answer the cases that came without answers.

        Raises
        ------
        AppError
            Where there are no cases, or the reference cannot answer them.
        """
        from pyapp.subject import REFERENCE_ENGINE, with_reference

        subject = self._here()
        subject.cases()
        if subject.outputs is None:
            outputs = await self._answers(subject, f"the reference, {REFERENCE_ENGINE}")
            if self.subject is subject:
                self._set(with_reference(subject, outputs))

    async def _answers(self, subject: Subject, stage: str) -> list[dict[str, Any]]:
        from pyapp.subject import REFERENCE_ENGINE

        subject.cases()
        total = len(subject.inputs)
        self._teller.progress(stage, 0, total)
        engine = await self._open_engine(EngineSpec.parse(REFERENCE_ENGINE), subject.model)
        outputs: list[dict[str, Any]] = []
        try:
            for done, case in enumerate(subject.inputs, 1):
                outputs.append(await engine.run(case))
                self._teller.progress(stage, done, total)
            return outputs
        except EngineError as error:
            what = f"{REFERENCE_ENGINE} cannot answer case {len(outputs)}: {error.message}"
            raise EngineError(
                "NoReference", what, "Are its sizes and values right? Set them, or give a file with cases."
            ) from error
        finally:
            await engine.close()

    def _here(self) -> Subject:
        if self.subject is None:
            raise AppError("NoModel", "no model of yours has been loaded", "Choose an ONNX file first.")
        return self.subject

    def _set(self, subject: Subject | None) -> None:
        self.subject = subject
        self._on_change(subject)

    def _changed(self, make: Callable[[], Subject]) -> str:
        def change() -> dict[str, Any]:
            self._set(make())
            return {}

        return self._answer(change)

    def _answer(self, work: Callable[[], dict[str, Any]]) -> str:
        try:
            return json.dumps(work())
        except (AppError, ValueError) as error:
            return _error(error)


def described(subject: Subject, float16: bool | None) -> dict[str, Any]:
    """Describe a model for the page: what its entry in a report says, and what only the page shows."""
    info = subject.info
    problem = subject.problem
    return {
        "model": asdict(subject.entry()),
        "ir_version": info.ir_version,
        "producer": info.producer,
        "domains": info.domains,
        "cases": len(subject.inputs),
        "problem": {"name": problem.kind, "message": problem.message, "remedy": problem.remedy} if problem else None,
        "findings": [asdict(finding) for finding in subject.findings(adapter_float16=float16)],
    }


def _error(error: AppError | ValueError) -> str:
    if isinstance(error, ValueError):
        error = AppError("BadSettings", str(error), "Correct it and try again.")
    return json.dumps({"error": {"name": error.kind, "message": error.message, "remedy": error.remedy}})
