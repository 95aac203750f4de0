"""A report for spreadsheets and statistics programs: every number in one tidy table, as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass

from pyapp.report import (
    AgreementEntry,
    Candidate,
    Choice,
    CrossoverEntry,
    FaultStep,
    ModelEntry,
    PlacedNode,
    PlayedGame,
    Report,
    StageTime,
    SweepEntry,
    Tensor,
)

COLUMNS = ("section", "engine", "against", "suite", "index", "name", "value")
NAMING = {"engine", "name", "numerator", "denominator", "base", "suite", "stage", "purpose", "width", "seed"}
"""Fields that say what a row is about; they have columns of their own."""

NAMED = Candidate | Choice | StageTime | PlayedGame | PlacedNode | FaultStep | Tensor
"""What lies in a list inside of a section, and has a name of its own."""

type Number = tuple[int | str, str, float]
"""Place in its list (empty outside of one), name, value."""


def report_csv(report: Report) -> str:
    r"""Write every number of a report as one tidy table.

    Parameters
    ----------
    report : Report
        Any report, an unfinished one too.

    Returns
    -------
    str
        CSV as RFC 4180 has it: lines end in ``\r\n``, and a cell with a comma, a quote or a line break is quoted. Sections and
        names are those of the JSON, so units are in the names (``samples_ms``). A number that could not be had has no row.
        A name that a spreadsheet would take for a formula has an apostrophe in front.
    """
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for section, engine, entry in _entries(report):
        about = [section, *map(_inert, _about(entry, engine))]
        writer.writerows([*about, index, _inert(name), value] for index, name, value in _numbers(entry))
    return text.getvalue()


def _entries(report: Report) -> Iterator[tuple[str, str, object]]:
    """Give every entry with its section and the engine that it is about, those inside of others too."""
    for field in fields(report):
        value = getattr(report, field.name)
        for entry in value if isinstance(value, list) else [value]:
            engine = getattr(entry, "engine", getattr(entry, "name", getattr(entry, "numerator", "")))
            if isinstance(entry, ModelEntry):
                engine = ""
            yield field.name, engine, entry
            for inner in fields(entry) if is_dataclass(entry) else ():
                inside = getattr(entry, inner.name)
                for item in inside if isinstance(inside, list) else ():
                    if isinstance(item, NAMED):
                        yield f"{field.name}.{inner.name}", getattr(item, "engine", engine), item


def _about(entry: object, engine: str) -> tuple[str, str, str]:
    place = next((getattr(entry, name) for name in ("suite", "stage", "purpose") if hasattr(entry, name)), "")
    if isinstance(entry, CrossoverEntry):
        place = f"x{entry.width}"
    elif isinstance(entry, SweepEntry):
        place = f"x{entry.width}, batch {entry.batch}"
    elif isinstance(entry, AgreementEntry | FaultStep):
        place = f"{place}: {entry.output}" if place else entry.output
    elif isinstance(entry, PlacedNode | Tensor):
        place = entry.name
    elif isinstance(entry, PlayedGame):
        place = f"seed {entry.seed}"
    return engine, getattr(entry, "denominator", getattr(entry, "base", "")), place


def _numbers(entry: object, within: str = "") -> Iterator[Number]:
    if is_dataclass(entry):
        for field in fields(entry):
            if field.name not in NAMING:
                yield from _cells(f"{within}{field.name}", getattr(entry, field.name))


def _cells(name: str, value: object) -> Iterator[Number]:
    if isinstance(value, list) and any(isinstance(item, NAMED) for item in value):
        return
    if isinstance(value, int | float):
        yield "", name, _plain(value)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from ((index, inner, number) for _, inner, number in _item(name, item))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _cells(f"{name}[{key}]", item)
    else:
        yield from _numbers(value, f"{name}.")


def _item(name: str, item: object) -> Iterator[Number]:
    """State one item of a list; the second index of a list of lists goes into the name."""
    if isinstance(item, Sequence) and not isinstance(item, str):
        for position, inner in enumerate(item):
            yield from _cells(f"{name}[{position}]", inner)
    else:
        yield from _cells(name, item)


def _plain(value: float) -> float:
    """Turn a truth value into 1 or 0, so that the column holds numbers only."""
    return int(value) if isinstance(value, bool) else value


def _inert(text: str) -> str:
    # Spreadsheets run what begins like this, and a report may come from anybody.
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) else text
