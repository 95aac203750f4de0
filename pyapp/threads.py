"""Which thread count suits this machine best? The runtime fixes it per engine, so each candidate is opened and timed."""

from __future__ import annotations

import numpy as np

from pyapp.engine import EngineSpec, OpenEngine, Tensors

WARMUP_RUNS = 10
TIMED_RUNS = 30


def thread_candidates(cores: int) -> list[int]:
    """Thread counts worth trying on a machine with `cores` logical processors: powers of two, half of them, and all.

    One thread is left out: it is an engine of its own. The list is empty on a machine with one processor.
    """
    powers = [1 << exponent for exponent in range(1, 7)]
    return sorted({count for count in (*powers, cores // 2, cores) if 2 <= count <= min(cores, 64)})


async def best_threads(open_engine: OpenEngine, model: bytes, inputs: Tensors, cores: int) -> dict[int, float]:
    """Time the candidates one after the other.

    Parameters
    ----------
    open_engine : OpenEngine
        Opens engines.
    model : bytes
        An ONNX file.
    inputs : mapping of str to array
        The model's inputs, batch 1.
    cores : int
        Logical processors.

    Returns
    -------
    dict of int to float
        Median milliseconds of one run by thread count, best first; empty on a machine with one processor.
    """
    medians: dict[int, float] = {}
    for threads in thread_candidates(cores):
        engine = await open_engine(EngineSpec.parse(f"wasm-{threads}"), model)
        try:
            await engine.time(inputs, WARMUP_RUNS)
            medians[threads] = float(np.median((await engine.time(inputs, TIMED_RUNS)).samples_ms))
        finally:
            await engine.close()
    return dict(sorted(medians.items(), key=lambda item: item[1]))
