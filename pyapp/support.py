"""What each provider of onnxruntime-web can run: a table that was measured, and the limits of its format checks.

The table is `operators.json`. A key is an operator's name, with its domain before it where that is not ONNX's own
(``com.microsoft::Gelu``); ``MaxPool@22`` says what holds from version 22 of the operator set on, where a provider's kernels end
before it. On WebGPU, ``cpu`` means that the node runs on the CPU, with copies before and after it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Literal, cast

from pyapp.errors import AppError

Support = Literal["yes", "cpu", "no"]

PROVIDERS = ("wasm", "webgpu")

MAX_OPSET = 26
"""Newest version of ONNX's own operators that onnxruntime-web 1.30.0 loads: 27 is refused (``ValidateOpsetForDomain``)."""

MIN_OPSET = 7
"""Oldest version that it guarantees; it loads older ones with a warning."""

MAX_IR_VERSION = 13
"""Newest version of the file format that it loads: 14 is refused."""

OWN_DOMAINS = ("", "ai.onnx")
KNOWN_DOMAINS = frozenset({*OWN_DOMAINS, "ai.onnx.ml", "com.microsoft", "com.microsoft.nchwc", "com.ms.internal.nhwc"})
"""Domains that it has kernels for."""


@dataclass(frozen=True, slots=True)
class OperatorTable:
    """What was measured.

    Attributes
    ----------
    version : str
        Version of onnxruntime-web.
    measured : str
        Date.
    rows : dict of str to dict of str to str
        Per key, what each provider does: ``yes``, ``cpu`` or ``no``.
    """

    version: str
    measured: str
    rows: Mapping[str, Mapping[str, Support]]
    _turns: dict[str, list[int]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Collect the versions at which an operator's row changes, newest first."""
        turns: dict[str, list[int]] = {}
        for key in self.rows:
            name, _, version = key.partition("@")
            if version:
                turns.setdefault(name, []).append(int(version))
        object.__setattr__(self, "_turns", {name: sorted(versions, reverse=True) for name, versions in turns.items()})

    def support(self, op: str, domain: str, opset: int, provider: str) -> Support | None:
        """Say what a provider does with an operator; None where that is not known.

        Parameters
        ----------
        op, domain : str
            Type and domain of a node.
        opset : int
            Version of that domain's operators in the model.
        provider : str
            One of `PROVIDERS`.
        """
        name = op if domain in OWN_DOMAINS else f"{domain}::{op}"
        turn = next((version for version in self._turns.get(name, ()) if version <= opset), None)
        row = self.rows.get(name if turn is None else f"{name}@{turn}", {})
        return row.get(provider)


def read_table(text: str) -> OperatorTable:
    """Read a table.

    Parameters
    ----------
    text : str
        JSON as in `operators.json`.

    Raises
    ------
    AppError
        ``BadOperatorTable`` where it is none; the message names the row.
    """
    try:
        data = json.loads(text)
        rows = data["operators"]
        for key, row in rows.items():
            name, at, version = key.partition("@")
            _require(bool(name) and (not at or version.isdecimal()), key)
            _require(set(row) == set(PROVIDERS) and row["wasm"] in ("yes", "no") and row["webgpu"] in ("yes", "cpu", "no"), key)
        table = OperatorTable(data["onnxruntime_web"], data["measured"], cast("dict[str, dict[str, Support]]", rows))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise AppError("BadOperatorTable", f"this is no table of operators ({error})", "Measure it again.") from error
    return table


def _require(right: bool, key: str) -> None:
    if not right:
        raise ValueError(f"row {key!r}")


@cache
def operators() -> OperatorTable:
    """Return the table that comes with the package."""
    return read_table(files("pyapp").joinpath("operators.json").read_text("utf-8"))
