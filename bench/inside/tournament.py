"""Whole games at full speed and their parts, timed by the same code on CPython and inside Pyodide."""

import time

import numpy as np

from pyapp.breakout.games import Start
from pyapp.breakout.tournament import Tournament, TournamentSettings


async def block(engine, open_environment, decisions, seed):
    """Time one block.

    Returns
    -------
    dict
        Milliseconds of one decision: `whole`, in a tournament of two games that are cut off after so many decisions; and of
        each of one game's, with the same actions: `infer`, from asking the engine to its answer; `compute`, the engine's own
        part of that; `step`, of the environment.
    """

    async def short():
        return await open_environment(max_frames=4 * decisions)

    settings = TournamentSettings(starts=(Start(seed=seed), Start(seed=seed + 1000)), epsilon=0.01)
    games = await Tournament([engine], short, settings).play()
    whole = 1000 * sum(game.seconds for game in games) / sum(game.game.decisions for game in games)
    found = {"whole": [whole], "infer": [], "compute": [], "step": []}
    environment = await short()
    try:
        environment.reset(seed)
        for action in games[0].game.actions:
            inputs = {"observation": environment.observation[np.newaxis].astype(np.float32)}
            begun = time.perf_counter()
            _, compute_ms = await engine.run_timed(inputs)
            answered = time.perf_counter()
            environment.step(int(action))
            found["step"].append((time.perf_counter() - answered) * 1000)
            found["infer"].append((answered - begun) * 1000)
            found["compute"].append(compute_ms)
    finally:
        environment.close()
    return found


async def main(decisions, seed):
    """Time one block in the page."""
    engine = await open_engine("wasm-1")  # noqa: F821 - the console's names
    try:
        await engine.time(states.inputs(0), 20)  # noqa: F821
        return await block(engine, open_breakout, decisions, seed)  # noqa: F821
    finally:
        await engine.close()
