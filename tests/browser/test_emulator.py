"""The browser's emulator against ale_py, which plays the same games in the same test."""

import asyncio
from base64 import b64decode
from dataclasses import astuple
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from pyapp.native.atari import NativeBreakout

from . import games

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
FRAMES = 20_000
"""At least, in all games together."""


@pytest.fixture
def page_with_games(inside):
    inside.call(f"load('games', {Path(games.__file__).read_text()!r})")
    inside.call("from base64 import b64encode\nimport types\ngames = types.SimpleNamespace(**LOADED['games'])")
    return inside


@pytest.fixture(scope="module")
def expected():
    return {game: games.trace(NativeBreakout(**game.options()), game) for game in games.GAMES}


def test_the_games_are_long_enough_and_end(expected):
    assert len(games.GAMES) >= 5
    assert sum(map(games.frames_of, expected.values())) >= FRAMES
    for trace in expected.values():
        rows = [dict(zip(games.FIELDS, row, strict=True)) for row in games.STEP.iter_unpack(trace)]
        assert sum(row["ended"] for row in rows) == 2  # the second from a reset without a seed
        assert {row["lives"] for row in rows} == {0, 1, 2, 3, 4, 5}
        assert sum(row["reward"] for row in rows) > 0


@pytest.mark.parametrize("game", games.GAMES, ids=str)
def test_whole_games_are_bit_exact(page_with_games, expected, game):
    """Reward, lives, end, frame number, RAM, grey screen and observation, after every step."""
    source = f"""
game = games.Game{astuple(game)!r}
with await open_breakout(**game.options()) as env:
    found = games.trace(env, game)
b64encode(found).decode()
"""
    found = b64decode(page_with_games.call(source))
    assert games.first_difference(expected[game], found) is None


def test_one_changed_step_would_be_found(expected):
    trace = expected[games.GAMES[0]]
    spoilt = bytearray(trace)
    spoilt[games.STEP.size * 7 + 16] ^= 1
    assert "step 7: ram is" in games.first_difference(trace, bytes(spoilt))
    assert "in wasm" in games.first_difference(trace, trace[: -games.STEP.size])


def test_the_agent_plays_the_same_game(page_with_games):
    """Every action of a whole game on wasm-1, against onnxruntime and ale_py."""
    session = onnxruntime.InferenceSession(FIXTURES / "breakout_dqn.onnx", providers=["CPUExecutionProvider"])

    async def run(observation):
        return session.run(["q_values"], {"observation": observation})[0]

    with NativeBreakout() as env:
        actions, score = asyncio.run(games.agent_actions(env, run, seed=2))
    found, found_score = page_with_games.call(AGENT_GAME)
    assert len(actions) > 500
    assert (found_score, len(found)) == (score, len(actions))
    assert np.flatnonzero(np.frombuffer(found, np.uint8) != np.frombuffer(actions, np.uint8)).tolist() == []


AGENT_GAME = """
engine = await open_engine("wasm-1")
env = await open_breakout()
async def run(observation):
    return (await engine.run({"observation": observation}))["q_values"]
try:
    played = await games.agent_actions(env, run, seed=2)
finally:
    await engine.close()
    env.close()
played
"""
