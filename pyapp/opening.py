"""Engines as all questions open them: named, tried once, and stated with what they turned out to be."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from pyapp import report as r
from pyapp.engine import Engine, EngineError, EngineFacts, EngineSpec, OpenEngine, Tensors
from pyapp.host import Host, usable_cores
from pyapp.sections import engine_entry
from pyapp.threads import best_threads

BEST_THREADS = "wasm-N"
FIRST_RUN_LIMIT_S = 120
"""On WebGPU the first run compiles shaders."""


def unnamed(name: str) -> EngineSpec:
    """Return what a report says of an engine that never came to have a configuration."""
    return EngineSpec(name=name, provider="wasm", threads=0)


async def resolved(
    name: str, open_engine: OpenEngine, model: bytes, inputs: Tensors, host: Host
) -> tuple[EngineSpec, dict[int, float] | None]:
    """Turn an engine's name into its configuration; for ``wasm-N``, by measuring.

    Returns
    -------
    tuple of EngineSpec and (dict of int to float or None)
        The configuration, and the median milliseconds by thread count where they were measured.

    Raises
    ------
    EngineError
        If the thread counts cannot be measured.
    """
    if name != BEST_THREADS:
        return EngineSpec.parse(name), None
    medians = await best_threads(open_engine, model, inputs, usable_cores(host))
    return EngineSpec.parse(f"wasm-{next(iter(medians), 1)}"), medians


async def introduced(
    engine: Engine, inputs: Tensors, thread_sweep: dict[int, float] | None = None, *, nodes: bool = True
) -> r.EngineEntry:
    """Run an engine that has just been opened for the first time, and state it.

    Parameters
    ----------
    engine : Engine
        It has not run yet.
    inputs : mapping of str to array
        What it is run with.
    thread_sweep : dict of int to float, optional
        The measurement behind its thread count.
    nodes : bool
        Whether to find out which provider runs which node; that opens the model once more.

    Raises
    ------
    EngineError
        If it cannot run at all.
    """
    first_run_ms = float((await engine.time(inputs, 1, limit_s=FIRST_RUN_LIMIT_S)).samples_ms[0])
    facts, missing = await _with_nodes(engine, inputs) if nodes else (engine.facts, None)
    return engine_entry(engine, facts, first_run_ms, thread_sweep, missing)


async def _with_nodes(engine: Engine, inputs: Tensors) -> tuple[EngineFacts, str | None]:
    """Return the engine's facts with its nodes per provider, or without them and why."""
    try:
        profile = await engine.profile(inputs)
    except EngineError as error:
        return engine.facts, f"no profile, so where the nodes ran is not known: {error.message}"
    return replace(engine.facts, nodes=dict(Counter(node.provider for node in profile))), None
