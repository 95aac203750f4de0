"""What a first visit loads: by the server's own log, since workers' requests are no part of the page's timeline."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import pytest

from pyapp.chromium import BrowserError, BrowserOptions, open_page
from pyapp.serve import SiteServer
from pyapp.sitefolder import app_folder

from .deployed import quiet_site
from .visit import Visit

#: Bytes of the files that are asked for until ready, uncompressed, by group: what is here now, and little more.
BUDGET = {
    "runtime/pyodide": 13_800_000,
    "python/": 4_650_000,
    "fixtures/": 345_000,
    "page": 400_000,
}

LATER = re.compile(
    r"^(ale|licences|translate|languages|vendor/(editor|plot|purify)|runtime/onnxruntime|variants|examples|recipes|fixtures/games)|micropip"
)
"""What nobody has asked for yet."""

CHOOSE_AN_EXAMPLE = """
    const select = document.querySelector('[aria-label="Examples"]');
    select.value = 'parity';
    select.dispatchEvent(new Event('change'));
"""

MODEL = "fixtures/breakout_dqn.onnx"


class FirstVisit:
    """A first visit; `asked` are the paths that it had asked for by a moment, in their order."""

    def __init__(self, visit: Visit, log: list[str]) -> None:
        self.visit = visit
        self._log = log
        self.until_ready = self.asked()

    def asked(self) -> list[str]:
        """Return the paths, without the folder of the version."""
        return [match[1] for line in [*self._log] if (match := re.match(r'"GET /(?:app/\w+/)?([^ ?#]*)\S* HTTP', line))]

    def wait_for(self, path: str) -> bool:
        deadline = time.monotonic() + 60
        while not any(one.startswith(path) for one in self.asked()):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True


@pytest.fixture(scope="module")
def first(dist, tmp_path_factory):
    # The service worker asks for everything, later; test_offline.py is about it.
    site = quiet_site(dist, tmp_path_factory.mktemp("first"))
    log = []
    with SiteServer(site, log=log.append) as server, open_page(BrowserOptions(gpu="none"), server.url) as page:
        yield FirstVisit(Visit(page), log)


def group_of(path):
    return next((group for group in BUDGET if path.startswith(group)), "page")


def test_nothing_is_loaded_before_it_is_needed(first):
    assert [path for path in first.until_ready if LATER.search(path)] == []


def test_what_is_loaded_keeps_to_its_budget(first, dist):
    sizes = dict.fromkeys(BUDGET, 0)
    # The model may be on its way by now, and nobody waits for it.
    for path in set(first.until_ready) - {MODEL}:
        [file] = [one for one in (app_folder(dist) / path, dist / (path or "index.html")) if one.is_file()]
        sizes[group_of(path)] += file.stat().st_size
    for group, size in sizes.items():
        assert 0.95 * BUDGET[group] <= size <= BUDGET[group], (group, size)


def test_the_model_comes_after_python_and_unasked(first):
    assert first.wait_for(MODEL)
    asked = first.asked()
    assert asked.index(MODEL) > max(asked.index(path) for path in asked if path.startswith(("python/", "runtime/pyodide")))
    assert asked.count(MODEL) == 1


def test_every_module_is_asked_for_at_once(first, dist):
    # All that the page's modules import is named in its HTML, so none has to wait until another has been read.
    named = set(re.findall(r'(?:href|src)="app/\w+/([\w./-]+\.js)"', (dist / "index.html").read_text()))
    workers = [path for path in first.until_ready if path.endswith(".js") and not path.startswith(("runtime/", "vendor/"))]
    before = workers[: workers.index("python-worker.js")]
    assert set(before) <= named
    assert len(before) > 60
    assert "main.js" in named


@pytest.mark.parametrize(
    ("what", "use"),
    [
        ("vendor/editor.js", "document.querySelector('#console .actions button').click()"),
        ("examples/", CHOOSE_AN_EXAMPLE),
        ("python/micropip", "pyappPage.evaluate('import micropip')"),
        ("ale/ale.wasm", "pyappPage.evaluate('(await open_breakout()).close()')"),
        ("runtime/onnxruntime-web", "pyappPage.ask('check', { engines: ['wasm-1'], runs: 5, warmup: 1 })"),
        ("vendor/plot.js", "/* the check's charts */"),
    ],
)
def test_using_a_thing_loads_it(first, what, use):
    assert not any(path.startswith(what) for path in first.until_ready)
    first.visit.driver.execute_script(use)
    assert first.wait_for(what)


def test_without_the_model_the_page_is_ready_and_asks_for_it_again(dist, tmp_path):
    site = Path(shutil.copytree(dist, tmp_path / "site"))
    model = app_folder(site) / MODEL
    away = model.rename(tmp_path / "away")
    with SiteServer(site) as server, open_page(BrowserOptions(gpu="none"), server.url) as page:
        assert page.evaluate("len(states)")["repr"] == "60"
        assert page.evaluate("model is None")["repr"] == "True"
        with pytest.raises(BrowserError, match=r"breakout_dqn\.onnx"):
            page.check({"engines": ["wasm-1"], "runs": 5, "warmup": 1})
        away.rename(model)
        report = page.check({"engines": ["wasm-1"], "runs": 5, "warmup": 1})
        assert [entry["agree"] for entry in report["parity"]] == [60, 600]
        assert page.evaluate("model == page.model and len(model) > 6e6")["repr"] == "True"
