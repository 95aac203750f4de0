"""What do fewer bits bring? Variants of the model beside the model itself, on the engines that can run them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pyapp import report as r
from pyapp.cases import Cases
from pyapp.engine import Engine, EngineError, EngineSpec, OpenEngine
from pyapp.host import Hidden, Host
from pyapp.parity import Answers, parity
from pyapp.race import Lane, RaceSettings, lane_faults, race
from pyapp.stats import ratio_interval

RUNS, WARMUP = 30, 5
SOFTWARE_CASES = 8


def variant_of(name: str) -> str:
    """Name the variant that an engine can run: int8 on WASM, float16 on WebGPU."""
    return f"{name}-{'float16' if EngineSpec.parse(name).provider == 'webgpu' else 'int8'}"


async def compare_variant(
    name: str, model: bytes, suite: Cases, open_engine: OpenEngine, host: Host, *, seed: int
) -> r.PrecisionEntry:
    """Ask an engine's variant for its answers, and race it against the model itself, one state at a time.

    Parameters
    ----------
    name : str
        An engine in float32.
    model : bytes
        The model.
    suite : Cases
        States with Python's answers.
    open_engine : OpenEngine
        Knows the model's variants (`pyapp.variants`).
    host : Host
        Where it runs.
    seed : int
        Seed of orders and intervals.
    """
    engines: list[Engine] = []
    hidden = Hidden(host)
    try:
        for wanted in (name, variant_of(name)):
            engines.append(await open_engine(EngineSpec.parse(wanted), model))
        base, variant = engines
        software = variant.facts.software
        answers = await parity(variant, suite.hardest(SOFTWARE_CASES) if software else suite)
        if software:
            return _stated(name, answers, "the GPU is a software adapter: its time is never compared")
        lanes = await race([base, variant], suite.inputs(0), RaceSettings(RUNS, WARMUP, seed))
        for lane in lanes:
            if faults := lane_faults(lane, hidden=hidden.was):
                return _stated(name, answers, f"{lane.engine.spec.name}: {faults[0]}")
        return _stated(name, answers, None, lanes, seed)
    except EngineError as error:
        return _stated(name, None, f"{error.message}. {error.remedy}".strip())
    finally:
        for engine in engines:
            await engine.close()


def _stated(
    base: str, answers: Answers | None, reason: str | None, lanes: Sequence[Lane] = (), seed: int = 0
) -> r.PrecisionEntry:
    summary = lanes[1].summary if lanes else None
    ratio = ratio_interval(lanes[1].rounds, lanes[0].rounds, 50, seed=seed) if lanes else None
    diff = answers.max_abs_diff if answers else math.nan
    changes = bool(answers and answers.disagreements)
    return r.PrecisionEntry(
        engine=variant_of(base),
        base=base,
        agree=answers.agree if answers else 0,
        cases=answers.cases if answers else 0,
        max_abs_diff=diff if math.isfinite(diff) else None,
        changes_action=changes,
        p50_ms=summary.p50 if summary else None,
        p95_ms=summary.p95 if summary else None,
        ratio=ratio.value if ratio else None,
        low=ratio.low if ratio else None,
        high=ratio.high if ratio else None,
        reason=reason,
        valid=reason is None and not changes,
        warnings=["it changes an action, so that it is no substitute however fast it is"] if changes else [],
    )
