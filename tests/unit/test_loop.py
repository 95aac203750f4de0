import asyncio
from pathlib import Path

import numpy as np
import pytest
from fakes import FakeEngine

from pyapp.breakout import loop as loops
from pyapp.breakout.agent import Agent, Decision, FunctionPolicy, RandomPolicy
from pyapp.breakout.loop import DEADLINE_MS, KEPT, STAGES, Loop, Runner, StageTimes, described
from pyapp.engine import EngineError, EngineSpec
from pyapp.errors import AppError

atari = pytest.importorskip("pyapp.native.atari")


class FakeBoard:
    """A board that says it is drawn on, and when the next decision is due."""

    def __init__(self, draw_ms=0.5):
        self.shown = []
        self.seen = 0
        self.draw_ms = draw_ms
        self.gate = None

    def show(self, environment, frames):
        self.shown.append(frames)
        return self.draw_ms

    def see(self, observation):
        assert observation.shape == (4, 84, 84)
        self.seen += 1

    def wait(self):
        return asyncio.sleep(0) if self.gate is None else self.gate.wait()


class Scripted:
    """A policy that does what it is told, and may fail or take its time."""

    def __init__(self, actions=(0,), fail_at=None, error=None, infer_ms=3.0, compute_ms=2.0):
        self.actions, self.fail_at, self.error = actions, fail_at, error
        self.infer_ms, self.compute_ms = infer_ms, compute_ms
        self.calls = 0
        self.active = 0

    async def decide(self, observation, info):
        self.active += 1
        assert self.active == 1, "two decisions at the same time"
        await asyncio.sleep(0)
        self.active -= 1
        self.calls += 1
        if self.calls == self.fail_at:
            raise self.error
        return Decision(self.actions[self.calls % len(self.actions)], None, self.infer_ms, self.compute_ms)


@pytest.fixture
def env():
    with atari.NativeBreakout(max_frames=400) as environment:
        yield environment


def spec(name="wasm-1"):
    return EngineSpec.parse(name)


# The agent.


def decide(agent, observation=None):
    if observation is None:
        observation = np.zeros((4, 84, 84), np.uint8)
        observation[:, 0, 0] = (10, 20, 30, 5)
    return asyncio.run(agent.decide(observation, {"lives": 5, "frame_number": 0, "episode_frame_number": 0}))


def test_the_agent_takes_the_best_score_and_keeps_all():
    decision = decide(Agent(FakeEngine(spec())))
    assert decision.action == 2  # 10 x 1, 20 x 2, 30 x 3, 5 x 4
    assert decision.q_values.tolist() == [10, 40, 90, 20]
    assert decision.compute_ms == 1.0  # what the engine says
    assert decision.infer_ms > 0


def test_the_first_of_equal_scores_wins():
    assert decide(Agent(FakeEngine(spec(), scores=lambda x: np.array([[1, 3, 3, 2]], np.float32)))).action == 1


@pytest.mark.parametrize("scores", [[0, 0, 0, 0], [1, np.nan, 2, 3], [1, np.inf, 2, 3]])
def test_scores_that_are_no_answer_are_an_error_and_never_an_action(scores):
    with pytest.raises(EngineError, match="no answer") as error:
        decide(Agent(FakeEngine(spec(), scores=lambda x: np.array([scores], np.float32))))
    assert error.value.kind == "BadScores"
    assert "wasm-1" in str(error.value)


def test_epsilon_draws_the_same_actions_on_every_engine():
    def actions(seed, name):
        agent = Agent(FakeEngine(spec(name)), epsilon=0.5, seed=seed)
        return [decide(agent).action for _ in range(60)]

    assert actions(1, "wasm-1") == actions(1, "webgpu-stock")
    assert actions(1, "wasm-1") != actions(2, "wasm-1")
    assert 10 < sum(action != 2 for action in actions(1, "wasm-1")) < 40


@pytest.mark.parametrize("epsilon", [-0.1, 1.1, float("nan"), "0.1", True])
def test_a_bad_epsilon_is_quoted(epsilon):
    with pytest.raises(ValueError, match="epsilon") as error:
        Agent(FakeEngine(spec()), epsilon=epsilon)
    assert str(error.value).endswith(f"got {epsilon!r}")


# The times.


def test_percentiles_are_numpy_s_and_only_the_newest_are_kept():
    times = StageTimes()
    assert [(s.stage, s.n) for s in times.summary()] == [(stage, 0) for stage in STAGES]
    for value in range(KEPT + 100):
        times.add((float(value),) * len(STAGES))
    newest = np.arange(100, KEPT + 100)
    for summary in times.summary():
        assert (summary.p50_ms, summary.p95_ms, summary.n) == (*np.percentile(newest, [50, 95]), KEPT)
    times.clear()
    assert not len(times.kept)


# The loop.


def test_every_stage_is_timed_and_the_parts_make_the_whole(env):
    board, policy = FakeBoard(), Scripted()

    async def play():
        loop = Loop(env, policy, board)
        await loop.restart(3)
        for _ in range(20):
            assert await loop.step()
        return loop

    loop = asyncio.run(play())
    kept = dict(zip(STAGES, loop.times.kept.T, strict=True))
    assert (kept["compute"] == 2.0).all()
    assert (kept["hand-over"] == 1.0).all()
    assert (kept["draw"] == 0.5).all()
    assert (kept["capture"] > 0).all()
    assert (kept["preprocess"] > 0).all()
    # The policy made its 3 ms up and the board its half one: without them, the parts lie within the whole.
    within = kept["capture"] + kept["preprocess"] + kept["decide"] + 3.0
    assert (within <= kept["decision"] + 1e-9).all()
    assert board.shown == [4] * 20
    assert (loop.decisions, loop.frames, loop.games) == (20, 80, 0)


def test_measuring_changes_nothing_about_the_game(env):
    async def play(measure):
        loop = Loop(env, RandomPolicy(1), FakeBoard(), measure=measure)
        await loop.restart(3)
        while await loop.step():
            pass
        return loop.score, loop.decisions, loop.frames, loop.games, env.observation.tobytes(), len(loop.times.kept)

    measured, plain = asyncio.run(play(True)), asyncio.run(play(False))
    assert measured[:-1] == plain[:-1]
    assert (measured[-1], plain[-1]) == (measured[1], 0)


def test_a_decision_in_a_hidden_tab_is_not_counted(env):
    hides = iter([0, 0, 1, 1])

    async def play():
        loop = Loop(env, Scripted(), FakeBoard(), hidden_count=lambda: next(hides))
        await loop.restart(1)
        for _ in range(3):
            await loop.step()
        return loop

    loop = asyncio.run(play())
    assert (len(loop.times.kept), loop.decisions) == (2, 3)


def test_a_late_decision_is_counted(env, monkeypatch):
    ticks = iter(np.arange(0, 100, 0.02))  # every look at the clock costs 20 ms
    monkeypatch.setattr(loops.time, "perf_counter", lambda: float(next(ticks)))

    async def play():
        loop = Loop(env, Scripted(), FakeBoard())
        await loop.restart(1)
        await loop.step()
        return loop

    loop = asyncio.run(play())
    assert loop.times.kept[0, STAGES.index("decision")] > DEADLINE_MS
    assert loop.late == 1


def test_an_exchange_waits_for_the_decision_that_is_being_made(env):
    first, second = Scripted(actions=(2,)), Scripted(actions=(3,))

    async def play():
        loop = Loop(env, first, FakeBoard())
        await loop.restart(1)
        stepping = asyncio.ensure_future(loop.step())
        await asyncio.sleep(0)
        assert first.active == 1
        assert await loop.exchange(second) is first
        assert (first.active, first.calls, stepping.done()) == (0, 1, True)
        before = env.observation.tobytes()
        await loop.step()
        return before, loop

    before, loop = asyncio.run(play())
    assert (second.calls, loop.decisions) == (1, 2)
    assert before != env.observation.tobytes()
    assert len(loop.times.kept) == 1  # the other policy's times are no longer there


# The runner.


async def until(condition, limit=2000):
    for _ in range(limit):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it did not come to pass")


def run(env, policy, scenario):
    async def play():
        board = FakeBoard()
        loop = Loop(env, policy, board)
        await loop.restart(1)
        told = []
        runner = Runner(loop, board, lambda: told.append(runner.state))
        try:
            await scenario(runner, loop, told)
        finally:
            await runner.stop()
        return loop

    return asyncio.run(play())


def test_pause_step_resume(env):
    async def scenario(runner, loop, told):
        await asyncio.sleep(0.01)
        assert loop.decisions == 0  # it waits for somebody to resume it
        await runner.step()
        assert (loop.decisions, runner.state) == (1, "paused")
        runner.resume()
        await until(lambda: loop.decisions >= 5)
        runner.pause()
        await asyncio.sleep(0.01)
        count = loop.decisions
        await asyncio.sleep(0.01)
        assert (loop.decisions, runner.state) == (count, "paused")
        runner.pause()
        runner.resume()
        await until(lambda: loop.decisions > count)
        assert set(told) == {"paused", "playing"}

    run(env, Scripted(), scenario)


def test_a_game_that_is_over_waits_for_another(env):
    async def scenario(runner, loop, told):
        runner.resume()
        await until(lambda: runner.state == "over")
        assert (loop.games, told[-1]) == (1, "over")
        runner.resume()
        await runner.step()
        assert runner.state == "over"
        await runner.restart(2)
        assert (runner.state, loop.score, loop.games) == ("playing", 0, 1)
        await until(lambda: loop.decisions >= 3)

    run(env, Scripted(), scenario)


def test_a_lost_engine_stops_the_game_and_another_plays_on_from_the_same_state(env):
    lost = EngineError("EngineCrashed", "engine wasm-1 stopped", "Choose another engine.")

    async def scenario(runner, loop, told):
        runner.resume()
        await until(lambda: runner.state == "failed")
        assert described(runner.error) == {
            "name": "EngineCrashed",
            "message": "engine wasm-1 stopped",
            "remedy": "Choose another engine.",
        }
        before, decisions = env.observation.tobytes(), loop.decisions
        assert decisions == 6
        runner.resume()
        assert runner.state == "failed"
        await runner.exchange(Scripted(actions=(3,)))
        assert (runner.state, runner.error) == ("playing", None)
        assert env.observation.tobytes() == before
        await until(lambda: loop.decisions >= decisions + 3)

    run(env, Scripted(fail_at=7, error=lost), scenario)


@pytest.mark.parametrize("error", [ZeroDivisionError("division by zero"), RuntimeError("policy")])
def test_whatever_a_policy_raises_stops_its_game_and_nothing_else(env, error):
    async def scenario(runner, loop, told):
        runner.resume()
        await until(lambda: runner.state == "failed")
        assert described(runner.error)["name"] == type(error).__name__
        await runner.restart(1)
        assert runner.state == "failed"  # the same policy would only fail again

    run(env, Scripted(fail_at=2, error=error), scenario)


def test_a_policy_s_bad_action_is_its_own_fault(env):
    async def scenario(runner, loop, told):
        runner.resume()
        await until(lambda: runner.state == "failed")
        assert "action must be" in str(runner.error)
        await runner.exchange(Scripted())
        await until(lambda: loop.decisions > 3)

    run(env, Scripted(actions=(7,)), scenario)


def test_the_agent_beats_random_over_the_same_seeds():
    """The committed model, with onnxruntime, to the first 200 decisions of three games."""
    native = pytest.importorskip("pyapp.native.engine")
    from pathlib import Path

    model = (Path(__file__).resolve().parents[2] / "fixtures" / "breakout_dqn.onnx").read_bytes()

    async def score(policy, seed):
        with atari.NativeBreakout() as environment:
            loop = Loop(environment, policy, FakeBoard())
            await loop.restart(seed)
            while loop.decisions < 200 and await loop.step():
                pass
            return loop.score

    async def play():
        engine = await native.open_engine(EngineSpec("cpu-1", "cpu"), model)
        return [(await score(Agent(engine), seed), await score(RandomPolicy(seed), seed)) for seed in (1, 2, 3)]

    for agent, random in asyncio.run(play()):
        assert agent > random


@pytest.mark.parametrize(("returned", "action"), [(0, 0), (np.int64(3), 3), ("FIRE", 1), ("LEFT", 3)])
def test_a_plain_function_can_play(env, returned, action):
    seen = []

    def policy(observation, ram, info):
        seen.append((observation.shape, ram.shape, info["lives"]))
        return returned

    async def slow(observation, ram, info):
        await asyncio.sleep(0)
        return policy(observation, ram, info)

    observation, info = env.reset(seed=1)
    for function in (policy, slow):
        decision = asyncio.run(FunctionPolicy(function, env.emulator.ram).decide(observation, info))
        assert decision.action == action
    assert seen == [((4, 84, 84), (128,), 5)] * 2


@pytest.mark.parametrize("returned", [None, 4, -1, "JUMP", 1.0, True])
def test_what_is_no_action_is_named(env, returned):
    observation, info = env.reset(seed=1)
    policy = FunctionPolicy(lambda *_: returned, env.emulator.ram)
    with pytest.raises(AppError, match="which is no action") as caught:
        asyncio.run(policy.decide(observation, info))
    assert repr(returned) in caught.value.message
    assert "NOOP" in caught.value.remedy


def test_a_function_that_raises_is_told_of_and_named(env):
    observation, info = env.reset(seed=1)
    heard = []
    policy = FunctionPolicy(lambda *_: 1 / 0, env.emulator.ram, heard.append)
    with pytest.raises(AppError, match="the policy raised ZeroDivisionError"):
        asyncio.run(policy.decide(observation, info))
    assert isinstance(heard[0], ZeroDivisionError)


def test_the_example_that_follows_the_ball_beats_chance():
    source = Path("web/examples/tracker.py").read_text(encoding="utf-8").split("try:")[0]
    namespace = {}
    exec(source, namespace)

    async def score(policy):
        with atari.NativeBreakout(max_frames=6_000) as environment:
            observation, info = environment.reset(seed=3)
            total, ended = 0.0, False
            while not ended:
                decision = await policy(environment).decide(observation, info)
                observation, reward, terminated, truncated, info = environment.step(decision.action)
                total += reward
                ended = terminated or truncated
        return total

    tracker = asyncio.run(score(lambda environment: FunctionPolicy(namespace["policy"], environment.emulator.ram)))
    drawn = RandomPolicy(3)
    chance = asyncio.run(score(lambda _: drawn))
    assert tracker > 3 * max(chance, 1), (tracker, chance)
