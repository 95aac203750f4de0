"""What a report means, in plain sentences; the page and the command line show the same ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyapp.crossover import ALREADY, CROSSES, NONE, NOT_WITHIN
from pyapp.report import CrossoverEntry, ParityEntry, RatioEntry, Report, SweepEntry, TournamentEntry

DECISIONS_PER_SECOND = 15
"""Breakout's agent decides once in four frames of sixty a second."""


COMPUTE = "compute"
STAGE_WORDS = {
    "upload": "getting the input there",
    "dispatch": "telling the GPU what to do",
    "wait": "waiting to be told that it is done",
    "readback": "getting the answer back",
}
SHARE_TOLD = 0.05
"""Stages that take less than this part of a run are not worth words."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence about one `topic`.

    Topics are ``answers``, ``speed``, ``ratio``, ``stages``, ``sweep`` (its answer), ``crossover``, ``precision``, ``tune``
    and ``tournament``.

    Its `tone` is ``good``, ``bad`` or ``plain``, and ``none`` where it says that there is no number.
    """

    topic: str
    tone: str
    text: str


def summarize(report: Report) -> list[Sentence]:
    """Say what a report means: same answers or not, who was fastest, every ratio, and what further questions found."""
    ratios = (_ratio(entry) for entry in report.ratios)
    crossovers = (Sentence("crossover", *_crossover(entry)) for entry in report.crossover)
    questions = (*_stages(report), *_sweep(report), *crossovers, *_precision(report), *_tune(report), *_tournament(report))
    return [*_answers(report), *_speed(report), *ratios, *questions]


def _answers(report: Report) -> Iterator[Sentence]:
    for suite in report.suites:
        asked = [entry for entry in report.parity if entry.suite == suite.suite]
        if not asked:
            continue
        passed = [entry for entry in asked if entry.passed]
        scored = report.model is None
        if passed:
            text = _agreement(suite.suite, passed) if scored else _same_outputs(suite.source, passed)
            yield Sentence("answers", "good", text)
        for entry in asked:
            if not entry.passed:
                what = "; ".join(entry.warnings)
                whose = f"Python's answers to {suite.suite}" if scored else f"the answers of {suite.source}"
                yield Sentence("answers", "bad", f"{entry.engine} does not give {whose}: {what}.")
    for engine in report.engines:
        if engine.error:
            yield Sentence(
                "answers", "plain", f"{engine.name} could not be asked: {engine.error.message}. {engine.error.remedy}"
            )


def _same_outputs(source: str, entries: list[ParityEntry]) -> str:
    names = _listed([entry.engine for entry in entries])
    worst = max(entry.max_abs_diff or 0.0 for entry in entries)
    cases = max(entry.cases for entry in entries)
    verb = "gives" if len(entries) == 1 else "give"
    flipped = sum(len(entry.explained) for entry in entries)
    exception = f", but for {flipped} best scores that rounding explains" if flipped else ""
    return (
        f"{names} {verb} the reference's outputs in all {cases} cases{exception}; they differ by at most {worst:.1e}. "
        f"The reference is {source}."
    )


def _agreement(suite: str, entries: list[ParityEntry]) -> str:
    names = _listed([entry.engine for entry in entries])
    worst = max(entry.max_abs_diff or 0.0 for entry in entries)
    asked = {entry.cases for entry in entries}
    counts = f"all {asked.pop()}" if len(asked) == 1 else "all"
    verb = "chooses" if len(entries) == 1 else "choose"
    flipped = sum(len(entry.explained) for entry in entries)
    exception = f", but for {flipped} that rounding explains" if flipped else ""
    return f"{names} {verb} Python's action in {counts} cases of {suite}{exception}; scores differ by at most {worst:.1e}."


def _speed(report: Report) -> Iterator[Sentence]:
    sound = [entry for entry in report.race if entry.valid and entry.p50_ms]
    if sound:
        fastest = min(sound, key=lambda entry: entry.p50_ms or 0.0)
        rate = 1000 / (fastest.p95_ms or 1.0)
        plays = report.model is None
        lead = "The fastest of those that may be compared is " if len(sound) > 1 else ""
        times = f"{fastest.p50_ms:.2f} ms at the median and {fastest.p95_ms:.2f} ms at P95"
        need = f"{rate:,.0f} {'decisions' if plays else 'runs'} a second at P95"
        need += f", where Breakout needs {DECISIONS_PER_SECOND}" if plays else ""
        yield Sentence("speed", "plain", f"{lead}{fastest.engine}: {times}, that is {need}.")
    for entry in report.race:
        if not entry.valid:
            yield Sentence("speed", "plain", f"The times of {entry.engine} may not be compared: {'; '.join(entry.warnings)}.")


def _ratio(entry: RatioEntry) -> Sentence:
    if entry.p50 is None or entry.low is None or entry.high is None or entry.p95 is None:
        return Sentence("ratio", "none", f"{entry.numerator} / {entry.denominator}: no ratio. {entry.reason}.")
    text = (
        f"Here {entry.numerator} takes {entry.p50:.2f} times as long as {entry.denominator} at the median "
        f"(95 % interval {entry.low:.2f} to {entry.high:.2f}), {entry.p95:.2f} times at P95."
    )
    return Sentence("ratio", "plain", " ".join([text, *(f"But {warning}." for warning in entry.warnings)]))


def _sweep(report: Report) -> Iterator[Sentence]:
    """Answer a sweep in one sentence, then tell of answers that are not Python's."""
    if not report.sweep:
        return
    measured = [entry for entry in report.sweep if entry.status == "measured"]
    told = [entry for entry in report.crossover if entry.answer != NONE]
    if told:
        narrowest = min(entry.width for entry in told)
        asked = [entry for entry in told if entry.width == narrowest]
        # The best of either kind: who is fastest at the largest batch that it was measured at.
        gpu = _best(measured, narrowest, {entry.numerator for entry in asked})
        cpu = _best(measured, narrowest, {entry.denominator for entry in asked})
        headline = next((entry for entry in asked if (entry.numerator, entry.denominator) == (gpu, cpu)), asked[0])
        yield Sentence("sweep", *_crossover(headline))
    elif report.crossover:
        yield Sentence("sweep", *_crossover(report.crossover[0]))
    else:
        yield Sentence("sweep", "none", "There was no GPU to compare with WASM, so there is no crossover.")
    wrong = [entry for entry in measured if not entry.passed]
    if wrong:
        first = wrong[0]
        where = f"{first.engine} at width ×{first.width}, batch {first.batch}"
        text = f"{len(wrong)} of {len(measured)} measured points do not give {whose(report)} answers (first: {where})."
        yield Sentence("sweep", "bad", text)
    elif measured:
        worst = max(entry.max_abs_diff or 0.0 for entry in measured)
        text = f"All {len(measured)} measured points give {whose(report)} answers; they differ by at most {worst:.1e}."
        yield Sentence("sweep", "good", text)


def _best(measured: list[SweepEntry], width: int, names: set[str]) -> str:
    entries = [entry for entry in measured if entry.engine in names and entry.width == width and entry.valid]
    return min(entries, key=lambda entry: (-entry.batch, entry.p50_ms or 0.0)).engine if entries else ""


def _crossover(entry: CrossoverEntry) -> tuple[str, str]:
    pair = f"{entry.numerator} / {entry.denominator}"
    network = f"On the network ×{entry.width}, {entry.numerator}"
    if entry.answer == NONE:
        return "none", f"{pair} at width ×{entry.width}: no crossover. {entry.reason}."
    if entry.answer == CROSSES and entry.batch is not None:
        low = f"{entry.low:.1f}" if entry.low is not None else f"under {entry.first}"
        high = f"{entry.high:.1f}" if entry.high is not None else f"over {entry.last}"
        where = f"at batch {entry.batch:.1f} (95 % interval {low} to {high})"
        return "plain", f"{network} overtakes {entry.denominator} {where}, at the median."
    if entry.answer == ALREADY:
        return "plain", f"{network} is faster than {entry.denominator} already at batch {entry.first}, and up to {entry.last}."
    if entry.answer == NOT_WITHIN:
        return "plain", f"{network} overtakes {entry.denominator} not within {entry.last}: up to that batch it takes longer."
    return "plain", f"{network} and {entry.denominator} are too close for this run to tell where one overtakes the other."


def _stages(report: Report) -> Iterator[Sentence]:
    """Say of each engine what its time goes to."""
    for entry in report.stages:
        ms = {stage.stage: stage.p50_ms for stage in entry.stages}
        told = sorted((name for name in ms if name != COMPUTE), key=lambda name: -ms[name])
        parts = [f"{_ms(ms[COMPUTE])} is arithmetic"] if COMPUTE in ms else []
        parts += [f"{_ms(ms[name])} is {STAGE_WORDS[name]}" for name in told if ms[name] >= SHARE_TOLD * entry.sum_ms]
        text = f"{entry.engine}: of {_ms(entry.total_ms)}, {'; '.join(parts)}."
        if entry.floor_ms is not None:
            text += f" An empty dispatch and its readback alone take {_ms(entry.floor_ms)} here."
        tone = "plain" if entry.valid else "none"
        yield Sentence("stages", tone, " ".join([text, *(f"But {warning}." for warning in entry.warnings[:1])]))


def _precision(report: Report) -> Iterator[Sentence]:
    """Say which variants are worth anything."""
    for entry in report.precision:
        if entry.reason is not None:
            yield Sentence("precision", "none", f"{entry.engine} was not compared: {entry.reason}")
            continue
        agreement = f"{entry.agree} of {entry.cases} actions are Python's"
        if entry.ratio is None or entry.low is None or entry.high is None:
            continue
        speed = f"takes {entry.ratio:.2f} times as long as {entry.base} ({entry.low:.2f} to {entry.high:.2f})"
        if entry.changes_action:
            yield Sentence("precision", "bad", f"{entry.engine} {speed}, but changes an action: {agreement}.")
        else:
            yield Sentence("precision", "good" if entry.high < 1 else "plain", f"{entry.engine} {speed}; {agreement}.")


def _tune(report: Report) -> Iterator[Sentence]:
    """Recommend."""
    if report.tune is None:
        return
    if not report.tune.recipe:
        yield Sentence("tune", "none", "No configuration is both right and measured, so none is recommended.")
    for choice in report.tune.recipe:
        one = "state" if report.model is None else "case"
        what = {"single": f"one {one} at a time", "tail": f"the slowest of one {one} at a time"}.get(
            choice.purpose, f"batches of {choice.batch}"
        )
        percentile = "P95" if choice.purpose == "tail" else "the median"
        text = f"For {what}, use {choice.engine}: {_ms(choice.ms)} at {percentile} ({_ms(choice.low)} to {_ms(choice.high)})."
        if choice.ties:
            text += f" {_listed(choice.ties)} may be as fast, but {'are' if len(choice.ties) > 1 else 'is'} less simple."
        yield Sentence("tune", "good", text)
    wrong = [one.engine for one in report.tune.candidates if one.status == "wrong"]
    if wrong:
        yield Sentence("tune", "bad", f"Dropped because they do not give {whose(report)} answers: {_listed(wrong)}.")


def _tournament(report: Report) -> Iterator[Sentence]:
    """Say who played as Python does, and what was scored."""
    for entry in report.tournament:
        if entry.error:
            yield Sentence("tournament", "bad", f"{entry.engine} stopped playing: {entry.error.message}. {entry.error.remedy}")
        if entry.compared:
            yield _courses(entry)
        if entry.mean is not None and entry.low is not None and entry.high is not None:
            text = f"{entry.engine} scores {entry.mean:.0f} in the mean of {game_count(entry.games)}"
            text += f" ({entry.low:.0f} to {entry.high:.0f})"
            if entry.difference_low is not None and entry.difference_high is not None and entry.departures:
                text += f", {entry.difference_low:+.0f} to {entry.difference_high:+.0f} against Python in the same games"
            cut = f"; {entry.truncated} of them {'was' if entry.truncated == 1 else 'were'} cut off" if entry.truncated else ""
            yield Sentence("tournament", "plain", f"{text}{cut}.")


def _courses(entry: TournamentEntry) -> Sentence:
    games = game_count(entry.compared)
    if not entry.departures:
        return Sentence("tournament", "good", f"{entry.engine} plays {games} as Python does, decision by decision.")
    text = f"{entry.engine} departs from Python's course in {entry.departures} of {games}"
    if entry.unexplained:
        return Sentence("tournament", "bad", f"{text}; rounding does not explain {entry.unexplained} of them.")
    return Sentence("tournament", "plain", f"{text}, each time where rounding explains it.")


def whose(report: Report) -> str:
    """Say whose answers a report compares with."""
    return "Python's" if report.model is None else "the reference's"


def game_count(count: int) -> str:
    """Say how many games."""
    return f"{count} game{'' if count == 1 else 's'}"


def _ms(ms: float) -> str:
    return f"{ms:.0f} ms" if ms >= 100 else f"{ms:.3g} ms"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
