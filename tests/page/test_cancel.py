"""A check can be cancelled or refused, and the page stays as useful as it was."""

from __future__ import annotations

import time

import pytest

from .visit import section, wait_until

SOON_S = 3


@pytest.fixture(scope="module")
def page(visit):
    # A race of ten seconds and more; its first tenth is soon on the page.
    with visit("?engines=wasm-1&runs=9000&warmup=1") as page:
        yield page


def start_race(page) -> None:
    page.click("#run")
    wait_until(lambda: (page.page.get("progress") or {}).get("stage") == "race" and page.has("#faster tbody tr"), "a race", 60)


def test_cancel_in_mid_race_keeps_what_was_found(page):
    start_race(page)
    answers = page.text("#answers")
    assert "60 / 60" in answers

    start = time.monotonic()
    page.click("#cancel")
    page.wait_for("ready", SOON_S)
    assert time.monotonic() - start < SOON_S

    assert "cancelled" in page.text("#error")
    assert page.text("#answers") == answers
    assert page.races()["wasm-1"]["n"] != "0"
    assert page.page.get("report") is None, "half a check has no report"
    page.assert_no_engines()


def test_the_next_check_is_whole(page):
    report = page.page.check({"engines": ["wasm-1"], "runs": 3, "warmup": 1})
    assert section(report, "race", "wasm-1")["runs"] == 3
    assert section(report, "parity", "states on wasm-1")["agree"] == 60
    assert page.races().keys() == {"wasm-1"}, "the cancelled check's results are still shown"
    assert page.text("#error") == ""


@pytest.mark.parametrize("moment_ms", [0, 1, 5, 20, 60, 150, 400])
def test_cancel_at_any_moment_leaves_no_engine(page, moment_ms):
    page.driver.set_script_timeout(20)
    page.driver.execute_async_script(
        """
        const [moment, done] = arguments;
        const ended = pyappPage.check({ engines: ['wasm-1', 'wasm-N'], runs: 90000 });
        setTimeout(async () => { await pyappPage.cancel(); await ended; done(); }, moment);
        """,
        moment_ms,
    )
    assert page.page.get("state") == "ready"
    assert page.page.get("error")["name"] == "Cancelled"
    page.assert_no_engines()


def test_the_page_is_usable_while_a_check_runs(page):
    start_race(page)
    assert page.python("1 + 1") == "2"
    assert page.driver.find_element("css selector", "#run").get_attribute("disabled")
    page.click("#cancel")
    page.wait_for("ready", SOON_S)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"runs": 0}, "runs is 0"),
        ({"runs": 1.5}, "1.5"),
        ({"warmup": -1}, "warmup is -1"),
        ({"engines": []}, "0 engines were named"),
        ({"engines": ["wasm-1", "gpu-9"]}, "unknown engine 'gpu-9'"),
        ({"speed": 3}, "speed"),
    ],
)
def test_bad_settings_are_named_and_change_nothing(page, settings, said):
    if not page.page.get("report"):
        page.page.check({"engines": ["wasm-1"], "runs": 3, "warmup": 1})
    before = [page.text(css) for css in ("#answers", "#faster", "#ran")], page.page.get("report")
    page.page.start("check", settings)
    wait_until(lambda: page.page.get("error"), "an error", 5)
    page.wait_for("ready", 5)
    assert page.page.get("error")["name"] == "BadSettings"
    assert said in page.text("#error")
    assert ([page.text(css) for css in ("#answers", "#faster", "#ran")], page.page.get("report")) == before


def reopen(page, query: str) -> None:
    page.driver.get(page.driver.current_url.partition("?")[0] + query)
    page.page.wait_ready()


@pytest.mark.parametrize(
    ("query", "said"), [("?runs=0", "runs is 0"), ("?runs=many", "many"), ("?engines=wasm-0", "unknown engine 'wasm-0'")]
)
def test_bad_settings_in_the_address_are_named_at_the_click(page, query, said):
    reopen(page, query)
    page.click("#run")
    wait_until(lambda: page.page.get("error"), "an error", 5)
    assert said in page.text("#error")


def test_an_unknown_setting_in_the_address_is_named_at_once(page):
    reopen(page, "?foo=1&runs=3")
    assert "foo" in page.text("#error")
    assert "runs" in page.text("#error"), "the settings that there are, are not named"
