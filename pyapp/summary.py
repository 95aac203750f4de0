"""What a report means, in plain sentences; the page and the command line show the same ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyapp.report import ParityEntry, RatioEntry, Report

DECISIONS_PER_SECOND = 15
"""Breakout's agent decides once in four frames of sixty a second."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence about one `topic` (``answers``, ``speed`` or ``ratio``).

    Its `tone` is ``good``, ``bad`` or ``plain``, and ``none`` where it says that there is no number.
    """

    topic: str
    tone: str
    text: str


def summarize(report: Report) -> list[Sentence]:
    """Say what a report means: same answers or not, who was fastest, and every ratio."""
    return [*_answers(report), *_speed(report), *(_ratio(entry) for entry in report.ratios)]


def _answers(report: Report) -> Iterator[Sentence]:
    for suite in report.suites:
        asked = [entry for entry in report.parity if entry.suite == suite.suite]
        if not asked:
            continue
        passed = [entry for entry in asked if entry.passed]
        if passed:
            yield Sentence("answers", "good", _agreement(suite.suite, passed))
        for entry in asked:
            if not entry.passed:
                what = "; ".join(entry.warnings)
                yield Sentence("answers", "bad", f"{entry.engine} does not give Python's answers to {suite.suite}: {what}.")
    for engine in report.engines:
        if engine.error:
            yield Sentence(
                "answers", "plain", f"{engine.name} could not be asked: {engine.error.message}. {engine.error.remedy}"
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
        lead = "The fastest of those that may be compared is " if len(sound) > 1 else ""
        times = f"{fastest.p50_ms:.2f} ms at the median and {fastest.p95_ms:.2f} ms at P95"
        need = f"{rate:,.0f} decisions a second at P95, where Breakout needs {DECISIONS_PER_SECOND}"
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


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
