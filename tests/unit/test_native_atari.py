import numpy as np
import pytest

pytest.importorskip("ale_py")
from ale_py import _ale_py

from pyapp.breakout import EmulatorError
from pyapp.native.atari import NativeBreakout, rom_path


def actions(seed, count):
    return np.random.default_rng(seed).integers(0, 4, count).tolist()


def trace(env, seed, steps=40):
    observation, info = env.reset(seed)
    seen = [(observation.tobytes(), 0.0, False, False, info)]
    for action in actions(7, steps):
        observation, *rest = env.step(action)
        seen.append((observation.tobytes(), *rest))
    return seen


def play_to_the_end(env, seed=1):
    _, info = env.reset(seed)
    lives = [info["lives"]]
    while True:
        *_, terminated, truncated, info = env.step(0)
        lives.append(info["lives"])
        if not terminated and not truncated:
            _, _, terminated, truncated, info = env.step(1)
            lives.append(info["lives"])
        if terminated or truncated:
            return lives, terminated, truncated


def test_the_same_seed_is_the_same_game():
    env = NativeBreakout()
    first = trace(env, 3)
    assert trace(env, 3) == first
    assert trace(NativeBreakout(), 3) == first


def test_sticky_actions_are_seeded_too():
    plain = trace(NativeBreakout(), 3)
    sticky = trace(NativeBreakout(repeat_action_probability=0.5), 3)
    assert sticky == trace(NativeBreakout(repeat_action_probability=0.5), 3)
    assert sticky != plain


def test_it_is_the_training_environment_bit_for_bit():
    """Observations, rewards, ends and lives against AtariVectorEnv's core, through the ends of three games."""
    seeds = np.array([5, 9, 123])
    # noop_max 1: the one setting in which both draw the same number of no-ops, none.
    vector = _ale_py.ALEVectorInterface(rom_path(), len(seeds), num_threads=1, noop_max=1, reward_clipping=False)
    expected, _ = vector.reset(np.arange(len(seeds)), seeds)
    envs = [NativeBreakout(noop_max=1) for _ in seeds]
    for env, seed, observation in zip(envs, seeds, expected, strict=True):
        assert (env.reset(seed)[0] == observation).all()
    over = np.zeros(len(seeds), bool)
    ends = 0
    random = np.random.default_rng(1)
    while ends < 3:
        chosen = random.integers(0, 4, len(seeds))
        vector.send(chosen, np.ones(len(seeds), np.float32))
        expected, rewards, terminated, truncated, info = vector.recv()
        for lane, env in enumerate(envs):
            if over[lane]:  # the vector environment's step after an end only resets
                observation, _ = env.reset()
            else:
                observation, *rest, own = env.step(chosen[lane])
                assert rest == [rewards[lane], terminated[lane], truncated[lane]]
                assert own["lives"] == info["lives"][lane]
                assert own["episode_frame_number"] == info["episode_frame_number"][lane]
            assert (observation == expected[lane]).all()
        over = terminated | truncated
        ends += int(over.sum())


def test_frame_skip_1_is_the_training_environment_s_too():
    vector = _ale_py.ALEVectorInterface(rom_path(), 1, frame_skip=1, noop_max=1, num_threads=1, reward_clipping=False)
    expected, _ = vector.reset(np.arange(1), np.array([4]))
    env = NativeBreakout(frame_skip=1, noop_max=1)
    assert (env.reset(4)[0] == expected[0]).all()
    for action in actions(2, 200):
        vector.send(np.array([action]), np.ones(1, np.float32))
        expected, rewards, *_ = vector.recv()
        observation, reward, *_ = env.step(action)
        assert (observation == expected[0]).all()
        assert reward == rewards[0]


def test_lives_go_from_five_to_none_and_only_then_is_the_game_over():
    lives, terminated, truncated = play_to_the_end(NativeBreakout())
    assert lives[0] == 5
    assert lives[-1] == 0
    assert sorted(lives, reverse=True) == lives
    assert (terminated, truncated) == (True, False)


def test_a_long_game_is_truncated_and_says_so():
    env = NativeBreakout(max_frames=10)
    env.reset(1)
    ends = [env.step(0)[2:4] for _ in range(3)]
    assert ends == [(False, False), (False, False), (False, True)]


@pytest.mark.parametrize(("fire", "noop_max", "frames"), [(True, 30, range(1, 30)), (False, 30, range(30)), (False, 0, [0])])
def test_idle_frames_at_reset(fire, noop_max, frames):
    env = NativeBreakout(fire_on_reset=fire, noop_max=noop_max)
    env.reset(1)
    idle = {env.reset()[1]["episode_frame_number"] for _ in range(60)}  # seeding each would load the ROM each time
    assert idle <= set(frames)
    assert len(idle) > min(10, len(frames) - 1)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("frame_skip", 0),
        ("frame_skip", 2.5),
        ("frame_skip", True),
        ("noop_max", -1),
        ("max_frames", 0),
        ("repeat_action_probability", 1.5),
        ("repeat_action_probability", float("nan")),
    ],
)
def test_a_bad_option_is_quoted(option, value):
    with pytest.raises(ValueError, match=option) as error:
        NativeBreakout(**{option: value})
    assert str(error.value).endswith(f"got {value!r}")


@pytest.mark.parametrize("action", [-1, 4, 1.0, True, "FIRE"])
def test_a_bad_action_is_quoted_and_the_game_goes_on(action):
    env = NativeBreakout()
    env.reset(1)
    with pytest.raises(ValueError, match="NOOP, FIRE, RIGHT, LEFT") as error:
        env.step(action)
    assert str(error.value).endswith(f"got {action!r}")
    env.step(np.int64(1))


@pytest.mark.parametrize("seed", [-1, 2**31, 1.0, True])
def test_a_bad_seed_is_quoted(seed):
    with pytest.raises(ValueError, match="seed must be") as error:
        NativeBreakout().reset(seed)
    assert str(error.value).endswith(f"got {seed!r}")


def test_no_step_without_a_game():
    env = NativeBreakout(max_frames=4)
    with pytest.raises(RuntimeError, match="reset"):
        env.step(0)
    env.reset(1)
    env.step(0)
    with pytest.raises(RuntimeError, match="reset"):
        env.step(0)


# Saving and going back.


def test_a_restored_game_goes_on_as_it_did():
    env = NativeBreakout()
    env.reset(3)
    for action in actions(1, 60):
        env.step(action)
    state = env.save()
    first = [env.step(action)[:4] for action in actions(2, 100)]
    assert (env.restore(state) == NativeBreakout().restore(state)).all()
    again = [env.step(action)[:4] for action in actions(2, 100)]
    for (observation, *rest), (expected, *expected_rest) in zip(again, first, strict=True):
        assert (observation == expected).all()
        assert rest == expected_rest


def test_sticky_actions_are_drawn_again_as_before():
    env = NativeBreakout(repeat_action_probability=0.25)
    env.reset(3)
    env.step(0)
    state = env.save()
    first = [env.step(action)[0].tobytes() for action in [0, *actions(2, 60)]]
    env.restore(state)
    # The previous action is no part of a state, hence NOOP on both sides of it.
    env.step(0)
    env.restore(state)
    assert [env.step(action)[0].tobytes() for action in [0, *actions(2, 60)]] == first


def test_a_saved_game_that_was_over_stays_over():
    env = NativeBreakout(max_frames=4)
    env.reset(1)
    env.step(0)
    state = env.save()
    env.reset(1)
    env.restore(state)
    assert not env.playing
    with pytest.raises(RuntimeError, match="reset"):
        env.step(0)


@pytest.mark.parametrize("spoil", [lambda s: s[:-1], lambda s: s + b"x", lambda s: b"", lambda s: s[:-9] + b"x" + s[-8:]])
def test_a_bad_state_is_refused_and_the_game_goes_on(spoil):
    env, twin = NativeBreakout(), NativeBreakout()
    for one in (env, twin):
        one.reset(5)
        one.step(1)
    with pytest.raises(ValueError, match="state"):
        env.restore(spoil(env.save()))
    assert (env.step(2)[0] == twin.step(2)[0]).all()


# Gymnasium's terms.


def test_ram_on_request_and_never_otherwise():
    env = NativeBreakout(ram=True)
    _, info = env.reset(1)
    before = info["ram"]
    assert (before.shape, before.dtype) == ((128,), np.uint8)
    copy = before.copy()
    *_, after = env.step(2)
    assert (before == copy).all()
    assert (after["ram"] != before).any()
    assert "ram" not in NativeBreakout().reset(1)[1]


def test_frame_numbers():
    env = NativeBreakout()
    _, info = env.reset(1, {"idle": 10})
    assert info["episode_frame_number"] == 10
    start = info["frame_number"]
    *_, info = env.step(0)
    assert (info["episode_frame_number"], info["frame_number"]) == (14, start + 4)
    _, info = env.reset(None, {"idle": 0})
    assert info["episode_frame_number"] == 1  # FIRE
    assert info["frame_number"] > start


def test_what_the_actions_are():
    assert NativeBreakout().action_meanings == ("NOOP", "FIRE", "RIGHT", "LEFT")


@pytest.mark.parametrize("options", [{"noops": 3}, {"idle": -1}, {"idle": 2.0}, {"idle": True}])
def test_a_bad_reset_option_is_named_and_starts_nothing(options):
    env = NativeBreakout()
    env.reset(1)
    env.step(1)
    before = env.observation
    with pytest.raises(ValueError, match=next(iter(options))):
        env.reset(2, options)
    assert env.observation is before
    env.step(1)


def test_an_environment_closes_twice_and_by_with():
    with NativeBreakout() as env:
        env.reset(1)
    env.close()
    with pytest.raises(RuntimeError, match="reset"):
        env.step(0)
    with pytest.raises(EmulatorError, match="closed"):
        env.reset(1)
