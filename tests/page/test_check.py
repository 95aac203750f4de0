"""The whole check as a visitor runs it: default engines, by a click, on a software GPU."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest

from pyapp.report import parse_report

from .conftest import Checked
from .visit import Visit, engine, section

RUNS = 10
SOFTWARE_STRESS = 60
GPU_ENGINES = ["webgpu-stock", "webgpu-fast"]


@pytest.fixture(scope="module")
def page(checked: Checked) -> Visit:
    return checked.visit


@pytest.fixture(scope="module")
def report(checked: Checked) -> dict[str, Any]:
    return checked.report


@pytest.fixture(scope="module")
def names(report) -> list[str]:
    return [entry["name"] for entry in report["engines"]]


def number(text: str) -> float:
    found = re.search(r"\d+(\.\d+)?(e[+-]?\d+)?", text)
    assert found, f"no number in {text!r}"
    return float(found[0])


def test_the_default_engines_ran(names):
    assert names[0] == "wasm-1"
    assert re.fullmatch(r"wasm-([2-9]|\d\d)", names[1]), f"wasm-N became {names[1]}"
    assert names[2:] == GPU_ENGINES


def test_every_engine_gives_pythons_actions(report, names):
    for name in names:
        states = section(report, "parity", f"states on {name}")
        assert (states["agree"], states["cases"], states["passed"]) == (60, 60, True), states["warnings"]
        assert states["max_abs_diff"] < 1e-4
        stress = section(report, "parity", f"stress on {name}")
        asked = SOFTWARE_STRESS if name in GPU_ENGINES else 600
        # Where the margin is smaller than float32's error, rounding may choose: that is no disagreement of the model.
        assert stress["cases"] == asked
        assert stress["agree"] == asked - len(stress["explained"])
        assert stress["passed"], stress["warnings"]


def test_the_answers_on_the_page_are_the_reports(page, report):
    shown = page.parities()
    assert len(shown) == len(report["parity"])
    for entry in report["parity"]:
        row = shown[f"{entry['suite']} on {entry['engine']}"]
        assert row["actions agree"] == f"✓ {entry['agree']} / {entry['cases']}"
        for column, key in (("max |ΔQ|", "max_abs_diff"), ("mean |ΔQ|", "mean_abs_diff"), ("smallest margin", "min_margin")):
            assert math.isclose(number(row[column]), entry[key], rel_tol=0.06), (column, row[column], entry[key])


def test_requested_and_actual_are_on_the_page(page, report, names):
    for name in names:
        shown = page.table(f"What ran as {name}")
        entry = engine(report, name)
        for key in ("provider", "build", "runner", "threads"):
            assert shown[key] == {"requested": str(entry["requested"][key]), "actual": str(entry["actual"][key])}
        for provider, count in entry["actual"]["nodes"].items():
            assert f"{provider.removesuffix('ExecutionProvider')}: {count}" in shown["nodes run by"]["actual"]
        assert number(shown["created in"]["actual"]) == pytest.approx(entry["create_ms"], rel=0.01)
        assert number(shown["first run"]["actual"]) == pytest.approx(entry["first_run_ms"], rel=0.01)
    for name in GPU_ENGINES:
        assert "software GPU" in page.table(f"What ran as {name}")["adapter"]["actual"]


def test_what_ran_is_what_was_asked_for(report, names):
    nodes = {name: engine(report, name)["actual"]["nodes"] for name in names}
    assert nodes["wasm-1"].keys() == nodes[names[1]].keys() == {"CPUExecutionProvider"}
    assert nodes["webgpu-stock"].keys() == nodes["webgpu-fast"].keys() == {"WebGpuExecutionProvider"}
    assert all(count > 0 for counts in nodes.values() for count in counts.values())
    assert engine(report, names[1])["actual"]["threads"] == int(names[1].removeprefix("wasm-"))
    assert engine(report, names[1])["thread_sweep"]
    assert [engine(report, name)["actual"]["build"] for name in GPU_ENGINES] == ["jspi", "jspi"]
    fast = engine(report, "webgpu-fast")["actual"]
    assert (fast["runner"], fast["fallbacks"]) == ("fast: capture + nudge", [])


def test_everyone_ran_as_often_as_asked(page, report, names):
    assert [entry["engine"] for entry in report["race"]] == names
    shown = page.races()
    for entry in report["race"]:
        assert entry["runs"] == len(entry["samples_ms"]) == sum(entry["blocks"]) == RUNS
        assert len(entry["warmup_ms"]) == entry["warmup"] == 2
        assert min(entry["samples_ms"]) > 0
        row = shown[entry["engine"]]
        assert row["n"] == str(RUNS)
        for column, key in (("P50", "p50_ms"), ("P95", "p95_ms"), ("mean", "mean_ms"), ("min", "min_ms"), ("max", "max_ms")):
            assert number(row[column]) == pytest.approx(entry[key], rel=0.01), column
        assert row["clock step"] == "5 µs"


def test_a_software_gpus_time_is_shown_and_never_compared(page, report, names):
    for name in GPU_ENGINES:
        race = section(report, "race", name)
        assert not race["valid"]
        assert any("software adapter" in warning for warning in race["warnings"])
    pairs = [("webgpu-stock", "wasm-1"), ("webgpu-fast", "wasm-1"), ("webgpu-fast", "webgpu-stock")]
    assert [(ratio["numerator"], ratio["denominator"]) for ratio in report["ratios"][:3]] == pairs
    for ratio in report["ratios"][:3]:
        assert ratio["p50"] is ratio["low"] is ratio["high"] is ratio["p95"] is None
        assert "software adapter" in ratio["reason"]
        assert f"{ratio['numerator']} / {ratio['denominator']}: no ratio" in page.text("#faster")
    assert "software adapter" in page.text("#faster .ratio.none")


def test_the_threads_are_compared_with_an_interval(page, report, names):
    [found] = [ratio for ratio in report["ratios"] if (ratio["numerator"], ratio["denominator"]) == (names[1], "wasm-1")]
    assert found["low"] <= found["p50"] <= found["high"]
    assert f"{names[1]} takes {found['p50']:.2f} times as long as wasm-1" in page.text("#faster")
    assert f"{found['low']:.2f} to {found['high']:.2f}" in page.text("#faster")


def test_the_report_is_one(report):
    read = parse_report(json.dumps(report))
    assert json.loads(read.to_json()) == report
    assert read.environment.valid
    assert read.environment.cross_origin_isolated
    assert read.settings.runs == RUNS
    assert {suite.suite: suite.cases for suite in read.suites} == {"states": 60, "stress": 600}


def test_every_stage_of_the_boot_has_a_name_and_a_time(page):
    shown = page.text("#boot").splitlines()
    for stage in ("Python", "packages", "import", "states"):
        assert any(stage in line for line in shown), shown
    assert not page.has("#boot .running")


def test_the_browser_has_nothing_to_complain_of(checked):
    assert [entry for entry in checked.log if entry["level"] == "SEVERE"] == []
    assert [entry for entry in checked.log if "Content Security Policy" in entry["message"]] == []


def test_no_engine_is_left_running(page):
    page.assert_no_engines()


def test_nothing_leaves_the_site_unasked(checked):
    assert checked.asked.hosts - checked.asked_by_blank.hosts == set()
    # What a visitor asks for does go out, and this is how it would have been seen.
    checked.visit.page.evaluate("from js import fetch\nawait fetch('https://outside.example/')")
    assert "outside.example" in checked.asked.hosts
