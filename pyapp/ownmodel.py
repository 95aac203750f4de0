"""A model of the visitor's, as the command line names it and a browser is given it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NO_MODEL: dict[str, Any] = {
    "model": None, "external": [], "cases": None, "size": [], "rtol": None, "atol": None, "fix": []
}  # fmt: skip
"""What commands say of a model of the visitor's, where they say nothing."""


@dataclass(frozen=True, kw_only=True)
class OwnModel:
    """A model for the page to look at: its files (with external weights and cases, if any), and what is set about it."""

    files: Sequence[Path]
    sizes: dict[str, int]
    tolerance: dict[str, float]
    fixes: Sequence[str]


def own_model(arguments: argparse.Namespace) -> OwnModel | None:
    """Return the model that the arguments name, or None for the worked example.

    Raises
    ------
    ValueError
        Naming the argument that is wrong.
    """
    given = {name: getattr(arguments, name) for name in NO_MODEL}
    if given == NO_MODEL:
        return None
    if given["model"] is None:
        named = next(name for name, value in given.items() if value != NO_MODEL[name])
        raise ValueError(f"--{named} is about a model of your own; name it with --model FILE")
    files = [given["model"], *given["external"], *([given["cases"]] if given["cases"] else [])]
    for file in files:
        if not file.is_file():
            raise ValueError(f"{file} is no file; give --model, --external and --cases the files to read")
    sizes = {}
    for text in given["size"]:
        name, _, size = text.rpartition("=")
        if not name or not size.isdecimal():
            raise ValueError(f"--size is {text!r}; give NAME=N, as in --size batch=4")
        sizes[name] = int(size)
    if sizes and given["cases"]:
        raise ValueError("--size is for cases that are made, and --cases gives some; leave one out")
    tolerance = {name: given[name] for name in ("rtol", "atol") if given[name] is not None}
    return OwnModel(files=[file.resolve() for file in files], sizes=sizes, tolerance=tolerance, fixes=given["fix"])
