"""Which configurations of an engine are worth trying, how simple each is, and what rules one out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyapp.engine import FLOAT32, EngineSpec
from pyapp.parity import Answers
from pyapp.threads import thread_candidates


def candidate_names(environment: Mapping[str, Any], *, precision: bool) -> list[str]:
    """Name the configurations that make sense on a machine.

    Parameters
    ----------
    environment : mapping
        What the host says of itself: `cores`, `cross_origin_isolated`, `webgpu`, `jspi`.
    precision : bool
        Whether variants of the model in 8 and 16 bits are among them.
    """
    threads = [1, *(thread_candidates(environment["cores"]) if environment["cross_origin_isolated"] else [])]
    names = [f"wasm-{count}" for count in threads]
    if precision:
        names += [f"wasm-{count}-int8" for count in sorted({threads[0], threads[-1]})]
    if environment["webgpu"]:
        # Without a build in its name, an engine runs on JSPI where the browser has it.
        builds = ["", "-asyncify"] if environment["jspi"] else [""]
        names += [f"webgpu-{runner}{build}" for runner in ("stock", "fast-nocapture", "fast") for build in builds]
        if precision:
            names += ["webgpu-stock-float16", "webgpu-fast-float16"]
    return names


def simplicity(spec: EngineSpec) -> int:
    """Rank a configuration by what it asks of who ships it, the simplest first.

    One thread needs nothing; threads need a cross-origin isolated page; WebGPU needs a browser that has it, the fast runner our
    code besides, and capture a fixed shape; a build that is not the browser's best is larger; a variant is another file.
    """
    runners = {"stock": 1, "fast-nocapture": 2, "fast": 3}
    rank = 200 + 100 * runners[spec.runner] if spec.provider == "webgpu" else min(spec.threads - 1, 99)
    return rank + (50 if spec.build != "auto" else 0) + (1000 if spec.precision != FLOAT32 else 0)


def why_wrong(answers: Answers, precision: str) -> str | None:
    """Say why answers rule a candidate out; None where they do not.

    In float32, rounding has to explain every difference. A variant's scores differ by design, so its actions count alone.
    """
    if precision == FLOAT32:
        return answers.problems[0] if answers.problems else None
    if answers.failures:
        return answers.problems[0]
    if answers.disagreements:
        return (
            f"{len(answers.disagreements)} of {answers.cases} actions are not Python's (first: case {answers.disagreements[0]})"
        )
    return None
