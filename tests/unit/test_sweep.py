"""A sweep over fake engines, whose time is a fake clock's."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyapp.cases import load_suite
from pyapp.engine import AdapterFacts, EngineError, EngineFacts, NodeProfile, TimedBlock
from pyapp.foreign import read_foreign
from pyapp.onnxfile import read_model
from pyapp.race import LEAD_IN_MS, ROUNDS
from pyapp.report import parse_report
from pyapp.summary import summarize
from pyapp.sweep import BATCHES, MAX_RUNS, MIN_RUNS, SLOW_MS, Sweep, SweepSettings, affordable_runs, projected_ms, too_large
from pyapp.tables import report_markdown
from tests.unit.fakes import FakeEngine, FakeHost, Recorder

FIXTURES = Path(__file__).parents[2] / "fixtures"
MODEL = (FIXTURES / "breakout_dqn.onnx").read_bytes()
STATES = load_suite("states", (FIXTURES / "states.npz").read_bytes())
GPU = EngineFacts("webgpu", "jspi", "stock", 1, adapter=AdapterFacts("nvidia", "hopper", "", "", software=False))
SOFTWARE = replace(GPU, adapter=replace(GPU.adapter, software=True))


SCORES = {state.tobytes(): scores for state, scores in zip(STATES.observation, STATES.q_values, strict=True)}


def right(observation):
    """Python's scores of whatever states these are."""
    return np.array([SCORES[state.tobytes()] for state in observation.astype(np.uint8)])


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class TimedEngine(FakeEngine):
    """An engine on a network of one width that takes `cost(width, batch)` milliseconds of a fake clock."""

    def __init__(self, spec, *, clock, width, cost, scores=right, facts=None, fail=lambda width, batch: False):
        super().__init__(spec, scores=scores, facts=facts)
        self.clock, self.width, self.cost, self.fail = clock, width, cost, fail
        self.rng = np.random.default_rng(sum(map(ord, spec.name)))

    def _take(self, inputs, runs):
        batch = len(inputs["observation"])
        if self.fail(self.width, batch):
            raise EngineError("EngineCrashed", f"{self.spec.name} ran out of memory", "Use a smaller batch.")
        samples = self.cost(self.width, batch) * (1 + 0.01 * self.rng.random(runs))
        self.clock.now += samples.sum() / 1000
        return samples

    async def run(self, inputs, *, limit_s=60.0):
        await asyncio.sleep(0)
        self._take(inputs, 1)
        return {"q_values": self._scores(inputs["observation"])}

    async def time(self, inputs, runs, *, limit_s=60.0):
        await asyncio.sleep(0)
        return TimedBlock(self._take(inputs, runs), 0)

    async def profile(self, inputs):
        provider = "WebGpuExecutionProvider" if self.spec.provider == "webgpu" else "CPUExecutionProvider"
        return [NodeProfile("conv", "Conv", provider, 5.0)]


def widths_of(model):
    """Tell how wide the network in a file is, from what its weights are repeated by."""
    return int(read_model(model).producer.partition(" x")[2].split()[0]) if " x" in read_model(model).producer else 1


class Opener:
    def __init__(self, clock, **engines):
        self.clock = clock
        self.engines = {name.replace("_", "-"): options for name, options in engines.items()}
        self.opened = []

    async def __call__(self, spec, model):
        options = dict(self.engines[spec.name])
        if error := options.pop("error", None):
            raise error
        engine = TimedEngine(spec, clock=self.clock, width=widths_of(model), **options)
        self.opened.append(engine)
        return engine


def wasm(width, batch):
    return 1.0 * batch * width**2


def gpu(width, batch):
    return 4.0 + 0.05 * batch * width**2


def sweep(opener, *, recorder=None, host=None, model=MODEL, **settings):
    settings = {"engines": list(opener.engines), "batches": [1, 2, 4, 8, 16], "widths": [1, 2], "precision": False} | settings
    made = Sweep(
        SweepSettings(**settings), model, STATES, opener, host or FakeHost(), recorder or Recorder(), clock=opener.clock
    )
    return asyncio.run(made.run())


def entry(report, engine, width, batch):
    [found] = [e for e in report.sweep if (e.engine, e.width, e.batch) == (engine, width, batch)]
    return found


def crossing(report, numerator, denominator, width):
    [found] = [
        e for e in report.crossover if (e.numerator, e.denominator, e.width) == (numerator, denominator, width)
    ]  # fmt: skip
    return found


def two(**options):
    return Opener(Clock(), wasm_1={"cost": wasm}, webgpu_stock={"cost": gpu, "facts": GPU} | options)


def test_a_whole_sweep():
    opener, recorder = two(), Recorder()
    report = sweep(opener, recorder=recorder)
    assert len(report.sweep) == 2 * 2 * 5
    assert all(e.status == "measured" and e.valid and e.passed for e in report.sweep), report.sweep
    assert entry(report, "wasm-1", 2, 8).p50_ms == pytest.approx(32, rel=0.01)
    assert entry(report, "wasm-1", 2, 8).per_state_ms == pytest.approx(4, rel=0.01)
    assert entry(report, "wasm-1", 1, 16).cases == 16
    assert entry(report, "wasm-1", 1, 1).cases == 8, "one state says little"
    narrow, wide = (crossing(report, "webgpu-stock", "wasm-1", width) for width in (1, 2))
    assert narrow.answer == wide.answer == "crosses"
    assert narrow.low <= narrow.batch <= narrow.high
    assert narrow.batch == pytest.approx(4 / 0.95, rel=0.05)
    assert wide.batch == pytest.approx(1.05, rel=0.05)
    assert (narrow.first, narrow.last, narrow.points) == (1, 16, 5)
    assert all(engine.closed for engine in opener.opened)
    assert parse_report(report.to_json()) == report
    assert read_foreign(report.to_json()) == report
    shown = {(s.engine, s.width, s.batch): s for name, s in recorder.sections if name == "sweep"}
    assert list(shown.values()) == sorted(report.sweep, key=lambda e: list(shown).index((e.engine, e.width, e.batch)))
    assert recorder.heard[-1][1:] == (9, 10)


def test_every_answer_has_its_sentence_and_the_table_its_rows():
    report = sweep(two(), batches=[1, 2, 4, 8])
    text = report_markdown(report)
    assert "webgpu-stock overtakes wasm-1 at batch 4.2" in text
    assert "webgpu-stock" in text.split("## From which batch size on?")[1]
    headline = [sentence.text for sentence in summarize(report) if sentence.topic == "sweep"]
    assert "×1" in headline[0]
    assert "All 16 measured points give Python's answers" in headline[1]


@pytest.mark.parametrize(
    ("cost", "answer", "said"),
    [
        (lambda width, batch: 0.5 * batch, "already", "already at batch 1"),
        (lambda width, batch: 9.0 * batch, "not-within", "not within 16"),
    ],
)
def test_already_and_not_within_are_answers(cost, answer, said):
    report = sweep(two(cost=cost), widths=[1])
    assert crossing(report, "webgpu-stock", "wasm-1", 1).answer == answer
    assert any(said in sentence.text for sentence in summarize(report)), summarize(report)


def test_a_slow_point_is_listed_with_its_projection_and_not_tried():
    slow = Opener(Clock(), wasm_1={"cost": lambda width, batch: 700.0 * batch * width**2})
    report = sweep(slow, batches=[1, 2, 4, 8, 16, 32], widths=[1])
    assert [entry(report, "wasm-1", 1, batch).status for batch in (1, 2, 4)] == ["measured"] * 3
    for batch in (8, 16, 32):
        skipped = entry(report, "wasm-1", 1, batch)
        assert skipped.status == "not measured"
        assert skipped.projected_ms == pytest.approx(700 * batch, rel=0.05)
        assert "projected to take" in skipped.reason
    wider = sweep(slow, batches=[1, 2], widths=[1, 4])
    assert entry(wider, "wasm-1", 4, 1).projected_ms == pytest.approx(700 * 16, rel=0.05)


@pytest.mark.parametrize("budget_s", [3, 10, 30, 180])
@pytest.mark.parametrize("scale", [0.3, 3, 30])
def test_the_budget_is_kept(budget_s, scale):
    clock = Clock()
    opener = Opener(
        clock,
        wasm_1={"cost": lambda width, batch: scale * batch * width**2},
        wasm_4={"cost": lambda width, batch: scale * batch * width**2 / 3},
        webgpu_stock={"cost": lambda width, batch: 4 + scale * batch * width**2 / 9, "facts": GPU},
        webgpu_fast={"cost": lambda width, batch: 500.0 * batch * width, "facts": SOFTWARE},
    )
    report = sweep(opener, batches=list(BATCHES), widths=[1, 2, 4, 8], budget_s=budget_s, host=FakeHost(memory_gib=8))
    assert clock.now - 100 <= budget_s
    assert len(report.sweep) == 4 * 36, "a point is missing"
    assert all(e.reason for e in report.sweep if e.status != "measured")
    runs = [e.runs for e in report.sweep if e.status == "measured" and e.engine != "webgpu-fast"]
    if runs:
        assert MIN_RUNS <= min(runs) <= max(runs) <= MAX_RUNS
    if budget_s == 180 and scale == 0.3:
        assert max(runs) == MAX_RUNS


def test_an_engine_that_hangs_does_not_hold_the_sweep():
    class Hanging(TimedEngine):
        async def time(self, inputs, runs, *, limit_s=60.0):
            if len(inputs["observation"]) > 2:
                await asyncio.sleep(60)
            return await super().time(inputs, runs)

    opener = Opener(Clock(), wasm_1={"cost": wasm})
    opened = []

    async def open_engine(spec, model):
        opened.append(Hanging(spec, clock=opener.clock, width=1, cost=wasm))
        return opened[-1]

    settings = SweepSettings(engines=["wasm-1"], batches=[1, 2, 4, 8], widths=[1], budget_s=1, precision=False)
    report = asyncio.run(Sweep(settings, MODEL, STATES, open_engine, FakeHost(), Recorder(), clock=opener.clock).run())
    assert [e.status for e in report.sweep] == ["measured", "measured", "not measured", "not measured"]
    assert "used up" in report.sweep[2].reason
    assert opened[0].closed


def test_an_engine_that_fails_half_way_keeps_its_points_and_comes_back_on_the_next_width():
    report = sweep(two(fail=lambda width, batch: width == 1 and batch == 4), widths=[1, 2])
    assert [entry(report, "webgpu-stock", 1, batch).status for batch in (1, 2, 4, 8)] == [
        "measured",
        "measured",
        "failed",
        "not measured",
    ]
    assert "ran out of memory" in entry(report, "webgpu-stock", 1, 4).reason
    assert "stopped at batch 4" in entry(report, "webgpu-stock", 1, 8).reason
    assert entry(report, "webgpu-stock", 2, 16).status == "measured"
    assert all(entry(report, "wasm-1", width, 16).status == "measured" for width in (1, 2))
    found = crossing(report, "webgpu-stock", "wasm-1", 1)
    assert (found.answer, found.last) == ("not-within", 2)
    [engine] = [e for e in report.engines if e.name == "webgpu-stock"]
    assert engine.error.name == "EngineCrashed"
    assert engine.actual


def test_an_engine_that_cannot_be_opened_is_listed_and_there_is_no_crossover():
    error = EngineError("WebGpuUnavailable", "WebGPU is not available", "Look at chrome://gpu.")
    report = sweep(Opener(Clock(), wasm_1={"cost": wasm}, webgpu_stock={"error": error}))
    assert {e.status for e in report.sweep if e.engine == "webgpu-stock"} == {"failed"}
    assert report.crossover == []
    assert any("no GPU" in sentence.text for sentence in summarize(report)), summarize(report)


def test_a_software_adapter_is_measured_briefly_and_never_compared():
    report = sweep(two(facts=SOFTWARE))
    found = [e for e in report.sweep if e.engine == "webgpu-stock"]
    assert {(e.status, e.runs, e.valid) for e in found} == {("measured", 2, False)}
    assert all(e.passed for e in found)
    assert {e.answer for e in report.crossover} == {"none"}
    assert all("software adapter" in e.reason for e in report.crossover)


def test_wrong_answers_are_told_at_the_point_and_the_point_is_not_compared():
    def wrong(observation):
        scores = right(observation)
        return scores[:, ::-1] if len(observation) == 8 else scores

    report = sweep(two(scores=wrong), widths=[1])
    bad = entry(report, "webgpu-stock", 1, 8)
    assert (bad.status, bad.passed, bad.valid) == ("measured", False, False)
    assert bad.agree < bad.cases
    assert crossing(report, "webgpu-stock", "wasm-1", 1).points == 4


@pytest.mark.parametrize("scores", [lambda x: np.zeros((1, 4), np.float32), lambda x: np.full((len(x), 4), np.nan, np.float32)])
def test_useless_answers_are_no_agreement(scores):
    report = sweep(two(scores=scores), widths=[1], batches=[2])
    bad = entry(report, "webgpu-stock", 1, 2)
    assert (bad.agree, bad.passed, bad.max_abs_diff) == (0, False, None)


def test_a_network_that_cannot_get_wider_is_swept_as_it_is():
    from pyapp.onnxfile import TensorInfo, make_model, make_node

    shape = ("N", 4, 84, 84)
    ends = [TensorInfo("observation", "float32", shape)], [TensorInfo("q_values", "float32", shape)]
    report = sweep(two(), model=make_model([make_node("Relu", ["observation"], ["q_values"])], *ends, {}))
    assert entry(report, "wasm-1", 1, 16).status == "measured"
    assert "cannot be made wider" in entry(report, "wasm-1", 2, 1).reason


def test_a_network_too_wide_for_the_memory_is_not_opened():
    opener = two()
    report = sweep(opener, widths=[1, 8], host=FakeHost(memory_gib=2))
    assert "GiB" in entry(report, "wasm-1", 8, 1).reason
    assert {engine.width for engine in opener.opened} == {1}
    assert too_large(8, 105_000_000, 4, 8) is None
    assert too_large(8, 105_000_000, 4, None)


def test_cancelled_it_closes_its_engines_and_what_was_finished_has_been_shown():
    opener, recorder = two(), Recorder()

    async def cancelled():
        settings = SweepSettings(engines=list(opener.engines), batches=[1, 2, 4], widths=[1], precision=False)
        task = asyncio.ensure_future(Sweep(settings, MODEL, STATES, opener, FakeHost(), recorder, clock=opener.clock).run())
        while not task.done() and not any(name == "sweep" for name, _ in recorder.sections):
            await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
    assert opener.opened
    assert all(engine.closed for engine in opener.opened)


def test_the_machines_best_thread_count_is_swept_and_without_isolation_the_reason_is_told():
    clock = Clock()
    engines = {f"wasm_{n}": {"cost": lambda width, batch, n=n: batch / n} for n in (1, 2, 4)}
    opener = Opener(clock, **engines)
    report = sweep(opener, engines=["wasm-1", "wasm-N"], widths=[1])
    assert {e.engine for e in report.sweep} == {"wasm-1", "wasm-4"}
    report = sweep(opener, engines=["wasm-1", "wasm-N"], widths=[1], host=FakeHost(cross_origin_isolated=False))
    assert {e.status for e in report.sweep if e.engine == "wasm-N"} == {"failed"}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"batches": []}, "batches are []"),
        ({"batches": [2, 1]}, "batches are [2, 1]"),
        ({"batches": [4096]}, "1 to 1024"),
        ({"widths": [0]}, "widths are [0]"),
        ({"budget_s": 0}, "budget_s is 0"),
        ({"engines": ["gpu-9"]}, "unknown engine 'gpu-9'"),
        ({"speed": 1}, "speed"),
        ({"batches": [1.5]}, "1.5"),
    ],
)
def test_bad_settings_are_named(data, said):
    with pytest.raises(ValueError, match="(?s)" + said.replace("[", r"\[").replace("]", r"\]")):
        SweepSettings.from_data(json.loads(json.dumps(data)))


# --- the plan ---


def test_projections():
    assert projected_ms({}, 1, 1) is None
    assert projected_ms({(1, 1): 2.0}, 1, 8) == 16
    assert projected_ms({(1, 1): 4.0, (1, 2): 4.0}, 1, 4) == 4
    assert projected_ms({(1, 4): 2.0, (1, 8): 8.0}, 1, 16) == pytest.approx(8 * 2**1.25), "growth is bounded"
    assert projected_ms({(1, 1): 2.0, (1, 2): 4.0}, 2, 1) == 8
    assert projected_ms({(1, 1): 2.0}, 4, 2) == 64
    assert projected_ms({(1, 1): 2.0, (2, 1): 5.0}, 4, 1) == 20


@given(
    typical=st.lists(st.floats(0.01, SLOW_MS), min_size=1, max_size=6),
    share_s=st.floats(0, 200),
)
def test_runs_fill_the_share_and_no_more(typical, share_s):
    runs = affordable_runs(typical, share_s)
    assert MIN_RUNS <= runs <= MAX_RUNS
    cost_s = (runs * sum(typical) + min(runs, ROUNDS) * sum(max(ms, LEAD_IN_MS) for ms in typical)) / 1000
    assert runs == MIN_RUNS or cost_s <= share_s * 1.0001
