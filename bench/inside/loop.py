"""Runs in the page's Python: blocks of the agent's loop, as fast as it goes, against blocks of inference alone."""

import time

import numpy as np


async def main(blocks, decisions, runs):
    """Time the blocks in turns, with the game that the page has started and paused.

    Returns
    -------
    dict
        For each block: `alone`, the milliseconds of each run of inference alone; `stages`, those of each decision's stages, as
        `pyapp.breakout.loop.STAGES` orders them; `measured` and `plain`, those of a decision from outside, at the median, with
        the stages timed and without.
    """
    runner = page.agent.runner  # noqa: F821 - the console's names
    loop, engine, inputs = runner.loop, runner.loop.policy.engine, states.inputs(0)  # noqa: F821
    found = {"alone": [], "stages": [], "measured": [], "plain": []}

    async def alone():
        found["alone"].append((await engine.time(inputs, runs)).samples_ms.tolist())

    async def measured():
        loop.times.clear()
        found["measured"].append(await play(loop, decisions))
        found["stages"].append(loop.times.kept.tolist())

    async def plain():
        loop.measure = False
        found["plain"].append(await play(loop, decisions))
        loop.measure = True

    for block in range(blocks + 1):  # the first round only warms up
        for job in (alone, measured, plain) if block % 2 else (alone, plain, measured):
            await job()
    return {name: values[1:] for name, values in found.items()}


async def play(loop, decisions):
    """Play some decisions; returns the milliseconds of one, at the median, without what lies between two of them."""
    board = page.agent.board  # noqa: F821
    spent = []
    for _ in range(decisions):
        start = time.perf_counter()
        goes_on = await loop.step()
        spent.append((time.perf_counter() - start) * 1000)
        if not goes_on:
            await loop.restart(None)
        if (waiting := board.wait()) is not None:
            await waiting
    return float(np.median(spent))
