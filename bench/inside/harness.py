"""Runs in the page's Python: one block of the harness benchmark is a race of `engine`, which the console has opened."""

from pyapp.race import RaceSettings, race


async def main(runs, warmup):
    """Race wasm-1 alone; returns the milliseconds of its measured runs."""
    lane = (await race([engine], states.inputs(0), RaceSettings(runs=runs, warmup=warmup)))[0]  # noqa: F821 - the console's names
    if lane.error or lane.bad:
        raise RuntimeError(f"{lane.error}, {lane.bad} bad runs")
    return lane.samples_ms.tolist()
