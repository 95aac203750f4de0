"""A headless Firefox, driven through `firefox.mjs`."""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path
from shutil import which
from typing import Any, Self

from .visit import wait_until

SCRIPT = Path(__file__).with_name("firefox.mjs")
START_LIMIT_S = 150
ANSWER_LIMIT_S = 300


class FirefoxError(Exception):
    """What the browser, or a script in its page, says."""


class Firefox:
    """A browser with one page; as a context manager it ends with the block.

    Parameters
    ----------
    downloads
        Folder that files are saved into.
    """

    def __init__(self, downloads: Path) -> None:
        program = which("firefox-esr")
        if program is None:
            raise FirefoxError("there is no firefox-esr; `make test` installs it")
        command = ["node", SCRIPT, program, downloads]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.version = str(self._ask("version", limit_s=START_LIMIT_S)).rpartition("/")[2]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        self._process.stdin.close()  # upon which it closes its browser
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise

    def _ask(self, verb: str, *args: object, limit_s: float = ANSWER_LIMIT_S) -> Any:
        process = self._process
        assert process.stdin
        assert process.stdout
        # A browser that hangs answers nothing; without its program the line comes to its end.
        guard = threading.Timer(limit_s, process.kill)
        guard.start()
        try:
            process.stdin.write(json.dumps([verb, *args]) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            guard.cancel()
        if not line:
            raise FirefoxError(f"Firefox did not answer to {verb} within {limit_s:.0f} s, or ended")
        answer = json.loads(line)
        if "error" in answer:
            raise FirefoxError(answer["error"])
        return answer["value"]

    def open(self, url: str) -> None:
        """Go to an address, and wait until the page there is ready."""
        self._ask("open", url)
        wait_until(lambda: self.get("state") in {"ready", "failed"}, "the page boots", 180)
        assert self.get("state") == "ready", self.get("error")

    def run(self, body: str, argument: object = None) -> Any:
        """Run the body of an async JavaScript function of `argument` in the page."""
        return self._ask("run", body, argument)

    def get(self, name: str) -> Any:
        """Return a property of `pyappPage`."""
        return self.run("return globalThis.pyappPage?.[argument] ?? null", name)

    def check(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Run a check and return its report."""
        self.run("pyappPage.check(argument)", settings)
        wait_until(lambda: self.get("state") == "ready", "the check ends", 240)
        assert not self.get("error"), self.get("error")
        report: dict[str, Any] = self.get("report")
        return report

    def click(self, css: str, text: str = "") -> None:
        """Click the first visible element of a selector whose text begins so."""
        self._ask("click", css, text)

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self._ask("type", text)

    def hold(self, key: str, ms: int) -> None:
        """Hold a key down, as Puppeteer names it."""
        self._ask("hold", key, ms)

    def upload(self, css: str, path: Path) -> None:
        """Choose a file in a field."""
        self._ask("upload", css, str(path))

    def text(self, css: str) -> str:
        """Return what can be read in an element."""
        found: str = self.run("return document.querySelector(argument)?.innerText ?? ''", css)
        return found
