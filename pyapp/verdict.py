"""Which engine to ship, and why: judged from a report alone, so that the page and the command line say the same."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from pyapp.candidates import simplicity
from pyapp.engine import EngineSpec
from pyapp.report import EngineEntry, LoopEntry, RaceEntry, Report, TournamentEntry
from pyapp.stats import RatioInterval
from pyapp.summary import game_count, whose

CRITERIA = ("answers", "scores", "stability", "support", "speed")
PASS, FAIL, UNKNOWN = "pass", "fail", "unknown"

MIN_GAMES = 30
MAX_SPREAD = 3.0  # of P95 / P50: above it, an engine is not steady
MAX_MISSED = 0.05  # share of frames that come too late; some do in any page
SIMPLER = "WASM before WebGPU, one thread before many, stock before fast"
RUNS = 100  # fewer make for wide intervals


@dataclass(frozen=True, slots=True)
class VerdictLine:
    """What one of `CRITERIA` says of one engine: `status` is ``pass``, ``fail`` or ``unknown``, `text` cites its numbers."""

    engine: str
    criterion: str
    status: str
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The engine to ship, null unless `decided`; a `sentence` that says why, the `lines` behind it, and what to do next."""

    engine: str | None
    decided: bool
    sentence: str
    lines: list[VerdictLine]
    next_steps: list[str]


def verdict(report: Report) -> Verdict:
    """Say which engine to ship.

    Parameters
    ----------
    report : Report
        What was found, on the machine and in the browser that the verdict is for.

    Returns
    -------
    Verdict
        An engine is named only if its answers are Python's, this browser runs it as asked, its games score no less than the
        reference's, and it is the fastest of all such engines or, of those tied with the fastest, the simplest.
    """
    played = {entry.engine: entry for entry in report.tournament if entry.games}
    judged: dict[str, list[VerdictLine]] = {}
    for entry in report.engines:
        game = played.get(entry.name)
        told = (_answers(report, entry.name, game), _scores(game), _stability(report, entry), _support(report, entry))
        criteria = zip(CRITERIA[:4], told, strict=True)
        # A model of the visitor's plays no games.
        judged[entry.name] = [
            VerdictLine(entry.name, name, *what) for name, what in criteria if report.model is None or name != "scores"
        ]
    # An invalid entry did not run as its name says, so its numbers are another configuration's.
    sound = [entry for entry in report.engines if entry.valid and entry.error is None]
    status = {(line.engine, line.criterion): line.status for found in judged.values() for line in found}
    right = [entry for entry in sound if status[entry.name, "answers"] == status[entry.name, "support"] == PASS]
    able = [entry for entry in right if status.get((entry.name, "scores")) != FAIL]
    able.sort(key=lambda entry: _p50(report, entry.name))
    for name, found in judged.items():
        found.append(VerdictLine(name, "speed", *_speed(report, name, able[0].name if able else None)))
    lines = [line for found in judged.values() for line in found]
    engine, sentence, steps = _chosen(report, able, lines)
    return Verdict(engine, engine is not None, sentence, lines, [*steps, *_further(report, lines)])


def _chosen(report: Report, able: list[EngineEntry], lines: list[VerdictLine]) -> tuple[str | None, str, list[str]]:
    """Return the engine to ship or None, why, and what to do about it."""
    answers = {line.engine: line.status for line in lines if line.criterion == "answers"}
    if not able:
        if all(status == UNKNOWN for status in answers.values()):
            what = f"no engine's answers were compared with {whose(report)}"
            return None, f"Nothing can be recommended yet: {what}.", ["Run the check."]
        fit = f"No engine that gives {whose(report)} answers is otherwise fit"
        why = fit if PASS in answers.values() else f"No engine is known to give {whose(report)} answers"
        return None, f"{why}, so none is recommended.", []
    first, p50 = able[0].name, _p50(report, able[0].name)
    ratios = {entry.name: _ratio(report, entry.name, first) for entry in able[1:]}
    second, runner_up = next(iter(ratios.items()), ("", ""))
    runs = max(RUNS, report.settings.runs)
    # A ratio below 1 contradicts the medians that made `first` the fastest; such a report does not decide.
    if second and (isinstance(runner_up, str) or runner_up.high < 1 or math.isinf(p50)):
        why = f"there is no valid ratio of {first} and {second}{runner_up if isinstance(runner_up, str) else ''}"
        step = f"Run the check with {runs} runs on a quiet machine."
        return None, f"It is open which engine to ship: {why}.", [step]
    told = {name: ratio for name, ratio in ratios.items() if not isinstance(ratio, str) and ratio.spans_one}
    best = min(
        (entry for entry in able if entry.name in {first, *told}),
        key=lambda one: simplicity(EngineSpec(one.name, **asdict(one.requested))),
    )
    steps = [f"To tell them apart, run the check with {4 * runs} runs on a quiet machine."] if told else []
    if told:
        pairs = "; ".join(f"{name} / {first} is {_told(ratio)}" for name, ratio in told.items())
        why = f"{' and '.join([first, *told])} are tied ({pairs}), and {best.name} is the simplest ({SIMPLER})"
    elif isinstance(runner_up, RatioInterval):
        right = f"it gives {whose(report)} answers in {p50:.2f} ms (median)"
        why = f"{right}; {second}, the next, takes {_told(runner_up)} times as long"
    else:
        why = f"it is the only engine here that gives {whose(report)} answers and that nothing else rules out"
    wrong = [name for name, status in answers.items() if status == FAIL and _p50(report, name) < _p50(report, best.name)]
    but = "".join(f" {name} has a lower median, but does not give {whose(report)} answers." for name in wrong)
    unsteady = [line.text for line in lines if (line.engine, line.criterion, line.status) == (best.name, "stability", FAIL)]
    but += "".join(f" But mind that it is not steady: {text}" for text in unsteady)
    return best.name, f"Ship {best.name}: {why}.{but}", steps


def _further(report: Report, lines: list[VerdictLine]) -> list[str]:
    """Say what would tell more, whatever was chosen."""
    status = {(line.engine, line.criterion): line.status for line in lines}
    answers = {name: found for (name, criterion), found in status.items() if criterion == "answers"}
    unasked = [name for name, found in answers.items() if found == UNKNOWN and status[name, "support"] == PASS]
    low = [name for name in answers if status.get((name, "scores")) == FAIL]
    unplayed = any(status.get((name, "scores")) == UNKNOWN for name in answers)
    gpus = [entry.name for entry in report.engines if entry.requested.provider == "webgpu"]
    native = any(entry.actual and entry.actual.provider == "cpu" for entry in report.engines)
    webgpu = report.environment.webgpu
    no_adapter = bool(gpus) and all(status[name, "support"] == FAIL for name in gpus)
    steps = {
        f"Run the check with {', '.join(unasked)}: not every suite was asked.": 0 < len(unasked) < len(answers),
        "Run the check in a browser: times on CPython say nothing about WASM.": native,
        "Open the page in a browser with WebGPU to compare.": not native and not webgpu,
        "Open the page in a browser that has a hardware adapter for WebGPU to compare.": not native and webgpu and no_adapter,
        f"Play more games with {', '.join(low)} to see whether the lower score holds.": bool(low),
        f"Play at least {MIN_GAMES} games with every engine to compare scores.": unplayed,
    }
    return [step for step, wanted in steps.items() if wanted]


def _answers(report: Report, name: str, games: TournamentEntry | None) -> tuple[str, str]:
    asked = {entry.suite: entry for entry in report.parity if entry.engine == name}
    wrong = [entry for entry in asked.values() if not entry.passed or set(entry.disagreements) - set(entry.explained)]
    parts = [f"{suite.suite} was not asked" for suite in report.suites if suite.suite not in asked]
    for suite in (suite for suite in report.suites if suite.suite in asked):
        entry = asked[suite.suite]
        part = f" (of its {suite.cases} cases)" if entry.cases < suite.cases else ""
        flips = f", {len(entry.explained)} other by rounding" if entry.explained else ""
        what = f"actions of {suite.suite}" if report.model is None else "cases"
        parts.append(f"{entry.agree} of {entry.cases} {what}{part}{flips}")
    errors = [entry.max_abs_diff for entry in asked.values() if entry.max_abs_diff is not None]
    parts += [f"largest error {max(errors):.1e}"] if errors else []
    parts += [warning for entry in wrong for warning in entry.warnings]
    if games and games.compared:
        compared = f"{game_count(games.compared)} compared with Python's"
        parts.append(f"{games.departures} departures in {compared}, {games.unexplained} of them unexplained")
    text = f"{', '.join(parts) or 'no answers were compared'}."
    if wrong or (games and games.unexplained):
        return FAIL, text
    return PASS if report.suites and all(suite.suite in asked for suite in report.suites) else UNKNOWN, text


def _scores(games: TournamentEntry | None) -> tuple[str, str]:
    if games is None or games.mean is None:
        return UNKNOWN, f"No games were played: play at least {MIN_GAMES} games."
    text = f"Mean score {games.mean:.1f} ({games.low:.1f} to {games.high:.1f}) in {game_count(games.games)}"
    low, high = games.difference_low, games.difference_high
    if games.reference_mean is None or low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return UNKNOWN, f"{text}; there is no reference to compare with."
    text += f"; the reference has {games.reference_mean:.1f}, and the difference is {low:+.1f} to {high:+.1f} (95 % interval)"
    few = f" Few games: play at least {MIN_GAMES}." if games.games < MIN_GAMES else ""
    return FAIL if high < 0 else PASS, f"{text}.{few}"


def _stability(report: Report, entry: EngineEntry) -> tuple[str, str]:
    race, loop = _timed(report, entry.name)
    told: list[str] = []
    bad = [f"{entry.error.name}: {entry.error.message}"] if entry.error else []
    lost = next((one.error for one in report.tournament if one.engine == entry.name and one.error), None)
    bad += [f"it stopped playing ({lost.name}: {lost.message})"] if lost and not entry.error else []
    sections = {"entry": None if entry.error else entry, "race": race, "loop": loop}
    bad += [f"its {name} is invalid ({'; '.join(it.warnings)})" for name, it in sections.items() if it and not it.valid]
    if entry.actual and entry.actual.fallbacks:
        # The fast runner has several ways that are all fast; only the stock one is not what was asked for.
        slow = entry.requested.runner != "stock" and entry.actual.runner.endswith("stock")
        (bad if slow else told).append(f"fell back to {entry.actual.runner} ({'; '.join(entry.actual.fallbacks)})")
    if race and race.p50_ms and race.p95_ms is not None:
        spread = race.p95_ms / race.p50_ms
        (bad if spread > MAX_SPREAD else told).append(f"P95 is {spread:.2f} times P50 in {race.runs} runs")
    if loop and loop.frames:
        missed = f"{loop.missed_frames} of {loop.frames} frames missed, {loop.late_decisions} decisions late"
        (bad if loop.missed_frames > MAX_MISSED * loop.frames else told).append(missed)
    text = f"{'; '.join([*bad, *told]) or 'it was not timed'}."
    return (FAIL if bad else PASS if race and race.p50_ms else UNKNOWN), text


def _support(report: Report, entry: EngineEntry) -> tuple[str, str]:
    here, actual, asked = report.environment, entry.actual, entry.requested
    if actual and actual.provider == "cpu":
        return UNKNOWN, "It ran on CPython, which says nothing about browsers."
    unopened = f" It could not be opened: {entry.error.message}." if entry.error and actual is None else ""
    if asked.provider != "webgpu":
        has = "has" if here.cross_origin_isolated else "lacks"
        threads = f" {asked.threads} threads need cross-origin isolation, which this page {has}." if asked.threads > 1 else ""
        text = f"WASM runs in every current browser.{threads}"
        lacking = asked.threads > 1 and not here.cross_origin_isolated
    else:
        adapter = actual.adapter if actual else None
        text = f"WebGPU needs the API and an adapter: this browser {'has' if here.webgpu else 'lacks'} the API"
        if adapter:
            kind = "software, so its time is not comparable" if adapter.software else "hardware"
            text += f", its adapter is {adapter.vendor or 'unnamed'} {adapter.architecture}".rstrip() + f" ({kind})"
        text += f". JSPI needs Chrome or Edge 137 or later: this browser {'has' if here.jspi else 'lacks'} it."
        lacking = not here.webgpu or bool(adapter and adapter.software) or (asked.build == "jspi" and not here.jspi)
    return FAIL if lacking or unopened else PASS if actual else UNKNOWN, text + unopened


def _speed(report: Report, name: str, fastest: str | None) -> tuple[str, str]:
    race, loop = _timed(report, name)
    parts, status = ["it did not race"], UNKNOWN
    if race and race.p50_ms and race.p95_ms is not None:
        parts = [f"{race.p50_ms:.2f} ms at the median, {race.p95_ms:.2f} ms at P95"]
        ratio = _ratio(report, name, fastest or "")
        if not race.valid:
            parts.append("which may not be compared")
        elif name == fastest:
            parts.append("the fastest of the engines that may be shipped")
            status = PASS
        elif isinstance(ratio, RatioInterval):
            parts.append(f"{_told(ratio)} times as long as {fastest}")
            status = FAIL if ratio.low > 1 else PASS
        else:
            parts.append(f"no ratio to {fastest or 'a right engine'}{ratio}")
    parts += [f"a whole decision takes {loop.p50_ms:.2f} ms at the median of {loop.n}"] if loop else []
    return status, f"{'; '.join(parts)}."


def _timed(report: Report, name: str) -> tuple[RaceEntry | None, LoopEntry | None]:
    race = next((entry for entry in report.race if entry.engine == name), None)
    return race, next((entry for entry in report.loop if (entry.engine, entry.stage) == (name, "decision")), None)


def _p50(report: Report, name: str) -> float:
    race, _ = _timed(report, name)
    return race.p50_ms if race and race.valid and race.p50_ms else math.inf


def _ratio(report: Report, numerator: str, denominator: str) -> RatioInterval | str:
    """Find a valid ratio at the median, whichever way round it was measured; without one, the reason in brackets."""
    reason = ""
    for entry in report.ratios:
        if {entry.numerator, entry.denominator} != {numerator, denominator}:
            continue
        if not entry.valid or not entry.p50 or not entry.low or not entry.high:
            reason = f" ({entry.reason})" if entry.reason else ""
        elif entry.numerator == numerator:
            return RatioInterval(entry.p50, entry.low, entry.high)
        else:
            return RatioInterval(1 / entry.p50, 1 / entry.high, 1 / entry.low)
    return reason


def _told(ratio: RatioInterval) -> str:
    return f"{ratio.value:.2f} (95 % interval {ratio.low:.2f} to {ratio.high:.2f})"
