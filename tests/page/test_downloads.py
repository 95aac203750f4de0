"""A file that does not come is named, with what is wrong with it; what does not need it works, and results stay."""

from __future__ import annotations

import http.server
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from pyapp.chromium import BrowserOptions, launch
from pyapp.serve import SiteServer

from .deployed import open_ready, says
from .visit import wait_until

FAULTS = {"refused": "the server answered 503", "cut": "the connection was cut|there is no connection|bytes came"}


class Faulty:
    """A server in front of the site's that answers for one file wrongly."""

    def __init__(self, upstream: str) -> None:
        self.name = self.fault = ""
        faulty = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                request = urllib.request.Request(upstream + self.path[1:])
                try:
                    with urllib.request.urlopen(request) as answer:
                        status, headers, body = answer.status, dict(answer.headers), answer.read()
                except urllib.error.HTTPError as error:
                    status, headers, body = error.code, dict(error.headers), error.read()
                wrong = faulty.name and Path(self.path).name.startswith(faulty.name)
                if wrong and faulty.fault == "refused":
                    status, body = 503, b""
                    headers["Content-Length"] = "0"
                self.send_response(status)
                for header, value in headers.items():
                    self.send_header(header, "no-store" if header == "Cache-Control" else value)
                self.end_headers()
                cut = wrong and faulty.fault == "cut"
                self.wfile.write(body[: len(body) // 2] if cut else body)
                self.close_connection = bool(cut)

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def site(dist):
    with SiteServer(dist) as server:
        faulty = Faulty(server.url)
        yield faulty
        faulty.stop()


@pytest.fixture(scope="module")
def driver():
    driver = launch(BrowserOptions(), "none")
    yield driver
    driver.quit()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    "name",
    ["site.json", "python-worker.js", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip", "numpy", "states.npz"],
)
def test_a_file_without_which_python_cannot_start_is_named(site, driver, name, fault):
    site.name, site.fault = name, fault
    driver.get(site.url)
    wait_until(lambda: says(driver, "#error"), "the page says what is wrong", 90)
    said = says(driver, "#error")
    assert name in said
    assert any(words in said for words in FAULTS[fault].split("|")), said
    assert "eload the page" in said


@pytest.mark.parametrize("name", ["ort.wasm.min.mjs", "ort-wasm-simd-threaded.wasm", "engine-worker.js"])
def test_an_engines_file_is_named_and_the_next_check_is_whole(site, driver, name):
    open_ready(driver, site.url)
    site.name, site.fault = name, "refused"
    ask = "const done = arguments[0]; pyappPage.check({engines: ['wasm-1'], runs: 5, warmup: 1}).then(done, done)"
    driver.execute_async_script(ask)
    assert f"{name} could not be loaded: {FAULTS['refused']}" in says(driver, "#ran")
    site.name = ""
    driver.execute_async_script(ask)
    assert driver.execute_script("return pyappPage.report.parity.map(({ agree }) => agree)") == [60, 600]


def test_without_the_charts_module_the_results_are_whole(site, driver):
    open_ready(driver, site.url)
    site.name, site.fault = "plot.js", "refused"
    driver.execute_async_script(
        "const done = arguments[0]; pyappPage.check({engines: ['wasm-1'], runs: 5, warmup: 1}).then(done, done)"
    )
    assert "There is no chart: plot.js could not be loaded" in says(driver, "#faster")
    assert driver.execute_script("return pyappPage.error") is None
    assert driver.execute_script("return pyappPage.report.race.length") == 1
