"""What further questions found is in every form of a report, and a report that contradicts itself about it is refused."""

import json
from dataclasses import replace

import pytest
from asked import ASKED, CANDIDATE, CHOICE, CROSSOVER, POINT, PRECISION, STAGES, TUNE

from pyapp.foreign import contradictions, read_foreign
from pyapp.report import StageTime, merged, parse_report
from pyapp.summary import summarize
from pyapp.tables import report_markdown
from tests.unit.test_report_csv import REPORT, read, values


def test_it_survives_json():
    assert contradictions(ASKED) == []
    assert read_foreign(ASKED.to_json()) == ASKED


def test_a_report_from_before_these_questions_is_still_read():
    data = json.loads(REPORT.to_json())
    for name in ("stages", "sweep", "crossover", "precision", "tune"):
        del data[name]
    assert parse_report(json.dumps(data)) == REPORT


def test_every_number_is_in_the_csv_under_its_name():
    rows = read(ASKED)
    assert values(rows, section="stages", engine="wasm-1", name="sum_ms") == [1.75]
    assert values(rows, section="stages.stages", engine="wasm-1", suite="compute", name="p50_ms") == [1.5]
    assert values(rows, section="sweep", engine="wasm-1", suite="x1, batch 4", name="per_state_ms") == [1.0]
    assert values(rows, section="crossover", engine="webgpu-fast", against="wasm-1", suite="x2", name="batch") == [5.5]
    assert values(rows, section="precision", engine="wasm-1-int8", against="wasm-1", name="ratio") == [0.5]
    assert values(rows, section="tune.candidates", engine="wasm-2", name="p95_ms") == [0.7]
    assert values(rows, section="tune.recipe", engine="wasm-2", suite="single", name="low") == [0.48]
    assert values(rows, section="tune", name="seconds") == [12.5]


def test_every_answer_is_in_the_markdown_and_in_a_sentence():
    text = report_markdown(ASKED)
    for heading in (
        "Same answers as Python?",
        "Why does it take so long?",
        "From which batch size on?",
        "The fastest right way",
    ):
        assert f"## {heading}" in text
    topics = {sentence.topic: sentence.text for sentence in summarize(ASKED)}
    assert "of 1.8 ms, 1.5 ms is arithmetic; 0.25 ms is getting the input there" in topics["stages"]
    assert "overtakes wasm-1 at batch 5.5 (95 % interval 4.0 to 7.0)" in topics["crossover"]
    assert "takes 0.50 times as long as wasm-1" in topics["precision"]
    assert "use wasm-2: 0.5 ms at the median (0.48 ms to 0.52 ms)" in topics["tune"]


def test_a_further_question_adds_its_sections_and_engines():
    bare = replace(REPORT, engines=REPORT.engines[:1])
    part = replace(ASKED, engines=[replace(REPORT.engines[1], name="new"), REPORT.engines[0]], race=[], sweep=[], crossover=[])
    found = merged(bare, part)
    assert [entry.name for entry in found.engines] == [REPORT.engines[0].name, "new"]
    assert found.race == bare.race, "what was known stays"
    assert (found.stages, found.tune, found.sweep) == ([STAGES], TUNE, [])
    assert merged(None, part) == part
    again = merged(ASKED, replace(part, stages=[replace(STAGES, engine="wasm-9")], tune=None))
    assert [entry.engine for entry in again.stages] == ["wasm-9"], "asked again, the new answer counts"
    assert again.tune == TUNE


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"stages": [STAGES, STAGES]}, "'wasm-1' is there 2 times @ $.stages"),
        ({"stages": [replace(STAGES, sum_ms=9.0)]}, "the stages add up to 1.75, not 9 @ $.stages[0].sum_ms"),
        ({"stages": [replace(STAGES, total_ms=0.0)]}, "0 is no time @ $.stages[0].total_ms"),
        (
            {"stages": [replace(STAGES, stages=[StageTime(stage="nap", p50_ms=1.75, p95_ms=2, n=1)])]},
            "stage 'nap' is none of upload, dispatch, compute, wait, readback @ $.stages[0].stages[0].stage",
        ),
        ({"precision": [replace(PRECISION, agree=61)]}, "61 of 60 cases agree @ $.precision[0].agree"),
        (
            {"precision": [replace(PRECISION, changes_action=True)]},
            "it changes an action, but all 60 agree @ $.precision[0].changes_action",
        ),
        ({"precision": [replace(PRECISION, ratio=None)]}, "some of its numbers are null and some are not @ $.precision[0]"),
        ({"precision": [replace(PRECISION, reason="why")]}, "a number and a reason @ $.precision[0].reason"),
        ({"tune": replace(TUNE, candidates=[CANDIDATE] * 2)}, "'wasm-2' is there 2 times @ $.tune.candidates"),
        ({"tune": replace(TUNE, recipe=[CHOICE] * 2)}, "'single' is there 2 times @ $.tune.recipe"),
        (
            {"tune": replace(TUNE, recipe=[replace(CHOICE, engine="wasm-3")])},
            "'wasm-3' is no right candidate @ $.tune.recipe[0].engine",
        ),
        (
            {"tune": replace(TUNE, candidates=[replace(CANDIDATE, status="wrong")])},
            "'wasm-2' is no right candidate @ $.tune.recipe[0].engine",
        ),
        ({"tune": replace(TUNE, recipe=[replace(CHOICE, low=-1.0)])}, "0.5 (-1 to 0.52) is no time @ $.tune.recipe[0].ms"),
        ({"tune": replace(TUNE, candidates=[replace(CANDIDATE, runs=0)])}, "a time with 0 runs @ $.tune.candidates[0].p50_ms"),
        ({"sweep": [replace(POINT, p50_ms=None)]}, "no time where the status is 'measured' @ $.sweep[0].p50_ms"),
        ({"crossover": [replace(CROSSOVER, low=6.0)]}, "[6.0, 5.5, 7.0] is no interval @ $.crossover[0].low"),
    ],
)
def test_a_contradiction_is_named_with_its_place(change, fault):
    assert contradictions(replace(ASKED, **change)) == [fault]
