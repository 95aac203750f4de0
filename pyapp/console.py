"""What a console needs of Python: is a text whole, how does a name go on, what is there, and what went wrong."""

from __future__ import annotations

import ast
import codeop
import json
import math
import rlcompleter
import traceback
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, is_dataclass
from types import ModuleType
from typing import Any

import numpy as np

COMPLETE, INCOMPLETE, SYNTAX_ERROR = STATUSES = ("complete", "incomplete", "syntax-error")

CONSOLE, EDITOR = "<console>", "<editor>"
"""File names of what a person has typed; tracebacks are cut to their frames."""

WORD_BREAKS = " \t\n`~!@#$%^&*()-=+[{]}\\|;:'\",<>/?"
"""All but a dot: completion goes into attributes."""

MOST_COMPLETIONS = 200
SUMMARY_LENGTH = 80


def status(source: str) -> str:
    """Tell whether a text can be run, goes on in another line, or cannot be right.

    Parameters
    ----------
    source : str
        What was typed so far, perhaps several statements; `await` may stand outside of functions.

    Returns
    -------
    str
        ``complete``, ``incomplete`` or ``syntax-error``, as in Pyodide's console. A block is complete after an empty line.
    """
    compiler = codeop.CommandCompiler()
    compiler.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        whole = compiler(source, CONSOLE, "exec")
    except (SyntaxError, ValueError, OverflowError):
        return SYNTAX_ERROR
    if whole is None:
        return INCOMPLETE
    # `exec` takes a block whose end nobody has seen: another line may belong to it.
    last = source.rstrip("\n").rsplit("\n", 1)[-1]
    in_block = last[:1] in (" ", "\t") or last.rstrip().endswith(":")
    return INCOMPLETE if in_block and not source.endswith("\n") else COMPLETE


def completions(source: str, namespace: dict[str, Any]) -> tuple[list[str], int]:
    """Complete the last word of a text from what there is.

    Parameters
    ----------
    source : str
        The text up to the cursor.
    namespace : dict
        The names that the text could use. Attributes are looked up, so properties run.

    Returns
    -------
    tuple of (list of str, int)
        Whole words, and where in the text they begin.
    """
    start = max(map(source.rfind, WORD_BREAKS)) + 1
    word = source[start:]
    if not word:
        return [], start
    completer = rlcompleter.Completer(namespace)
    try:
        found = completer.attr_matches(word) if "." in word else completer.global_matches(word)
    except Exception:
        return [], start  # a property that raises
    # rlcompleter adds an opening bracket to what can be called, and a blank to keywords.
    words = dict.fromkeys(match.rstrip("( ").removesuffix("()") for match in found)
    return list(words)[:MOST_COMPLETIONS], start


@dataclass(frozen=True, slots=True)
class Variable:
    """A name with its type and, in a few words, its value."""

    name: str
    type: str
    summary: str


def variables(namespace: Mapping[str, Any], known: Collection[str] = ()) -> list[Variable]:
    """List the user's names, sorted: no modules, nothing that begins with an underscore, and nothing that is `known`."""
    found = []
    for name, value in sorted(namespace.items()):
        if name.startswith("_") or name in known or isinstance(value, ModuleType):
            continue
        found.append(Variable(name, type(value).__name__, _summary(value)))
    return found


def _summary(value: object) -> str:
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is not None and dtype is not None:
        return f"{dtype} {list(shape)}"
    try:
        text = repr(value)
    except Exception as error:
        return f"its repr raises {type(error).__name__}"
    return text if len(text) <= SUMMARY_LENGTH else f"{text[:SUMMARY_LENGTH]}…"


def as_json(value: object) -> str:
    """Write any value as JSON: arrays as lists, dataclasses as objects, what JSON cannot say (NaN too) as null or its repr."""

    def plain(item: object) -> object:
        if is_dataclass(item) and not isinstance(item, type):
            return {field.name: plain(getattr(item, field.name)) for field in fields(item)}
        if isinstance(item, np.ndarray | np.generic):
            return plain(item.tolist())
        if isinstance(item, Mapping):
            return {str(key): plain(inner) for key, inner in item.items()}
        if isinstance(item, list | tuple | set | frozenset):
            return [plain(inner) for inner in item]
        if isinstance(item, float) and not math.isfinite(item):
            return None
        return item if item is None or isinstance(item, str | int | float) else repr(item)

    return json.dumps(plain(value), allow_nan=False)


def user_traceback(error: BaseException, filename: str = CONSOLE) -> str:
    """Format a traceback from the first frame of the user's own code on, which is in `filename`, the console or the editor."""
    frames = error.__traceback__
    while frames and frames.tb_frame.f_code.co_filename not in (CONSOLE, EDITOR, filename):
        frames = frames.tb_next
    if frames is None and not isinstance(error, SyntaxError):
        frames = error.__traceback__
    return "".join(traceback.format_exception(type(error), error, frames)).rstrip()


def refuse_input(prompt: object = "") -> str:
    """Stand in for `input`, which would wait for a person for ever.

    Raises
    ------
    RuntimeError
        Always, with the remedy.
    """
    raise RuntimeError("input() cannot wait for you here: assign the value to a name instead, as in answer = '...'")
