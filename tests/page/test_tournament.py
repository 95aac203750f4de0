"""Many games: the same scores, and the same games as Python's; and which engine to ship."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest
from selenium.webdriver.common.by import By

from .visit import wait_until


@pytest.fixture(scope="module")
def page(visit):
    with visit("?engines=wasm-1,wasm-2&runs=20&warmup=2", gpu="none") as page:
        yield page


def choose(page, games, epsilon):
    script = """
        document.querySelector('#tournament-games').value = arguments[0];
        document.querySelector('#tournament-epsilon').value = arguments[1];
    """
    page.driver.execute_script(script, games, epsilon)


def played(page):
    """Count the finished games of the table, of all engines."""
    rows = page.driver.find_elements(By.CSS_SELECTOR, "#tournament table")
    return sum(int(row["games"]) for row in page.table("Scores by engine").values()) if rows else 0


def test_games_can_be_held_ended_and_gone_on_with(page):
    choose(page, 2, "0.01")
    page.click("#tournament-ask .ask")
    wait_until(lambda: "points after" in page.text("#tournament-ask .progress"), "games are played", 60)
    page.click("#tournament-ask .pause")
    time.sleep(0.5)
    held = page.page.get("progress")
    time.sleep(1)
    assert page.page.get("progress") == held
    assert page.text("#tournament-ask .pause") == "Resume"
    page.click("#tournament-ask .pause")
    wait_until(lambda: played(page) > 0, "a game is finished", 60)
    page.click("#tournament-ask .cancel")
    page.wait_for("ready", 10)
    kept = played(page)
    assert 0 < kept < 4
    assert page.text("#tournament-ask .ask") == "Go on"
    assert sum(entry["games"] for entry in page.page.get("report")["tournament"]) == kept
    page.click("#tournament-ask .ask")
    wait_until(lambda: page.page.get("state") == "running", "it goes on", 5)
    page.wait_for("ready", 120)
    assert played(page) == 4
    same = page.table("The same games as Python's")
    assert [same[name]["departures"] for name in ("wasm-1", "wasm-2")] == ["✓ 0", "✓ 0"]
    assert "plays 2 games as Python does, decision by decision" in page.text("#tournament")
    wait_until(lambda: page.driver.find_elements(By.CSS_SELECTOR, "#tournament svg[aria-label^='How the scores']"), "charts", 5)
    page.driver.execute_script("document.querySelector('#tournament > details').open = true")
    wait_until(lambda: page.driver.find_elements(By.CSS_SELECTOR, "#tournament > details table"), "every game is listed", 5)
    assert page.table("Every game")["wasm-1, seed 1"]["same as Python?"] == "yes"
    page.assert_no_engines()


def test_the_verdict_cites_games_and_times_and_a_saved_report_shows_the_same(page):
    report = page.page.ask("check", {"engines": ["wasm-1", "wasm-2"], "runs": 20, "warmup": 2})
    wait_until(lambda: page.driver.find_elements(By.CSS_SELECTOR, "#verdict table"), "the verdict", 10)
    assert page.text("#verdict .headline").startswith(("Ship wasm-", "It is open"))
    assert "660" not in page.text("#verdict .headline")
    criteria = page.table("Engines by criterion")["wasm-1"]
    assert "60 of 60 actions of states" in criteria["answers"]
    assert criteria["scores"].startswith("? not known")
    assert "Play at least 30 games" in page.text("#verdict")
    assert report["tournament"] == [], "a check begins a report anew"
    again = page.page.ask("tournament", {"engines": ["wasm-1"], "seeds": [3]})
    assert [game["seed"] for game in again["tournament"][0]["played"]] == [3]
    assert again["parity"], "further questions add to the report"
    wait_until(lambda: "Mean score" in page.table("Engines by criterion")["wasm-1"]["scores"], "the games count", 10)
    before = page.text("#tournament table"), page.text("#verdict table")
    page.page.run(
        """
        const file = new File([argument], 'saved.json', { type: 'application/json' });
        const files = new DataTransfer();
        files.items.add(file);
        const input = document.querySelector('#report-file');
        input.files = files.files;
        input.dispatchEvent(new Event('change'));
        """,
        json.dumps(again),
    )
    wait_until(lambda: "saved.json is open" in page.text("#report"), "it is open", 20)
    wait_until(lambda: page.driver.find_elements(By.CSS_SELECTOR, "#verdict table"), "the verdict", 10)
    assert (page.text("#tournament table"), page.text("#verdict table")) == before


def test_settings_that_make_no_sense_are_named_where_they_were_asked(page):
    choose(page, 1001, "0")
    page.click("#tournament-ask .ask")
    wait_until(lambda: "games is 1001; give a number from 1 to 1000" in page.text("#tournament-ask .error"), "an error", 5)
    assert played(page) == 1


def test_nothing_breaks_the_content_security_policy(page):
    loud = [entry for entry in page.driver.get_log("browser") if "Content Security Policy" in entry["message"]]
    assert loud == []


def test_the_command_line_plays_the_same(dist, tmp_path):
    written = tmp_path / "report.json"
    command = [sys.executable, "-m", "pyapp.cli", "tournament", "--games", "1", "--engines", "wasm-1", "--gpu", "none"]
    command += ["--epsilon", "0", "--seed", "2", "--json", str(written), "--dist", str(dist)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "wasm-1 plays 1 game as Python does, decision by decision." in done.stdout
    [entry] = json.loads(written.read_text())["tournament"]
    assert (entry["compared"], entry["departures"], entry["played"][0]["opening"]) == (1, 0, 20)
