"""One node of a model by itself, on an engine and on the reference's inputs; and what shows to others that it errs."""

from __future__ import annotations

import io
import math
import re
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from pyapp import report as r
from pyapp.engine import Tensors
from pyapp.graphedit import Value, exposed, inputs_of, single_node
from pyapp.onnxfile import ModelError
from pyapp.sidebyside import Seen, SideBySide


@dataclass(frozen=True, slots=True)
class Reproducer:
    """A node by itself.

    Attributes
    ----------
    model : bytes
        An ONNX file of this one node.
    npz : bytes
        The reference's arrays: ``inputs.NAME`` and, as they have to be, ``outputs.NAME``.
    name : str
        What files of it can be called, without their endings.
    """

    model: bytes
    npz: bytes
    name: str


@dataclass(frozen=True, slots=True)
class Alone:
    """What a node does alone: its first output that is too far, or else the furthest, and that one's picture."""

    seen: Seen
    map: r.HeatMap | None
    reproducer: Reproducer


async def run_alone(pair: SideBySide, value: Value, inputs: Tensors) -> Alone:
    """Run the node that gives a value alone, on what it takes and against what it gives on the reference.

    Parameters
    ----------
    pair : SideBySide
        The model and the engines.
    value : Value
        What the node gives, or one of the things.
    inputs : mapping of str to array
        The model's inputs.

    Raises
    ------
    EngineError
        If one of the engines cannot do it.
    ModelError
        If the node reads what is no tensor.
    """
    gives = [one.name for one in pair.values.values() if one.index == value.index and one.name not in pair.skipped]
    reads = inputs_of(pair.model, value.index, inputs.keys())
    shown = exposed(pair.model, [*(name for name in reads if name not in inputs), *gives])
    known = {**await pair.once(pair.reference, shown, inputs), **inputs}
    if nothing := [name for name in reads if not isinstance(known.get(name), np.ndarray)]:
        raise ModelError("NoTensor", f"it reads {nothing[0]!r}, of which there is no tensor")
    given = {name: known[name] for name in reads}
    expected = {name: known[name] for name in gives}
    single = single_node(pair.model, value.index, given, expected)
    compared = pair.compare(gives, await pair.once(pair.engine, single, given), expected)
    furthest = max(compared.seen, key=lambda one: 0.0 if math.isnan(one.off.max_abs) else one.off.max_abs)
    seen = compared.far[0] if compared.far else furthest
    return Alone(seen, compared.map, Reproducer(single, _npz(given, expected), _stem(value)))


def called(value: Value) -> str:
    """Return what a reader is told of a value's node: its operator, and its name or that of the value."""
    return f"{value.op} {(value.node or value.name)!r}"


def _stem(value: Value) -> str:
    return re.sub(r"[^A-Za-z0-9_.]+", "-", f"{value.op}-{value.node or value.name}").strip("-.")[:60]


def _npz(inputs: Tensors, outputs: Tensors) -> bytes:
    arrays = {f"inputs.{name}": array for name, array in inputs.items()}
    arrays |= {f"outputs.{name}": array for name, array in outputs.items()}
    # Strings as objects would be pickled, which nobody should have to load.
    plain = {name: array.astype(str) if array.dtype.kind == "O" else array for name, array in arrays.items()}
    file = io.BytesIO()
    np.savez_compressed(file, **cast("Any", plain))
    return file.getvalue()
