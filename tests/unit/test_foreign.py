import json
from dataclasses import replace

import pytest

from pyapp.breakout.loop import STAGES
from pyapp.foreign import MAX_DEPTH, contradictions, read_foreign
from pyapp.report import CaseFailure, ReportError
from tests.unit.test_report_csv import FAILED, REPORT

SUITE, PARITY, RACE, RATIO, LOOP = REPORT.suites[0], REPORT.parity[0], REPORT.race[0], REPORT.ratios[-1], REPORT.loop[-1]


@pytest.mark.parametrize("report", [REPORT, FAILED], ids=["whole", "failed"])
def test_our_own_reports_fit(report):
    assert contradictions(report) == []
    assert read_foreign(report.to_json(indent=1)) == report


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"engines": [REPORT.engines[0]] * 2}, "'wasm-1' is there 2 times @ $.engines"),
        ({"race": [RACE, RACE]}, f"'{RACE.engine}' is there 2 times @ $.race"),
        ({"suites": [replace(SUITE, margin=[])]}, "0 values for 6 cases @ $.suites[0].margin"),
        ({"parity": [replace(PARITY, action=[1, 2, 3])]}, f"3 values for {PARITY.cases} cases @ $.parity[0].action"),
        ({"parity": [replace(PARITY, agree=7000)]}, f"7000 of {PARITY.cases} cases agree @ $.parity[0].agree"),
        ({"parity": [replace(PARITY, disagreements=[-1])]}, f"case -1 of {PARITY.cases} @ $.parity[0].disagreements"),
        (
            {"parity": [replace(PARITY, failures=[CaseFailure(case=9000, failure="all-zero")])]},
            f"case 9000 of {PARITY.cases} @ $.parity[0].failures",
        ),
        ({"race": [replace(RACE, p50_ms=None)]}, "no time with 20 runs @ $.race[0].p50_ms"),
        ({"race": [replace(RACE, samples_ms=[1.0])]}, "1 samples of 20 runs @ $.race[0].samples_ms"),
        ({"race": [replace(RACE, blocks=[])]}, "0 of 20 runs @ $.race[0].blocks"),
        ({"race": [replace(RACE, samples_ms=[-1.0, *RACE.samples_ms[1:]])]}, "a negative time @ $.race[0].samples_ms"),
        ({"ratios": [replace(RATIO, low=None)]}, "some of its numbers are null and some are not @ $.ratios[0]"),
        ({"loop": [LOOP, LOOP]}, "'decision on wasm-1' is there 2 times @ $.loop"),
        ({"loop": [replace(LOOP, stage="sleep")]}, f"stage 'sleep' is none of {', '.join(STAGES)} @ $.loop[0].stage"),
        ({"loop": [replace(LOOP, p50_ms=9.0)]}, "P50 is 9 and P95 8.5 @ $.loop[0].p95_ms"),
        ({"loop": [replace(LOOP, missed_frames=-1)]}, "-1 is negative @ $.loop[0].missed_frames"),
    ],
)
def test_a_contradiction_is_named_with_its_place(change, fault):
    assert contradictions(replace(REPORT, **change)) == [fault]


def test_a_contradiction_is_refused():
    with pytest.raises(ReportError) as caught:
        read_foreign(replace(REPORT, suites=[replace(SUITE, margin=[])]).to_json())
    assert caught.value.faults == ["0 values for 6 cases @ $.suites[0].margin"]


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)])
def test_deep_nesting_is_refused_before_it_is_read(text):
    with pytest.raises(ReportError, match="nested more than 16 deep"):
        read_foreign(text)


def test_brackets_in_texts_do_not_count():
    engine = replace(REPORT.engines[0], warnings=['\\"[[[[[[[[[[[[[[[[[[[[["{{{{{{{{{{{{{{{{{{{{{{', "\\"])
    report = replace(REPORT, engines=[engine, *REPORT.engines[1:]])
    assert read_foreign(report.to_json()) == report


def test_text_without_end_is_refused_in_time():
    with pytest.raises(ReportError, match="no JSON"):
        read_foreign('"' + '\\"' * 1_000_000)


def test_a_number_that_json_cannot_say_is_refused():
    text = REPORT.to_json().replace('"cores": 4, "memory_gib": null', '"cores": 4, "memory_gib": 1e999')
    with pytest.raises(ReportError, match="too large"):
        read_foreign(text)


def test_a_report_from_before_the_loop_is_still_read():
    data = json.loads(REPORT.to_json())
    del data["loop"]
    assert read_foreign(json.dumps(data)) == replace(REPORT, loop=[])
