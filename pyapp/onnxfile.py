"""ONNX files read, checked, edited and built with protobuf alone, in the browser too, where `onnx` has no wheel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from pyapp.graphcheck import check_graphs
from pyapp.onnxparts import (
    DTYPES,
    ModelError,
    broken,
    byte_size,
    constant_names,
    elements,
    is_external,
    location_of,
    quoted,
    schema,
    size_of,
    tensors,
    text,
    type_name,
    walked,
)

if TYPE_CHECKING:
    from onnx import onnx_ml_pb2 as proto

__all__ = [
    "DTYPES",
    "MAX_BYTES",
    "ModelError",
    "ModelInfo",
    "TensorInfo",
    "array_of",
    "make_model",
    "make_node",
    "make_tensor",
    "parse_model",
    "read_model",
    "schema",
]

MAX_BYTES = 1 << 30
"""Python in a browser has two gigabytes of memory, and needs a model twice while it edits it."""

NO_PARAMETERS = ("INT64", "BOOL", "STRING")
"""Constants of these types are shapes, axes and choices, not weights."""


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """An input or output. A free dimension is its name, None where it has none; `dims` is None where even the rank is free."""

    name: str
    dtype: str
    dims: tuple[int | str | None, ...] | None


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What a model's file says.

    Attributes
    ----------
    inputs, outputs : tuple of TensorInfo
        Without the inputs that are constants.
    opset : int
        Version of ONNX's own operators; 0 where the model uses none of them.
    domains : dict of str to int
        Versions of other operator sets.
    ir_version : int
        Version of the file format.
    operators : dict of str to int
        How often each operator occurs, in inner graphs too; most frequent first.
    parameters : int
        Numbers in the weights.
    size : int
        Bytes of the file.
    producer : str
        Program that wrote it, with its version.
    external : tuple of str
        Other files that weights lie in, as the model names them; `pyapp.external.inlined` brings them in.
    """

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    opset: int
    domains: dict[str, int]
    ir_version: int
    operators: dict[str, int]
    parameters: int
    size: int
    producer: str
    external: tuple[str, ...] = ()


def read_model(content: bytes, *, limit: int = MAX_BYTES) -> ModelInfo:
    """Say what a model is; the other files that its weights may lie in are not needed.

    Parameters
    ----------
    content : bytes
        An ONNX file.
    limit : int
        Most bytes to accept.

    Raises
    ------
    ModelError
        If it is none that can be used; the message says why.
    """
    model = parse_model(content, limit=limit)
    check_graphs(model)
    constants = set(constant_names(model.graph))
    domains = {text(entry.domain): entry.version for entry in model.opset_import}
    counted = Counter(text(node.op_type) for node in walked(model.graph.node))
    return ModelInfo(
        inputs=tuple(_tensor_info(value) for value in model.graph.input if value.name not in constants),
        outputs=tuple(_tensor_info(value) for value in model.graph.output),
        opset=domains.pop("ai.onnx", 0) or domains.pop("", 0),
        domains=domains,
        ir_version=model.ir_version,
        operators=dict(counted.most_common()),
        parameters=sum(elements(entry) for entry in tensors(model) if type_name(entry.data_type) not in NO_PARAMETERS),
        size=len(content),
        producer=" ".join(filter(None, map(text, (model.producer_name, model.producer_version)))),
        external=tuple(dict.fromkeys(location_of(entry) for entry in tensors(model) if is_external(entry))),
    )


def parse_model(content: bytes, *, limit: int = MAX_BYTES) -> proto.ModelProto:
    """Parse a file into ONNX's messages, and refuse what is no model; see `read_model`, which looks at the graph too."""
    if not content:
        raise ModelError("EmptyModel", "the file is empty", "Choose an ONNX file.")
    if len(content) > limit:
        remedy = "Use a smaller or a quantised model."
        raise ModelError("ModelTooLarge", f"the file has {len(content):,} bytes; at most {limit:,} can be used", remedy)
    _check_fields(content)
    try:
        model: proto.ModelProto = schema().ModelProto.FromString(content)
    except Exception as error:  # protobuf's two implementations raise several kinds
        raise _not_onnx(f"protobuf cannot read it ({error})") from error
    if not model.HasField("graph"):
        raise _not_onnx("it holds no graph, or ends before it")
    if model.ir_version < 1:
        raise _not_onnx("it has no format version")
    for entry in tensors(model):
        _check_tensor(entry)
    return model


def _not_onnx(why: str) -> ModelError:
    return ModelError("NotOnnx", f"this is no ONNX file: {why}", "Choose a file that was exported as ONNX.")


def _check_fields(content: bytes) -> None:
    """Walk over the outermost fields: protobuf itself says of most wrong files only that it cannot parse them."""
    known = {field.number for field in schema().ModelProto.DESCRIPTOR.fields}
    place = 0
    while place < len(content):
        at = place
        try:
            tag, place = _varint(content, place)
            if (tag >> 3) not in known or tag & 7 not in (0, 1, 2, 5):
                raise _not_onnx(f"at byte {at} there is none of its fields")
            length = {1: 8, 5: 4}.get(tag & 7, 0)
            if tag & 7 in (0, 2):
                number, place = _varint(content, place)
                length = number if tag & 7 == 2 else 0
        except IndexError:
            length = len(content)
        if place + length > len(content):
            if at == 0:
                raise _not_onnx("its first field is longer than the file")
            missing = place + length - len(content)
            what = f"the file ends within its fields, at least {missing:,} bytes too early" if missing < 1 << 40 else ""
            raise ModelError("TruncatedModel", what or "the file ends within its fields", "Download or export it again.")
        place += length


def _varint(content: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
        shift += 7
        if shift > 63:
            raise _not_onnx(f"at byte {place} there is no number")


def _check_tensor(tensor: proto.TensorProto) -> None:
    wanted, needed = elements(tensor), byte_size(tensor)
    if is_external(tensor) or needed is None:
        return
    have, unit = len(tensor.raw_data), "bytes"
    if not have:
        if type_name(tensor.data_type) not in DTYPES:
            return
        have, unit, needed = len(_numbers(tensor)), "numbers", wanted
    if have != needed:
        raise broken(f"the weights {quoted(tensor.name)} have {have:,} {unit}, where their shape needs {needed:,}")


def _numbers(tensor: proto.TensorProto) -> Sequence[float]:
    # Float16 too is in the field of 32-bit integers: its bits.
    fields = {"FLOAT": tensor.float_data, "DOUBLE": tensor.double_data, "INT64": tensor.int64_data}
    unsigned = {"UINT32": tensor.uint64_data, "UINT64": tensor.uint64_data}
    numbers: Sequence[float] = {**fields, **unsigned}.get(type_name(tensor.data_type), tensor.int32_data)
    return numbers


def _tensor_info(value: proto.ValueInfoProto) -> TensorInfo:
    kind = value.type.tensor_type
    shape = tuple(map(size_of, kind.shape.dim)) if kind.HasField("shape") else None
    name = type_name(kind.elem_type)
    return TensorInfo(text(value.name), DTYPES[name].name if name in DTYPES else name.lower(), shape)


# --- building ---


def array_of(tensor: proto.TensorProto) -> NDArray[Any]:
    """Return a tensor's numbers in its shape.

    Raises
    ------
    ModelError
        ``UnsupportedType`` for a type that numpy does not have, ``ExternalData`` where the numbers lie in another file,
        ``BrokenModel`` where they do not fit the shape.
    """
    name = type_name(tensor.data_type)
    if name not in DTYPES:
        raise ModelError("UnsupportedType", f"the weights {quoted(tensor.name)} are {name}", "Export the model as float32.")
    if is_external(tensor):
        what = f"the weights {quoted(tensor.name)} are in another file"
        raise ModelError("ExternalData", what, "Save the model with its weights in one file.")
    _check_tensor(tensor)
    dims = tuple(tensor.dims)
    if tensor.raw_data:
        return np.frombuffer(tensor.raw_data, DTYPES[name]).reshape(dims)
    numbers = _numbers(tensor)
    try:
        if name == "FLOAT16":
            return np.array(numbers, np.uint16).view(DTYPES[name]).reshape(dims)
        return np.array(numbers, DTYPES[name]).reshape(dims)
    except OverflowError as error:
        raise broken(f"the weights {quoted(tensor.name)} have a number that is no {name}") from error


def make_tensor(name: str, array: NDArray[Any]) -> proto.TensorProto:
    """Make a tensor of one of the types in `DTYPES`."""
    kind = next(key for key, dtype in DTYPES.items() if dtype == array.dtype.newbyteorder("<"))
    raw = np.ascontiguousarray(array, DTYPES[kind]).tobytes()
    number = schema().TensorProto.DataType.Value(kind)
    return cast("proto.TensorProto", schema().TensorProto(name=name, dims=array.shape, data_type=number, raw_data=raw))


def make_node(op: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: float | list[int]) -> proto.NodeProto:
    """Make a node; attributes are integers, floats, or lists of integers."""
    kinds = schema().AttributeProto
    made = []
    for name, value in attributes.items():
        if isinstance(value, list):
            made.append(kinds(name=name, type=kinds.INTS, ints=value))
        elif isinstance(value, int):
            made.append(kinds(name=name, type=kinds.INT, i=value))
        else:
            made.append(kinds(name=name, type=kinds.FLOAT, f=value))
    return cast(
        "proto.NodeProto", schema().NodeProto(op_type=op, name=outputs[0], input=inputs, output=outputs, attribute=made)
    )


def make_model(
    nodes: Sequence[proto.NodeProto],
    inputs: Sequence[TensorInfo],
    outputs: Sequence[TensorInfo],
    constants: Mapping[str, NDArray[Any]],
    *,
    opset: int = 17,
) -> bytes:
    """Make a model of nodes in an order in which they can run; its inputs and outputs have a rank."""
    onnx = schema()

    def described(info: TensorInfo) -> proto.ValueInfoProto:
        value: proto.ValueInfoProto = onnx.ValueInfoProto(name=info.name)
        kind = next(key for key, dtype in DTYPES.items() if dtype == np.dtype(info.dtype))
        value.type.tensor_type.elem_type = onnx.TensorProto.DataType.Value(kind)
        for size in info.dims or ():
            value.type.tensor_type.shape.dim.add(
                **({"dim_value": size} if isinstance(size, int) else {"dim_param": size or ""})
            )
        return value

    graph = onnx.GraphProto(
        name="graph",
        node=nodes,
        input=[described(info) for info in inputs],
        output=[described(info) for info in outputs],
        initializer=[make_tensor(name, array) for name, array in constants.items()],
    )
    version = onnx.OperatorSetIdProto(domain="", version=opset)
    model = onnx.ModelProto(ir_version=8, producer_name="pyapp", graph=graph, opset_import=[version])
    return bytes(model.SerializeToString())
