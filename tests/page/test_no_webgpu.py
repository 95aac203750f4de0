"""Without WebGPU the page says why and what to do, and the rest of the check is whole."""

from __future__ import annotations

import pytest

from .visit import engine, section


@pytest.fixture(scope="module")
def page(visit):
    with visit("?runs=5&warmup=1", gpu="none") as page:
        yield page


@pytest.fixture(scope="module")
def report(page):
    return page.check_by_click()


def test_the_page_says_why_and_what_to_do(page, report):
    for name in ("webgpu-stock", "webgpu-fast"):
        error = engine(report, name)["error"]
        assert error["name"] == "WebGpuUnavailable"
        assert error["remedy"]
        card = page.text(f"#ran .engine:nth-child({[entry['name'] for entry in report['engines']].index(name) + 1})")
        assert name in card
        assert error["message"] in card
        assert error["remedy"] in card


def test_wasm_is_checked_and_raced_all_the_same(page, report):
    names = [entry["name"] for entry in report["engines"] if not entry["error"]]
    assert len(names) == 2
    for name in names:
        assert section(report, "parity", f"states on {name}")["agree"] == 60
        assert section(report, "parity", f"stress on {name}")["passed"]
        assert section(report, "race", name)["runs"] == 5
    assert page.races().keys() == set(names)
    assert all(row["actions agree"].startswith("✓") for row in page.parities().values())


def test_the_question_is_answered_with_a_reason(page, report):
    first = report["ratios"][0]
    assert (first["numerator"], first["denominator"], first["p50"]) == ("webgpu-stock", "wasm-1", None)
    assert first["reason"] == "webgpu-stock did not race"
    assert "webgpu-stock / wasm-1: no ratio. webgpu-stock did not race." in page.text("#faster")
