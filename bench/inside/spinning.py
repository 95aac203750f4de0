"""Runs in the page's Python: wasm-1 by itself, and just after a neighbour with threads has run and gone idle."""

import asyncio
from dataclasses import replace

import numpy as np

from pyapp.engine import EngineSpec


async def main(rounds, runs, threads):
    """Time all of them in shuffled rounds; returns milliseconds by condition."""
    spec = EngineSpec.parse("wasm-1")
    neighbour = EngineSpec.parse(f"wasm-{threads}")
    victim = await page.open_engines(spec, model)  # noqa: F821 - the console's own names
    neighbours = {
        "spinning": await page.open_engines(replace(neighbour, spinning=True), model),  # noqa: F821
        "blocking": await page.open_engines(replace(neighbour, spinning=False), model),  # noqa: F821
    }
    inputs = states.inputs(0)  # noqa: F821
    for engine in (victim, *neighbours.values()):
        await engine.time(inputs, 20)
    samples = {name: [] for name in ("alone", *neighbours)}
    own = {name: [] for name in neighbours}
    rng = np.random.default_rng(0)
    for _ in range(rounds):
        for name in rng.permutation(list(samples)):
            await asyncio.sleep(0.2)  # whoever spun before has stopped
            if name in neighbours:
                own[name] += (await neighbours[name].time(inputs, runs)).samples_ms.tolist()
            samples[name] += (await victim.time(inputs, runs)).samples_ms.tolist()
    for engine in (victim, *neighbours.values()):
        await engine.close()
    return {"victim": samples, "neighbour": own}
