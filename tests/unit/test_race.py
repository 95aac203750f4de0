import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyapp.engine import AdapterFacts, EngineFacts, EngineSpec
from pyapp.race import RaceSettings, block_sizes, lane_faults, race, ratio
from tests.unit.fakes import FakeEngine, make_suite

INPUTS = make_suite().inputs(0)


def engine(name, **options):
    return FakeEngine(EngineSpec.parse(name), **options)


def run_race(engines, **settings):
    return asyncio.run(race(engines, INPUTS, RaceSettings(**settings)))


@given(st.integers(1, 5000))
def test_blocks_add_up_and_differ_by_at_most_one(runs):
    sizes = block_sizes(runs)
    assert sum(sizes) == runs
    assert len(sizes) == min(10, runs)
    assert max(sizes) - min(sizes) <= 1


def test_every_engine_gets_its_warm_up_and_its_runs():
    engines = [engine("wasm-1"), engine("wasm-2")]
    lanes = run_race(engines, runs=37, warmup=5)
    for lane, raced in zip(lanes, engines, strict=True):
        assert len(lane.warmup_ms) == 5
        assert len(lane.samples_ms) == 37
        assert raced.runs == 5 + 37 + lane.lead_in


def test_each_block_begins_with_runs_that_wake_the_engine_and_do_not_count():
    """A run that comes first in its block takes ten times as long: none of those may be among the samples."""
    lanes = []
    fresh = set()

    def waking(run):
        return 10.0 if run in fresh else 1.0

    engines = [engine("wasm-1", ms=waking), engine("wasm-2")]
    engines[0]._on_time = lambda name, runs: fresh.add(engines[0].runs)
    lanes = run_race(engines, runs=50, warmup=5)
    assert len(fresh) > 10
    assert set(lanes[0].samples_ms) == {1.0}
    assert lanes[0].lead_in >= 10


@pytest.mark.parametrize(("ms", "lead_in"), [(1.0, 10), (300.0, 1), (0.001, 100), (4.0, 3)])
def test_the_lead_in_lasts_about_ten_milliseconds(ms, lead_in):
    lane = run_race([engine("wasm-1", ms=lambda run: ms)], runs=10, warmup=3)[0]
    assert lane.lead_in == 10 * lead_in


def order_of(seed):
    order = []
    engines = [engine(name, on_time=lambda name, runs: order.append(name)) for name in ("wasm-1", "wasm-2", "wasm-3")]
    run_race(engines, runs=100, warmup=1, seed=seed)
    return order[3:]  # without the warm-up


def test_blocks_interleave_in_an_order_that_the_seed_draws():
    order = order_of(seed=1)
    assert len(order) == 30
    assert order == order_of(seed=1)
    assert order != order_of(seed=2)
    rounds = [tuple(order[i : i + 3]) for i in range(0, 30, 3)]
    assert all(sorted(names) == ["wasm-1", "wasm-2", "wasm-3"] for names in rounds)
    assert len(set(rounds)) > 1


def test_a_slow_engine_is_timed_in_small_chunks():
    chunks = []
    slow = engine("wasm-1", ms=lambda run: 200.0, on_time=lambda name, runs: chunks.append(runs))
    lanes = run_race([slow], runs=30, warmup=3)
    assert max(chunks) == 1
    assert len(lanes[0].samples_ms) == 30


def test_progress_counts_every_run():
    heard = []
    engines = [engine("wasm-1"), engine("wasm-2")]
    asyncio.run(race(engines, INPUTS, RaceSettings(20, 4), on_block=lambda lanes, done, total: heard.append((done, total))))
    assert heard[-1] == (48, 48)
    assert [done for done, _ in heard] == sorted(done for done, _ in heard)


def test_an_engine_that_fails_leaves_the_race_and_the_others_go_on():
    lanes = run_race([engine("wasm-1", fail_after=25), engine("wasm-2")], runs=50, warmup=5)
    assert lanes[0].error.kind == "EngineTimeout"
    assert 0 < len(lanes[0].samples_ms) < 50
    assert len(lanes[1].samples_ms) == 50
    found = ratio(lanes[1], lanes[0], seed=0, hidden=False)
    assert found.p50 is None
    assert "hung" in found.reason


def test_an_engine_that_fails_in_its_warm_up_has_no_samples():
    lanes = run_race([engine("wasm-1", fail_after=0), engine("wasm-2")], runs=10)
    assert lanes[0].summary is None
    assert lanes[0].error
    assert len(lanes[1].samples_ms) == 10


def test_ratio_of_an_engine_that_takes_three_times_as_long():
    lanes = run_race(
        [engine("wasm-1", ms=lambda run: 1 + run % 7 / 1000), engine("wasm-2", ms=lambda run: 3 + run % 7 / 1000)], runs=100
    )
    found = ratio(lanes[1], lanes[0], seed=0, hidden=False)
    assert found.p50.value == pytest.approx(3, rel=0.01)
    assert found.p50.low <= found.p50.value <= found.p50.high
    assert found.p95.value == pytest.approx(3, rel=0.01)
    assert found.reason is None


SOUND = EngineFacts("wasm", "wasm", "stock", 1, {"CPUExecutionProvider": 6}, clock_step_ms=0.0005)
GPU = EngineFacts("webgpu", "jspi", "stock", 1, {"WebGpuExecutionProvider": 9}, clock_step_ms=0.0005)
SOFTWARE = AdapterFacts("google", "swiftshader", "", "", software=True)


@pytest.mark.parametrize(
    ("facts", "bad", "hidden", "fault"),
    [
        (replace(GPU, adapter=SOFTWARE), 0, False, "software adapter"),
        (replace(GPU, nodes={"WebGpuExecutionProvider": 8, "CPUExecutionProvider": 1}), 0, False, "1 nodes ran on the CPU"),
        (replace(SOUND, clock_step_ms=1.0), 0, False, "clock steps by 1 ms"),
        (SOUND, 2, False, "non-finite or all zero"),
        (SOUND, 0, True, "hidden"),
    ],
)
def test_a_fault_is_named_and_forbids_the_ratio(facts, bad, hidden, fault):
    lanes = run_race([engine("wasm-1", facts=facts, bad=bad), engine("wasm-2")], runs=20)
    faults = lane_faults(lanes[0], hidden=hidden)
    assert len(faults) == 1
    assert fault in faults[0]
    assert ratio(lanes[0], lanes[1], seed=0, hidden=hidden).p50 is None


@pytest.mark.parametrize("facts", [SOUND, GPU])
def test_a_sound_lane_has_no_fault(facts):
    assert lane_faults(run_race([engine("wasm-1", facts=facts)], runs=20)[0], hidden=False) == []
