import csv
import io
import json
from dataclasses import replace

import pytest

from pyapp.breakout.loop import STAGES
from pyapp.export import report_csv
from pyapp.foreign import MAX_DEPTH, MAX_HEAT, contradictions, read_foreign
from pyapp.report import (
    AgreementEntry,
    CaseFailure,
    FaultEntry,
    FaultStep,
    HeatMap,
    ModelEntry,
    PlacedNode,
    PlacementEntry,
    ReportError,
    Tensor,
)
from pyapp.tables import report_markdown
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


OUTPUT = AgreementEntry(
    engine="wasm-1", suite="cases", output="y", dtype="float32", criterion="close", rtol=1e-3, atol=1e-4, cases=2, agree=2,
    close=2, passed=True, max_abs=0.0, max_rel=0.0, max_ulp=0.0, cosine=1.0, snr_db=None,
    worst_case=0, worst_index=[0, 1], failures=[],
)  # fmt: skip
PLACED = PlacementEntry(
    engine="wasm-1",
    strict=False,
    nodes=[PlacedNode(name="conv", op="Conv", provider="CPUExecutionProvider", shape="float[1,2]", ms=0.5)],
    copies=0,
    reason=None,
)
STEP = FaultStep(node="conv", op="Conv", output="y", shape=[1, 2], max_abs=0.5, max_rel=0.1, close=False, failure=None)
FAULT = FaultEntry(
    engine="webgpu-stock", reference="wasm-1", suite="cases", case=0, rtol=1e-3, atol=1e-4, kind="source", node="conv",
    op="Conv", compared=1, steps=[STEP], alone=STEP,
    map=HeatMap(height=1, width=2, values=[[0.5, None]]), warnings=["Conv errs."],
)  # fmt: skip
OWN = replace(
    REPORT,
    model=ModelEntry(
        name="<b>mine</b>.onnx", size=100, opset=17, parameters=4, operators={"Conv": 1},
        inputs=[Tensor(name="x", dtype="float32", dims=["N", "?", "4"])],
        outputs=[Tensor(name="y", dtype="float32", dims=None)],
        sizes={"N": 1}, fixes=["a fix"], cases="made", reference="wasm-1", rtol=1e-3, atol=1e-4,
    ),
    suites=[replace(REPORT.suites[0], suite="cases", q_values=[], action=[], margin=[])],
    parity=[replace(REPORT.parity[0], suite="cases", q_values=[], action=[], min_margin=None, could_flip=[])],
    agreement=[OUTPUT],
    placement=[PLACED],
    faults=[FAULT],
)  # fmt: skip


def test_a_report_of_ones_own_model_fits_and_is_written_in_every_form():
    assert contradictions(OWN) == []
    assert read_foreign(OWN.to_json()) == OWN
    text = report_markdown(OWN)
    for part in (
        "Model: &lt;b>mine&lt;/b>.onnx",
        "Same outputs as the reference",
        "Where did it run",
        "Where does it go wrong",
    ):
        assert part in text
    rows = list(csv.DictReader(io.StringIO(report_csv(OWN), newline="")))
    assert {"model", "agreement", "placement.nodes", "faults.steps"} <= {row["section"] for row in rows}
    [share] = [row for row in rows if row["section"] == "agreement" and row["name"] == "cosine"]
    assert (share["engine"], share["suite"], share["value"]) == ("wasm-1", "cases: y", "1.0")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"agreement": [OUTPUT, OUTPUT]}, "'y of cases on wasm-1' is there 2 times @ $.agreement"),
        (
            {"agreement": [replace(OUTPUT, criterion="luck")]},
            "criterion 'luck' is none of argmax, close @ $.agreement[0].criterion",
        ),
        ({"agreement": [replace(OUTPUT, agree=3)]}, "3 of 2 cases @ $.agreement[0].agree"),
        ({"agreement": [replace(OUTPUT, worst_case=2)]}, "case 2 of 2 @ $.agreement[0].worst_case"),
        ({"agreement": [replace(OUTPUT, max_abs=-1.0)]}, "-1 is negative @ $.agreement[0].max_abs"),
        ({"agreement": [replace(OUTPUT, close=1)]}, "passed with 1 of 2 cases within the tolerance @ $.agreement[0].passed"),
        ({"placement": [replace(PLACED, nodes=[])]}, "neither nodes nor a reason why there are none @ $.placement[0].reason"),
        ({"placement": [replace(PLACED, copies=2)]}, "2 copies among 1 nodes @ $.placement[0].copies"),
        ({"placement": [replace(PLACED, nodes=[replace(PLACED.nodes[0], ms=-1.0)])]}, "a negative time @ $.placement[0].nodes"),
        ({"faults": [replace(FAULT, kind="luck")]}, "kind 'luck' is none of source, inherited, fused, none @ $.faults[0].kind"),
        ({"faults": [replace(FAULT, compared=0)]}, "1 steps of 0 values @ $.faults[0].steps"),
        (
            {"faults": [replace(FAULT, map=HeatMap(height=1, width=1, values=[[1.0], []]))]},
            "rows of different lengths @ $.faults[0].map.values",
        ),
        (
            {"faults": [replace(FAULT, map=HeatMap(height=1, width=1, values=[[1.0] * (MAX_HEAT + 1)]))]},
            f"more than {MAX_HEAT} parts @ $.faults[0].map.values",
        ),
    ],
)
def test_a_contradiction_about_ones_own_model_is_named_with_its_place(change, fault):
    assert contradictions(replace(OWN, **change)) == [fault]


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
