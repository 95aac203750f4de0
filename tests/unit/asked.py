"""A report in which every question has been asked."""

from dataclasses import replace

from pyapp import report as r
from tests.unit.test_report_csv import REPORT

STAGES = r.StagesEntry(
    engine="wasm-1",
    stages=[r.StageTime(stage=name, p50_ms=ms, p95_ms=2 * ms, n=50) for name, ms in (("upload", 0.25), ("compute", 1.5))],
    sum_ms=1.75,
    total_ms=1.8,
    total_n=50,
    compute_from="a test",
    floor_ms=None,
)
POINT = r.SweepEntry(
    engine="wasm-1", width=1, batch=4, status="measured", runs=10, blocks=[1] * 10, p50_ms=4.0, p95_ms=5.0, per_state_ms=1.0,
    per_state_p95_ms=1.25, agree=8, cases=8, passed=True, max_abs_diff=1e-6,
)  # fmt: skip
CROSSOVER = r.CrossoverEntry(
    numerator="webgpu-fast", denominator="wasm-1", width=2, answer="crosses", batch=5.5, low=4.0, high=7.0, first=1, last=256,
    points=9, reason=None,
)  # fmt: skip
PRECISION = r.PrecisionEntry(
    engine="wasm-1-int8", base="wasm-1", agree=60, cases=60, max_abs_diff=0.07, changes_action=False, p50_ms=0.9, p95_ms=1.1,
    ratio=0.5, low=0.4, high=0.6, reason=None,
)  # fmt: skip
CANDIDATE = r.Candidate(
    engine="wasm-2", simplicity=1, status="raced", reason=None, agree=660, cases=660, max_abs_diff=1e-6, runs=140, rungs=2,
    p50_ms=0.5, p95_ms=0.7,
)  # fmt: skip
CHOICE = r.Choice(purpose="single", engine="wasm-2", batch=1, ms=0.5, low=0.48, high=0.52, ties=[])
TUNE = r.Tune(candidates=[CANDIDATE], recipe=[CHOICE], seconds=12.5)
ASKED = replace(
    REPORT, stages=[STAGES], sweep=[POINT], crossover=[CROSSOVER], precision=[PRECISION], tune=TUNE
)  # fmt: skip
