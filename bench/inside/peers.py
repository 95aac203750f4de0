"""Runs in the page's Python: one ratio of two engines, by a peer's method of timing or by ours."""

import numpy as np

from pyapp.race import RaceSettings, race


async def main(method, names, runs, warmup):
    """Time the engines `names` by `method`, ``peer`` or ``ours``; returns the ratio of the first to the second."""
    return await {"peer": peer, "ours": ours}[method](names, states.inputs(0), runs, warmup)  # noqa: F821 - the console's names


async def peer(names, inputs, runs, warmup):
    """Engine after engine in a fixed order: open it, warm it up, take the mean of its runs."""
    means = []
    for name in names:
        engine = await open_engine(name)  # noqa: F821
        await engine.time(inputs, warmup)
        means.append(float(np.mean((await engine.time(inputs, runs)).samples_ms)))
        await engine.close()
    return means[0] / means[1]


async def ours(names, inputs, runs, warmup):
    """All engines in one race, in shuffled blocks with a lead-in; the medians of their runs."""
    engines = [await open_engine(name) for name in names]  # noqa: F821
    for engine in engines:
        await engine.run(inputs)
    lanes = await race(engines, inputs, RaceSettings(runs=runs, warmup=warmup))
    for lane in lanes:
        await lane.engine.close()
        if lane.error:
            raise lane.error
    medians = [float(np.median(lane.samples_ms)) for lane in lanes]
    return medians[0] / medians[1]
