"""The area resize against OpenCV's, which trained the model: on noise, on screens, and in what the agent does."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from pyapp.breakout.preprocess import FRAME_SHAPE, SCREEN_SHAPE, STACK, area_resize

cv2 = pytest.importorskip("cv2")
onnxruntime = pytest.importorskip("onnxruntime")
atari = pytest.importorskip("pyapp.native.atari")

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


def opencv(screen):
    return cv2.resize(screen, FRAME_SHAPE[::-1], interpolation=cv2.INTER_AREA)


def load(name):
    with np.load(FIXTURES / f"{name}.npz", allow_pickle=False) as archive:
        return dict(archive)


def test_no_pixel_of_pure_noise_differs():
    random = np.random.default_rng(0)
    for _ in range(200):
        screen = random.integers(0, 256, SCREEN_SHAPE, dtype=np.uint8)
        assert (area_resize(screen) == opencv(screen)).all()


def screens_of(game):
    """Play a game again; return the four screens before each of its states, {decision: uint8 [4,210,160]}."""
    seed, actions, decisions = game
    wanted = {decision - back for decision in decisions for back in range(STACK)}
    env = atari.NativeBreakout()
    env.reset(seed)
    seen = {}
    for decision in range(len(actions) + 1):
        if decision in wanted:
            seen[decision] = env.screen()
        if decision < len(actions):
            env.advance(int(actions[decision]))
    env.close()
    black = np.zeros(SCREEN_SHAPE, np.uint8)
    return seed, {d: np.stack([seen.get(d - back, black) for back in reversed(range(STACK))]) for d in decisions}


@pytest.fixture(scope="module")
def played():
    """The 60 states' screens, uint8 [60,4,210,160]."""
    states, replay = load("states"), load("replay")
    ends = np.cumsum(replay["decisions"])
    games = [
        (int(seed), replay["action"][end - count : end], states["decision"][states["game_seed"] == seed].tolist())
        for seed, count, end in zip(replay["game_seed"], replay["decisions"], ends, strict=True)
    ]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        found = dict(pool.map(screens_of, games))
    return np.stack([found[int(s)][int(d)] for s, d in zip(states["game_seed"], states["decision"], strict=True)])


def test_the_replay_leads_to_the_60_states(played):
    states = load("states")["observation"]
    again = np.stack([[area_resize(screen) for screen in screens] for screens in played])
    assert (again == states).all()


def test_the_agent_does_the_same_in_the_60_states_with_either(played):
    session = onnxruntime.InferenceSession(FIXTURES / "breakout_dqn.onnx", providers=["CPUExecutionProvider"])
    states = load("states")
    resized = {r: np.stack([[r(screen) for screen in screens] for screens in played]) for r in (area_resize, opencv)}
    assert int((resized[area_resize] != resized[opencv]).sum()) == 0
    for observations in resized.values():
        (q_values,) = session.run(["q_values"], {"observation": observations.astype(np.float32)})
        assert (q_values.argmax(1) == states["action"]).all()
