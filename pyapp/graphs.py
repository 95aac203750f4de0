"""What the doctor and its fixes ask of a parsed model: which names its graphs define and read, and what shapes are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from pyapp.onnxparts import SHOWN, constant_names, inner_graphs, tensors, text, type_name, walked

if TYPE_CHECKING:
    from onnx import onnx_ml_pb2 as proto

Dims = tuple[int, ...]
SAME_SHAPE = frozenset({"Identity", "Cast", "DequantizeLinear", "QuantizeLinear"})
"""Operators that weights may pass on their way to a layer, whose output has the first input's shape."""


def called(node: proto.NodeProto) -> str:
    """Name a node for a list: its name, or what it gives, and its operator."""
    name = text(node.name) or text(next(iter(node.output), "")) or "nameless"
    return f"{name[:SHOWN]} ({text(node.op_type)[:SHOWN]})"


def all_nodes(model: proto.ModelProto) -> Iterator[proto.NodeProto]:
    """Yield every node of a model, those in inner graphs and functions too."""
    yield from walked(model.graph.node)
    for function in model.functions:
        yield from walked(function.node)


def all_graphs(model: proto.ModelProto) -> Iterator[proto.GraphProto]:
    """Yield the model's graph, then every graph inside it or inside its functions."""
    yield model.graph
    for node in all_nodes(model):
        yield from inner_graphs(node)


def graphs_below(graph: proto.GraphProto) -> Iterator[proto.GraphProto]:
    """Yield the graphs inside a graph's nodes, and those inside them."""
    for node in walked(graph.node):
        yield from inner_graphs(node)


def real_inputs(graph: proto.GraphProto) -> list[proto.ValueInfoProto]:
    """Return a graph's inputs without those that are constants."""
    fixed = set(constant_names(graph))
    return [value for value in graph.input if value.name not in fixed]


def defined(graph: proto.GraphProto) -> set[str]:
    """Return the names that a graph defines itself, without the graphs inside it."""
    made = {name for node in graph.node for name in node.output}
    return (made | set(constant_names(graph)) | {value.name for value in graph.input}) - {""}


def defined_below(graph: proto.GraphProto) -> set[str]:
    """Return the names that the graphs inside a graph's nodes define."""
    return {name for inner in graphs_below(graph) for name in defined(inner)}


def read_below(graph: proto.GraphProto) -> set[str]:
    """Return the names that the graphs inside a graph's nodes read, or give on."""
    names: set[str] = set()
    for inner in graphs_below(graph):
        names.update(name for node in inner.node for name in node.input)
        names.update(value.name for value in inner.output)
    return names


def known_shapes(
    nodes: Iterable[proto.NodeProto], graph: proto.GraphProto | None, outer: Mapping[str, Dims]
) -> dict[str, Dims]:
    """Return the shapes of constants that nodes can read, where the file says them.

    Parameters
    ----------
    nodes : iterable of NodeProto
        The nodes of a graph or function.
    graph : GraphProto or None
        Their graph; None in a function.
    outer : dict of str to tuple of int
        What is known around them.
    """
    shapes = dict(outer)
    if graph is not None:
        for name in defined(graph):
            shapes.pop(name, None)
        shapes |= {entry.name: tuple(entry.dims) for entry in graph.initializer}
    for node in nodes:
        if node.op_type == "Constant":
            for value in (entry.t for entry in node.attribute if entry.HasField("t")):
                shapes.update((name, tuple(value.dims)) for name in node.output)
        elif node.op_type in SAME_SHAPE and node.input and node.output and node.input[0] in shapes:
            shapes[node.output[0]] = shapes[node.input[0]]
    return shapes


def places_of_type(model: proto.ModelProto, wanted: str) -> list[str]:
    """Name where a type of tensors, such as ``FLOAT16``, occurs: inputs, outputs, constants, Casts, described inner tensors."""
    places = []
    for graph in all_graphs(model):
        values = (("input", graph.input), ("output", graph.output), ("tensor", graph.value_info))
        described = ((what, value) for what, group in values for value in group)
        places += [
            f"{what} {text(value.name)}" for what, value in described if type_name(value.type.tensor_type.elem_type) == wanted
        ]
    places += [f"constant {text(entry.name)}".strip() for entry in tensors(model) if type_name(entry.data_type) == wanted]
    for node in all_nodes(model):
        to = [entry.i for entry in node.attribute if entry.name == "to"] if node.op_type == "Cast" else []
        places += [f"cast {called(node)}" for kind in to if type_name(kind) == wanted]
    return list(dict.fromkeys(places))
