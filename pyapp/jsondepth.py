"""How deep a JSON text nests, before it is read: in a browser, some thousand deep ends Python without an exception."""

from __future__ import annotations

import re

# Strings whole, closed or not, so that brackets in them are not counted and the search stays linear.
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{]|[\]}]', re.DOTALL)


def depth(text: str) -> int:
    """Count how deep lists and objects lie in each other, in any text."""
    deepest = now = 0
    for token in _TOKEN.finditer(text):
        if token[0] in "[{":
            now += 1
            deepest = max(deepest, now)
        elif token[0] in "]}":
            now -= 1
    return deepest
