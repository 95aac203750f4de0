"""Firefox ESR: the check, the editor, the game, reports, and the policy, which this browser reads by itself."""

from __future__ import annotations

import os
import re
import shutil
import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from pyapp.serve import SiteServer

from . import browsers
from .firefox import Firefox, FirefoxError
from .visit import engine, section, wait_until

ENGINES = ["wasm-1", "wasm-2", "webgpu-stock", "webgpu-fast"]
HOW = {"Chromium": "software GPU", "Firefox": "ESR"}
REPORTS = "violations"


@dataclass
class Visited:
    """The page in a Firefox, what its server was asked, and where its files go."""

    page: Firefox
    downloads: Any
    log: list[str] = field(default_factory=list)
    report: dict[str, Any] = field(default_factory=dict)

    def violations(self) -> list[str]:
        """Return what the browser has reported of the policy, from the page and from all workers."""
        return [line for line in self.log if REPORTS in line]


@pytest.fixture(scope="module")
def visited(dist, tmp_path_factory):
    """Open the page, served with a policy that says where violations are to be reported to."""
    site = tmp_path_factory.mktemp("site") / "dist"
    shutil.copytree(dist, site, copy_function=os.link)
    rules = (dist / "_headers").read_text()
    (site / "_headers").unlink()
    (site / "_headers").write_text(re.sub("(Content-Security-Policy: .*)", rf"\1; report-uri /{REPORTS}", rules))
    downloads = tmp_path_factory.mktemp("downloads")
    log: list[str] = []
    try:
        with SiteServer(site, log=log.append) as server, Firefox(downloads) as page:
            page.open(server.url)
            yield Visited(page, downloads, log)
    except FirefoxError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="module")
def firefox(visited):
    """Run a whole check there."""
    visited.report = visited.page.check({"engines": ENGINES, "runs": 5, "warmup": 1})
    return visited


def test_wasm_gives_python_s_answers(firefox):
    report = firefox.report
    assert report["environment"]["cross_origin_isolated"]
    for name, threads in (("wasm-1", 1), ("wasm-2", 2)):
        assert engine(report, name)["actual"]["threads"] == threads
        for suite, cases in (("states", 60), ("stress", 600)):
            found = section(report, "parity", f"{suite} on {name}")
            assert (found["agree"], found["cases"], found["passed"]) == (cases, cases, True)
            assert found["max_abs_diff"] < 1e-5
        assert len(section(report, "race", name)["samples_ms"]) == 5
    assert report["environment"]["clock_step_ms"] <= 0.021


def test_webgpu_gives_them_too_or_the_page_says_why_not(firefox):
    for name in ("webgpu-stock", "webgpu-fast"):
        entry = engine(firefox.report, name)
        if firefox.page.run("return Boolean(await navigator.gpu?.requestAdapter())"):
            assert section(firefox.report, "parity", f"states on {name}")["agree"] == 60
        else:
            assert entry["error"]["name"] == "WebGpuUnavailable"
            # Chrome's pages do not exist here.
            assert "about:support" in entry["error"]["remedy"]
            assert entry["error"]["message"] in firefox.page.text("#ran")


def test_a_report_is_saved_and_opened(firefox):
    page = firefox.page
    page.click("#report button", "Download JSON")
    [file] = wait_until(lambda: list(firefox.downloads.glob("*.json")), "a file", 15)
    wait_until(lambda: not list(firefox.downloads.glob("*.part")), "the whole file", 15)
    page.upload("#report-file", file)
    wait_until(lambda: file.name in page.text(".banner"), f"it is open: {page.text('#report .error')}", 20)
    assert "60" in page.text("#answers")
    page.click("button", "Back to this page's own results")


def test_the_editor_runs_and_stop_ends_what_runs(firefox):
    page = firefox.page
    page.click("#console button", "Open the editor")
    wait_until(lambda: page.run("return Boolean(document.querySelector('#console .editor')?.shadowRoot)"), "the editor", 20)
    page.run("document.querySelector('#console .editor').scrollIntoView()")
    page.type("print(6 * 7)\nwhile True: pass")
    page.click("#console button", "Run")
    wait_until(lambda: "42" in page.text("#console .log"), "it prints", 10)
    begun = time.monotonic()
    page.click("#console button", "Stop")
    wait_until(lambda: "KeyboardInterrupt" in page.text("#console .log"), "it ends", 5)
    assert time.monotonic() - begun < 3
    assert page.run("return (await pyappPage.evaluate('6 * 7')).repr") == "42"


def test_a_key_moves_the_paddle(firefox):
    page = firefox.page
    page.run(browsers.PLAYED)
    paddle = "return (await pyappPage.play.probe()).ram[72]"
    page.run("document.querySelector('.board.you canvas').scrollIntoView({ block: 'center' })")
    page.hold("ArrowLeft", 700)
    left = page.run(paddle)
    page.hold("ArrowRight", 1200)
    assert page.run(paddle) > left + 40


def test_what_it_can_do_is_what_the_table_says(firefox):
    same("Firefox", firefox.page.version, browsers.capabilities(firefox.page, firefox.report))


def test_nothing_here_broke_the_policy(firefox):
    """After all that was done here, whoever did it: the page, Python's worker, an engine's or the game's."""
    assert firefox.violations() == []
    firefox.page.run("""
        const worker = new Worker(URL.createObjectURL(new Blob(["fetch('http://127.0.0.1:9/').catch(() => postMessage(1))"])));
        await new Promise((done) => (worker.onmessage = done));
        worker.terminate();
    """)
    assert wait_until(firefox.violations, "a breach in a worker is reported", 10)


def same(name, version, can):
    """See that a browser can do what is written down; or write it down, for `make browsers`."""
    if os.environ.get("PYAPP_KEEP_BROWSERS"):
        browsers.keep(name, version, HOW[name], can)
    [known] = [one for one in browsers.kept() if one["name"] == name]
    assert can == known["can"], "`make browsers` writes docs/browsers.json and README.md anew"


def test_chromium_can_do_what_the_table_says(checked, visit):
    with visit() as another:  # so that the game is not in the report that other tests look at
        same("Chromium", another.page.browser.version, browsers.capabilities(another.page, checked.report))


def test_the_readme_shows_what_is_written_down():
    assert browsers.kept()
    assert browsers.shown() == browsers.table(browsers.kept())
