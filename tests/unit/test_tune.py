import asyncio

import numpy as np
import pytest
from fakes import FakeEngine, FakeHost, Recorder, linear_scores, make_suite

from pyapp.candidates import candidate_names, simplicity, why_wrong
from pyapp.engine import AdapterFacts, EngineError, EngineFacts, EngineSpec, TimedBlock
from pyapp.summary import summarize
from pyapp.tables import report_markdown
from pyapp.tune import Tune, TuneSettings

SUITES = [make_suite("states", 6), make_suite("stress", 9, seed=1)]
STEP_MS = 0.0005


class RacingEngine(FakeEngine):
    """One whose time depends on the batch, with noise, on a clock that the test owns."""

    def __init__(self, spec, clock, *, ms=1.0, batch_ms=None, noise=0.01, **options):
        super().__init__(spec, **options)
        self.clock, self.one, self.many, self.noise = clock, ms, batch_ms or ms, noise
        self.rng = np.random.default_rng(len(spec.name))

    async def time(self, inputs, runs, *, limit_s=60.0):
        block = await super().time(inputs, runs, limit_s=limit_s)
        typical = self.one if len(inputs["observation"]) == 1 else self.many
        samples = typical * (1 + self.noise * self.rng.random(runs))
        self.clock.now += samples.sum() / 1000
        return TimedBlock(samples, block.bad)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class Bench:
    def __init__(self, **engines):
        self.engines = {name.replace("_", "-"): options for name, options in engines.items()}
        self.clock, self.opened, self.together, self.recorder = Clock(), [], [], Recorder()

    async def open_engine(self, spec, model):
        options = self.engines[spec.name]
        if isinstance(options, EngineError):
            raise options
        self.opened.append(RacingEngine(spec, self.clock, **options))
        self.together.append(sum(not engine.closed for engine in self.opened))
        return self.opened[-1]

    def tune(self, host=None, **settings):
        wanted = TuneSettings(**({"engines": list(self.engines), "batch": 4} | settings))
        return Tune(wanted, b"model", SUITES, self.open_engine, host or FakeHost(), self.recorder, clock=self.clock)

    def run(self, **settings):
        report = asyncio.run(self.tune(**settings).run())
        assert all(engine.closed for engine in self.opened), "engines are closed"
        return report


def gpu(**more):
    return EngineFacts("webgpu", "fake", more.pop("runner", "fast: capture + nudge"), 1, clock_step_ms=STEP_MS, **more)


def choices(report):
    return {choice.purpose: choice.engine for choice in report.tune.recipe}


def candidate(report, name):
    [found] = [one for one in report.tune.candidates if one.engine == name]
    return found


def test_the_fastest_is_found_for_each_purpose():
    bench = Bench(
        wasm_1={"ms": 2.0, "batch_ms": 8.0},
        wasm_4={"ms": 1.0, "batch_ms": 4.0},
        webgpu_fast={"ms": 1.5, "batch_ms": 2.0, "facts": gpu()},
    )
    report = bench.run()
    assert choices(report) == {"single": "wasm-4", "tail": "wasm-4", "batch": "webgpu-fast"}
    single = report.tune.recipe[0]
    assert single.low <= single.ms <= single.high
    assert single.ms == pytest.approx(1.0, rel=0.02)
    assert report.tune.valid
    told = [sentence.text for sentence in summarize(report) if sentence.topic == "tune"]
    assert told[0].startswith("For one state at a time, use wasm-4: 1")
    assert "| wasm-4" in report_markdown(report)


def test_ties_go_to_the_simpler_one():
    bench = Bench(
        wasm_1={"ms": 1.0, "noise": 0.3},
        wasm_8={"ms": 1.0, "noise": 0.3},
        webgpu_fast={"ms": 1.0, "noise": 0.3, "facts": gpu()},
    )
    report = bench.run()
    assert choices(report)["single"] == "wasm-1"
    assert set(report.tune.recipe[0].ties) == {"wasm-8", "webgpu-fast"}
    assert any("may be as fast" in sentence.text for sentence in summarize(report))


def test_a_candidate_that_disagrees_is_dropped_and_named_however_fast_it_is():
    bench = Bench(
        wasm_1={"ms": 2.0}, webgpu_stock={"ms": 0.1, "scores": lambda o: -linear_scores(o), "facts": gpu(runner="stock")}
    )
    report = bench.run()
    assert set(choices(report).values()) == {"wasm-1"}
    wrong = candidate(report, "webgpu-stock")
    assert (wrong.status, wrong.runs) == ("wrong", 0)
    assert "states" in wrong.reason
    assert wrong.agree < wrong.cases
    assert any("webgpu-stock" in sentence.text and sentence.tone == "bad" for sentence in summarize(report))


def test_a_variants_scores_may_differ_but_not_its_actions():
    blurred = lambda o: linear_scores(o) * 1.01  # noqa: E731
    bench = Bench(wasm_1={"ms": 2.0}, **{"wasm-1-int8": {"ms": 1.0, "scores": blurred}})
    assert choices(bench.run(precision=True))["single"] == "wasm-1-int8"
    answers = {"wasm-1": {"ms": 2.0, "scores": blurred}}
    report = Bench(**answers).run()
    assert candidate(report, "wasm-1").status == "wrong", "in float32, such scores are no rounding"
    assert report.tune.recipe == []
    assert not report.tune.valid


def test_one_that_cannot_be_had_one_that_crashes_and_one_that_fell_back_are_stated():
    bench = Bench(
        wasm_1={"ms": 2.0},
        wasm_2=EngineError("ThreadsUnavailable", "only one thread", "Serve it with COOP."),
        wasm_4={"ms": 1.0, "fail_after": 30},
        webgpu_fast={"ms": 0.5, "facts": gpu(runner="fast: stock", fallbacks=["capture: stale"])},
    )
    report = bench.run()
    assert set(choices(report).values()) == {"wasm-1"}
    assert {one.engine: one.status for one in report.tune.candidates} == {
        "wasm-1": "raced", "wasm-2": "failed", "wasm-4": "failed", "webgpu-fast": "failed",
    }  # fmt: skip
    assert "Serve it with COOP." in candidate(report, "wasm-2").reason
    assert "capture: stale" in candidate(report, "webgpu-fast").reason


def test_a_software_adapter_is_judged_but_never_wins():
    adapter = AdapterFacts("google", "swiftshader", "", "", software=True)
    bench = Bench(wasm_1={"ms": 2.0}, webgpu_fast={"ms": 0.1, "facts": gpu(adapter=adapter)})
    report = bench.run()
    found = candidate(report, "webgpu-fast")
    assert (found.status, found.runs) == ("dropped", 0)
    assert found.agree == found.cases > 0
    assert "software" in found.reason
    assert set(choices(report).values()) == {"wasm-1"}


def test_the_slower_half_leaves_rung_by_rung():
    bench = Bench(**{f"wasm_{threads}": {"ms": 1.0 + threads / 10} for threads in range(1, 13)})
    report = bench.run()
    rungs = {one.engine: one.rungs for one in report.tune.candidates}
    assert rungs["wasm-1"] == 2
    assert rungs["wasm-12"] == 0
    assert sorted(rungs.values()) == [0] * 6 + [1] * 3 + [2] * 3
    assert max(bench.together) == 6, "on trial, an engine is open alone"
    assert choices(report)["single"] == "wasm-1"
    assert candidate(report, "wasm-12").reason == "slower than the faster half"


def test_it_ends_in_time_and_says_what_was_left_out():
    slow = {f"wasm_{threads}": {"ms": 200.0, "batch_ms": 900.0} for threads in range(1, 9)}
    bench = Bench(**slow)
    report = bench.run(budget_s=20)
    assert report.tune.seconds <= 24
    assert set(choices(report)) == {"single", "tail"}
    assert any("no time was left to race batches" in warning for warning in report.tune.warnings)
    assert "too slow to be raced in the time" in {one.reason for one in report.tune.candidates}


@pytest.mark.parametrize("when", ["trying each alone", "race 1 of 2", "race 2 of 2", "race of batches"])
def test_a_search_that_was_cancelled_goes_on_from_where_it_was(when):
    bench = Bench(
        wasm_1={"ms": 2.0},
        wasm_2={"ms": 1.5},
        wasm_4={"ms": 1.0},
        wasm_8={"ms": 1.2},
        webgpu_stock={"ms": 9.0, "facts": gpu(runner="stock")},
    )
    tune = bench.tune()

    async def cancelled():
        task = asyncio.ensure_future(tune.run())
        while not task.done() and not any(stage == when and done for stage, done, _ in bench.recorder.heard):
            await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
    assert all(engine.closed for engine in bench.opened)
    judged_before = sum(engine.asked for engine in bench.opened)
    again = asyncio.run(tune.run())
    whole = Bench(**bench.engines).run()
    assert choices(again) == choices(whole)
    if when != "trying each alone":
        assert sum(engine.asked for engine in bench.opened) == judged_before, "nobody is judged twice"


def test_a_tab_that_was_hidden_is_said():
    host = FakeHost()
    host.hidden = lambda: True
    report = Bench(wasm_1={"ms": 1.0}).run(host=host)
    assert any("hidden" in warning for warning in report.tune.warnings)
    assert not report.tune.valid


def test_what_makes_sense_depends_on_the_machine():
    host = {"cores": 8, "cross_origin_isolated": True, "webgpu": True, "jspi": True}
    names = candidate_names(host, precision=False)
    assert {
        "wasm-1",
        "wasm-2",
        "wasm-4",
        "wasm-8",
        "webgpu-stock",
        "webgpu-stock-asyncify",
        "webgpu-fast",
        "webgpu-fast-nocapture",
    } <= set(names)
    assert not any("int8" in name or "float16" in name for name in names)
    assert {"wasm-8-int8", "webgpu-fast-float16"} <= set(candidate_names(host, precision=True))
    assert candidate_names(host | {"cross_origin_isolated": False, "webgpu": False}, precision=False) == ["wasm-1"]
    assert not any("asyncify" in name for name in candidate_names(host | {"jspi": False}, precision=False))
    for name in candidate_names(host, precision=True):
        assert EngineSpec.parse(name).name == name


def test_simplicity_ranks_what_it_asks_of_who_ships_it():
    order = [
        "wasm-1",
        "wasm-2",
        "wasm-64",
        "webgpu-stock",
        "webgpu-stock-asyncify",
        "webgpu-fast-nocapture",
        "webgpu-fast",
        "wasm-1-int8",
    ]
    ranks = [simplicity(EngineSpec.parse(name)) for name in order]
    assert ranks == sorted(set(ranks))


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ({"batch": 1}, "batch is 1"),
        ({"budget_s": 0}, "budget_s is 0"),
        ({"engines": ["wasm-N"]}, "measured"),
        ({"engines": ["cuda"]}, "unknown engine 'cuda'"),
        ({"precision": "yes"}, "'yes'"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_bad_settings_are_named(data, fault):
    with pytest.raises(ValueError, match=fault):
        TuneSettings.from_data(data)


def test_why_wrong_is_none_for_pythons_own_answers():
    from pyapp.parity import judge

    suite = SUITES[0]
    assert why_wrong(judge("wasm-1", suite, list(suite.q_values)), "float32") is None
    assert "actions" in why_wrong(judge("wasm-1-int8", suite, list(-suite.q_values)), "int8")
    assert "non-finite" in why_wrong(judge("wasm-1-int8", suite, [np.full(4, np.nan, np.float32)] * 6), "int8")
