"""The ``_headers`` file of static hosts: which response headers a path gets.

The format is Cloudflare Pages': a line that begins with ``/`` opens a rule for the paths that match it, the lines below it
set headers (``Name: value``) or take away those of earlier rules (``! Name``). A ``*`` matches anything, once in a pattern.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_RULES = 100
MAX_LINE = 2000

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class HeadersError(ValueError):
    """A line of a ``_headers`` file that the host would ignore or refuse."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"_headers, line {line}: {what}")
        self.line = line


@dataclass(frozen=True)
class Rule:
    """What one block says."""

    pattern: str
    detached: tuple[str, ...]
    headers: tuple[tuple[str, str], ...]

    def matches(self, path: str) -> bool:
        """Say whether the rule is for this path."""
        before, star, after = self.pattern.partition("*")
        if not star:
            return path == before
        return len(path) >= len(before) + len(after) and path.startswith(before) and path.endswith(after)


def parse(text: str) -> tuple[Rule, ...]:
    """Read a ``_headers`` file.

    Parameters
    ----------
    text
        The file's content.

    Returns
    -------
    tuple of Rule
        In the order of the file.

    Raises
    ------
    HeadersError
        A line is wrong; its number is in the message.
    """
    rules: list[Rule] = []
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if len(line) > MAX_LINE:
            raise HeadersError(number, f"{len(line)} characters; hosts read {MAX_LINE}")
        if line.startswith("/"):
            rules.append(_opened(line, number, len(rules)))
        elif not rules:
            raise HeadersError(number, f"a header before any path ({line!r})")
        else:
            rules[-1] = _extended(rules[-1], line, number)
    return tuple(rules)


def _opened(pattern: str, number: int, count: int) -> Rule:
    if count == MAX_RULES:
        raise HeadersError(number, f"more than {MAX_RULES} rules")
    if pattern.count("*") > 1:
        raise HeadersError(number, f"more than one '*' ({pattern!r})")
    if "/:" in pattern:
        raise HeadersError(number, f"placeholders are not supported here ({pattern!r})")
    return Rule(pattern, (), ())


def _extended(rule: Rule, line: str, number: int) -> Rule:
    if line.startswith("!"):
        return Rule(rule.pattern, (*rule.detached, _name(line[1:], line, number)), rule.headers)
    name, colon, value = line.partition(":")
    if not colon:
        raise HeadersError(number, f"no ':' between name and value ({line!r})")
    if not value.strip():
        raise HeadersError(number, f"no value ({line!r})")
    return Rule(rule.pattern, rule.detached, (*rule.headers, (_name(name, line, number), value.strip())))


def _name(text: str, line: str, number: int) -> str:
    name = text.strip()
    if not _NAME.fullmatch(name):
        raise HeadersError(number, f"not a header's name ({line!r})")
    return name


def headers_for(rules: Sequence[Rule], path: str) -> dict[str, str]:
    """Return the headers that a path gets.

    Parameters
    ----------
    rules
        As `parse` gives them.
    path
        The path of the request, with its leading ``/`` and without its query.

    Returns
    -------
    dict
        Name to value. Where several rules set one header, its values are joined by commas, as the host does; a rule
        takes away before it sets.
    """
    found: dict[str, tuple[str, str]] = {}
    for rule in rules:
        if not rule.matches(path):
            continue
        for name in rule.detached:
            found.pop(name.lower(), None)
        for name, value in rule.headers:
            known = found.get(name.lower())
            found[name.lower()] = (known[0], f"{known[1]}, {value}") if known else (name, value)
    return dict(found.values())
