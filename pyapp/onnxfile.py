"""ONNX files read, checked, edited and built with protobuf alone, in the browser too, where `onnx` has no wheel.

The schema is code that ONNX generates. The build puts it into the wheel (`buildtools/wheels.py`); on CPython it is that of the
installed `onnx`. Nothing of protobuf is imported before the first call: the page boots without it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from pyapp.errors import AppError

if TYPE_CHECKING:
    from onnx import onnx_ml_pb2 as proto

MAX_BYTES = 1 << 30
"""Python in a browser has two gigabytes of memory, and needs a model twice while it edits it."""

SCHEMAS = ("pyapp._onnx_ml_pb2", "onnx.onnx_ml_pb2")

DTYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(numpy_name)
    for name, numpy_name in (
        ("FLOAT", "<f4"), ("UINT8", "u1"), ("INT8", "i1"), ("UINT16", "<u2"), ("INT16", "<i2"), ("INT32", "<i4"),
        ("INT64", "<i8"), ("BOOL", "?"), ("FLOAT16", "<f2"), ("DOUBLE", "<f8"), ("UINT32", "<u4"), ("UINT64", "<u8"),
    )
}  # fmt: skip
"""ONNX's types that numpy has too, as they lie in a file: little-endian."""

NO_PARAMETERS = ("INT64", "BOOL", "STRING")
"""Constants of these types are shapes, axes and choices, not weights."""

CHANNELWISE = frozenset({"Relu", "LeakyRelu", "Elu", "Selu", "Sigmoid", "Tanh", "Identity", "MaxPool", "AveragePool"})
"""Operators that treat every channel alike and by itself, so that equal channels stay equal."""


class ModelError(AppError):
    """A file is no usable model: ``NotOnnx``, ``TruncatedModel``, ``EmptyModel``, ``ModelTooLarge``, ``BrokenModel``, more."""


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


def read_model(content: bytes, *, limit: int = MAX_BYTES) -> ModelInfo:
    """Say what a model is.

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
    constants = {entry.name for entry in model.graph.initializer}
    domains = {_text(entry.domain): entry.version for entry in model.opset_import}
    counted = Counter(_text(node.op_type) for node in _nodes(model.graph))
    return ModelInfo(
        inputs=tuple(_tensor_info(value) for value in model.graph.input if value.name not in constants),
        outputs=tuple(_tensor_info(value) for value in model.graph.output),
        opset=domains.pop("ai.onnx", 0) or domains.pop("", 0),
        domains=domains,
        ir_version=model.ir_version,
        operators=dict(counted.most_common()),
        parameters=sum(
            math.prod(entry.dims) for entry in model.graph.initializer if _type_name(entry.data_type) not in NO_PARAMETERS
        ),
        size=len(content),
        producer=" ".join(filter(None, map(_text, (model.producer_name, model.producer_version)))),
    )


def parse_model(content: bytes, *, limit: int = MAX_BYTES) -> proto.ModelProto:
    """Parse a file into ONNX's messages, and refuse what is no model; see `read_model`."""
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
    for entry in model.graph.initializer:
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
    if tensor.data_location == schema().TensorProto.EXTERNAL:
        what = f"the weights {tensor.name!r} are in another file"
        raise ModelError("ExternalData", what, "Save the model with its weights in one file.")
    dtype = DTYPES.get(_type_name(tensor.data_type))
    wanted = math.prod(tensor.dims) * (dtype.itemsize if dtype else 0)
    if dtype and tensor.raw_data and len(tensor.raw_data) != wanted:
        what = f"the weights {tensor.name!r} have {len(tensor.raw_data):,} bytes, where their shape needs {wanted:,}"
        raise ModelError("BrokenModel", what, "Export the model again.")


def _type_name(number: int) -> str:
    try:
        return str(schema().TensorProto.DataType.Name(number))
    except ValueError:
        return f"type {number}"


def _text(value: str | bytes) -> str:
    # A name that is no UTF-8 comes as bytes.
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def _tensor_info(value: proto.ValueInfoProto) -> TensorInfo:
    kind = value.type.tensor_type
    dims = tuple(
        size.dim_value if size.HasField("dim_value") else _text(size.dim_param) or None for size in kind.shape.dim
    )  # fmt: skip
    shape = dims if kind.HasField("shape") else None
    name = _type_name(kind.elem_type)
    return TensorInfo(_text(value.name), DTYPES[name].name if name in DTYPES else name.lower(), shape)


def _nodes(graph: proto.GraphProto) -> Iterator[proto.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from _nodes(inner)


# --- building ---


def array_of(tensor: proto.TensorProto) -> NDArray[Any]:
    """Return a tensor's numbers in its shape; raises `ModelError` for a type that numpy does not have."""
    name = _type_name(tensor.data_type)
    if name not in DTYPES:
        raise ModelError("UnsupportedType", f"the weights {tensor.name!r} are {name}", "Export the model as float32.")
    _check_tensor(tensor)
    dims = tuple(tensor.dims)
    if tensor.HasField("raw_data"):
        return np.frombuffer(tensor.raw_data, DTYPES[name]).reshape(dims)
    if name == "FLOAT16":  # their bits are in the field of 32-bit integers
        return np.array(tensor.int32_data, np.uint16).view(DTYPES[name]).reshape(dims)
    fields = {"FLOAT": tensor.float_data, "DOUBLE": tensor.double_data, "INT64": tensor.int64_data}
    unsigned = {"UINT32": tensor.uint64_data, "UINT64": tensor.uint64_data}
    numbers: Sequence[float] = {**fields, **unsigned}.get(name, tensor.int32_data)
    if len(numbers) != math.prod(dims):
        what = f"the weights {tensor.name!r} have {len(numbers):,} numbers, where their shape needs {math.prod(dims):,}"
        raise ModelError("BrokenModel", what, "Export the model again.")
    return np.array(numbers, DTYPES[name]).reshape(dims)


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


# --- a wider network ---


@dataclass(frozen=True, slots=True)
class _Layer:
    """A layer with weights: which of its sides get wider."""

    node: proto.NodeProto
    wider_in: bool
    wider_out: bool

    def repeats(self, rank: int, factor: int) -> list[int]:
        """Return how often the weights are laid side by side along each of their axes."""
        out, into = factor if self.wider_out else 1, factor if self.wider_in else 1
        sides = [into, out] if self.node.op_type == "Gemm" and not _attribute(self.node, "transB", 0) else [out, into]
        return sides + [1] * (rank - 2)


def widened(content: bytes, factor: int) -> bytes:
    """Make a network wider without changing what it computes.

    Every hidden layer gets `factor` copies of each of its channels, and every weight that reads copies is divided by `factor`:
    a sum over all copies is the sum over the channels. So the wide network has the same scores as the narrow one, but for
    rounding, while it does the arithmetic of a network that is so much wider: about ``factor ** 2`` times as much. Equal
    channels are of no use to anybody but a stopwatch.

    The file does not grow: it holds the narrow weights and nodes that lay them side by side (``Tile``). They depend on
    constants only, so onnxruntime carries them out once, when it creates the session.

    Parameters
    ----------
    content : bytes
        A chain of Conv, Gemm, Flatten and channelwise operators (`CHANNELWISE`), with one input and one output.
    factor : int
        1 or more; 1 returns `content` as it is.

    Raises
    ------
    ModelError
        ``NotAChain`` if the network is of another kind; the message names the node.
    """
    _require_factor(factor)
    if factor == 1:
        return content
    model = parse_model(content)
    graph = model.graph
    constants = {entry.name: entry for entry in graph.initializer}
    layers = _chain(model)
    added: list[proto.TensorProto] = []
    tiles: list[proto.NodeProto] = []

    def tiled(name: str, repeats: list[int], divisor: int, wide: str) -> str:
        added.append(make_tensor(f"{wide}.narrow", array_of(constants[name]) / np.float32(divisor)))
        added.append(make_tensor(f"{wide}.repeats", np.array(repeats, np.int64)))
        tiles.append(make_node("Tile", [f"{wide}.narrow", f"{wide}.repeats"], [wide]))
        return wide

    for number, layer in enumerate(layers):
        node = layer.node
        weights, *bias = node.input[1:]
        repeats = layer.repeats(len(constants[weights].dims), factor)
        node.input[1] = tiled(weights, repeats, factor if layer.wider_in else 1, f"wide.{number}.weights")
        if bias and layer.wider_out:
            dims = list(constants[bias[0]].dims)
            if dims and dims[-1] != 1:  # a single number is for all channels
                node.input[2] = tiled(bias[0], [1] * (len(dims) - 1) + [factor], 1, f"wide.{number}.bias")
    still_used = {name for node in graph.node for name in node.input}
    left = [entry for entry in graph.initializer if entry.name in still_used]
    nodes = [*tiles, *graph.node]
    inputs = [value for value in graph.input if value.name not in constants]
    # What was known of the shapes between the layers is no longer true.
    for field, values in (("initializer", [*left, *added]), ("node", nodes), ("input", inputs), ("value_info", [])):
        graph.ClearField(cast("Any", field))
        getattr(graph, field).extend(values)
    model.producer_name = f"{model.producer_name} x{factor}".strip()
    return bytes(model.SerializeToString())


def widened_parameters(content: bytes, factor: int) -> int:
    """Count the weights of the network that `widened` makes, laid out."""
    _require_factor(factor)
    model = parse_model(content)
    constants = {entry.name: entry for entry in model.graph.initializer}
    total = 0
    for layer in _chain(model):
        weights, *bias = layer.node.input[1:]
        dims = constants[weights].dims
        total += math.prod(dims) * math.prod(layer.repeats(len(dims), factor))
        if bias:
            total += math.prod(constants[bias[0]].dims) * (factor if layer.wider_out else 1)
    return total


def _require_factor(factor: int) -> None:
    if factor < 1:
        raise ValueError(f"factor is {factor}; give a whole number from 1")


def _attribute(node: proto.NodeProto, name: str, default: float) -> float:
    for attribute in node.attribute:
        if attribute.name == name:
            number: float = attribute.f if attribute.type == schema().AttributeProto.FLOAT else attribute.i
            return number
    return default


def _chain(model: proto.ModelProto) -> list[_Layer]:
    """Return the layers with weights of a network that is one chain; raises `ModelError` where it is not."""
    graph = model.graph
    constants = {entry.name: entry for entry in graph.initializer}
    inputs = [value.name for value in graph.input if value.name not in constants]
    if len(inputs) != 1 or len(graph.output) != 1:
        raise _no_chain(f"it has {len(inputs)} inputs and {len(graph.output)} outputs")
    tensor = inputs[0]
    weighted = []
    for node in graph.node:
        if not node.input or node.input[0] != tensor or len(node.output) != 1:
            raise _no_chain(f"{_called(node)} does not take what the node before it gives, or gives more than one thing")
        if node.op_type in ("Conv", "Gemm"):
            _check_layer(node, constants)
            weighted.append(node)
        elif node.op_type == "Flatten":
            if _attribute(node, "axis", 1) != 1:
                raise _no_chain(f"{_called(node)} flattens another axis than the first")
        elif node.op_type not in CHANNELWISE or len(node.input) != 1:
            raise _no_chain(f"{_called(node)} is none of Conv, Gemm, Flatten, {', '.join(sorted(CHANNELWISE))}")
        tensor = node.output[0]
    if tensor != graph.output[0].name:
        raise _no_chain("its last node does not give its output")
    if len(weighted) < 2:
        raise _no_chain("it has no hidden layer")
    return [_Layer(node, index > 0, index < len(weighted) - 1) for index, node in enumerate(weighted)]


def _check_layer(node: proto.NodeProto, constants: Mapping[str, proto.TensorProto]) -> None:
    missing = [name for name in node.input[1:] if name not in constants]
    if missing or len(node.input) < 2:
        raise _no_chain(f"{_called(node)} has weights that are no constants")
    if _type_name(constants[node.input[1]].data_type) != "FLOAT":
        raise _no_chain(f"{_called(node)} has weights that are not float32")
    if _attribute(node, "group", 1) != 1 or _attribute(node, "transA", 0):
        raise _no_chain(f"{_called(node)} is in groups, or transposes its input")


def _called(node: proto.NodeProto) -> str:
    name = node.name or next(iter(node.output), "")
    return f"node {name!r} ({node.op_type})"


def _no_chain(why: str) -> ModelError:
    return ModelError("NotAChain", f"this network cannot be made wider: {why}", "Use a chain of Conv, Gemm and Relu.")
