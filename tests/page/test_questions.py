"""Why, from which batch on, what is the fastest right way: asked by clicks, and from the command line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from selenium.webdriver.common.by import By

from .visit import wait_until


def ask(page, root: str, limit_s: float = 240) -> dict:
    """Click a question's button, wait, and return the report."""
    page.click(f"{root} .ask")
    wait_until(lambda: page.page.get("state") == "running", "it is asked", 5)
    page.wait_for("ready", limit_s)
    assert not page.page.get("error"), page.page.get("error")
    return page.page.get("report")


@pytest.fixture(scope="module")
def page(visit):
    with visit("?engines=wasm-1,webgpu-fast&runs=5&warmup=1", gpu="software") as page:
        yield page


def test_explain_shows_bars_a_table_and_sentences(page):
    report = ask(page, "#explain")
    assert [entry["engine"] for entry in report["stages"]] == ["wasm-1", "webgpu-fast"]
    table = page.table("Stages of one run")
    assert table["wasm-1"]["dispatch"] == "–"
    assert table["webgpu-fast"]["compute"] != "–"
    assert len(page.driver.find_elements(By.CSS_SELECTOR, "#stages svg [aria-label=bar] rect")) == 3 + 5
    assert "is arithmetic" in page.text("#stages")
    assert "software adapter" in page.text("#stages .warnings")
    assert page.table("What ran as webgpu-fast"), "what ran is told without a check too"


def test_tune_finds_a_recipe_that_can_be_used_at_once(page):
    # By a click, all that make sense here would be tried.
    report = page.page.ask("tune", {"engines": ["wasm-1", "wasm-2", "webgpu-fast"], "batch": 4})
    tried = page.table("What was tried")
    assert tried["wasm-1"]["agree"] == "660 of 660"
    assert "software adapter" in tried["webgpu-fast"]["status"]
    best = report["tune"]["recipe"][0]["engine"]
    assert f"use {best}" in page.text("#tune")
    page.driver.execute_script("""
        globalThis.saved = [];
        URL.createObjectURL = (blob) => (globalThis.saved.push(blob), 'blob:none');
        HTMLAnchorElement.prototype.click = function () { globalThis.saved.push(this.download); };
    """)
    for label in ("JavaScript", "JSON"):
        page.driver.find_element(By.XPATH, f"//article[contains(@class, 'recipe')]//button[.='{label}']").click()
        wait_until(lambda: "Saved as recipe-" in page.text("#tune"), "it is saved", 5)
    names, texts = page.page.run("""
        const names = saved.filter((one) => typeof one === 'string');
        return [names, await Promise.all(saved.filter((one) => typeof one !== 'string').map((blob) => blob.text()))];
    """)
    assert names == [f"recipe-{best}.mjs", f"recipe-{best}.json"]
    assert texts[0].startswith("const RECIPE = {")
    assert "export function openModel" in texts[0]
    assert json.loads(texts[1])["engine"] == best
    page.driver.find_element(By.XPATH, "//article[contains(@class, 'recipe')]//button[.='Play on it']").click()
    assert page.driver.execute_script("return document.querySelector('#play select').value") == best
    page.driver.find_element(By.XPATH, "//article[contains(@class, 'recipe')]//button[.='Check it']").click()
    wait_until(lambda: page.page.get("state") == "running", "it is checked", 5)
    page.wait_for("ready", 240)
    assert best in page.races()
    assert page.page.get("report")["tune"] is None, "a check begins a report anew"


def test_a_search_that_is_cancelled_can_be_resumed(page):
    page.click("#tune-ask .ask")
    wait_until(lambda: "wasm-1" in page.text("#tune"), "the first candidate is judged", 60)
    page.click("#tune-ask .cancel")
    page.wait_for("ready", 10)
    assert "cancelled" in page.text("#tune-ask .error")
    assert page.text("#tune-ask .ask") == "Resume"
    assert page.table("What was tried"), "what was found stays"
    report = ask(page, "#tune-ask")
    assert report["tune"]["recipe"]
    assert page.text("#tune-ask .ask") == "Tune"
    page.assert_no_engines()


def test_sweep_draws_and_lists_every_point(page):
    page.page.run(
        "await pyappPage.ask('sweep', { engines: ['wasm-1', 'wasm-2'], batches: [1, 2, 4], widths: [1, 2], budget_s: 60 })"
    )
    assert not page.page.get("error"), page.page.get("error")
    report = page.page.get("report")
    assert len(report["sweep"]) == 2 * 2 * 3
    page.driver.execute_script("document.querySelector('#sweep details').open = true")
    points = page.driver.find_elements(By.CSS_SELECTOR, "#sweep details tbody tr")
    assert len(points) == 12
    assert len(page.driver.find_elements(By.CSS_SELECTOR, "#sweep svg [aria-label=line] path")) == 2
    assert page.table("Variants of the model with fewer bits")["wasm-1-int8"]["agree"].endswith("of 60")
    assert "give Python's answers" in page.text("#sweep")


def test_settings_that_make_no_sense_are_named_where_they_were_asked_and_nothing_is_lost(page):
    before = page.page.get("report"), page.text("#sweep")
    page.page.start("sweep", {"batches": [4, 2]})
    wait_until(lambda: page.page.get("error"), "an error", 5)
    assert "batches are [4, 2]" in page.text("#sweep-ask .error")
    assert (page.page.get("report"), page.text("#sweep")) == before


def test_nothing_breaks_the_content_security_policy(page):
    loud = [entry for entry in page.driver.get_log("browser") if "Content Security Policy" in entry["message"]]
    assert loud == []


@pytest.mark.parametrize(
    ("question", "arguments", "said"),
    [
        ("explain", ["--runs", "4", "--engines", "wasm-1"], "Why does it take so long?"),
        ("sweep", ["--engines", "wasm-1", "--batches", "1,2", "--widths", "1", "--no-precision"], "From which batch size on?"),
        ("tune", ["--engines", "wasm-1,wasm-2", "--batch", "4"], "The fastest right way"),
    ],
)
def test_the_command_line_asks_the_same(dist, tmp_path, question, arguments, said):
    written, module = tmp_path / "report.json", tmp_path / "recipe.mjs"
    more = ["--module", str(module)] if question == "tune" else []
    command = [sys.executable, "-m", "pyapp.cli", question, *arguments, *more, "--gpu", "none", "--json", str(written)]
    done = subprocess.run([*command, "--dist", str(dist)], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"## {said}" in done.stdout
    report = json.loads(written.read_text())
    assert report["stages" if question == "explain" else question]
    if more:
        assert "export function openModel" in module.read_text()


def test_the_command_line_says_what_did_not_run(dist):
    command = [sys.executable, "-m", "pyapp.cli", "explain", "--engines", "webgpu-fast", "--gpu", "none", "--dist", str(dist)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert "not every engine ran" in done.stderr
    assert "WebGPU is not available" in done.stderr
