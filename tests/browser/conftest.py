"""Collects the tests under `inside/` and runs them inside Pyodide, all in one page.

A module there cannot be imported here (there is no Pyodide on CPython), so its tests are found in its syntax tree.
"""

from __future__ import annotations

import ast
import contextlib
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyapp.chromium import BrowserError, BrowserOptions, PageDriver, open_page
from pyapp.serve import ServeError, SiteServer

from . import models

HERE = Path(__file__).parent
DIST = HERE.parents[1] / "dist"
LIMIT_S = 120
"""For one test; a hung page must not hang the level."""

ENDING_S = 3
"""A closed engine's worker takes a moment to end."""


class InsideError(Exception):
    """A test failed inside Pyodide; the text is its traceback there."""


class InsidePage:
    """One page for all tests, opened by the first one."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._driver: PageDriver | None = None
        self._fault: str | None = None
        self._loaded: set[str] = set()

    def run(self, path: Path, function: str) -> None:
        """Run one test, and see that it ends the engines that it opened."""
        self._open()
        if path.stem not in self._loaded:
            self._call(f"load({path.stem!r}, {path.read_text()!r})")
            self._loaded.add(path.stem)
        before = self._engines()
        if traceback := self._call(f"await run_test({path.stem!r}, {function!r}, {LIMIT_S})"):
            raise InsideError(traceback)
        if left := self._left(before):
            raise InsideError(f"{function} left engines running: {', '.join(left)}")

    def call(self, source: str) -> Any:
        """Run code in the page's console; returns its last value, which must be a literal."""
        self._open()
        return self._call(source)

    def javascript(self, body: str) -> Any:
        """Run the body of an async JavaScript function in the page; returns what it returns."""
        self._open()
        assert self._driver
        return self._driver.run(body)

    def close(self) -> None:
        self._stack.close()

    def _open(self) -> None:
        # The first test pays for a page that does not open; the others must not each try again.
        if self._fault:
            raise InsideError(self._fault)
        if self._driver:
            return
        try:
            server = self._stack.enter_context(SiteServer(DIST))
            self._driver = self._stack.enter_context(open_page(BrowserOptions(gpu="software"), server.url))
        except ServeError as error:
            self._fault = f"{error}; then `make test-browser`"
            raise InsideError(self._fault) from None
        except BrowserError as error:
            self._fault = f"{error}; `make test` installs Chromium where it is missing"
            raise InsideError(self._fault) from None
        self._driver.driver.set_script_timeout(LIMIT_S + 30)
        self._hand_over()

    def _hand_over(self) -> None:
        self._call((HERE / "page_side.py").read_text())
        for make in (models.changed_weight, models.nan_weight, models.zero_scores):
            patches = [(patch.offset, b64encode(patch.content).decode()) for patch in make()]
            self._call(f"add_patched({make.__name__!r}, {patches!r})")
        self._call(f"add_model('endless', {b64encode(models.endless()).decode()!r})")
        for build in (models.typed, models.copied, models.nameless):
            self._call(f"add_model({build.__name__!r}, {b64encode(build()).decode()!r}, 'small')")

    def _call(self, source: str) -> Any:
        assert self._driver
        answer = self._driver.evaluate(source)
        if traceback := answer.get("traceback"):
            raise InsideError(traceback)
        return answer["repr"] and ast.literal_eval(answer["repr"])

    def _engines(self) -> dict[str, str]:
        """List the workers of engines, as the browser itself sees them: names by identifier."""
        assert self._driver
        targets = self._driver.driver.execute_cdp_cmd("Target.getTargets", {})["targetInfos"]
        return {target["targetId"]: target["title"] for target in targets if target["url"].endswith("/engine-worker.js")}

    def _left(self, before: dict[str, str]) -> list[str]:
        deadline = time.monotonic() + ENDING_S
        while True:
            left = [name for key, name in self._engines().items() if key not in before]
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(0.1)


PAGE = pytest.StashKey[InsidePage]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[PAGE] = InsidePage()
    config.add_cleanup(config.stash[PAGE].close)


@pytest.fixture
def inside(request: pytest.FixtureRequest) -> InsidePage:
    """The page, for a test that plays on both sides of it."""
    return request.config.stash[PAGE]


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if module_path.parent == HERE / "inside":
        return InsideModule.from_parent(parent, path=module_path)
    return None


class InsideModule(pytest.File):
    """A module of tests that run inside Pyodide."""

    def collect(self) -> Iterator[pytest.Item]:
        for node in ast.parse(self.path.read_text(), self.path).body:
            if isinstance(node, ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield InsideTest.from_parent(self, name=node.name, line=node.lineno)


class InsideTest(pytest.Item):
    """One test, run inside Pyodide."""

    def __init__(self, *, line: int, **given: Any) -> None:
        super().__init__(**given)
        self._line = line

    def runtest(self) -> None:
        self.config.stash[PAGE].run(self.path, self.name)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, InsideError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self._line - 1, self.name
