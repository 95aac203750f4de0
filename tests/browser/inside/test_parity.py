"""Engines in the browser give Python's answers, and a model that does not is caught."""

from pyapp.engine import EngineSpec
from pyapp.parity import parity

SOME = 12  # a software GPU takes up to a second a state; tests/page asks it all 60


def assert_agrees(result):
    assert result.passed, result.problems
    assert result.agree == result.cases, f"{result.agree} of {result.cases}; differ: {result.disagreements}"
    assert result.max_abs_diff < 1e-4, f"max |dQ| {result.max_abs_diff}"


async def test_wasm_gives_pythons_answer_in_all_60_states(opened, states):
    async with opened("wasm-1") as engine:
        result = await parity(engine, states)
    assert result.cases == 60, result.cases
    assert_agrees(result)


async def test_webgpu_gives_pythons_answers(opened, states):
    async with opened("webgpu-stock") as engine:
        assert_agrees(await parity(engine, states.first(SOME)))


async def test_the_compressed_build_gives_pythons_answers(opened, states):
    # What a browser without WebAssembly.Suspending gets.
    async with opened(EngineSpec(name="webgpu-stock", provider="webgpu", build="asyncify")) as engine:
        assert engine.facts.build == "asyncify", engine.facts
        assert_agrees(await parity(engine, states.first(3)))


async def test_one_changed_weight_is_caught(opened, states, faulty):
    async with opened("wasm-1", faulty.changed_weight) as engine:
        result = await parity(engine, states)
    assert not result.passed
    assert result.disagreements, "one weight was meant to change actions, not scores only"
    assert f"{len(result.disagreements)} of 60 actions differ" in result.problems[0], result.problems
    assert "scores differ by up to" in result.problems[-1], result.problems


async def test_one_changed_weight_is_caught_on_webgpu(opened, states, faulty):
    async with opened("webgpu-stock", faulty.changed_weight) as engine:
        result = await parity(engine, states.first(4))
    assert not result.passed
    assert result.max_abs_diff > 1e-4, result.max_abs_diff


async def test_scores_that_are_nan_are_caught_by_name(opened, states, faulty):
    async with opened("wasm-1", faulty.nan_weight) as engine:
        result = await parity(engine, states.first(5))
        timed = await engine.time(states.inputs(0), 3)
    assert not result.passed
    assert result.problems == ["5 of 5 answers are non-finite (first: case 0)"], result.problems
    assert list(result.action) == [-1] * 5, f"NaN is no answer, but gave actions {result.action}"
    assert timed.bad == 3, timed


async def test_scores_that_are_all_zero_are_caught_by_name(opened, states, faulty):
    async with opened("wasm-1", faulty.zero_scores) as engine:
        result = await parity(engine, states.first(5))
        timed = await engine.time(states.inputs(0), 3)
    assert not result.passed
    assert result.problems == ["5 of 5 answers are all-zero (first: case 0)"], result.problems
    assert timed.bad == 3, timed
