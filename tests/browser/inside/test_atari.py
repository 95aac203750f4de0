"""The emulator in wasm: what it refuses, and that it stays usable."""

import gc
import hashlib

import numpy as np
from pyodide.ffi import JsException, to_js

from pyapp.breakout import EmulatorError
from pyapp.breakout.preprocess import area_resize


def refused_by_javascript(function, *arguments):
    """Call a JavaScript function that must refuse; return the error, with its name, message and remedy."""
    try:
        function(*arguments)
    except JsException as error:
        return error
    raise AssertionError(f"{function} took {arguments}")


def refused(function, *arguments, **options):
    """Call what must be refused; return the message."""
    try:
        function(*arguments, **options)
    except (ValueError, EmulatorError) as error:
        return str(error)
    raise AssertionError(f"{function} took {arguments} {options}")


async def refused_async(awaitable):
    try:
        await awaitable
    except (ValueError, EmulatorError) as error:
        return str(error)
    raise AssertionError("it was taken")


def play(env, steps, seed=1):
    random = np.random.default_rng(seed)
    seen = []
    for _ in range(steps):
        observation, reward, terminated, truncated, info = env.step(int(random.integers(4)))
        seen.append((observation.tobytes(), reward, info["lives"]))
        if terminated or truncated:
            env.reset()
    return seen


async def test_the_resize_beside_the_emulator_is_numpy_s(open_breakout):
    with await open_breakout() as env:
        env.reset(3)
        for _ in range(200):
            observation, *_, terminated, _truncated, _info = env.step(2)
            expected = area_resize(env.screen())
            assert (observation[-1] == expected).all(), np.argwhere(observation[-1] != expected)[:5]
            if terminated:
                env.reset()


async def test_two_games_in_one_module_do_not_meet(open_breakout):
    with await open_breakout() as alone:
        alone.reset(5)
        expected = play(alone, 150)
    with await open_breakout() as first, await open_breakout(repeat_action_probability=0.25) as second:
        first.reset(5)
        second.reset(6)
        found = []
        random, other = np.random.default_rng(1), np.random.default_rng(9)
        for _ in range(150):
            second.step(int(other.integers(4)))
            observation, reward, _, _, info = first.step(int(random.integers(4)))
            found.append((observation.tobytes(), reward, info["lives"]))
    assert found == expected, next(i for i, pair in enumerate(zip(found, expected, strict=True)) if pair[0] != pair[1])


async def test_a_saved_game_goes_on_as_it_did(open_breakout):
    with await open_breakout(ram=True) as env:
        env.reset(3)
        play(env, 50)
        state = env.save()
        first = play(env, 80)
        before = env.restore(state)
        assert (before == env.observation).all(), "the observation that restore returns is not the environment's"
        assert play(env, 80) == first, "the restored game went another way"


async def test_a_bad_state_is_refused_and_the_game_goes_on(open_breakout):
    with await open_breakout() as env, await open_breakout() as twin:
        for one in (env, twin):
            one.reset(5)
            one.step(1)
        state = env.save()
        for spoilt in (state[:-1], state + b"x", b"", b"PK" + state, state[:-20] + b"!" + state[-19:]):
            message = refused(env.restore, spoilt)
            assert "state" in message, message
        assert str(len(state)) in refused(env.restore, state[:-1])
        assert (env.step(2)[0] == twin.step(2)[0]).all(), "a refused state changed the game"


async def test_the_emulator_itself_refuses_a_state_of_the_wrong_size(open_breakout):
    with await open_breakout() as env, await open_breakout() as twin:
        for one in (env, twin):
            one.reset(5)
        whole = env.emulator.save()
        for spoilt in (whole[:-1], whole[:100], b"", whole * 2):
            message = refused(env.emulator.restore, spoilt)
            assert str(len(spoilt)) in message, message
        assert (env.step(2)[0] == twin.step(2)[0]).all(), "a refused state changed the game"


async def test_a_bad_action_is_quoted_and_the_game_goes_on(open_breakout):
    with await open_breakout() as env:
        env.reset(1)
        for action in (-1, 4, 1.0, True, "FIRE", None):
            message = refused(env.step, action)
            assert repr(action) in message, message
        for action in (2, 5, 18, -1):
            message = refused(env.emulator.play, action, 4)
            assert str(action) in message, message
        env.step(np.int64(1))


async def test_a_bad_chance_of_repeating_is_quoted(open_breakout):
    for chance in (-0.1, 1.5, float("nan"), "0.25"):
        message = await refused_async(open_breakout(repeat_action_probability=chance))
        assert repr(chance) in message, message
    with await open_breakout(repeat_action_probability=1) as env:
        env.reset(1)


async def test_the_emulator_itself_refuses_a_bad_chance(page):
    cartridge = await page._bridge.cartridge()
    for chance in (-0.1, 1.5, float("nan")):
        error = refused_by_javascript(cartridge.open, chance, 1)
        assert error.name == "BadSticky", error
        assert str(chance).lower() in error.message.lower(), error
    cartridge.open(0.25, 1).close()


async def test_another_rom_is_refused_by_its_md5(page):
    ale = (await page._bridge.cartridge()).ale
    for rom in (b"", b"\0" * 2048, b"\xff" * 4096, b"x" * 100_000):
        error = refused_by_javascript(ale.open, to_js(memoryview(rom)), 0.0, 1)
        assert error.name == "BadRom", error
        assert hashlib.md5(rom).hexdigest() in error.message, error
        assert "f34f08e5eb96e500e851a80be3277a56" in f"{error.message} {error.remedy}", error
    with await page.open_breakout() as env:
        env.reset(1)


async def test_a_closed_game_says_so(open_breakout):
    env = await open_breakout()
    env.reset(1)
    env.close()
    env.close()
    assert "closed" in refused(env.reset), "a closed game could be reset"


async def test_opening_and_closing_games_does_not_eat_memory(page, open_breakout):
    ale = (await page._bridge.cartridge()).ale
    for _ in range(3):
        (await open_breakout()).close()
    before = ale.bytes
    for seed in range(30):
        with await open_breakout() as env:
            env.reset(seed)
            play(env, 5)
    gc.collect()
    assert ale.bytes == before, f"{ale.bytes - before} bytes more after 30 games"


async def test_after_a_crash_the_emulator_is_loaded_anew(page, open_breakout):
    ale = (await page._bridge.cartridge()).ale
    env = await open_breakout()
    env.reset(1)
    assert refused_by_javascript(ale.run, trap).name == "AleCrashed"
    assert "crashed" in refused(env.reset), "a game went on in a module that had crashed"
    env.close()
    with await open_breakout() as fresh:
        fresh.reset(1)
    assert not (await page._bridge.cartridge()).ale.crashed, "the module that had crashed is still in use"


def trap(_exports):
    """Stand in for a call that ends in a trap."""
    raise RuntimeError("unreachable")
