"""Without COOP and COEP there are no threads and a coarse clock: the page works and says so."""

from __future__ import annotations

import pytest

from .deployed import quiet_site
from .visit import engine, section


@pytest.fixture(scope="module")
def page(visit, dist, tmp_path_factory):
    # A service worker would add the headers, as test_offline.py sees.
    site = quiet_site(dist, tmp_path_factory.mktemp("site"))
    with visit("?engines=wasm-1,wasm-2,wasm-N&runs=20&warmup=2", isolated=False, site=site) as page:
        yield page


@pytest.fixture(scope="module")
def report(page):
    return page.check_by_click()


def test_one_thread_works(page, report):
    assert section(report, "parity", "states on wasm-1")["agree"] == 60
    assert section(report, "race", "wasm-1")["runs"] == 20
    assert page.parities()["states on wasm-1"]["actions agree"] == "✓ 60 / 60"


def test_threads_that_were_not_had_are_told(page, report):
    two = engine(report, "wasm-2")
    assert (two["requested"]["threads"], two["actual"]["threads"]) == (2, 1)
    assert not two["valid"]
    assert page.table("What ran as wasm-2")["threads"] == {"requested": "2", "actual": "1"}
    assert "asked for 2 threads, got 1" in page.text("#ran")


def test_the_best_thread_count_has_a_reason_instead(page, report):
    best = engine(report, "wasm-N")
    assert best["error"]["name"] == "ThreadsUnavailable"
    assert "not cross-origin isolated" in best["error"]["message"]
    assert "COOP and COEP" in best["error"]["remedy"]
    assert best["error"]["message"] in page.text("#ran")


def test_the_environment_is_marked(report):
    environment = report["environment"]
    assert not environment["cross_origin_isolated"]
    assert not environment["valid"]
    assert any("COOP and COEP" in warning for warning in environment["warnings"])


def test_the_clock_is_coarse_and_says_so(page, report):
    assert report["environment"]["clock_step_ms"] == pytest.approx(0.1, abs=0.02)
    assert page.races()["wasm-1"]["clock step"] == "100 µs"
