"""The versioned report: what a check found, as dataclasses that turn into JSON and back.

Every section carries `valid` (may its numbers be relied on?) and `warnings` (why not, or what to mind, with the remedy).
A number that could not be had is null, never zero.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

SCHEMA = "pyapp-report/1"


class ReportError(ValueError):
    """A report that is not one; `faults` holds a line for each fault, with its place."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("not a valid report: " + "; ".join(faults))
        self.faults = faults


@dataclass(frozen=True, kw_only=True)
class Section:
    """What every section has."""

    valid: bool = True
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Environment(Section):
    """Where the check ran. `versions` names the software, `model_sha256` the model.

    `webgpu` and `jspi` tell whether the browser offers WebGPU and ``WebAssembly.Suspending``.
    """

    created: str
    user_agent: str
    platform: str
    cores: int
    memory_gib: float | None
    cross_origin_isolated: bool
    secure_context: bool
    webgpu: bool
    jspi: bool
    clock_step_ms: float | None
    versions: dict[str, str]
    model_sha256: str


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the check was asked to do."""

    engines: list[str]
    runs: int
    warmup: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class Requested:
    """An engine's configuration as asked for."""

    provider: str
    build: str
    runner: str
    threads: int


@dataclass(frozen=True, kw_only=True)
class Adapter:
    """A WebGPU engine's graphics adapter."""

    vendor: str
    architecture: str
    device: str
    description: str
    software: bool


@dataclass(frozen=True, kw_only=True)
class Actual:
    """An engine's configuration as it ran; `nodes` counts nodes per execution provider, read from a profile.

    `fallbacks` says why better ways of running the model were left, best first; older reports have none.
    """

    provider: str
    build: str
    runner: str
    threads: int
    nodes: dict[str, int]
    adapter: Adapter | None
    fallbacks: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why something could not be done, and what to do about it."""

    name: str
    message: str
    remedy: str


@dataclass(frozen=True, kw_only=True)
class EngineEntry(Section):
    """One engine. `actual`, `create_ms` and `first_run_ms` are null where it could not be opened; `error` says why.

    `thread_sweep` holds, for an engine whose thread count was measured, the median milliseconds per thread count.
    """

    name: str
    requested: Requested
    actual: Actual | None
    create_ms: float | None
    first_run_ms: float | None
    error: Failure | None
    thread_sweep: dict[str, float] | None = None


@dataclass(frozen=True, kw_only=True)
class SuiteEntry(Section):
    """Python's answers to a suite: `q_values` [cases][actions], `action` and `margin` [cases]."""

    suite: str
    cases: int
    source: str
    q_values: list[list[float]]
    action: list[int]
    margin: list[float]


@dataclass(frozen=True, kw_only=True)
class CaseFailure:
    """A case whose scores are no answer; `failure` is ``non-finite``, ``all-zero`` or ``wrong-shape``."""

    case: int
    failure: str


@dataclass(frozen=True, kw_only=True)
class ParityEntry(Section):
    """One engine's answers to one suite. `action` is -1 and `q_values` null where a case has no usable answer.

    `could_flip` lists the cases whose margin is at most twice |dQ| there: the error alone could turn their action.
    `disagreements` lists the cases in which it did turn, or worse; `explained` those among them that rounding explains.
    `passed` tells whether the scores differ by rounding only and no disagreement is left unexplained.
    """

    engine: str
    suite: str
    cases: int
    agree: int
    passed: bool
    max_abs_diff: float | None
    mean_abs_diff: float | None
    min_margin: float
    hardest: int
    could_flip: list[int]
    disagreements: list[int]
    explained: list[int]
    failures: list[CaseFailure]
    q_values: list[list[float] | None]
    action: list[int]


@dataclass(frozen=True, kw_only=True)
class RaceEntry(Section):
    """One engine's timings, in milliseconds; samples are in run order and `blocks` holds how many each round had.

    `lead_in` counts the unmeasured runs with which its blocks began, in all.
    """

    engine: str
    runs: int
    warmup: int
    lead_in: int
    p50_ms: float | None
    p95_ms: float | None
    mean_ms: float | None
    min_ms: float | None
    max_ms: float | None
    outliers: int
    clock_step_ms: float
    samples_ms: list[float]
    warmup_ms: list[float]
    blocks: list[int]


@dataclass(frozen=True, kw_only=True)
class RatioEntry(Section):
    """How many times as long `numerator` takes as `denominator`, at the median and at P95.

    `low` and `high` bound the 95 % interval of `p50`, `p95_low` and `p95_high` that of `p95`. All are null where there is
    a `reason` why the two cannot be compared.
    """

    numerator: str
    denominator: str
    p50: float | None
    low: float | None
    high: float | None
    p95: float | None
    p95_low: float | None
    p95_high: float | None
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class LoopEntry(Section):
    """One stage of the agent's loop on one engine, of `n` decisions while the game was played in the page.

    Stages are those of `pyapp.breakout.loop.STAGES`; *decision* is the whole. `frames` were shown meanwhile, `missed_frames`
    came too late for their 60th of a second, and `late_decisions` took longer than their four frames are shown. Spells in
    which the tab was hidden or the game was paused are left out.
    """

    engine: str
    stage: str
    p50_ms: float
    p95_ms: float
    n: int
    frames: int
    missed_frames: int
    late_decisions: int


@dataclass(frozen=True, kw_only=True)
class Report:
    """A whole check; `loop` is empty unless the agent has played."""

    schema: str
    settings: Settings
    environment: Environment
    engines: list[EngineEntry]
    suites: list[SuiteEntry]
    parity: list[ParityEntry]
    race: list[RaceEntry]
    ratios: list[RatioEntry]
    loop: list[LoopEntry] = field(default_factory=list)

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the report as JSON text (no NaN: such numbers are null)."""
        return json.dumps(asdict(self), indent=indent, allow_nan=False)


def section_json(section: Section) -> str:
    """Return one section as JSON text, for a page that shows results as they come."""
    return json.dumps(asdict(section), allow_nan=False)


def parse_report(text: str) -> Report:
    """Read a report from JSON text.

    Raises
    ------
    ReportError
        If the text is no JSON, has another schema version, lacks a field, has an unknown one, or holds a value of the wrong
        type. Each fault names its place, as in ``$.race[0].p50_ms``.
    """
    # Only reading needs cattrs, and importing it costs boot time.
    from pyapp.strict import structure

    try:
        data = json.loads(text, parse_constant=_refuse_constant)
    except ValueError as error:
        raise ReportError([f"no JSON: {error}"]) from error
    if not isinstance(data, dict):
        raise ReportError([f"expected an object, got {type(data).__name__} @ $"])
    if data.get("schema") != SCHEMA:
        raise ReportError([f"schema is {data.get('schema')!r}, this version reads {SCHEMA!r} @ $.schema"])
    return structure(data, Report, ReportError)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")
