"""Results of the questions, turned into the sections of a report."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from pyapp import report as r
from pyapp.agreement import OutputAgreement
from pyapp.cases import Cases, Suite
from pyapp.engine import Engine, EngineError, EngineFacts, EngineSpec
from pyapp.parity import Answers, CaseParity, Parity
from pyapp.race import Lane, lane_faults, ratio

if TYPE_CHECKING:
    from pyapp.breakout.loop import StageSummary

TIMES = ("p50", "p95", "mean", "min", "max")


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _count(items: list[int], noun: str) -> str:
    return f"{len(items)} {noun}{'' if len(items) == 1 else 's'}"


def score_rows(scores: np.ndarray[Any, Any]) -> list[list[float]]:
    """State scores, float32 [n,actions]."""
    # The shortest decimal that gives the float32 back, instead of 17 digits of its float64.
    return [[float(str(score)) for score in row] for row in scores]


def environment_entry(known: Mapping[str, Any], steps_ms: Iterable[float], model: bytes) -> r.Environment:
    """State where something is measured.

    `known` is what the host says of itself, `steps_ms` are the steps of the engines' clocks, 0 where one is not known.
    """
    warnings = []
    if not known["cross_origin_isolated"]:
        warnings.append(
            "the page is not cross-origin isolated: one thread only, and a coarse clock; "
            "serve it with the COOP and COEP headers of its _headers file"
        )
    return r.Environment(
        **known,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        clock_step_ms=max(filter(None, steps_ms), default=None),
        model_sha256=hashlib.sha256(model).hexdigest(),
        valid=not warnings,
        warnings=warnings,
    )


def suite_entry(suite: Cases) -> r.SuiteEntry:
    """State a suite, with the reference's answers where they are scores of actions."""
    scored = suite if isinstance(suite, Suite) else None
    return r.SuiteEntry(
        suite=suite.name,
        cases=len(suite),
        source=suite.source,
        q_values=score_rows(scored.q_values) if scored else [],
        action=scored.action.tolist() if scored else [],
        margin=[float(str(margin)) for margin in scored.margin] if scored else [],
    )


def failure(error: EngineError) -> r.Failure:
    """State an engine's error for a report."""
    return r.Failure(name=error.kind, message=error.message, remedy=error.remedy)


def _requested(spec: EngineSpec) -> r.Requested:
    return r.Requested(provider=spec.provider, build=spec.build, runner=spec.runner, threads=spec.threads)


def failed_entry(spec: EngineSpec, error: EngineError) -> r.EngineEntry:
    """State an engine that could not be opened."""
    return r.EngineEntry(
        name=spec.name,
        requested=_requested(spec),
        actual=None,
        create_ms=None,
        first_run_ms=None,
        error=failure(error),
        valid=False,
        warnings=[f"{error.message}. {error.remedy}".strip()],
    )


def engine_entry(
    engine: Engine, facts: EngineFacts, first_run_ms: float, sweep: dict[int, float] | None, missing: str | None
) -> r.EngineEntry:
    """State an engine that was opened.

    `sweep` is the measurement behind its thread count, `missing` says why there are no nodes.
    """
    warnings = [missing] if missing else []
    if facts.software:
        warnings.append("the GPU is a software adapter: the answers count, the time does not; use a machine with a GPU")
    if facts.threads != engine.spec.threads:
        warnings.append(f"asked for {engine.spec.threads} threads, got {facts.threads}; is the page cross-origin isolated?")
    if facts.fallback_nodes:
        warnings.append(f"{facts.fallback_nodes} nodes ran on the CPU although the GPU was asked for")
    return r.EngineEntry(
        name=engine.spec.name,
        requested=_requested(engine.spec),
        actual=r.Actual(
            provider=facts.provider,
            build=facts.build,
            runner=facts.runner,
            threads=facts.threads,
            nodes=facts.nodes,
            adapter=r.Adapter(**asdict(facts.adapter)) if facts.adapter else None,
            fallbacks=facts.fallbacks,
        ),
        create_ms=engine.create_ms,
        first_run_ms=first_run_ms,
        error=None,
        thread_sweep={str(threads): ms for threads, ms in sweep.items()} if sweep else None,
        valid=not facts.fallback_nodes and facts.threads == engine.spec.threads,
        warnings=warnings,
    )


def agreement_entries(result: Answers) -> list[r.AgreementEntry]:
    """State how each output agrees, where outputs were judged one by one."""
    if isinstance(result, Parity):
        return []
    return [_agreement_entry(result, output) for output in result.outputs]


def _agreement_entry(result: CaseParity, output: OutputAgreement) -> r.AgreementEntry:
    worst = output.worst_case
    return r.AgreementEntry(
        engine=result.engine,
        suite=result.suite,
        output=output.output,
        dtype=output.dtype,
        criterion=output.criterion,
        rtol=output.tolerance.rtol,
        atol=output.tolerance.atol,
        cases=len(output.differences),
        agree=output.agree,
        close=sum(one.close for one in output.differences),
        passed=not output.problems,
        max_abs=_number(output.most("max_abs")),
        max_rel=_number(output.most("max_rel")),
        max_ulp=_number(output.most("max_ulp")),
        cosine=_number(output.cosine),
        snr_db=_number(output.snr_db),
        worst_case=worst,
        worst_index=list(output.differences[worst].worst),
        failures=[r.CaseFailure(case=case, failure=failure) for case, failure in output.failures.items()],
        valid=not output.failures,
        warnings=output.problems,
    )


def parity_entry(result: Answers) -> r.ParityEntry:
    """Turn a parity result into its section of the report."""
    scored = result if isinstance(result, Parity) else None
    what, whose = ("action", "Python's") if scored else ("best score", "the reference's")
    warnings = list(result.problems)
    if result.explained:
        warnings.append(f"{_count(result.explained, what)} differ from {whose} where the error is as large as the margin")
    elif result.passed and result.could_flip:
        warnings.append(
            f"{_count(result.could_flip, 'case')} with a margin of at most twice the error, which could flip the {what}"
        )
    return r.ParityEntry(
        engine=result.engine,
        suite=result.suite,
        cases=result.cases,
        agree=result.agree,
        passed=result.passed,
        max_abs_diff=_number(result.max_abs_diff),
        mean_abs_diff=_number(result.mean_abs_diff),
        min_margin=scored.min_margin if scored else None,
        hardest=result.hardest,
        could_flip=result.could_flip,
        disagreements=result.disagreements,
        explained=result.explained,
        failures=[r.CaseFailure(case=case, failure=failure) for case, failure in result.failures.items()],
        q_values=[row if all(map(math.isfinite, row)) else None for row in score_rows(scored.q_values)] if scored else [],
        action=scored.action.tolist() if scored else [],
        valid=not result.failures,
        warnings=warnings,
    )


def race_entry(lane: Lane, warmup: int, *, hidden: bool) -> r.RaceEntry:
    """Turn a lane of a race, finished or not, into its section of the report."""
    summary = lane.summary
    percentiles = (
        {f"{key}_ms": getattr(summary, key) for key in TIMES} if summary else dict.fromkeys(f"{key}_ms" for key in TIMES)
    )
    faults = lane_faults(lane, hidden=hidden)
    return r.RaceEntry(
        engine=lane.engine.spec.name,
        runs=summary.n if summary else 0,
        warmup=warmup,
        lead_in=lane.lead_in,
        **percentiles,
        outliers=summary.outliers if summary else 0,
        clock_step_ms=lane.engine.facts.clock_step_ms,
        samples_ms=lane.samples_ms.round(6).tolist(),
        warmup_ms=[round(ms, 6) for ms in lane.warmup_ms],
        blocks=[len(samples) for samples in lane.rounds],
        valid=not faults,
        warnings=faults,
    )


def no_ratio(numerator: str, denominator: str, reason: str) -> r.RatioEntry:
    """State a ratio that cannot be had."""
    return r.RatioEntry(
        numerator=numerator,
        denominator=denominator,
        p50=None,
        low=None,
        high=None,
        p95=None,
        p95_low=None,
        p95_high=None,
        reason=reason,
        valid=False,
    )


def ratio_entry(numerator: Lane, denominator: Lane, *, seed: int, hidden: bool) -> r.RatioEntry:
    """State how many times as long one lane takes as another."""
    found = ratio(numerator, denominator, seed=seed, hidden=hidden)
    if not found.p50 or not found.p95:
        return no_ratio(found.numerator, found.denominator, found.reason or "the race was not finished")
    warnings = [] if not found.p50.spans_one else ["the interval spans 1: this run does not tell which one is faster"]
    return r.RatioEntry(
        numerator=found.numerator,
        denominator=found.denominator,
        p50=found.p50.value,
        low=found.p50.low,
        high=found.p50.high,
        p95=found.p95.value,
        p95_low=found.p95.low,
        p95_high=found.p95.high,
        reason=None,
        warnings=warnings,
    )


def loop_entries(
    engine: str, summary: Iterable[StageSummary], *, missed_frames: int, frames: int, late: int, software: bool
) -> list[r.LoopEntry]:
    """State what the agent's loop took on one engine; nothing, where it has not decided anything yet."""
    return [
        r.LoopEntry(
            engine=engine,
            stage=stage.stage,
            p50_ms=stage.p50_ms,
            p95_ms=stage.p95_ms,
            n=stage.n,
            frames=frames,
            missed_frames=missed_frames,
            late_decisions=late,
            valid=not software,
            warnings=["the GPU is a software adapter: its time is never compared"] if software else [],
        )
        for stage in summary
        if stage.n
    ]
