"""A report that somebody else wrote: read with less trust than types alone would give it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sized

from pyapp.agreement import ARGMAX, CLOSE
from pyapp.breakout.actions import ACTIONS
from pyapp.breakout.loop import STAGES
from pyapp.crossover import ANSWERS, CROSSES, NONE
from pyapp.jsondepth import depth
from pyapp.report import (
    FAULT_KINDS,
    PURPOSES,
    RUN_STAGES,
    SWEEP_STATUSES,
    TUNE_STATUSES,
    AgreementEntry,
    CrossoverEntry,
    DepartureEntry,
    FaultEntry,
    LoopEntry,
    ParityEntry,
    PlacementEntry,
    PrecisionEntry,
    RaceEntry,
    RatioEntry,
    Report,
    ReportError,
    StagesEntry,
    SuiteEntry,
    SweepEntry,
    TournamentEntry,
    Tune,
    parse_report,
)

FUSED = FAULT_KINDS[2]
MAX_HEAT = 65_536
"""Parts of a heat map that a page draws; our own have at most 48 times 48."""

MAX_DEPTH = 16
"""A report nests five deep. In a browser, JSON that nests some thousand deep ends Python, without an exception."""


def read_foreign(text: str) -> Report:
    """Read a report as `parse_report` does, and refuse one that contradicts itself too.

    Raises
    ------
    ReportError
        With a line for each fault, which ends in its place.
    """
    if depth(text) > MAX_DEPTH:
        raise ReportError([f"nested more than {MAX_DEPTH} deep @ $"])
    report = parse_report(text)
    if faults := contradictions(report):
        raise ReportError(faults)
    try:
        report.to_json()
    except ValueError:
        # JSON can say 1e999, which Python reads as infinity.
        raise ReportError(["a number is too large @ $"]) from None
    return report


def contradictions(report: Report) -> list[str]:
    """Find what a report says in two ways.

    Returns
    -------
    list of str
        One fault a line, with its place, as in ``3 values for 60 cases @ $.parity[0].action``; empty where all fits.
    """
    checks = [
        _repeated("$.engines", [entry.name for entry in report.engines]),
        _repeated("$.suites", [entry.suite for entry in report.suites]),
        _repeated("$.race", [entry.engine for entry in report.race]),
        _repeated("$.parity", [f"{entry.suite} on {entry.engine}" for entry in report.parity]),
        *(_suite(f"$.suites[{i}]", entry) for i, entry in enumerate(report.suites)),
        *(_parity(f"$.parity[{i}]", entry) for i, entry in enumerate(report.parity)),
        *(_race(f"$.race[{i}]", entry) for i, entry in enumerate(report.race)),
        *(_ratio(f"$.ratios[{i}]", entry) for i, entry in enumerate(report.ratios)),
        _repeated("$.loop", [f"{entry.stage} on {entry.engine}" for entry in report.loop]),
        *(_loop(f"$.loop[{i}]", entry) for i, entry in enumerate(report.loop)),
        _repeated("$.sweep", [f"{entry.engine} at x{entry.width}, batch {entry.batch}" for entry in report.sweep]),
        *(_sweep(f"$.sweep[{i}]", entry) for i, entry in enumerate(report.sweep)),
        _repeated("$.crossover", [f"{entry.numerator} / {entry.denominator} at x{entry.width}" for entry in report.crossover]),
        *(_crossover(f"$.crossover[{i}]", entry) for i, entry in enumerate(report.crossover)),
        _repeated("$.stages", [entry.engine for entry in report.stages]),
        *(_stages(f"$.stages[{i}]", entry) for i, entry in enumerate(report.stages)),
        _repeated("$.precision", [entry.engine for entry in report.precision]),
        *(_precision(f"$.precision[{i}]", entry) for i, entry in enumerate(report.precision)),
        *([_tune("$.tune", report.tune)] if report.tune else []),
        _repeated("$.agreement", [f"{entry.output} of {entry.suite} on {entry.engine}" for entry in report.agreement]),
        *(_agreement(f"$.agreement[{i}]", entry) for i, entry in enumerate(report.agreement)),
        _repeated("$.placement", [entry.engine for entry in report.placement]),
        *(_placement(f"$.placement[{i}]", entry) for i, entry in enumerate(report.placement)),
        _repeated("$.faults", [entry.engine for entry in report.faults]),
        *(_fault(f"$.faults[{i}]", entry) for i, entry in enumerate(report.faults)),
        _repeated("$.tournament", [entry.engine for entry in report.tournament]),
        *(_tournament(f"$.tournament[{i}]", entry) for i, entry in enumerate(report.tournament)),
    ]
    return [fault for check in checks for fault in check]


def _repeated(place: str, names: list[str]) -> Iterator[str]:
    for name, count in Counter(names).items():
        if count > 1:
            yield f"{name!r:.60} is there {count} times @ {place}"


def _lengths(place: str, cases: int, **lists: Sized) -> Iterator[str]:
    for name, values in lists.items():
        if len(values) != cases:
            yield f"{len(values)} values for {cases} cases @ {place}.{name}"


def _within(place: str, cases: int, **lists: Iterable[int]) -> Iterator[str]:
    for name, indices in lists.items():
        for index in indices:
            if not 0 <= index < cases:
                yield f"case {index} of {cases} @ {place}.{name}"


def _suite(place: str, entry: SuiteEntry) -> Iterator[str]:
    if entry.q_values or entry.action or entry.margin:  # only the worked example's answers are scores of actions
        yield from _lengths(place, entry.cases, q_values=entry.q_values, action=entry.action, margin=entry.margin)


def _parity(place: str, entry: ParityEntry) -> Iterator[str]:
    if entry.q_values or entry.action:
        yield from _lengths(place, entry.cases, q_values=entry.q_values, action=entry.action)
    flips = {"could_flip": entry.could_flip, "disagreements": entry.disagreements, "explained": entry.explained}
    yield from _within(place, entry.cases, **flips, failures=[failed.case for failed in entry.failures])
    if not 0 <= entry.agree <= entry.cases:
        yield f"{entry.agree} of {entry.cases} cases agree @ {place}.agree"


def _agreement(place: str, entry: AgreementEntry) -> Iterator[str]:
    if entry.criterion not in (ARGMAX, CLOSE):
        yield f"criterion {entry.criterion!r:.60} is none of {ARGMAX}, {CLOSE} @ {place}.criterion"
    for name in ("agree", "close"):
        if not 0 <= getattr(entry, name) <= entry.cases:
            yield f"{getattr(entry, name)} of {entry.cases} cases @ {place}.{name}"
    yield from _within(place, entry.cases, worst_case=[entry.worst_case], failures=[failed.case for failed in entry.failures])
    for name in ("rtol", "atol", "max_abs", "max_rel", "max_ulp"):
        if (getattr(entry, name) or 0) < 0:
            yield f"{getattr(entry, name):g} is negative @ {place}.{name}"
    if entry.passed and (entry.failures or entry.close < entry.cases):
        yield f"passed with {entry.close} of {entry.cases} cases within the tolerance @ {place}.passed"


def _placement(place: str, entry: PlacementEntry) -> Iterator[str]:
    if bool(entry.nodes) == (entry.reason is not None):
        yield f"{'nodes and' if entry.nodes else 'neither nodes nor'} a reason why there are none @ {place}.reason"
    if not 0 <= entry.copies <= len(entry.nodes):
        yield f"{entry.copies} copies among {len(entry.nodes)} nodes @ {place}.copies"
    if any(node.ms < 0 for node in entry.nodes):
        yield f"a negative time @ {place}.nodes"


def _fault(place: str, entry: FaultEntry) -> Iterator[str]:
    if entry.kind not in FAULT_KINDS:
        yield f"kind {entry.kind!r:.60} is none of {', '.join(FAULT_KINDS)} @ {place}.kind"
    # Of what a fusion has done, the steps are the model's outputs, and not values within it.
    if entry.kind != FUSED and len(entry.steps) > entry.compared:
        yield f"{len(entry.steps)} steps of {entry.compared} values @ {place}.steps"
    if entry.map and len({len(row) for row in entry.map.values}) > 1:
        yield f"rows of different lengths @ {place}.map.values"
    if entry.map and sum(map(len, entry.map.values)) > MAX_HEAT:
        yield f"more than {MAX_HEAT} parts @ {place}.map.values"


def _race(place: str, entry: RaceEntry) -> Iterator[str]:
    if len(entry.samples_ms) != entry.runs:
        yield f"{len(entry.samples_ms)} samples of {entry.runs} runs @ {place}.samples_ms"
    if sum(entry.blocks) != entry.runs:
        yield f"{sum(entry.blocks)} of {entry.runs} runs @ {place}.blocks"
    for name in ("p50_ms", "p95_ms", "mean_ms", "min_ms", "max_ms"):
        if (getattr(entry, name) is None) == (entry.runs > 0):
            yield f"{'no time' if entry.runs else 'a time'} with {entry.runs} runs @ {place}.{name}"
    if any(ms < 0 for ms in entry.samples_ms):
        yield f"a negative time @ {place}.samples_ms"


def _ratio(place: str, entry: RatioEntry) -> Iterator[str]:
    numbers = (entry.p50, entry.low, entry.high, entry.p95, entry.p95_low, entry.p95_high)
    if len({number is None for number in numbers}) > 1:
        yield f"some of its numbers are null and some are not @ {place}"
    elif entry.p50 is None and not entry.reason:
        yield f"neither a number nor a reason @ {place}"


def _loop(place: str, entry: LoopEntry) -> Iterator[str]:
    if entry.stage not in STAGES:
        yield f"stage {entry.stage!r:.60} is none of {', '.join(STAGES)} @ {place}.stage"
    if entry.p50_ms > entry.p95_ms:
        yield f"P50 is {entry.p50_ms:g} and P95 {entry.p95_ms:g} @ {place}.p95_ms"
    for name in ("n", "frames", "missed_frames", "late_decisions"):
        if getattr(entry, name) < 0:
            yield f"{getattr(entry, name)} is negative @ {place}.{name}"


def _sweep(place: str, entry: SweepEntry) -> Iterator[str]:
    if entry.status not in SWEEP_STATUSES:
        yield f"status {entry.status!r:.60} is none of {', '.join(SWEEP_STATUSES)} @ {place}.status"
    measured = entry.status == SWEEP_STATUSES[0]
    if not measured and not entry.reason:
        yield f"neither measured nor a reason @ {place}.reason"
    for name in ("p50_ms", "p95_ms", "per_state_ms", "per_state_p95_ms"):
        value = getattr(entry, name)
        if (value is None) == measured:
            yield f"{'no time' if measured else 'a time'} where the status is {entry.status!r:.60} @ {place}.{name}"
        elif value is not None and not value > 0:
            yield f"{value:g} is no time @ {place}.{name}"
    if sum(entry.blocks) != entry.runs or (entry.runs > 0) != measured:
        yield f"{sum(entry.blocks)} of {entry.runs} runs @ {place}.blocks"
    if not 0 <= entry.agree <= entry.cases:
        yield f"{entry.agree} of {entry.cases} cases agree @ {place}.agree"
    for name in ("width", "batch"):
        if getattr(entry, name) < 1:
            yield f"{getattr(entry, name)} is less than 1 @ {place}.{name}"


def _crossover(place: str, entry: CrossoverEntry) -> Iterator[str]:
    if entry.answer not in ANSWERS:
        yield f"answer {entry.answer!r:.60} is none of {', '.join(ANSWERS)} @ {place}.answer"
    if (entry.batch is None) == (entry.answer == CROSSES):
        yield f"{'no batch' if entry.batch is None else 'a batch'} with the answer {entry.answer!r:.60} @ {place}.batch"
    if (entry.answer == NONE) != (entry.reason is not None):
        yield f"{'no' if entry.reason is None else 'a'} reason with the answer {entry.answer!r:.60} @ {place}.reason"
    if (entry.answer == NONE) != (entry.first is None) or (entry.first is None) != (entry.last is None):
        yield f"its smallest and largest batch do not fit the answer {entry.answer!r:.60} @ {place}.first"
    bounds = [bound for bound in (entry.low, entry.batch, entry.high) if bound is not None]
    if bounds != sorted(bounds):
        yield f"{bounds} is no interval @ {place}.low"


def _stages(place: str, entry: StagesEntry) -> Iterator[str]:
    yield from _repeated(f"{place}.stages", [stage.stage for stage in entry.stages])
    for i, stage in enumerate(entry.stages):
        if stage.stage not in RUN_STAGES:
            yield f"stage {stage.stage!r:.60} is none of {', '.join(RUN_STAGES)} @ {place}.stages[{i}].stage"
        if not 0 <= stage.p50_ms <= stage.p95_ms:
            yield f"P50 is {stage.p50_ms:g} and P95 {stage.p95_ms:g} @ {place}.stages[{i}].p95_ms"
    added = sum(stage.p50_ms for stage in entry.stages)
    if abs(added - entry.sum_ms) > 1e-6 * max(added, 1.0):
        yield f"the stages add up to {added:g}, not {entry.sum_ms:g} @ {place}.sum_ms"
    if not entry.total_ms > 0:
        yield f"{entry.total_ms:g} is no time @ {place}.total_ms"


def _precision(place: str, entry: PrecisionEntry) -> Iterator[str]:
    if not 0 <= entry.agree <= entry.cases:
        yield f"{entry.agree} of {entry.cases} cases agree @ {place}.agree"
    if entry.changes_action and entry.agree == entry.cases:
        yield f"it changes an action, but all {entry.cases} agree @ {place}.changes_action"
    if len({number is None for number in (entry.ratio, entry.low, entry.high, entry.p50_ms, entry.p95_ms)}) > 1:
        yield f"some of its numbers are null and some are not @ {place}"
    elif (entry.ratio is None) != (entry.reason is not None):
        yield f"{'no number and no' if entry.ratio is None else 'a number and a'} reason @ {place}.reason"


def _tune(place: str, entry: Tune) -> Iterator[str]:
    yield from _repeated(f"{place}.candidates", [candidate.engine for candidate in entry.candidates])
    yield from _repeated(f"{place}.recipe", [choice.purpose for choice in entry.recipe])
    known = {candidate.engine: candidate for candidate in entry.candidates}
    for i, candidate in enumerate(entry.candidates):
        at = f"{place}.candidates[{i}]"
        if candidate.status not in TUNE_STATUSES:
            yield f"status {candidate.status!r:.60} is none of {', '.join(TUNE_STATUSES)} @ {at}.status"
        if not 0 <= candidate.agree <= candidate.cases:
            yield f"{candidate.agree} of {candidate.cases} cases agree @ {at}.agree"
        if (candidate.p50_ms is None) != (candidate.runs == 0) or (candidate.p95_ms is None) != (candidate.runs == 0):
            yield f"{'a time' if candidate.runs == 0 else 'no time'} with {candidate.runs} runs @ {at}.p50_ms"
    for i, choice in enumerate(entry.recipe):
        at = f"{place}.recipe[{i}]"
        if choice.purpose not in PURPOSES:
            yield f"purpose {choice.purpose!r:.60} is none of {', '.join(PURPOSES)} @ {at}.purpose"
        if choice.engine not in known or known[choice.engine].status in TUNE_STATUSES[2:]:
            yield f"{choice.engine!r:.60} is no right candidate @ {at}.engine"
        if not 0 < choice.low <= choice.high or not choice.ms > 0:
            yield f"{choice.ms:g} ({choice.low:g} to {choice.high:g}) is no time @ {at}.ms"


def _tournament(place: str, entry: TournamentEntry) -> Iterator[str]:
    yield from _repeated(f"{place}.played", [f"seed {game.seed} with opening {game.opening}" for game in entry.played])
    departed = [game.departure for game in entry.played if game.departure]
    counts = {
        "games": len(entry.played),
        "truncated": sum(game.truncated for game in entry.played),
        "compared": sum(game.reference_score is not None for game in entry.played),
        "departures": len(departed),
        "unexplained": sum(not departure.explained for departure in departed),
    }
    for name, count in counts.items():
        if getattr(entry, name) != count:
            yield f"{getattr(entry, name)} where its games say {count} @ {place}.{name}"
    for name in ("mean", "low", "high", "median", "min", "max", "mean_decisions"):
        yield from _number(place, name, getattr(entry, name), counts["games"])
    for name in ("reference_mean", "difference_low", "difference_high"):
        yield from _number(place, name, getattr(entry, name), counts["compared"])
    for name, low, high in (("low", entry.low, entry.high), ("difference_low", entry.difference_low, entry.difference_high)):
        if low is not None and high is not None and low > high:
            yield f"{low:g} to {high:g} is no interval @ {place}.{name}"
    for i, game in enumerate(entry.played):
        at = f"{place}.played[{i}]"
        if game.decisions < 1 or game.seconds < 0 or game.opening < 0:
            yield f"{game.decisions} decisions in {game.seconds:g} s after {game.opening} others are no game @ {at}"
        if game.departure:
            yield from _departure(f"{at}.departure", game.departure, game.decisions)


def _number(place: str, name: str, value: float | None, games: int) -> Iterator[str]:
    if (value is None) == (games > 0):
        yield f"{'no number' if games else 'a number'} with {games} games @ {place}.{name}"


def _departure(place: str, entry: DepartureEntry, decisions: int) -> Iterator[str]:
    if not 0 <= entry.decision < decisions:
        yield f"decision {entry.decision} of {decisions} @ {place}.decision"
    for name in ("action", "expected"):
        if not 0 <= getattr(entry, name) < len(ACTIONS):
            yield f"{getattr(entry, name)} is no action, which are 0 to {len(ACTIONS) - 1} @ {place}.{name}"
    for name in ("q_values", "reference_q_values"):
        if len(getattr(entry, name)) != len(ACTIONS):
            yield f"{len(getattr(entry, name))} scores for {len(ACTIONS)} actions @ {place}.{name}"
    if entry.explained != (0 <= entry.margin <= 2 * entry.error):
        why = f"a margin of {entry.margin:g} and an error of {entry.error:g}"
        yield f"{'explained' if entry.explained else 'unexplained'} with {why} @ {place}.explained"
