"""Python for a person: one namespace, in which lines and whole texts run, can be stopped, and are shown. Answers are JSON."""

from __future__ import annotations

import asyncio
import builtins
import json
import linecache
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

import pyodide_js
from pyodide.code import eval_code_async

from pyapp.console import CONSOLE, as_json, completions, refuse_input, status, user_traceback, variables
from pyapp.rich import shown

INSTALLER = "micropip"
"""Loaded when somebody first writes its name: most visitors install nothing."""


class Repl:
    """The page's Python, as its console, its editor and programs use it.

    Parameters
    ----------
    namespace : dict
        What is there from the start.
    settled : callable
        Awaited before anything runs: returns when `namespace` is whole.

    Attributes
    ----------
    namespace : dict
        Where all of it runs.
    """

    def __init__(self, namespace: dict[str, Any], settled: Callable[[], Awaitable[None]]) -> None:
        self.namespace = namespace
        self._settled = settled
        self._known: frozenset[str] = frozenset()
        self._tasks: set[asyncio.Task[Any]] = set()
        builtins.input = refuse_input

    def settle(self) -> None:
        """Take what there is now for given: it is none of the user's variables."""
        self._known = frozenset(self.namespace)

    async def evaluate(self, source: str, filename: str = CONSOLE) -> str:
        """Run Python, with top-level await, for a program.

        Returns
        -------
        str
            JSON: ``{"repr": …}`` of the last expression (null for None), or ``{"traceback": …}`` cut to the user's frames.
        """
        value, traceback = await self._run(source, filename)
        return json.dumps({"traceback": traceback} if traceback else {"repr": None if value is None else repr(value)})

    async def run(self, source: str, filename: str = CONSOLE) -> str:
        """Run Python for a person.

        Returns
        -------
        str
            JSON: ``{"shown": …}``, what `pyapp.rich.shown` says of the last expression, or ``{"traceback": …}``.
        """
        value, traceback = await self._run(source, filename)
        return json.dumps({"traceback": traceback} if traceback else {"shown": shown(value)})

    async def _run(self, source: str, filename: str) -> tuple[Any, str | None]:
        # Tracebacks quote from it.
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        try:
            await self._settled()
            if INSTALLER in source and INSTALLER not in sys.modules:
                await pyodide_js.loadPackage(INSTALLER)
            value = await eval_code_async(source, self.namespace, filename=filename)
        except BaseException as error:
            # An interrupt and a cancel are the visitor's doing; neither may end Python.
            return None, user_traceback(error, filename)
        finally:
            self._tasks.discard(task)
        if value is not None:
            self.namespace["_"] = value
        return value, None

    async def run_plain(self, source: str, filename: str = CONSOLE) -> str:
        """Run Python for a program that knows JSON only.

        Returns
        -------
        str
            JSON: ``{"value": …}`` as `pyapp.console.as_json` writes it, or ``{"traceback": …}``.
        """
        value, traceback = await self._run(source, filename)
        return json.dumps({"traceback": traceback}) if traceback else f'{{"value": {as_json(value)}}}'

    def stop(self) -> None:
        """Cancel what awaits something; without it, nothing happens."""
        for task in self._tasks:
            task.cancel()

    def status(self, source: str) -> str:
        """Tell whether a text is ``complete``, ``incomplete`` or a ``syntax-error``."""
        return status(source)

    def complete(self, source: str) -> str:
        """Complete the last word of a text; returns JSON, ``{"words": […], "start": …}``."""
        words, start = completions(source, self.namespace)
        return json.dumps({"words": words, "start": start})

    def reference(self) -> str:
        """Describe the public API; returns JSON, a list of ``{"name", "signature", "doc"}``."""
        from pyapp.reference import entries

        return json.dumps([asdict(entry) for entry in entries()])

    def variables(self) -> str:
        """List the user's variables; returns JSON, a list of ``{"name", "type", "summary"}``."""
        return json.dumps([asdict(variable) for variable in variables(self.namespace, {*self._known, "_"})])
