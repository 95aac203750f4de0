"""The same game everywhere: the reference's games on onnxruntime-web and ALE in wasm."""

import numpy as np
from pyodide.http import pyfetch

from pyapp.breakout.games import ReferenceGames
from pyapp.breakout.tournament import Tournament, TournamentSettings
from pyapp.onnxfile import array_of, make_tensor, parse_model

PART = 5
"""Games of one test, at most 15,000 decisions: a test may take two minutes, and CI's machine is slow."""


async def tournament_of(open_breakout, engine, epsilon, part, **more):
    """Return a tournament of some of the reference's games, the shortest ones first, and those games."""
    reference = ReferenceGames.from_json(await (await pyfetch("fixtures/games.json")).bytes())
    games = sorted(reference.at(epsilon).values(), key=lambda game: game.decisions)[part * PART : (part + 1) * PART]

    async def open_environment():
        return await open_breakout(max_frames=reference.max_frames)

    settings = TournamentSettings(starts=tuple(game.start for game in games), epsilon=epsilon)
    return Tournament([engine], open_environment, settings, reference=reference.games, **more), games


async def check(opened, open_breakout, epsilon, part):
    """Play a part of the games; every one must be the reference's."""
    async with opened("wasm-1") as engine:
        tournament, games = await tournament_of(open_breakout, engine, epsilon, part)
        finished = await tournament.play()
    assert not tournament.failures, tournament.failures
    assert [one.departure for one in finished] == [None] * PART, finished
    assert [one.game for one in finished] == games


async def test_wasm_plays_the_reference_games_1(opened, open_breakout):
    await check(opened, open_breakout, 0, 0)


async def test_wasm_plays_the_reference_games_2(opened, open_breakout):
    await check(opened, open_breakout, 0, 1)


async def test_wasm_plays_the_reference_games_3(opened, open_breakout):
    await check(opened, open_breakout, 0, 2)


async def test_wasm_plays_the_reference_games_4(opened, open_breakout):
    await check(opened, open_breakout, 0, 3)


async def test_wasm_plays_the_reference_games_5(opened, open_breakout):
    await check(opened, open_breakout, 0, 4)


async def test_wasm_plays_the_reference_games_6(opened, open_breakout):
    await check(opened, open_breakout, 0, 5)


async def test_wasm_plays_the_reference_games_with_epsilon(opened, open_breakout):
    await check(opened, open_breakout, 0.01, 0)


def with_an_error(content):
    """Return the model with 1e-3 more in one weight of its first layer."""
    edited = parse_model(content)
    [tensor] = [one for one in edited.graph.initializer if one.name == "c1.weight"]
    weights = array_of(tensor).copy()
    weights.flat[0] += 1e-3
    tensor.CopyFrom(make_tensor(tensor.name, weights.astype(np.float32)))
    return edited.SerializeToString()


def end_at_the_first(tournament):
    """There is no need to play on once a game has departed."""
    if any(one.departure for one in tournament.finished):
        tournament.cancel()


async def test_a_planted_error_is_found_where_it_first_shows(opened, open_breakout, model):
    async with opened("wasm-1") as referee, opened("wasm-2", with_an_error(model)) as planted:
        tournament, games = await tournament_of(open_breakout, planted, 0, 0, referee=referee, on_change=end_at_the_first)
        finished = await tournament.play()
        departed = next((one for one in finished if one.departure), None)
        assert departed, "no game departed"
        found, [expected] = departed.departure, [game for game in games if game.start == departed.game.start]
        assert departed.game.actions[: found.decision] == expected.actions[: found.decision]
        inputs = {"observation": found.observation[np.newaxis].astype(np.float32)}
        assert int((await referee.run(inputs))["q_values"][0].argmax()) == found.expected
        assert int((await planted.run(inputs))["q_values"][0].argmax()) == found.action
        assert 0 < found.margin <= 2 * found.error, (found.margin, found.error)
