"""A model that gives other answers is caught, and the states in which it does are shown."""

from __future__ import annotations

import pytest
from browser import models

from .visit import section


@pytest.fixture(scope="module")
def page(visit):
    with visit("?engines=wasm-1&runs=5&warmup=1") as page:
        page.python("right_model = page.model")
        yield page


@pytest.fixture(autouse=True)
def right_model_again(page):
    yield
    page.python("page.model = right_model")


def test_one_changed_weight_is_caught_and_shown(page):
    page.give_model(models.changed_weight())
    report = page.check_by_click()
    states = section(report, "parity", "states on wasm-1")
    assert not states["passed"]
    assert states["agree"] == 60 - len(states["disagreements"]) < 60
    assert page.parities()["states on wasm-1"]["actions agree"] == f"✗ {states['agree']} / 60"
    assert page.has("#answers .bad")
    assert f"{len(states['disagreements'])} of 60 actions differ from Python's" in page.text("#answers .warnings")

    shown = page.walk()
    assert [state["index"] for state in shown] == states["disagreements"]
    for state in shown:
        assert state["greys"] > 2, "the picture is blank"
        for score in states["q_values"][state["index"]]:
            assert f"{score:.4f}" in state["text"]


def test_scores_that_are_nan_are_named(page):
    page.give_model(models.nan_weight())
    report = page.check_by_click()
    states = section(report, "parity", "states on wasm-1")
    assert (states["agree"], states["passed"], states["valid"]) == (0, False, False)
    assert {failure["failure"] for failure in states["failures"]} == {"non-finite"}
    assert "60 of 60 answers are non-finite" in page.text("#answers .warnings")
    shown = page.walk()
    assert len(shown) == 60
    assert all("non-finite" in state["text"] for state in shown)
    assert not section(report, "race", "wasm-1")["valid"]
    assert "non-finite" in page.text("#faster")


def test_a_file_that_is_no_model_is_an_error_of_its_engine(page):
    page.python("page.model = b'not a model'")
    report = page.check_by_click()
    [entry] = report["engines"]
    assert entry["error"]["message"]
    assert entry["error"]["message"] in page.text("#ran")
    assert report["parity"] == report["race"] == []


def test_the_right_model_passes_again(page):
    report = page.check_by_click()
    assert all(entry["passed"] for entry in report["parity"])
    assert not page.has("#answers .walk .bad"), "states of an earlier check are still shown"
    assert page.parities()["states on wasm-1"]["actions agree"] == "✓ 60 / 60"
