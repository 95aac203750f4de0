import asyncio
from pathlib import Path

import numpy as np
import pytest

from pyapp.cases import load_suite
from pyapp.engine import EngineError, EngineSpec
from pyapp.native.engine import open_engine
from pyapp.parity import parity
from pyapp.race import RaceSettings, race

FIXTURES = Path("fixtures")
SPEC = EngineSpec(name="cpu-1", provider="cpu")
MODEL = (FIXTURES / "breakout_dqn.onnx").read_bytes()
STATES = load_suite("states", (FIXTURES / "states.npz").read_bytes())


def test_python_agrees_with_its_own_answers():
    async def check():
        return await parity(await open_engine(SPEC, MODEL), STATES)

    result = asyncio.run(check())
    assert result.agree == 60
    assert result.max_abs_diff <= 1e-5


def test_it_races_profiles_and_closes():
    async def check():
        engine = await open_engine(SPEC, MODEL)
        lanes = await race([engine], STATES.inputs(0), RaceSettings(runs=20, warmup=2))
        nodes = await engine.profile(STATES.inputs(0))
        await engine.close()
        with pytest.raises(EngineError, match="closed"):
            await engine.run(STATES.inputs(0))
        return lanes[0], nodes

    lane, nodes = asyncio.run(check())
    assert lane.summary.n == 20
    assert lane.summary.min > 0
    assert lane.bad == 0
    assert {node.provider for node in nodes} == {"CPUExecutionProvider"}
    assert len(nodes) >= 4


def test_garbage_is_no_model():
    with pytest.raises(EngineError) as caught:
        asyncio.run(open_engine(SPEC, b"garbage"))
    assert caught.value.kind == "InvalidModel"


def test_a_wrong_input_is_told():
    async def check():
        engine = await open_engine(SPEC, MODEL)
        await engine.run({"observation": np.zeros((1, 4, 80, 84), np.float32)})

    with pytest.raises(EngineError, match="observation"):
        asyncio.run(check())
