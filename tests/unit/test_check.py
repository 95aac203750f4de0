import asyncio
import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from pyapp.check import Check, CheckSettings
from pyapp.engine import AdapterFacts, EngineError, EngineFacts
from pyapp.report import parse_report
from pyapp.tables import report_markdown
from tests.unit.fakes import FakeEngine, FakeHost, Recorder, make_suite

SUITES = [make_suite("states", 6), make_suite("stress", 70, seed=1)]
FAST = EngineFacts(
    "webgpu",
    "jspi",
    "fast: nudge",
    1,
    adapter=AdapterFacts("nvidia", "hopper", "", "", software=False),
    fallbacks=["capture + nudge: it was stale"],
)
GPU = EngineFacts("webgpu", "jspi", "stock", 1, adapter=AdapterFacts("nvidia", "hopper", "", "", software=False))
BOTH_GPUS = {
    "webgpu-stock": {"facts": GPU, "ms": lambda run: 4.4 + run * 0.01},
    "webgpu-fast": {"facts": FAST, "ms": lambda run: 0.8 + run * 0.001},
}


class Opener:
    """Opens fake engines; `options` and `errors` are by engine name."""

    def __init__(self, options=None, errors=None):
        self.options = options or {}
        self.errors = errors or {}
        self.opened = []

    async def __call__(self, spec, model):
        if spec.name in self.errors:
            raise self.errors[spec.name]
        engine = FakeEngine(spec, **self.options.get(spec.name, {}))
        self.opened.append(engine)
        return engine


def run_check(opener, host=None, recorder=None, **settings):
    settings = {"runs": 20, "warmup": 2} | settings
    check = Check(CheckSettings(**settings), b"model", SUITES, opener, host or FakeHost(), recorder or Recorder())
    return asyncio.run(check.run())


def entry(entries, engine, suite=None):
    return next(e for e in entries if e.engine == engine and (suite is None or e.suite == suite))


def test_a_whole_check():
    opener = Opener(BOTH_GPUS)
    recorder = Recorder()
    report = run_check(opener, recorder=recorder)
    names = [engine.name for engine in report.engines]
    assert names[:1] + names[2:] == ["wasm-1", "webgpu-stock", "webgpu-fast"]
    assert all(parity.passed and parity.agree == parity.cases for parity in report.parity)
    assert {(parity.suite, parity.engine) for parity in report.parity} == {
        (suite.name, engine.name) for suite in SUITES for engine in report.engines
    }
    assert [race.runs for race in report.race] == [20, 20, 20, 20]
    question = report.ratios[0]
    assert (question.numerator, question.denominator) == ("webgpu-stock", "wasm-1")
    assert question.p50 == pytest.approx(4.4, rel=0.1)
    assert question.low <= question.p50 <= question.high
    assert parse_report(report.to_json()) == report
    assert all(engine.closed for engine in opener.opened)
    # What the listener was shown last is what the report says.
    last = {(name, getattr(section, "engine", "")): section for name, section in recorder.sections}
    for race in report.race:
        assert last["race", race.engine] == race


def pairs(report):
    return [(ratio.numerator, ratio.denominator) for ratio in report.ratios]


QUESTIONS = [("webgpu-stock", "wasm-1"), ("webgpu-fast", "wasm-1"), ("webgpu-fast", "webgpu-stock")]


def test_the_questions_ratios_come_first_and_every_pair_once():
    report = run_check(Opener(BOTH_GPUS))
    assert pairs(report)[:3] == QUESTIONS
    assert len({frozenset(pair) for pair in pairs(report)}) == len(report.ratios) == 6
    assert report.ratios[1].p50 == pytest.approx(0.8, rel=0.1)
    assert report.ratios[2].p50 == pytest.approx(0.8 / 4.4, rel=0.1)


def test_the_questions_ratios_are_the_same_way_round_whatever_the_order_of_engines():
    assert pairs(run_check(Opener(BOTH_GPUS), engines=["webgpu-fast", "webgpu-stock", "wasm-1"])) == QUESTIONS


def test_only_engines_that_were_asked_for_have_ratios_but_for_the_question():
    assert pairs(run_check(Opener(), engines=["wasm-1"])) == QUESTIONS[:1]
    error = EngineError("WebGpuUnavailable", "WebGPU is not available: no adapter", "Look at chrome://gpu.")
    report = run_check(Opener(BOTH_GPUS, {"webgpu-fast": error}), engines=["wasm-1", "webgpu-stock", "webgpu-fast"])
    assert pairs(report) == QUESTIONS
    assert [ratio.reason for ratio in report.ratios] == [None, *["webgpu-fast did not race"] * 2]


def test_why_a_better_way_was_left_is_in_the_report():
    report = run_check(Opener(BOTH_GPUS), engines=["wasm-1", "webgpu-fast"])
    actual = report.engines[1].actual
    assert (actual.runner, actual.fallbacks) == ("fast: nudge", ["capture + nudge: it was stale"])
    assert parse_report(report.to_json()) == report
    text = report_markdown(report)
    assert "webgpu-fast: not run as capture + nudge: it was stale" in text
    assert "fast -> " not in text, "a runner that says how it runs is what was asked for"


def test_the_best_thread_count_becomes_the_engines_name():
    speeds = {f"wasm-{threads}": {"ms": lambda run, t=threads: 3.0 if t != 2 else 1.0} for threads in (2, 4)}
    report = run_check(Opener(speeds), engines=["wasm-1", "wasm-N"])
    chosen = report.engines[1]
    assert chosen.name == "wasm-2"
    assert chosen.thread_sweep == {"2": 1.0, "4": 3.0}


def test_one_processor_makes_wasm_n_the_engine_that_is_there_already():
    report = run_check(Opener(), FakeHost(cores=1), engines=["wasm-1", "wasm-N"])
    assert [engine.name for engine in report.engines] == ["wasm-1"]


def test_without_isolation_threads_are_refused_with_the_remedy():
    report = run_check(Opener(), FakeHost(cross_origin_isolated=False), engines=["wasm-1", "wasm-N"])
    assert report.engines[1].name == "wasm-N"
    assert report.engines[1].error.name == "ThreadsUnavailable"
    assert "COOP" in report.engines[1].error.remedy
    assert not report.environment.valid
    assert "isolated" in report.environment.warnings[0]


def test_an_engine_that_cannot_be_opened_is_a_result_and_the_question_has_a_reason():
    error = EngineError("WebGpuUnavailable", "WebGPU is not available: no adapter", "Look at chrome://gpu.")
    report = run_check(Opener(errors={"webgpu-stock": error}), engines=["wasm-1", "webgpu-stock"])
    failed = report.engines[1]
    assert (failed.actual, failed.create_ms, failed.valid) == (None, None, False)
    assert failed.error.name == "WebGpuUnavailable"
    assert report.ratios[0].p50 is None
    assert report.ratios[0].reason == "webgpu-stock did not race"
    assert entry(report.parity, "wasm-1", "states").passed


def test_a_software_adapter_is_asked_the_hardest_cases_and_never_compared():
    software = replace(GPU, adapter=replace(GPU.adapter, software=True))
    report = run_check(Opener({"webgpu-stock": {"facts": software}}), engines=["wasm-1", "webgpu-stock"])
    assert entry(report.parity, "webgpu-stock", "stress").cases == 60
    assert entry(report.parity, "wasm-1", "stress").cases == 70
    assert not entry(report.race, "webgpu-stock").valid
    assert entry(report.race, "webgpu-stock").p50_ms is not None
    assert "software" in report.ratios[0].reason


def test_nan_scores_are_null_in_the_report():
    report = run_check(Opener({"wasm-1": {"scores": lambda obs: np.full((1, 4), np.nan)}}), engines=["wasm-1"])
    parity = entry(report.parity, "wasm-1", "states")
    assert parity.q_values == [None] * 6
    assert parity.max_abs_diff is None
    assert not parity.passed
    assert not parity.valid
    assert {failure.failure for failure in parity.failures} == {"non-finite"}
    assert parse_report(report.to_json()) == report


def test_an_engine_that_hangs_in_the_race_keeps_its_answers():
    report = run_check(Opener({"wasm-2": {"fail_after": 9}}), engines=["wasm-1", "wasm-2"])
    race = entry(report.race, "wasm-2")
    assert not race.valid
    assert "hung" in race.warnings[0]
    assert entry(report.race, "wasm-1").runs == 20
    assert entry(report.parity, "wasm-2", "states").passed


def test_an_engine_that_dies_in_the_parity_check_is_dropped_and_the_others_go_on():
    def scores(observation):
        raise EngineError("EngineCrashed", "it stopped", "Run the check again.")

    recorder = Recorder()
    report = run_check(Opener({"wasm-2": {"scores": scores}}), recorder=recorder, engines=["wasm-1", "wasm-2"])
    assert report.engines[1].error.name == "EngineCrashed"
    assert [race.engine for race in report.race] == ["wasm-1"]
    assert [section.error is not None for name, section in recorder.sections if name == "engines"] == [False, False, True]


def test_a_tab_that_was_hidden_makes_the_race_invalid():
    host = FakeHost()
    slow = {"on_time": lambda name, runs: setattr(host, "hides", 1)}
    report = run_check(Opener({"wasm-1": slow}), host, engines=["wasm-1", "wasm-2"])
    # The first timed call came before the race began; hiding in it must not count, so hide again within.
    assert entry(report.race, "wasm-1").valid
    host = FakeHost()
    slow = {"on_time": lambda name, runs: setattr(host, "hides", host.hides + 1)}
    report = run_check(Opener({"wasm-1": slow}), host, engines=["wasm-1", "wasm-2"])
    assert not entry(report.race, "wasm-1").valid
    assert not entry(report.race, "wasm-2").valid


def test_cancelling_closes_the_engines():
    opener = Opener()

    async def cancelled():
        check = Check(CheckSettings(runs=1000, warmup=0), b"", SUITES, opener, FakeHost(), Recorder())
        task = asyncio.ensure_future(check.run())
        while not opener.opened:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert all(engine.closed for engine in opener.opened)


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ({"runs": 0}, "runs is 0"),
        ({"runs": -3}, "runs is -3"),
        ({"warmup": 1_000_000}, "warmup is 1000000"),
        ({"seed": -1}, "seed is -1"),
        ({"engines": []}, "0 engines"),
        ({"engines": ["wasm-1", "wasm-1"]}, "named twice"),
        ({"engines": ["cuda"]}, "unknown engine 'cuda'"),
        ({"runs": "100"}, r"expected int, got '100' @ \$\.runs"),
        ({"runs": 1.5}, r"expected int, got 1\.5"),
        ({"runs": None}, "expected int, got None"),
        ({"speed": 1}, "speed"),
        ([1], "."),
    ],
)
def test_bad_settings_are_named(data, fault):
    with pytest.raises(ValueError, match=fault):
        CheckSettings.from_data(data)


def test_settings_have_defaults():
    assert asdict(CheckSettings.from_data({})) == {
        "engines": ["wasm-1", "wasm-N", "webgpu-stock", "webgpu-fast"],
        "runs": 100,
        "warmup": 10,
        "seed": 0,
    }


def test_markdown_shows_every_number_and_warning():
    report = run_check(Opener({"webgpu-stock": {"facts": GPU}}))
    text = report_markdown(report)
    assert "60 / 60" in text or "6 / 6" in text
    for race in report.race:
        assert f"{race.p50_ms:.3f}" in text
    assert "webgpu-stock" in text
    widths = [{line.count(" | ") for line in block.splitlines() if line.startswith("|")} for block in text.split("\n\n")]
    assert all(len(width) <= 1 for width in widths)


def test_markup_in_a_name_stays_text_in_markdown():
    report = run_check(Opener(), engines=["wasm-1"])
    report = replace(report, engines=[replace(report.engines[0], name="a|b\nc")])
    assert "a\\|b c" in report_markdown(report)


def test_report_json_has_no_nan():
    json.loads(run_check(Opener(), engines=["wasm-1"]).to_json(), parse_constant=pytest.fail)
