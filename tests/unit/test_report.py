import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyapp.report import SCHEMA, ReportError, parse_report
from tests.unit.test_check import Opener, run_check

REPORT = run_check(Opener(), engines=["wasm-1", "wasm-2"])


def changed(path, value):
    data = json.loads(REPORT.to_json())
    target = data
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    return json.dumps(data)


def test_round_trip():
    assert parse_report(REPORT.to_json()) == REPORT
    assert parse_report(REPORT.to_json(indent=2)) == REPORT


def test_a_report_from_before_there_were_fallbacks_is_read():
    data = json.loads(REPORT.to_json())
    for engine in data["engines"]:
        if engine["actual"]:
            del engine["actual"]["fallbacks"]
    assert parse_report(json.dumps(data)) == REPORT


def test_the_fields_that_the_format_promises():
    data = json.loads(REPORT.to_json())
    assert data["schema"] == SCHEMA
    assert {"name", "requested", "actual", "create_ms", "first_run_ms"} <= data["engines"][0].keys()
    assert {"provider", "build", "runner", "threads", "nodes"} <= data["engines"][0]["actual"].keys()
    assert {"engine", "suite", "cases", "agree", "max_abs_diff", "min_margin"} <= data["parity"][0].keys()
    assert {"engine", "runs", "warmup", "p50_ms", "p95_ms", "samples_ms"} <= data["race"][0].keys()
    assert {"numerator", "denominator", "p50", "p95", "low", "high", "reason"} <= data["ratios"][0].keys()
    for section in ("engines", "suites", "parity", "race", "ratios"):
        assert all({"valid", "warnings"} <= entry.keys() for entry in data[section])
    assert {"valid", "warnings"} <= data["environment"].keys()


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        (["race", 1, "p50_ms"], "fast", "$.race[1].p50_ms"),
        (["race", 0, "samples_ms", 3], None, "$.race[0].samples_ms[3]"),
        (["race", 0, "runs"], True, "$.race[0].runs"),
        (["engines", 0, "actual", "nodes", "CPUExecutionProvider"], "six", "$.engines[0].actual.nodes"),
        (["engines"], {}, "$.engines"),
        (["settings", "extra"], 1, "$.settings"),
        (["schema"], "pyapp-report/999", "$.schema"),
    ],
)
def test_a_fault_is_refused_with_its_place(path, value, place):
    with pytest.raises(ReportError) as caught:
        parse_report(changed(path, value))
    assert any(place in fault for fault in caught.value.faults), caught.value.faults


def test_a_missing_field_is_named():
    data = json.loads(REPORT.to_json())
    del data["race"][0]["p95_ms"]
    with pytest.raises(ReportError, match="p95_ms"):
        parse_report(json.dumps(data))


@pytest.mark.parametrize("text", ["", "nonsense", "[]", "3", '{"schema": NaN}', "{}"])
def test_what_is_no_report_is_refused(text):
    with pytest.raises(ReportError, match="not a valid report"):
        parse_report(text)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_any_other_json_is_refused_and_nothing_else_raised(data):
    with pytest.raises(ReportError):
        parse_report(json.dumps({"schema": SCHEMA, "engines": data}))
