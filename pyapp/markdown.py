"""Text as Markdown that shows it as it is, whoever wrote it."""

from __future__ import annotations

import re
from collections.abc import Sequence

# What begins a link, emphasis, code or a strike-through wherever it stands. An underscore inside a word begins nothing.
_INLINE = re.compile(r"[\\`*\[\]|~]|(?<!\w)_|_(?!\w)")
_ENTITY = re.compile(r"&(?=#?\w+;)")
# What makes a line a heading, quotation, list or rule.
_BLOCK = re.compile(r"^(\d*)([#>+=.)-])")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
MIN_WIDTH = 2
"""A column's rule needs a hyphen beside its colon, or no reader takes it for a table."""


def markdown_text(text: str) -> str:
    """Escape a text for the middle of a line: what looks like HTML or Markdown is shown as it is, on one line.

    Names come from reports that anybody may have written. Control characters become spaces: a terminal would obey them.
    """
    line = " ".join(_CONTROL.sub(" ", text).split())
    return _INLINE.sub(r"\\\g<0>", _ENTITY.sub("&amp;", line)).replace("<", "&lt;")


def markdown_line(text: str) -> str:
    """Escape a text that is a line of its own, so that it begins no heading, list or quotation either."""
    return _BLOCK.sub(r"\1\\\2", markdown_text(text))


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out a table: the first column to the left, numbers to the right. Cells are text, never markup."""
    cells = [[markdown_text(cell) for cell in row] for row in (columns, *rows)]
    widths = [max(MIN_WIDTH, *map(len, column)) for column in zip(*cells, strict=True)]
    rule = [f":{'-' * (widths[0] - 1)}", *(f"{'-' * (width - 1)}:" for width in widths[1:])]
    lines = [cells[0], rule, *cells[1:]]
    return "\n".join(f"| {' | '.join(_aligned(line, widths))} |" for line in lines)


def _aligned(line: Sequence[str], widths: Sequence[int]) -> list[str]:
    first, *rest = line
    return [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))]
