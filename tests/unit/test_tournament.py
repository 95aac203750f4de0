import asyncio
import dataclasses
import hashlib
import json
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from fakes import FakeBreakout, FakeEngine, linear_scores

from pyapp.breakout.games import Departure, Game, ReferenceGames, Start
from pyapp.breakout.tournament import MANY, Tournament, TournamentSettings, fast_lanes
from pyapp.engine import EngineError, EngineSpec
from pyapp.errors import AppError

FIXTURES = Path(__file__).parents[2] / "fixtures"
STARTS = tuple(Start(seed=seed, opening=2) for seed in range(4))


@pytest.fixture(autouse=True)
def all_closed():
    FakeBreakout.open_now = 0
    yield
    assert FakeBreakout.open_now == 0


def engine(name="wasm-1", **told):
    return FakeEngine(EngineSpec.parse(name), **told)


def settings(**told):
    return TournamentSettings(**{"starts": STARTS, "epsilon": 0.3} | told)


def played(*engines, environment=FakeBreakout.opened, told=None, **more):
    tournament = Tournament(engines, environment, told or settings(), **more)
    return tournament, asyncio.run(tournament.play())


def games_of(finished, name="wasm-1"):
    return [one.game for one in finished if one.engine == name]


def test_every_engine_plays_the_same_games_with_the_same_random_numbers():
    tournament, finished = played(engine("wasm-1"), engine("webgpu-stock"))
    assert tournament.total == len(finished) == 8
    assert games_of(finished) == games_of(finished, "webgpu-stock")
    assert [game.decisions for game in games_of(finished)] == [7, 8, 9, 10]
    greedy = games_of(played(engine(), told=settings(epsilon=0))[1])
    assert [game.actions[:2] for game in greedy] == ["".join(map(str, start.actions())) for start in STARTS]
    assert greedy != games_of(finished), "epsilon changes games"
    for game in greedy:
        assert game.score == sum(map(int, game.actions))


@pytest.mark.parametrize("lanes", [2, 3, 9])
def test_games_side_by_side_are_the_same_games(lanes):
    one, many = engine(), engine()
    assert games_of(played(one)[1]) == games_of(played(many, told=settings(lanes=lanes))[1])
    assert many.asked < one.asked


@pytest.mark.parametrize("after", range(1, 8))
def test_a_tournament_that_is_taken_up_again_ends_as_one_without_interruption(after):
    engines = [engine("wasm-1"), engine("webgpu-stock")]
    whole = [(one.engine, one.game) for one in played(*engines)[1]]
    _, kept = played(*engines, on_change=lambda one: one.cancel() if len(one.finished) == after else None)
    assert len(kept) == after
    asked = []
    _, finished = played(*engines, finished=kept, on_change=lambda one: asked.append(len(one.finished)))
    assert [(one.engine, one.game) for one in finished] == whole
    assert asked == list(range(after + 1, 9)), "no game twice"


def test_cancel_while_paused_ends_it_and_keeps_what_is_finished():
    async def main():
        tournament = Tournament([engine()], FakeBreakout.opened, settings(), on_change=lambda one: one.pause())
        task = asyncio.ensure_future(tournament.play())
        while not tournament.finished:
            await asyncio.sleep(0)
        for _ in range(200):
            await asyncio.sleep(0)
        assert len(tournament.finished) == 1, "paused"
        tournament.resume()
        while len(tournament.finished) < 2:
            await asyncio.sleep(0)
        tournament.cancel()
        assert len(await asyncio.wait_for(task, 5)) == 2

    asyncio.run(main())


def test_an_engine_that_gives_no_answer_is_named_and_the_others_play_on():
    dead = engine("webgpu-fast", scores=lambda observation: np.zeros((len(observation), 4), np.float32))
    tournament, finished = played(dead, engine())
    assert isinstance(tournament.failures["webgpu-fast"], EngineError)
    assert "webgpu-fast" in tournament.failures["webgpu-fast"].message
    assert [one.engine for one in finished] == ["wasm-1"] * 4


def test_an_engine_with_an_error_departs_at_its_first_other_decision_and_the_error_tells_why():
    reference = games_of(played(engine(), told=settings(epsilon=0))[1])
    right = played(engine(), told=settings(epsilon=0), reference=reference)[1]
    assert [one.departure for one in right] == [None] * 4

    def tilted(observation):
        return observation[:, :, 0, 0] @ np.diag([1, 2, 3, 3.9]).astype(np.float32)

    referee = engine("wasm-2")
    found = played(engine("webgpu-fast", scores=tilted), told=settings(epsilon=0), reference=reference, referee=referee)[1]
    departed = [(one, game) for one, game in zip(found, reference, strict=True) if one.departure]
    assert departed
    for one, game in departed:
        at = one.departure.decision
        assert one.game.actions[:at] == game.actions[:at]
        assert one.game.actions[at] != game.actions[at]
        assert (one.departure.action, one.departure.expected) == (int(one.game.actions[at]), int(game.actions[at]))
        corners = one.departure.observation[:, 0, 0].astype(np.float32)
        np.testing.assert_array_equal(one.departure.reference_q_values, corners * [1, 2, 3, 4])
        assert one.departure.explained
    assert referee.asked == len(departed)


def departure(q_values, reference):
    scores = [np.array(values, np.float32) for values in (q_values, reference)]
    return Departure(Start(seed=1), 5, 1, 0, np.zeros((4, 84, 84), np.uint8), *scores)


def test_a_departure_is_explained_only_by_an_error_of_at_least_half_the_margin():
    assert departure([1.0, 1.001, 0, 0], [1.001, 1.0, 0, 0]).explained
    unexplained = departure([1.0, 1.0001, 0, 0], [1.0003, 1.0, 0, 0])
    assert unexplained.margin == pytest.approx(3e-4, rel=1e-2)
    assert unexplained.explained, "the error is as large as the margin"
    assert not departure([1.0, 0.9, 0, 0], [1.0, 0.9, 0, 0]).explained, "the same scores explain nothing"
    assert not departure([0.8, 0.9, 0, 0], [0.8, 0.9, 0, 0]).explained, "the referee does not know the reference's action"


def test_games_are_compared_only_with_those_of_the_same_epsilon():
    reference = [Game(start=start, score=0, truncated=False, actions="0" * 50) for start in STARTS]
    assert all(one.departure is None for one in played(engine(), reference=reference)[1])
    known = games_of(played(engine())[1])
    again = played(engine(), reference=known)[1]
    assert [(one.game, one.departure) for one in again] == [(game, None) for game in known]
    other = [dataclasses.replace(game, actions=f"{game.actions[:-1]}{(int(game.actions[-1]) + 1) % 4}") for game in known]
    assert all(one.departure for one in played(engine(), reference=other)[1])


def test_the_same_decisions_with_another_score_are_another_game():
    known = games_of(played(engine(), told=settings(epsilon=0))[1])
    reference = [dataclasses.replace(game, score=game.score + 1) for game in known]
    tournament, finished = played(engine(), told=settings(epsilon=0), reference=reference)
    assert not finished
    assert tournament.failures["wasm-1"].kind == "OtherGame"
    assert "seed 0" in tournament.failures["wasm-1"].message


def test_a_referee_that_fails_is_not_the_fault_of_the_engine():
    class Dead(FakeEngine):
        async def run(self, inputs, *, limit_s=60.0):
            raise EngineError("EngineEnded", "gone", "")

    reference = [
        dataclasses.replace(game, actions="0" * 50) for game in games_of(played(engine(), told=settings(epsilon=0))[1])
    ]
    tournament, finished = played(
        engine(), told=settings(epsilon=0), reference=reference, referee=Dead(EngineSpec.parse("wasm-2"))
    )
    assert not tournament.failures
    departed = [one.departure for one in finished if one.departure]
    assert departed
    assert not any(departure.explained for departure in departed)


class Eager(FakeEngine):
    """Works while others do something else."""

    log: ClassVar[list[str]] = []

    def begin(self, inputs, *, limit_s=60.0):
        Eager.log.append("begin")
        return self.answer(inputs)

    async def answer(self, inputs):
        found = await self.run_timed(inputs)
        Eager.log.append("answer")
        return found


@pytest.mark.parametrize(
    ("kind", "a_state_s", "a_run_s", "a_step_s", "lanes"),
    [
        (FakeEngine, 0.004, 0.0, 0.001, 1),
        (FakeEngine, 0.0, 0.004, 0.001, MANY),
        (FakeEngine, 0.0005, 0.0005, 0.0001, MANY),
        (Eager, 0.0, 0.004, 0.001, MANY),
        # By turns, the environment costs nothing where an engine works by itself.
        (Eager, 0.0005, 0.0005, 0.0005, 1),
        (Eager, 0.0, 0.001, 0.004, 1),
    ],
)
def test_games_share_a_batch_where_decisions_are_faster_in_one(kind, a_state_s, a_run_s, a_step_s, lanes):
    now = 0.0

    class Timed(FakeBreakout):
        def step(self, action):
            nonlocal now
            now += a_step_s
            return super().step(action)

    def scores(observation):
        nonlocal now
        now += a_run_s + a_state_s * len(observation)
        return linear_scores(observation)

    environment = Timed(100)
    environment.reset(0)
    playing = kind(EngineSpec.parse("wasm-1"), scores=scores)
    assert asyncio.run(fast_lanes(playing, environment, MANY - 1, lambda: now)) == 1
    assert asyncio.run(fast_lanes(playing, environment, 30, lambda: now)) == lanes
    environment.close()


class Logged(FakeBreakout):
    def step(self, action):
        Eager.log.append("step")
        return super().step(action)


async def logged():
    return Logged(100)


def test_an_engine_works_for_one_game_while_the_other_moves():
    Eager.log.clear()
    eager = Eager(EngineSpec.parse("wasm-1"))
    _, finished = played(eager, environment=logged)
    assert games_of(finished) == games_of(played(engine())[1])
    course = "".join(entry[0] for entry in Eager.log)
    assert "abs" in course, "the next run begins before the game moves"
    assert "bb" not in course.replace("s", ""), "one run at a time"
    assert [one.seconds > 0 for one in finished] == [True] * 4


def test_a_run_that_is_under_way_when_it_is_cancelled_is_let_go(recwarn):
    eager = Eager(EngineSpec.parse("wasm-1"))
    _, kept = played(eager, on_change=lambda one: one.cancel())
    assert len(kept) == 1
    assert not recwarn


def test_batches_have_few_sizes():
    sizes = []

    def scores(observation):
        sizes.append(len(observation))
        return linear_scores(observation)

    starts = tuple(Start(seed=seed) for seed in range(8))
    played(engine(scores=scores), told=settings(starts=starts, lanes=8))
    assert set(sizes) <= {8, 4, 2, 1}


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"starts": ()}, "at least one start"),
        ({"starts": (Start(seed=1), Start(seed=1))}, "same start"),
        ({"epsilon": 1.5}, "1.5"),
        ({"lanes": -1}, "got -1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong, named):
    with pytest.raises(ValueError, match=named):
        settings(**wrong)


@pytest.mark.parametrize("opening", [-1, 51, 1.5, True])
def test_an_opening_in_which_a_game_could_end_is_refused(opening):
    with pytest.raises(ValueError, match=str(opening)):
        Start(seed=1, opening=opening)


def test_an_environment_that_refuses_its_seed_is_closed():
    class Refusing(FakeBreakout):
        def reset(self, seed):
            raise ValueError(f"seed {seed}")

    async def refusing():
        return Refusing(9)

    with pytest.raises(ValueError, match="seed 0"):
        played(engine(), environment=refusing)


def test_engines_need_names_of_their_own():
    with pytest.raises(ValueError, match="wasm-1, wasm-1"):
        Tournament([engine(), engine()], FakeBreakout.opened, settings())


@pytest.fixture(scope="module")
def reference():
    return ReferenceGames.from_json((FIXTURES / "games.json").read_bytes())


def test_the_committed_games_are_of_the_committed_model(reference):
    assert reference.model_sha256 == hashlib.sha256((FIXTURES / "breakout_dqn.onnx").read_bytes()).hexdigest()
    for epsilon in (0, 0.01):
        games = reference.at(epsilon).values()
        assert len(games) == 30
        assert len({game.actions[game.start.opening :] for game in games}) > 25
    assert reference.to_json() == (FIXTURES / "games.json").read_text(encoding="utf-8")


def edited(**changes):
    found = json.loads((FIXTURES / "games.json").read_text(encoding="utf-8"))
    return json.dumps(found | {"games": [found["games"][0] | changes]})


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("{", "no JSON"),
        ("[]", "None"),
        ('{"schema": "pyapp-games/9"}', "pyapp-games/9"),
        ('{"schema": "pyapp-games/1"}', "games"),
        (edited(actions="0123"), "seed 0"),
        (edited(actions="0192"), "9"),
        (edited(decisions=3), "seed 0"),
        (edited(seed=None), "another type"),
    ],
)
def test_games_that_contradict_themselves_are_refused(text, named):
    with pytest.raises(AppError, match=named) as refused:
        ReferenceGames.from_json(text)
    assert refused.value.kind == "BadGames"


def test_native_python_plays_a_committed_game_again(reference):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("ale_py")
    from pyapp.native.atari import NativeBreakout
    from pyapp.native.engine import open_engine

    shortest = min(reference.at(0.01).values(), key=lambda game: game.decisions)

    async def main():
        opened = await open_engine(EngineSpec.parse("wasm-1"), (FIXTURES / "breakout_dqn.onnx").read_bytes())
        told = TournamentSettings(starts=(shortest.start,), epsilon=shortest.epsilon)

        async def make():
            return NativeBreakout(max_frames=reference.max_frames)

        tournament = Tournament([opened], make, told, reference=reference.games, referee=opened)
        return await tournament.play()

    [found] = asyncio.run(main())
    # Another processor may round otherwise; then the error has to explain it.
    assert found.game == shortest or found.departure.explained
