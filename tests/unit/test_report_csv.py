import csv
import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyapp.breakout.loop import STAGES, StageSummary
from pyapp.engine import EngineError
from pyapp.export import COLUMNS, report_csv
from pyapp.sections import loop_entries
from tests.unit.test_check import Opener, run_check

LOOP = loop_entries(
    "wasm-1",
    [StageSummary(stage, 1.5 + place, 2.5 + place, 40) for place, stage in enumerate(STAGES)],
    missed_frames=2,
    frames=160,
    late=1,
    software=False,
)
REPORT = replace(run_check(Opener(), engines=["wasm-1", "wasm-2"]), loop=LOOP)
FAILED = run_check(
    Opener(
        {"wasm-2": {"fail_after": 15}}, {"webgpu-stock": EngineError("NoAdapter", "there is no GPU", "Use another machine.")}
    ),
    engines=["wasm-1", "wasm-2", "webgpu-stock"],
)


def read(report):
    head, *rows = csv.reader(io.StringIO(report_csv(report), newline=""))
    assert tuple(head) == COLUMNS
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows]


def named(report, name):
    """Rename an engine wherever a report names it."""
    old = report.engines[0].name
    return replace(
        report,
        engines=[replace(entry, name=name if entry.name == old else entry.name) for entry in report.engines],
        race=[replace(entry, engine=name if entry.engine == old else entry.engine) for entry in report.race],
        parity=[replace(entry, engine=name if entry.engine == old else entry.engine) for entry in report.parity],
        ratios=[replace(entry, denominator=name if entry.denominator == old else entry.denominator) for entry in report.ratios],
    )


def values(rows, **about):
    return [float(row["value"]) for row in rows if all(row[column] == wanted for column, wanted in about.items())]


def test_the_loop_has_a_row_for_every_stage_and_number():
    rows = [row for row in read(REPORT) if row["section"] == "loop"]
    assert {row["engine"] for row in rows} == {"wasm-1"}
    assert [float(row["value"]) for row in rows if row["name"] == "p50_ms"] == [entry.p50_ms for entry in LOOP]
    assert {row["name"] for row in rows} >= {"p50_ms", "p95_ms", "n", "frames", "missed_frames", "late_decisions"}
    assert {row["suite"] for row in rows} == set(STAGES)


@pytest.mark.parametrize("report", [REPORT, FAILED], ids=["whole", "failed"])
def test_every_number_comes_back(report):
    rows = read(report)
    for lane in report.race:
        about = {"section": "race", "engine": lane.engine}
        assert values(rows, **about, name="samples_ms") == lane.samples_ms
        assert values(rows, **about, name="warmup_ms") == lane.warmup_ms
        assert values(rows, **about, name="p50_ms") == ([] if lane.p50_ms is None else [lane.p50_ms])
        assert values(rows, **about, name="valid") == [lane.valid]
    for entry in report.parity:
        about = {"section": "parity", "engine": entry.engine, "suite": entry.suite}
        assert values(rows, **about, name="action") == entry.action
        assert values(rows, **about, name="agree") == [entry.agree]
        for case in (0, entry.cases - 1):
            scores = [values(rows, **about, index=str(case), name=f"q_values[{output}]")[0] for output in range(4)]
            assert scores == entry.q_values[case]
    for ratio in report.ratios:
        about = {"section": "ratios", "engine": ratio.numerator, "against": ratio.denominator}
        assert values(rows, **about, name="p95_high") == ([] if ratio.p95_high is None else [ratio.p95_high])
    assert values(rows, section="engines", engine="wasm-1", name="actual.threads") == [1]
    assert values(rows, section="environment", name="cores") == [4]
    assert values(rows, section="settings", name="runs") == [20]


def test_the_value_is_always_a_number_and_lines_end_as_the_rfc_says():
    text = report_csv(FAILED)
    assert all(line.rsplit(",", 1)[1] for line in text.split("\r\n")[:-1])
    assert text.count("\n") == text.count("\r\n")
    assert values(read(FAILED), engine="webgpu-stock", name="valid")


@pytest.mark.parametrize(
    "name", ['<img src=x onerror="1">', "a, b", 'so "called"', "two\nlines", "two\r\nlines", "naïve 模型", ""]
)
def test_any_name_comes_back(name):
    rows = read(named(REPORT, name))
    assert len(values(rows, section="race", engine=name, name="samples_ms")) == 20
    assert values(rows, section="ratios", against=name, name="p50")


@pytest.mark.parametrize("name", ["=1+1", "+1", "-2", "@SUM(A1)", "\t=1", "\r=1", "\n=1"])
def test_a_name_that_is_a_formula_is_not_one(name):
    rows = read(named(REPORT, name))
    assert {row["engine"] for row in rows} >= {f"'{name}"}
    assert not [cell for row in rows for column in COLUMNS[:-1] if (cell := row[column]).startswith(tuple("=+-@\t\r\n"))]


def test_a_negative_number_stays_one():
    entry = replace(REPORT.parity[0], q_values=[[-1.5, 0.0, 1.0, 2.0], *REPORT.parity[0].q_values[1:]])
    rows = read(replace(REPORT, parity=[entry]))
    assert values(rows, section="parity", index="0", name="q_values[0]") == [-1.5]


@given(st.text())
def test_no_name_breaks_the_table(name):
    rows = read(named(REPORT, name))
    guarded = f"'{name}" if name.startswith(tuple("=+-@\t\r\n")) else name
    assert len(values(rows, section="race", engine=guarded, name="samples_ms")) in (20, 40)
    assert len(rows) == len(read(REPORT))
