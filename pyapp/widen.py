"""A network made wider without changing what it computes, for a stopwatch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from pyapp.onnxfile import ModelError, array_of, make_node, make_tensor, parse_model, schema
from pyapp.onnxparts import called, type_name

if TYPE_CHECKING:
    from onnx import onnx_ml_pb2 as proto

CHANNELWISE = frozenset({"Relu", "LeakyRelu", "Elu", "Selu", "Sigmoid", "Tanh", "Identity", "MaxPool", "AveragePool"})
"""Operators that treat every channel alike and by itself, so that equal channels stay equal."""


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
            raise _no_chain(f"{called(node)} does not take what the node before it gives, or gives more than one thing")
        if node.op_type in ("Conv", "Gemm"):
            _check_layer(node, constants)
            weighted.append(node)
        elif node.op_type == "Flatten":
            if _attribute(node, "axis", 1) != 1:
                raise _no_chain(f"{called(node)} flattens another axis than the first")
        elif node.op_type not in CHANNELWISE or len(node.input) != 1:
            raise _no_chain(f"{called(node)} is none of Conv, Gemm, Flatten, {', '.join(sorted(CHANNELWISE))}")
        tensor = node.output[0]
    if tensor != graph.output[0].name:
        raise _no_chain("its last node does not give its output")
    if len(weighted) < 2:
        raise _no_chain("it has no hidden layer")
    return [_Layer(node, index > 0, index < len(weighted) - 1) for index, node in enumerate(weighted)]


def _check_layer(node: proto.NodeProto, constants: Mapping[str, proto.TensorProto]) -> None:
    missing = [name for name in node.input[1:] if name not in constants]
    if missing or len(node.input) < 2:
        raise _no_chain(f"{called(node)} has weights that are no constants")
    if type_name(constants[node.input[1]].data_type) != "FLOAT":
        raise _no_chain(f"{called(node)} has weights that are not float32")
    if _attribute(node, "group", 1) != 1 or _attribute(node, "transA", 0):
        raise _no_chain(f"{called(node)} is in groups, or transposes its input")


def _no_chain(why: str) -> ModelError:
    return ModelError("NotAChain", f"this network cannot be made wider: {why}", "Use a chain of Conv, Gemm and Relu.")
