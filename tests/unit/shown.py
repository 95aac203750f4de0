"""The texts that Python shows on the page, found in its source; HOLE stands for what is known only when it runs."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

HOLE = "qq"
MOST_COMBINATIONS = 24

NOT_SHOWN = {
    "arguments": "the command line",
    "chromium": "the command line",
    "cli": "the command line",
    "fleet": "the command line",
    "grid": "the command line",
    "headers": "the command line",
    "headless": "the command line",
    "ownmodel": "the command line",
    "serve": "the command line",
    "native": "CPython alone",
    "export": "CSV and Markdown stay English",
    "markdown": "CSV and Markdown stay English",
    "model_tables": "CSV and Markdown stay English",
    "tables": "CSV and Markdown stay English",
    "foreign": "where a damaged report breaks which rule, for who wrote the program that made it",
    "report": "where a damaged report breaks which rule, for who wrote the program that made it",
    "strict": "where a damaged report breaks which rule, for who wrote the program that made it",
    "recipe": "JavaScript",
    "reference": "the API's reference stays English",
    "console": "Python's own words in the console",
    "environment": "errors of the API, in tracebacks",
    "preprocess": "errors of the API, in tracebacks",
    "snapshot": "errors of the API, in tracebacks",
    "stats": "errors of the API, in tracebacks",
    "atari": "errors of the API, in tracebacks",
    "support": "read when the site is built",
    "repl": "JSON",
}
"""Modules whose texts nobody sees in a view, and why."""


def python_texts(package: Path) -> Iterator[str]:
    """Give every sentence and phrase in the modules of a package that are shown."""
    for path in sorted(package.rglob("*.py")):
        if not {path.stem, *path.relative_to(package).parts} & NOT_SHOWN.keys():
            yield from texts_of(path.read_text())


def texts_of(source: str) -> Iterator[str]:
    """Give the phrases of one module; documentation is none."""
    for text in _walk(ast.parse(source), {}):
        if re.search(r"[a-z]{2,}", text.replace(HOLE, "")) and re.search(r"\S \S", text):
            yield text


def _walk(node: ast.AST, known: dict[str, list[str]]) -> Iterator[str]:
    if isinstance(node, ast.Constant | ast.JoinedStr):
        yield from alternatives(node, known) or []
        if isinstance(node, ast.Constant):
            return
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        known = _assigned(node)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue
        if not (isinstance(node, ast.JoinedStr) and isinstance(child, ast.Constant)):
            yield from _walk(child, known)


def _assigned(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, list[str]]:
    """Find the variables of a function that are texts, and all that they may be."""
    known: dict[str, list[str]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            found = alternatives(node.value, known)
            known[node.targets[0].id] = [*known.get(node.targets[0].id, []), *(found or [HOLE])]
    return known


def alternatives(node: ast.AST, known: dict[str, list[str]]) -> list[str] | None:
    """Give all texts that an expression may be, or None where it is no text."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else None
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.IfExp):
        body, other = alternatives(node.body, known), alternatives(node.orelse, known)
        return None if body is None and other is None else [*(body or [HOLE]), *(other or [HOLE])]
    if isinstance(node, ast.FormattedValue):
        return alternatives(node.value, known)
    if isinstance(node, ast.JoinedStr):
        parts = [alternatives(value, known) or [HOLE] for value in node.values]
        return ["".join(chosen) for chosen in itertools.islice(itertools.product(*parts), MOST_COMBINATIONS)]
    return None
