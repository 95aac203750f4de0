"""The versioned report: what a check found, as dataclasses that turn into JSON and back.

Every section carries `valid` (may its numbers be relied on?) and `warnings` (why not, or what to mind, with the remedy).
A number that could not be had is null, never zero.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace

SCHEMA = "pyapp-report/1"
SWEEP_STATUSES = ("measured", "not measured", "failed")
"""Of an entry of `sweep`; only the first has times."""

TUNE_STATUSES = ("raced", "dropped", "wrong", "failed")
"""Of a candidate of `tune`; the first two give Python's answers."""

FAULT_KINDS = ("source", "inherited", "fused", "none")
PURPOSES = ("single", "tail", "batch")
RUN_STAGES = ("upload", "dispatch", "compute", "wait", "readback")
QUESTIONS = ("stages", "sweep", "crossover", "precision", "tune", "tournament", "placement", "faults")
"""Sections of questions that are asked after a check, or without one."""


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
    """The reference's answers to a suite: `q_values` [cases][actions], `action` and `margin` [cases].

    These three are empty where the answers are no scores of Breakout's actions. `source` says whose answers they are.
    """

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

    For a model of the visitor's, `agreement` judges each output by itself; then a case agrees where all outputs do,
    `max_abs_diff` is the largest of them all, `hardest` the case that is furthest from its reference, `min_margin` null, and
    `q_values` and `action` are empty.
    """

    engine: str
    suite: str
    cases: int
    agree: int
    passed: bool
    max_abs_diff: float | None
    mean_abs_diff: float | None
    min_margin: float | None
    hardest: int
    could_flip: list[int]
    disagreements: list[int]
    explained: list[int]
    failures: list[CaseFailure]
    q_values: list[list[float] | None]
    action: list[int]


@dataclass(frozen=True, kw_only=True)
class AgreementEntry(Section):
    """One output of one engine in the cases of a suite (`pyapp.agreement.OutputAgreement`).

    `criterion` is ``argmax`` or ``close``; `agree` of `cases` answers meet it, `close` are within `rtol` and `atol`. `max_abs`,
    `max_rel` and `max_ulp` are the largest differences, `cosine` is the smallest, `snr_db` over all cases: null where nothing
    differs (then `max_abs` is 0) or where there is no answer. `worst_index` is the element that is furthest from its reference
    in the case `worst_case`.
    """

    engine: str
    suite: str
    output: str
    dtype: str
    criterion: str
    rtol: float
    atol: float
    cases: int
    agree: int
    close: int
    passed: bool
    max_abs: float | None
    max_rel: float | None
    max_ulp: float | None
    cosine: float | None
    snr_db: float | None
    worst_case: int
    worst_index: list[int]
    failures: list[CaseFailure]


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
class StageTime:
    """One stage of a run: median and 95th percentile of `n` runs."""

    stage: str
    p50_ms: float
    p95_ms: float
    n: int


@dataclass(frozen=True, kw_only=True)
class StagesEntry(Section):
    """Where the time of one engine's runs goes.

    `total_ms` is the median of runs that nobody looked into, `sum_ms` what the medians of the `stages` add up to; only where
    they are within 10 % of each other is the entry valid. `compute_from` says how the stage ``compute`` was measured,
    `floor_ms` what an empty dispatch and its readback take on the same device (null without a GPU).
    """

    engine: str
    stages: list[StageTime]
    sum_ms: float
    total_ms: float
    total_n: int
    compute_from: str
    floor_ms: float | None


@dataclass(frozen=True, kw_only=True)
class SweepEntry(Section):
    """One engine at one batch size and network width.

    `status` is ``measured``, ``not measured`` or ``failed``; but for ``measured`` there is a `reason`. `projected_ms` is what a
    run was expected to take, where that was the reason. `per_state_ms` and `per_state_p95_ms` are `p50_ms` and
    `p95_ms` divided by `batch`.
    `agree` of `cases` answers have Python's action; `max_abs_diff` is the largest |dQ|. The wider network computes what the
    narrow one does (`pyapp.widen.widened`), so Python's answers hold for it too.
    """

    engine: str
    width: int
    batch: int
    status: str
    reason: str | None = None
    projected_ms: float | None = None
    runs: int = 0
    blocks: list[int] = field(default_factory=list)
    p50_ms: float | None = None
    p95_ms: float | None = None
    per_state_ms: float | None = None
    per_state_p95_ms: float | None = None
    agree: int = 0
    cases: int = 0
    passed: bool = False
    max_abs_diff: float | None = None


@dataclass(frozen=True, kw_only=True)
class CrossoverEntry(Section):
    """From which batch size on `numerator` takes less time than `denominator` at the median, on a network of one width.

    `answer` is one of `pyapp.crossover.ANSWERS`. `batch`, with `low` and `high` as its 95 % interval, is null unless the answer
    is ``crosses``; a bound that lies outside of `first` to `last`, the smallest and the largest of the `points` batch sizes
    that were compared, is null too. ``none`` has a `reason`.
    """

    numerator: str
    denominator: str
    width: int
    answer: str
    batch: float | None
    low: float | None
    high: float | None
    first: int | None
    last: int | None
    points: int
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class PrecisionEntry(Section):
    """A variant of the model in fewer bits on `engine`, beside the model itself on `base`.

    `agree` of `cases` actions are Python's; where not all are, `changes_action` is true. `ratio` is how many times as long the
    variant takes at the median, with `low` to `high` as its 95 % interval. What could not be compared has a `reason`.
    """

    engine: str
    base: str
    agree: int
    cases: int
    max_abs_diff: float | None
    changes_action: bool
    p50_ms: float | None
    p95_ms: float | None
    ratio: float | None
    low: float | None
    high: float | None
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class Candidate(Section):
    """One configuration that `tune` tried.

    `status` is ``raced`` (to the end), ``dropped`` (slower than others after `rungs` races), ``wrong`` (it does not give
    Python's answers) or ``failed`` (it could not be had); but for the first there is a `reason`. Percentiles are of all its
    runs in races; of one that was in none, of its trial alone. `agree` of `cases` answers have Python's action, and
    `max_abs_diff` is the largest |dQ|.
    """

    engine: str
    simplicity: int
    status: str
    reason: str | None
    agree: int
    cases: int
    max_abs_diff: float | None
    runs: int
    rungs: int
    p50_ms: float | None
    p95_ms: float | None


@dataclass(frozen=True, kw_only=True)
class Choice(Section):
    """The fastest right configuration for one `purpose`.

    `purpose` is ``single`` (P50, one state at a time), ``tail`` (P95, one state at a time) or ``batch`` (P50 of a run of
    `batch` states). `ms` is its time, `low` to `high` that time's 95 % interval. `ties` are engines whose ratio to the fastest
    spans 1, the chosen one left out; of them all, the simplest was chosen.
    """

    purpose: str
    engine: str
    batch: int
    ms: float
    low: float
    high: float
    ties: list[str]


@dataclass(frozen=True, kw_only=True)
class Tune(Section):
    """The fastest right way to run the model here: what was tried, and what is recommended for which purpose."""

    candidates: list[Candidate]
    recipe: list[Choice]
    seconds: float


@dataclass(frozen=True, kw_only=True)
class DepartureEntry:
    """The first decision of a game that is not the reference's.

    `decision` is its number from 0. `margin` is by how much the reference prefers the action `expected` to the `action` chosen,
    `error` the largest |dQ|; `explained` tells whether the margin is at most twice the error. `state` is what the decision was
    made from, uint8 [4,84,84], as base64 of zlib's stream.
    """

    decision: int
    action: int
    expected: int
    q_values: list[float]
    reference_q_values: list[float]
    margin: float
    error: float
    explained: bool
    state: str


@dataclass(frozen=True, kw_only=True)
class PlayedGame:
    """One whole game.

    `opening` is how many random decisions it began with. `sha256` is that of all its decisions, a digit each. `truncated` games
    were cut off, with the score that they had. `reference_score` is null where the reference did not play this game;
    `departure` is null where it did and every decision is the same, and where it did not.
    """

    seed: int
    opening: int
    score: float
    decisions: int
    truncated: bool
    seconds: float
    sha256: str
    reference_score: float | None
    departure: DepartureEntry | None = None


@dataclass(frozen=True, kw_only=True)
class TournamentEntry(Section):
    """Whole games of one engine; `pyapp.breakout.standing` makes the numbers of the `played` games.

    `games` were finished, `truncated` of them by the frame cap. `low` to `high` is the 95 % bootstrap interval of the `mean`
    score. `compared` games were the reference's too; `departures` of them took another course, `unexplained` of those not by
    rounding. `difference_low` to `difference_high` is the 95 % interval of the mean score less `reference_mean` over the games
    compared. `lanes` games were played side by side. Speeds are over the seconds of play. Numbers that cannot be had are null:
    all of them without games, and those of the reference without one. `error` says why the engine plays no more.
    """

    engine: str
    epsilon: float
    lanes: int
    games: int
    truncated: int
    mean: float | None
    low: float | None
    high: float | None
    median: float | None
    min: float | None
    max: float | None
    mean_decisions: float | None
    decisions_per_s: float | None
    games_per_min: float | None
    compared: int
    departures: int
    unexplained: int
    reference_mean: float | None
    difference_low: float | None
    difference_high: float | None
    played: list[PlayedGame]
    error: Failure | None = None


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """An input or output of a model.

    `dims` are texts: ``"4"``, or the name of a free dimension, or ``"?"`` where it has none; null where even the rank is free.
    """

    name: str
    dtype: str
    dims: list[str] | None


@dataclass(frozen=True, kw_only=True)
class ModelEntry(Section):
    """A model of the visitor's: what its file says, and what it is judged by.

    `sizes` are those of its free dimensions, `fixes` what the doctor has changed in it. `reference` says whose answers the
    cases have, `cases` where their inputs come from.
    """

    name: str
    size: int
    opset: int
    parameters: int
    operators: dict[str, int]
    inputs: list[Tensor]
    outputs: list[Tensor]
    sizes: dict[str, int]
    fixes: list[str]
    cases: str
    reference: str
    rtol: float
    atol: float


@dataclass(frozen=True, kw_only=True)
class PlacedNode:
    """One node as it ran: what it gave (`shape`), on which provider, in how many milliseconds."""

    name: str
    op: str
    provider: str
    shape: str
    ms: float


@dataclass(frozen=True, kw_only=True)
class PlacementEntry(Section):
    """Where the nodes of a model ran on one engine, the most expensive first.

    `copies` counts the nodes that onnxruntime put between them to copy tensors to the GPU and back. `strict` tells whether the
    engine was opened so that no node may run on the CPU; where it could not be, `reason` says why and there are no nodes.
    """

    engine: str
    strict: bool
    nodes: list[PlacedNode]
    copies: int
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class FaultStep:
    """One value within a model: the `node` and its operator that give it, and how far it is from the reference's.

    `failure` is null, or why it is no answer (`pyapp.agreement.Difference`); then the numbers are null.
    """

    node: str
    op: str
    output: str
    shape: list[int]
    max_abs: float | None
    max_rel: float | None
    close: bool
    failure: str | None


@dataclass(frozen=True, kw_only=True)
class HeatMap:
    """How far a tensor is from its reference, element by element, as a picture.

    `values` [rows][columns] are the largest absolute differences in equal parts of the tensor, laid out as a matrix of
    `height` times `width` elements; null where there is no number.
    """

    height: int
    width: int
    values: list[list[float | None]]


@dataclass(frozen=True, kw_only=True)
class FaultEntry(Section):
    """Where the values of one engine leave those of the `reference` engine, in one case.

    `kind` is one of `FAULT_KINDS`: ``source`` (the `node` errs on the reference's own inputs), ``inherited`` (it is the first
    beyond the tolerance, but alone it does not err, nor does any node before it), ``fused`` (nothing differs as soon as the
    values within the model are asked for: what onnxruntime makes of several nodes errs), ``none`` (nothing differs). `alone`
    is what the node does by itself on the reference's inputs. `steps` are the values up to a few after the first that is too
    far, in the model's order; `compared` is how many values there were in all.
    """

    engine: str
    reference: str
    suite: str
    case: int
    rtol: float
    atol: float
    kind: str
    node: str
    op: str
    compared: int
    steps: list[FaultStep]
    alone: FaultStep | None
    map: HeatMap | None


@dataclass(frozen=True, kw_only=True)
class Report:
    """What was asked and found; what was not asked is empty or null.

    A check fills `engines` to `ratios`, a game `loop`, and the other questions the sections with their names. `model` and
    `agreement` are there for a model of the visitor's; for the worked example they are null and empty.
    """

    schema: str
    settings: Settings
    environment: Environment
    engines: list[EngineEntry]
    suites: list[SuiteEntry]
    parity: list[ParityEntry]
    race: list[RaceEntry]
    ratios: list[RatioEntry]
    loop: list[LoopEntry] = field(default_factory=list)
    stages: list[StagesEntry] = field(default_factory=list)
    sweep: list[SweepEntry] = field(default_factory=list)
    crossover: list[CrossoverEntry] = field(default_factory=list)
    precision: list[PrecisionEntry] = field(default_factory=list)
    tune: Tune | None = None
    tournament: list[TournamentEntry] = field(default_factory=list)
    model: ModelEntry | None = None
    agreement: list[AgreementEntry] = field(default_factory=list)
    placement: list[PlacementEntry] = field(default_factory=list)
    faults: list[FaultEntry] = field(default_factory=list)

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the report as JSON text (no NaN: such numbers are null)."""
        return json.dumps(asdict(self), indent=indent, allow_nan=False)


def merged(report: Report | None, part: Report) -> Report:
    """Add to a report what a further question has found on the same machine.

    Sections that `part` has filled replace the report's; engines that the report does not know are added to it.
    """
    if report is None:
        return part
    known = {entry.name for entry in report.engines}
    engines = [*report.engines, *(entry for entry in part.engines if entry.name not in known)]
    found = {name: getattr(part, name) for name in QUESTIONS if getattr(part, name)}
    return replace(report, engines=engines, **found)


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
