"""Engines keep their promises, above all when something goes wrong."""

import asyncio
import time

import numpy as np

from pyapp.browser.engines import open_lane
from pyapp.engine import EngineError

AT_ONCE_S = 0.5


async def error_of(awaitable):
    """Return the EngineError that something ends in."""
    try:
        value = await awaitable
    except EngineError as caught:
        error = caught
    else:
        raise AssertionError(f"no error, but {value!r:.80}")
    assert error.message.strip(), "an error without a message"
    return error


async def test_time_returns_a_sample_for_each_run(opened, states):
    async with opened("wasm-1") as engine:
        block = await engine.time(states.inputs(0), 7)
    assert block.samples_ms.shape == (7,), block
    assert block.samples_ms.dtype == np.float64, block
    assert (block.samples_ms > 0).all(), block
    assert block.bad == 0, block


async def assert_overlapping_runs_finish(engine, states):
    alone = [(await engine.run(states.inputs(index)))["q_values"] for index in (0, 1)]
    both = await asyncio.gather(engine.run(states.inputs(0)), engine.run(states.inputs(1)))
    for index in (0, 1):
        np.testing.assert_array_equal(both[index]["q_values"], alone[index])
    assert not np.array_equal(*alone), "two states that look the same to the model show nothing"


async def test_overlapping_runs_wait_for_each_other(opened, states):
    async with opened("wasm-1") as engine:
        await assert_overlapping_runs_finish(engine, states)


async def test_overlapping_runs_wait_for_each_other_on_webgpu(opened, states):
    # Without a queue they hang onnxruntime-web's native WebGPU build.
    async with opened("webgpu-stock") as engine:
        await assert_overlapping_runs_finish(engine, states)


async def test_outputs_outlive_the_next_run(opened, states):
    async with opened("wasm-1") as engine:
        first = (await engine.run(states.inputs(0)))["q_values"]
        kept = first.copy()
        await engine.run(states.inputs(1))
    np.testing.assert_array_equal(first, kept)


async def test_inputs_are_the_callers_still(opened, states):
    # Typed arrays move to the worker; the caller's array must not be what moves.
    inputs = states.inputs(0)
    before = inputs["observation"].copy()
    async with opened("wasm-1") as engine:
        await engine.run(inputs)
        await engine.run(inputs)
    np.testing.assert_array_equal(inputs["observation"], before)


async def test_inputs_need_not_be_contiguous(opened, states):
    observation = states.inputs(0)["observation"]
    mirrored = observation[..., ::-1]
    async with opened("wasm-1") as engine:
        seen = (await engine.run({"observation": mirrored}))["q_values"]
        meant = (await engine.run({"observation": mirrored.copy()}))["q_values"]
    np.testing.assert_array_equal(seen, meant)


async def test_bytes_that_are_no_model_are_an_error_and_harm_no_other_engine(opened, open_engine, states):
    for garbage in (b"", b"\x00" * 64, b"this is not ONNX" * 100):
        await error_of(open_engine("wasm-1", garbage))
    async with opened("wasm-1") as engine:
        await engine.run(states.inputs(0))


async def test_a_wrong_input_is_an_error_and_the_engine_goes_on(opened, states):
    right = states.inputs(0)
    wrong_name = {"picture": right["observation"]}
    wrong_shape = {"observation": right["observation"][:, :, :80]}
    wrong_type = {"observation": right["observation"].astype(np.float64)}
    async with opened("wasm-1") as engine:
        assert "observation" in (await error_of(engine.run(wrong_name))).message
        await error_of(engine.run(wrong_shape))
        await error_of(engine.run(wrong_type))
        await error_of(engine.time(wrong_shape, 3))
        await engine.run(right)


async def test_a_closed_engine_says_so(opened, states):
    async with opened("wasm-1") as engine:
        await engine.close()
        await engine.close()
        assert (await error_of(engine.run(states.inputs(0)))).kind == "EngineEnded"
        assert (await error_of(engine.time(states.inputs(0), 1))).kind == "EngineEnded"


async def test_closing_ends_a_run_that_is_under_way(open_engine, faulty):
    engine = await open_engine("wasm-1", faulty.endless)
    run = asyncio.ensure_future(error_of(engine.run({"x": np.zeros(1, np.float32)})))
    await asyncio.sleep(0.3)
    await engine.close()
    assert (await run).kind == "EngineEnded"


async def test_the_watchdog_ends_an_engine_that_hangs(opened, faulty, states):
    x = {"x": np.zeros(1, np.float32)}
    async with opened("wasm-1", faulty.endless) as engine:
        start = time.monotonic()
        error = await error_of(engine.run(x, limit_s=2))
        took = time.monotonic() - start
        assert error.kind == "EngineTimeout", error.kind
        assert "wasm-1" in error.message, error.message
        assert 2 <= took < 6, f"ended after {took:.1f} s"
        start = time.monotonic()
        assert (await error_of(engine.run(x))).kind == "EngineTimeout"
        assert time.monotonic() - start < AT_ONCE_S, "a call to a lost engine waits"
        async with opened("wasm-1") as other:
            await other.run(states.inputs(0))


async def test_waiting_for_ones_turn_is_no_hanging(opened, states):
    # The limit is for the work, not for the queue before it.
    async with opened("webgpu-stock") as engine:
        await engine.run(states.inputs(0))
        slow = engine.time(states.inputs(0), 8, limit_s=30)
        quick = engine.run(states.inputs(0), limit_s=3)
        await asyncio.gather(slow, quick)


async def test_ten_engines_leave_nothing_behind(opened, states):
    # That their workers are gone is what the level checks after every test; here they are many.
    for _ in range(10):
        async with opened("wasm-1") as engine:
            await engine.run(states.inputs(0))


async def test_the_fast_lane_gives_what_messages_give(opened, states):
    async with opened("wasm-1") as engine:
        by_message = [(await engine.run(states.inputs(case)))["q_values"] for case in range(10)]
        timed = [await engine.run_timed(states.inputs(case)) for case in range(10)]
        assert engine._lane, "there was no fast lane"
    for expected, (outputs, compute_ms) in zip(by_message, timed, strict=True):
        assert (outputs["q_values"] == expected).all(), (outputs, expected)
        assert outputs["q_values"].shape == (1, 4), outputs
        assert compute_ms > 0, compute_ms
    assert len({outputs["q_values"].tobytes() for outputs, _ in timed}) > 1, "every state got the same answer"


async def test_questions_at_the_same_time_are_answered_each(opened, states):
    async with opened("wasm-1") as engine:
        expected = [(await engine.run(states.inputs(case)))["q_values"] for case in range(6)]
        await engine.run_timed(states.inputs(0))
        found = await asyncio.gather(*(engine.run_timed(states.inputs(case)) for case in range(6)))
    for case, (outputs, _) in enumerate(found):
        assert (outputs["q_values"] == expected[case]).all(), f"case {case}: {outputs}, expected {expected[case]}"


async def test_another_shape_goes_by_message(opened, states):
    async with opened("wasm-1") as engine:
        for _ in range(2):
            await engine.run_timed(states.inputs(0))
        batch = {"observation": states.observation[:3].astype(np.float32)}
        outputs, _ = await engine.run_timed(batch)
        assert outputs["q_values"].shape == (3, 4), outputs
        single, _ = await engine.run_timed(states.inputs(1))
    assert np.abs(single["q_values"] - outputs["q_values"][1]).max() < 1e-5, (single, outputs)


async def test_an_engine_that_was_ended_says_so_on_the_fast_lane(opened, states):
    async with opened("wasm-1") as engine:
        for _ in range(2):
            await engine.run_timed(states.inputs(0))
        engine._worker.end()
        for _ in range(2):
            error = await error_of(engine.run_timed(states.inputs(0)))
            assert error.kind == "EngineEnded", error


async def test_an_engine_that_is_lost_while_it_answers_says_so(opened, faulty):
    x = {"x": np.ones(1, np.float32)}
    async with opened("wasm-1", faulty.endless) as engine:
        lane = await open_lane(engine._worker, "wasm-1", x, {"y": np.zeros(1, np.float32)})
        assert lane, "there was no fast lane"
        lane.ask(x)
        asked = asyncio.ensure_future(error_of(lane.answer(60.0)))
        await asyncio.sleep(0.1)
        assert not asked.done(), "an endless model has answered"
        engine._worker.end()
        error = await asyncio.wait_for(asked, AT_ONCE_S)
        assert error.kind == "EngineEnded", error


async def test_a_slow_answer_is_awaited_and_a_late_one_ends_the_engine(opened, states):
    """WebGPU on the software adapter takes far longer than the asker's thread stands still."""
    async with opened("webgpu-stock") as engine:
        expected = (await engine.run(states.inputs(0)))["q_values"]
        await engine.run_timed(states.inputs(1))
        ticks = []
        clock = asyncio.ensure_future(tick(ticks))
        outputs, compute_ms = await engine.run_timed(states.inputs(0))
        clock.cancel()
        assert (outputs["q_values"] == expected).all(), (outputs, expected)
        assert compute_ms > 4, compute_ms
        assert ticks, "nothing else could run while the engine did"
        error = await error_of(engine.run_timed(states.inputs(0), limit_s=0.005))
    assert error.kind == "EngineTimeout", error
    assert "webgpu-stock" in error.message, error


async def tick(ticks):
    while True:
        await asyncio.sleep(0.001)
        ticks.append(1)


async def assert_models_take_each_others_place(engine, model, states):
    from pyapp.onnxfile import TensorInfo, make_model, make_node

    values = [[TensorInfo(name, "float32", (1, 3))] for name in ("x", "y")]
    absolute = make_model([make_node("Abs", ["x"], ["y"])], *values, {})
    expected = (await engine.run(states.inputs(0)))["q_values"]
    x = np.array([[-1, 2, -3]], np.float32)
    for _ in range(2):
        await engine.replace(absolute)
        np.testing.assert_array_equal((await engine.run({"x": x}))["y"], np.abs(x))
        await error_of(engine.replace(b"no model"))
        np.testing.assert_array_equal((await engine.run({"x": x}))["y"], np.abs(x))
        await engine.replace(model)
        np.testing.assert_array_equal((await engine.run(states.inputs(0)))["q_values"], expected)


async def test_models_take_each_others_place(opened, model, states):
    async with opened("wasm-1") as engine:
        await assert_models_take_each_others_place(engine, model, states)


async def test_models_take_each_others_place_on_webgpu(opened, model, states):
    # Where its last session goes, onnxruntime-web destroys the GPU's device.
    async with opened("webgpu-stock") as engine:
        await assert_models_take_each_others_place(engine, model, states)
