"""The page in Traditional Chinese, and back."""

from __future__ import annotations

import pytest

from .test_pictures import overflow, set_look
from .visit import wait_until

TEXTS = "return [...document.querySelectorAll('h1, h2, h3, p, button, label, th, summary')].map((one) => one.textContent)"


@pytest.fixture(scope="module")
def page(visit):
    with visit("?lang=zh-TW&engines=wasm-1&runs=3&warmup=0") as page:
        page.page.wait_ready()
        yield page


def language(page):
    return page.driver.execute_script("return document.documentElement.lang")


def test_the_address_chooses_the_language(page):
    assert language(page) == "zh-TW"
    assert page.text("#run") == "開始檢驗"
    assert page.driver.title.startswith("WASM 還是 WebGPU？")


def test_results_change_their_language_with_the_page_and_back(page):
    page.check_by_click()
    chinese = page.driver.execute_script(TEXTS)
    page.click("#language [lang='en']")
    wait_until(lambda: language(page) == "en", "it speaks English", 5)
    english = page.driver.execute_script(TEXTS)
    assert page.text("#run") == "Run the check"
    assert page.parities()["states on wasm-1"]["actions agree"] == "✓ 60 / 60"
    page.click("#language [lang='zh-TW']")
    wait_until(lambda: language(page) == "zh-TW", "it speaks Chinese", 5)
    assert page.driver.execute_script(TEXTS) == chinese
    page.click("#language [lang='en']")
    wait_until(lambda: page.driver.execute_script(TEXTS) == english, "the English texts of before", 5)
    page.click("#language [lang='zh-TW']")


def test_nothing_sticks_out_on_a_phone(page):
    set_look(page, 390, "light")
    found = overflow(page)
    set_look(page, 1280, "light")
    assert found["scrollWidth"] <= found["clientWidth"], found
    assert found["out"] == []


def test_a_language_that_nobody_speaks_here_is_named(visit):
    with visit("?lang=xx") as page:
        page.page.wait_ready()
        assert "xx" in page.text("#error")
        assert "lang=zh-TW" in page.text("#error")
        assert language(page) == "en"
