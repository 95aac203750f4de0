"""The fast WebGPU runner gives the stock one's answers, whichever way it takes, and says which one and why."""

import asyncio
import time

import numpy as np

from pyapp.browser.bridge import to_plain
from pyapp.browser.engines import BrowserEngines
from pyapp.engine import EngineError, EngineSpec

GPU = "WebGpuExecutionProvider"
WAYS = {"fast": "capture + nudge", "fast-nocapture": "nudge", "fast-plain": "plain readback"}
VARIANTS = ("fast-mapped-upload", "fast-two-stagings")
CASES = (0, 1, 0)


def spec(runner, **more):
    return EngineSpec(name=f"webgpu-{runner}", provider="webgpu", runner=runner, **more)


async def scores(engine, states):
    return np.stack([(await engine.run(states.inputs(case)))["q_values"] for case in CASES])


async def test_every_way_gives_the_stock_runners_scores(opened, states):
    async with opened("webgpu-stock") as engine:
        expected = await scores(engine, states)
    assert not np.allclose(expected[0], expected[1]), "two states that look the same to the model show nothing"
    for runner, way in WAYS.items():
        async with opened(spec(runner)) as engine:
            assert engine.facts.runner == f"fast: {way}", engine.facts
            assert engine.facts.fallbacks == [], engine.facts
            found = await scores(engine, states)
            timed = await engine.time(states.inputs(0), 2)
        assert np.abs(found - expected).max() < 1e-5, (runner, found, expected)
        assert (timed.samples_ms > 0).all(), timed
        assert timed.bad == 0, timed
    # Those that only a benchmark asks for.
    for runner in VARIANTS:
        async with opened(spec(runner)) as engine:
            found = await scores(engine, states)
        assert np.abs(found - expected).max() < 1e-5, (runner, found, expected)


async def test_the_compressed_build_captures_too(opened, states):
    async with opened(spec("fast", build="asyncify")) as engine, opened("wasm-1") as wasm:
        assert engine.facts.runner == "fast: capture + nudge", engine.facts
        found, expected = await scores(engine, states), await scores(wasm, states)
    assert np.abs(found - expected).max() < 1e-4, (found, expected)


async def test_other_batches_run_without_capture_and_the_first_one_is_still_right(opened, states):
    sizes = (1, 3, 1, 3)
    async with opened("webgpu-fast") as engine, opened("wasm-1") as wasm:
        for first, size in enumerate(sizes):
            inputs = {"observation": states.observation[first : first + size].astype(np.float32)}
            found, expected = [(await one.run(inputs))["q_values"] for one in (engine, wasm)]
            assert found.shape == (size, 4), found.shape
            assert np.abs(found - expected).max() < 1e-4, (size, found, expected)
        timed = await engine.time({"observation": states.observation[:3].astype(np.float32)}, 1)
    assert timed.bad == 0, timed


def typed_inputs(size, seed):
    rng = np.random.default_rng(seed)
    return {
        "floats": rng.random((size, 3), np.float32),
        "integers": rng.integers(-99, 99, (size, 3), np.int32),
        "bytes": rng.integers(0, 256, (size, 3), np.uint8),
        "places": rng.integers(0, 10, size, np.int64),
    }


def assert_same(found, expected):
    assert found.keys() == expected.keys(), (found, expected)
    for name, wanted in expected.items():
        assert (found[name].dtype, found[name].shape) == (wanted.dtype, wanted.shape), (name, found[name], wanted)
        np.testing.assert_allclose(found[name], wanted, rtol=1e-6, err_msg=name)


async def test_several_outputs_of_several_types(opened, small):
    dtypes = {"sums": "float32", "large": "bool", "squares": "int32", "brighter": "float32", "found": "uint32"}
    for runner, way in WAYS.items():
        async with opened(spec(runner), small.typed) as engine, opened("wasm-1", small.typed) as wasm:
            assert engine.facts.runner == f"fast: {way}", engine.facts
            for seed, size in enumerate((1, 3, 1, 5)):
                inputs = typed_inputs(size, seed)
                found = await engine.run(inputs)
                assert {name: str(array.dtype) for name, array in found.items()} == dtypes, found
                assert_same(found, await wasm.run(inputs))


async def test_a_captured_graph_that_is_stale_is_left_and_halves_come_back_as_halves(opened, small):
    # onnxruntime's capture really leaves out this model's only node.
    async with opened("webgpu-fast", small.copied) as engine:
        facts = engine.facts
        for size in (1, 3, 1):
            x = np.random.default_rng(size).random((size, 3), np.float32).astype(np.float16)
            found = (await engine.run({"x": x}))["y"]
            assert found.dtype == np.float16, found
            np.testing.assert_array_equal(found, x)
    assert facts.runner == "fast: nudge", facts
    assert facts.fallbacks == ["capture + nudge: it gave the answer to an earlier input again"], facts


async def test_what_cannot_be_captured_runs_without_and_says_why(opened, faulty, small, states):
    async with opened("webgpu-fast", small.nameless) as engine:
        assert engine.facts.runner == "fast: nudge", engine.facts
        assert "free dimension without a name" in engine.facts.fallbacks[0], engine.facts
        np.testing.assert_array_equal((await engine.run({"x": np.ones((2, 3), np.float32)}))["y"], np.full((2, 3), 2))
    async with opened("webgpu-fast", faulty.zero_scores) as engine:
        assert "the same answer" in engine.facts.fallbacks[0], engine.facts
        timed = await engine.time(states.inputs(0), 2)
    assert timed.bad == 2, "scores that are all zero are no answer"


async def test_its_nodes_run_on_the_gpu(opened, states):
    async with opened("webgpu-fast") as engine:
        nodes = await engine.profile(states.inputs(0))
    assert nodes, "no profile"
    assert {node.provider for node in nodes} == {GPU}, nodes


async def error_of(awaitable):
    try:
        value = await awaitable
    except EngineError as error:
        return error
    raise AssertionError(f"no error, but {value!r:.80}")


async def test_wrong_inputs_are_errors_and_the_engine_goes_on(opened, states):
    right = states.inputs(0)
    async with opened("webgpu-fast") as engine:
        expected = (await engine.run(right))["q_values"]
        assert "observation" in (await error_of(engine.run({"picture": right["observation"]}))).message
        assert "picture" in (await error_of(engine.run(right | {"picture": right["observation"]}))).message
        assert "float64" in (await error_of(engine.run({"observation": right["observation"].astype(np.float64)}))).message
        await error_of(engine.run({"observation": right["observation"][:, :, :80]}))
        np.testing.assert_array_equal((await engine.run(right))["q_values"], expected)


async def test_after_an_input_of_another_type_the_right_ones_are_answered(opened, states):
    three = states.observation[:3]
    async with opened("webgpu-fast") as engine, opened("wasm-1") as wasm:
        expected = (await wasm.run({"observation": three.astype(np.float32)}))["q_values"]
        for bytes_ in (three[:1], three):
            refused = await error_of(engine.run({"observation": bytes_}))
            assert "uint8, but the model takes float32" in refused.message, refused.message
        found = (await engine.run({"observation": three.astype(np.float32)}))["q_values"]
        assert np.abs(found - expected).max() < 1e-4, (found, expected)
        assert (await engine.run(states.inputs(0)))["q_values"].shape == (1, 4)


async def test_bytes_that_are_no_model_are_an_error(open_engine):
    await error_of(open_engine("webgpu-fast", b"this is not ONNX" * 100))


async def test_a_realm_that_is_spoilt_is_left_for_another(page, states):
    class Spoilt(BrowserEngines):
        async def start(self, spec, model, **options):
            if spec.runner == "fast":
                raise EngineError("RuntimeError", "unreachable", "")
            return await super().start(spec, model, **options)

    engine = await Spoilt(page.open_engines._bridge)(spec("fast"), page.model)
    try:
        assert engine.facts.runner == "fast: stock", engine.facts
        assert engine.facts.fallbacks == ["fast: unreachable"], engine.facts
        assert (await engine.run(states.inputs(0)))["q_values"].shape == (1, 4)
        assert {node.provider for node in await engine.profile(states.inputs(0))} == {GPU}, "a profile of what did not run"
    finally:
        await engine.close()


async def test_a_device_that_is_lost_while_it_works_is_an_error_at_once_and_harms_no_other(opened, states):
    async with opened("webgpu-fast") as engine, opened("webgpu-stock") as other:
        expected = (await other.run(states.inputs(0)))["q_values"]
        working = asyncio.ensure_future(error_of(engine.time(states.inputs(0), 1_000)))
        await asyncio.sleep(0.5)
        assert not working.done(), await working
        await engine._worker.call("lose", 1_000, to_plain([]))
        start = time.monotonic()
        error = await working
        assert time.monotonic() - start < 3, f"after {time.monotonic() - start:.1f} s"
        assert error.kind == "DeviceLost", error.kind
        assert "lost" in error.message, error.message
        assert error.remedy, "an error without a remedy"
        assert (await error_of(engine.run(states.inputs(0)))).kind == "DeviceLost", "a lost device answered"
        np.testing.assert_array_equal((await other.run(states.inputs(0)))["q_values"], expected)
