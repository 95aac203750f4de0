"""A convolution that onnxruntime-web computes wrongly on WebGPU, and a way around it.

Measured on onnxruntime-web 1.30.0 (``docs/models.md``): wrong with a kernel larger than 1, input channels that are a multiple
of 3 but not of 4 and more than 3, and output channels that are a multiple of 4. microsoft/onnxruntime#29651 reads like it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from pyapp.graphs import Dims, called, defined, defined_below, known_shapes
from pyapp.onnxfile import make_node, make_tensor, schema
from pyapp.onnxparts import inner_graphs, text
from pyapp.support import OWN_DOMAINS

if TYPE_CHECKING:
    from onnx import onnx_ml_pb2 as proto

PADS_AS_INPUT = 11
"""Version of ONNX's operators from which Pad takes its pads as an input."""


def misread(node: proto.NodeProto, shapes: Mapping[str, Dims]) -> bool:
    """Tell whether a node is such a convolution; of weights whose shape is not known nobody can tell.

    Parameters
    ----------
    node : NodeProto
        Any node.
    shapes : mapping of str to tuple of int
        Shapes of constants (`pyapp.graphs.known_shapes`).
    """
    if node.op_type != "Conv" or text(node.domain) not in OWN_DOMAINS or len(node.input) < 2:
        return False
    if any(attribute.name == "group" and attribute.i != 1 for attribute in node.attribute):
        return False
    dims = shapes.get(node.input[1], ())
    if len(dims) < 3:
        return False
    outputs, channels, *kernel = dims
    return channels > 3 and channels % 3 == 0 and channels % 4 != 0 and outputs % 4 == 0 and max(kernel) > 1


def misread_nodes(model: proto.ModelProto) -> list[proto.NodeProto]:
    """List such convolutions of a model, those in inner graphs too."""
    return [node for graph, shapes in _graphs(model.graph, {}) for node in graph.node if misread(node, shapes)]


def pad_channels(model: proto.ModelProto, opset: int) -> list[str]:
    """Give each of them one more input channel, of zeros, and zeros for it in the weights; return what was done.

    A sum with zeros in it is the same sum, but an engine that lays channels out in blocks may add it up in another order. The
    model is edited in place; its weights' numbers are not looked at.
    """
    changes = []
    for graph, shapes in list(_graphs(model.graph, {})):
        taken = defined(graph) | defined_below(graph)
        nodes: list[proto.NodeProto] = []
        for node in graph.node:
            if misread(node, shapes):
                channels = shapes[node.input[1]][1]
                nodes += _padding(node, len(shapes[node.input[1]]), opset, taken)
                changes.append(f"{called(node)}: {channels} input channels and one of zeros")
            nodes.append(node)
        if len(nodes) > len(graph.node):
            copies = [type(node).FromString(node.SerializeToString()) for node in nodes]
            del graph.node[:]
            graph.node.extend(copies)
    return changes


def _padding(node: proto.NodeProto, rank: int, opset: int, taken: set[str]) -> list[proto.NodeProto]:
    """Make the nodes that pad a convolution's input and weights, and have the convolution read what they give."""
    pads = [0] * 2 * rank
    pads[rank + 1] = 1
    name = text(next(iter(node.output)))
    made = []
    if opset >= PADS_AS_INPUT:
        told = _free(f"{name}.pads", taken)
        value = schema().AttributeProto(
            name="value", type=schema().AttributeProto.TENSOR, t=make_tensor("pads", np.array(pads, np.int64))
        )
        made.append(schema().NodeProto(op_type="Constant", name=told, output=[told], attribute=[value]))
    for place, what in enumerate(("input", "weights")):
        given = _free(f"{name}.{what}", taken)
        if opset >= PADS_AS_INPUT:
            made.append(make_node("Pad", [node.input[place], told], [given]))
        else:
            made.append(make_node("Pad", [node.input[place]], [given], pads=pads))
        node.input[place] = given
    return made


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _graphs(graph: proto.GraphProto, outer: Mapping[str, Dims]) -> Iterator[tuple[proto.GraphProto, dict[str, Dims]]]:
    """Yield a graph and those inside it, each with the shapes of the constants that its nodes can read; inner ones first."""
    shapes = known_shapes(graph.node, graph, outer)
    for node in graph.node:
        for inner in inner_graphs(node):
            yield from _graphs(inner, shapes)
    yield graph, shapes
