"""ONNX's messages, and what of a model's parts is asked for in several places.

The schema is code that ONNX generates. The build puts it into the wheel (`buildtools/wheels.py`); on CPython it is that of the
installed `onnx`. Nothing of protobuf is imported before the first call: the page boots without it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from pyapp.errors import AppError

if TYPE_CHECKING:
    from onnx import onnx_ml_pb2 as proto

SCHEMAS = ("pyapp._onnx_ml_pb2", "onnx.onnx_ml_pb2")

DTYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(numpy_name)
    for name, numpy_name in (
        ("FLOAT", "<f4"), ("UINT8", "u1"), ("INT8", "i1"), ("UINT16", "<u2"), ("INT16", "<i2"), ("INT32", "<i4"),
        ("INT64", "<i8"), ("BOOL", "?"), ("FLOAT16", "<f2"), ("DOUBLE", "<f8"), ("UINT32", "<u4"), ("UINT64", "<u8"),
    )
}  # fmt: skip
"""ONNX's types that numpy has too, as they lie in a file: little-endian."""

BITS = {name: 8 * dtype.itemsize for name, dtype in DTYPES.items()} | {
    "COMPLEX64": 64, "COMPLEX128": 128, "BFLOAT16": 16, "FLOAT8E4M3FN": 8, "FLOAT8E4M3FNUZ": 8, "FLOAT8E5M2": 8,
    "FLOAT8E5M2FNUZ": 8, "FLOAT8E8M0": 8, "FLOAT6E2M3": 6, "FLOAT6E3M2": 6, "FLOAT4E2M1": 4, "INT4": 4, "UINT4": 4, "INT2": 2,
    "UINT2": 2,
}  # fmt: skip
"""Bits of a number in ``raw_data`` and in other files, where it is packed."""

MAX_RANK = 64
"""As numpy's."""

MAX_ELEMENTS = 1 << 58
"""More than any computer's memory: such a shape is damaged."""

SHOWN = 200
"""Characters of a name in a message."""


class ModelError(AppError):
    """A file is no usable model: ``NotOnnx``, ``TruncatedModel``, ``EmptyModel``, ``ModelTooLarge``, ``BrokenModel``, more."""


def broken(why: str) -> ModelError:
    """Return the error for a model that contradicts itself."""
    return ModelError("BrokenModel", why, "Export the model again.")


@cache
def schema() -> Any:  # noqa: ANN401 - a generated module
    """Return the module of ONNX's message classes.

    Raises
    ------
    ModelError
        ``SchemaMissing`` where neither the wheel nor an installed `onnx` has it.
    """
    for name in SCHEMAS:
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            if error.name not in (name, name.partition(".")[0]):
                raise
    raise ModelError("SchemaMissing", "ONNX's schema is not installed", "Run: pip install 'pyapp[native]'")


def text(value: str | bytes) -> str:
    """Return a name as text; protobuf gives bytes for one that is no UTF-8."""
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def quoted(value: str | bytes) -> str:
    """Return a name as a message shows it: in quotes, and not without end."""
    name = text(value)
    return repr(name if len(name) <= SHOWN else f"{name[:SHOWN]}…")


def called(node: proto.NodeProto) -> str:
    """Return what a message calls a node: its name, or else what it gives, and its operator."""
    return f"node {quoted(node.name or next(iter(node.output), ''))} ({text(node.op_type)[:SHOWN]})"


def type_name(number: int) -> str:
    """Return ONNX's name of a tensor's type."""
    try:
        return str(schema().TensorProto.DataType.Name(number))
    except ValueError:
        return f"type {number}"


def elements(tensor: proto.TensorProto) -> int:
    """Count the numbers that a tensor's shape has room for; raises `ModelError` where it is no shape."""
    if len(tensor.dims) > MAX_RANK:
        raise broken(f"the weights {quoted(tensor.name)} have {len(tensor.dims):,} dimensions")
    if any(size < 0 for size in tensor.dims):
        raise broken(f"the weights {quoted(tensor.name)} have a negative size in their shape {list(tensor.dims)}")
    if math.prod(max(size, 1) for size in tensor.dims) > MAX_ELEMENTS:
        raise broken(f"the weights {quoted(tensor.name)} have the impossible shape {list(tensor.dims)}")
    return math.prod(tensor.dims)


def byte_size(tensor: proto.TensorProto) -> int | None:
    """Return how many bytes a tensor's shape needs, packed; None for types whose numbers have no fixed size."""
    bits = BITS.get(type_name(tensor.data_type))
    return None if bits is None else (elements(tensor) * bits + 7) // 8


def is_external(tensor: proto.TensorProto) -> bool:
    """Tell whether a tensor's numbers lie in another file."""
    return bool(tensor.data_location == schema().TensorProto.EXTERNAL)


def location_of(tensor: proto.TensorProto) -> str:
    """Return the other file that a tensor's numbers lie in, as written; raises `ModelError` where none is named."""
    names = [text(entry.value) for entry in tensor.external_data if entry.key == "location"]
    if not names or not names[-1]:
        raise broken(f"the weights {quoted(tensor.name)} are in another file, and it is not said in which")
    return names[-1]


def constant_names(graph: proto.GraphProto) -> list[str]:
    """Return the names of a graph's initializers, the sparse ones too."""
    return [entry.name for entry in graph.initializer] + [entry.values.name for entry in graph.sparse_initializer]


def inner_graphs(node: proto.NodeProto) -> list[proto.GraphProto]:
    """Return the graphs in a node's attributes: branches and bodies."""
    found = []
    for attribute in node.attribute:
        found += [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]
    return found


def walked(nodes: Iterable[proto.NodeProto]) -> Iterator[proto.NodeProto]:
    """Yield nodes, each followed by those of its inner graphs."""
    left = [iter(nodes)]  # no recursion: a hostile file may nest deeply
    while left:
        node = next(left[-1], None)
        if node is None:
            left.pop()
            continue
        yield node
        left.append(iter([inner for graph in inner_graphs(node) for inner in graph.node]))


def tensors(model: proto.ModelProto) -> Iterator[proto.TensorProto]:
    """Yield every tensor of a model: of the graph, its inner graphs, attributes and functions. Training's are nobody's here."""
    yield from _constants(model.graph)
    for node in walked([*model.graph.node, *(node for function in model.functions for node in function.node)]):
        for attribute in node.attribute:
            yield from [*([attribute.t] if attribute.HasField("t") else []), *attribute.tensors]
            one = [attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else []
            for sparse in [*one, *attribute.sparse_tensors]:
                yield from (sparse.values, sparse.indices)
        for graph in inner_graphs(node):
            yield from _constants(graph)


def _constants(graph: proto.GraphProto) -> Iterator[proto.TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)


NAMELESS = frozenset({"", "?", "*", "-1", "None"})
"""What exporters write where a free dimension has no name: two of these are two sizes."""


def size_of(dim: proto.TensorShapeProto.Dimension) -> int | str | None:
    """Return a dimension's size; its name where it is free, None where it has none. A negative size is a free one, too."""
    if dim.HasField("dim_value"):
        return dim.dim_value if dim.dim_value >= 0 else None
    name = text(dim.dim_param)
    return None if name in NAMELESS else name
