"""A report that somebody else wrote: read with less trust than types alone would give it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sized

from pyapp.breakout.loop import STAGES
from pyapp.report import LoopEntry, ParityEntry, RaceEntry, RatioEntry, Report, ReportError, SuiteEntry, parse_report

MAX_DEPTH = 16
"""A report nests five deep. In a browser, JSON that nests some thousand deep ends Python, without an exception."""

# Strings whole, closed or not, so that brackets in them are not counted and the search stays linear.
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{]|[\]}]', re.DOTALL)


def read_foreign(text: str) -> Report:
    """Read a report as `parse_report` does, and refuse one that contradicts itself too.

    Raises
    ------
    ReportError
        With a line for each fault, which ends in its place.
    """
    if _depth(text) > MAX_DEPTH:
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


def _depth(text: str) -> int:
    deepest = depth = 0
    for token in _TOKEN.finditer(text):
        if token[0] in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif token[0] in "]}":
            depth -= 1
    return deepest


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
    yield from _lengths(place, entry.cases, q_values=entry.q_values, action=entry.action, margin=entry.margin)


def _parity(place: str, entry: ParityEntry) -> Iterator[str]:
    yield from _lengths(place, entry.cases, q_values=entry.q_values, action=entry.action)
    flips = {"could_flip": entry.could_flip, "disagreements": entry.disagreements, "explained": entry.explained}
    yield from _within(place, entry.cases, **flips, failures=[failed.case for failed in entry.failures])
    if not 0 <= entry.agree <= entry.cases:
        yield f"{entry.agree} of {entry.cases} cases agree @ {place}.agree"


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
