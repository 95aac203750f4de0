"""A visit to the page: what a person would click and read."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Callable
from typing import Any

from browser.models import Patch
from selenium.webdriver.common.by import By

from pyapp.chromium import PageDriver

Rows = dict[str, dict[str, str]]


def wait_until(met: Callable[[], Any], what: str, limit_s: float) -> Any:
    """Return the first true value of `met`, or fail saying what did not happen."""
    deadline = time.monotonic() + limit_s
    while not (value := met()):
        assert time.monotonic() < deadline, f"not within {limit_s:.0f} s: {what}"
        time.sleep(0.05)
    return value


class Visit:
    """A page in a browser, used as a visitor uses it."""

    def __init__(self, page: PageDriver) -> None:
        self.page = page
        self.driver = page.driver

    def click(self, css: str) -> None:
        self.driver.find_element(By.CSS_SELECTOR, css).click()

    def wait_for(self, state: str, limit_s: float) -> None:
        wait_until(lambda: self.page.get("state") == state, f"the page is {state} (error: {self.page.get('error')})", limit_s)

    def check_by_click(self, limit_s: float = 120) -> dict[str, Any]:
        """Click the button, wait, and return the report."""
        self.click("#run")
        self.wait_for("ready", limit_s)
        assert not self.page.get("error"), self.page.get("error")
        report: dict[str, Any] = self.page.get("report")
        return report

    def text(self, css: str) -> str:
        """Return what can be read in an element, nothing where it is hidden."""
        return self.driver.find_element(By.CSS_SELECTOR, css).text

    def has(self, css: str) -> bool:
        return bool(self.driver.find_elements(By.CSS_SELECTOR, css))

    def table(self, caption: str) -> Rows:
        """Read a table by its caption: row header to column header to text."""
        script = """
            const found = [...document.querySelectorAll('table')].find((table) => table.caption?.textContent === arguments[0]);
            return found && [...found.rows].map((row) => [...row.cells].map((cell) => cell.textContent));
        """
        rows = self.driver.execute_script(script, caption)
        assert rows, f"the page shows no table {caption!r}"
        [_, *columns], *body = rows
        return {head: dict(zip(columns, cells, strict=True)) for head, *cells in body}

    def parities(self) -> Rows:
        return self.table("Engines' answers against Python's")

    def races(self) -> Rows:
        return self.table("Time of one run")

    def walk(self) -> list[dict[str, Any]]:
        """Walk through all the states that are shown: index, text of the table, how many greys the picture has."""
        return self.page.run("""
            const walk = document.querySelector('.walk');
            const [slider, canvas] = ['input[type=range]', 'canvas'].map((css) => walk.querySelector(css));
            const states = [];
            for (let position = 0; position <= Number(slider.max); position++) {
                slider.value = position;
                slider.dispatchEvent(new Event('input'));
                const index = Number(slider.getAttribute('aria-valuetext').match(/\\d+/)[0]);
                while (canvas.dataset.state !== String(index)) await new Promise((done) => setTimeout(done, 5));
                const greys = new Set(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data).size;
                states.push({ index, greys, text: walk.textContent });
            }
            return states;
        """)

    def python(self, source: str) -> str | None:
        """Run Python in the page."""
        answer = self.page.evaluate(source)
        assert "traceback" not in answer, answer
        return answer["repr"]

    def give_model(self, patches: tuple[Patch, ...]) -> None:
        """Give the page the committed model with some bytes changed, until it is loaded anew."""
        self.python("from base64 import b64decode")
        for patch in patches:
            after = patch.offset + len(patch.content)
            self.python(f"content = b64decode({b64encode(patch.content).decode()!r})")
            self.python(f"page.model = page.model[:{patch.offset}] + content + page.model[{after}:]")

    def engines(self) -> list[str]:
        """List the workers of engines, as the browser itself sees them."""
        targets = self.driver.execute_cdp_cmd("Target.getTargets", {})["targetInfos"]
        return [target["title"] for target in targets if target["url"].endswith("/engine-worker.js")]

    def assert_no_engines(self) -> None:
        wait_until(lambda: not self.engines(), "every engine has ended", 3)


def engine(report: dict[str, Any], name: str) -> dict[str, Any]:
    """Return an engine's entry of a report."""
    [found] = [entry for entry in report["engines"] if entry["name"] == name]
    return found


def section(report: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    """Return the only entry of ``race``, or of ``parity`` as ``suite on engine``."""
    names = {f"{entry['suite']} on {entry['engine']}" if kind == "parity" else entry["engine"]: entry for entry in report[kind]}
    assert name in names, f"{name} is not among {list(names)}"
    return names[name]
