from dataclasses import replace

import pytest

from pyapp.consistent import contradictions
from pyapp.report import CaseFailure
from tests.unit.test_report_csv import FAILED, REPORT

SUITE, PARITY, RACE, RATIO = REPORT.suites[0], REPORT.parity[0], REPORT.race[0], REPORT.ratios[-1]


@pytest.mark.parametrize("report", [REPORT, FAILED], ids=["whole", "failed"])
def test_our_own_reports_fit(report):
    assert contradictions(report) == []


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
    ],
)
def test_a_contradiction_is_named_with_its_place(change, fault):
    assert contradictions(replace(REPORT, **change)) == [fault]
