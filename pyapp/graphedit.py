"""Models made of a model: one that shows the values within it, one that says their shapes, and one of a single node."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from pyapp.onnxfile import DTYPES, ModelError, make_node, parse_model, schema
from pyapp.onnxparts import constant_names, inner_graphs, text

if TYPE_CHECKING:
    from onnx import onnx_ml_pb2 as proto

SHAPE_OF = "pyapp.shape."
"""What the outputs of `shapes` are called, before the name of the value."""

INITIALIZERS_ARE_INPUTS_BEFORE = 4
"""Version of the file format from which on a constant need not be declared as an input too."""

SHAPE_OPSET = 13

RANDOM = frozenset({"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"})
"""Operators that no two engines answer alike."""


@dataclass(frozen=True, slots=True)
class Value:
    """What a node of the main graph gives.

    Attributes
    ----------
    name : str
        The value's.
    node : str
        The node's; may be empty.
    op : str
        The node's operator.
    index : int
        The node's place in the graph.
    """

    name: str
    node: str
    op: str
    index: int


def values_of(content: bytes) -> list[Value]:
    """Return every value that the nodes of the main graph give, in the order of the nodes; raises `ModelError` for no model."""
    return _values(parse_model(content).graph)


def _values(graph: proto.GraphProto) -> list[Value]:
    return [
        Value(text(name), text(node.name), text(node.op_type), index)
        for index, node in enumerate(graph.node)
        for name in node.output
        if name
    ]


def folded(content: bytes) -> set[str]:
    """Return which of the values hang on constants alone; raises `ModelError` for no model.

    onnxruntime works them out when it opens the model, on the CPU, whatever it is to run on. Constants that somebody may
    replace by an input are none.
    """
    model = parse_model(content)
    replaceable = {value.name for value in model.graph.input} if model.ir_version >= INITIALIZERS_ARE_INPUTS_BEFORE else set()
    fixed = {text(name) for name in constant_names(model.graph) if name not in replaceable}
    made: set[str] = set()
    for node in model.graph.node:
        reads = _reads(node)
        if node.op_type == "Constant" or (reads and node.op_type not in RANDOM and fixed.issuperset(reads)):
            made.update(filter(None, map(text, node.output)))
            fixed.update(map(text, node.output))
    return made


def exposed(content: bytes, names: Sequence[str] | None = None) -> bytes:
    """Add values within a model's main graph to its outputs, after those that it has.

    An output that is added has a name and no type: onnxruntime finds it out.

    Parameters
    ----------
    content : bytes
        An ONNX file.
    names : sequence of str, optional
        Outputs of nodes; those that are outputs of the model already and empty ones are left out. By default, all.

    Raises
    ------
    ModelError
        ``NoSuchValue`` for a name that no node gives, or if `content` is no model.
    """
    model = parse_model(content)
    wanted = _wanted(model.graph, names)
    known = {text(output.name) for output in model.graph.output}
    model.graph.output.extend(schema().ValueInfoProto(name=name) for name in wanted if name not in known)
    return bytes(model.SerializeToString())


def shapes(content: bytes, names: Sequence[str] | None = None) -> bytes:
    """Make a model whose outputs are the shapes of values, in place of its own: what they take, before anybody holds them.

    Parameters
    ----------
    content : bytes
        An ONNX file.
    names : sequence of str, optional
        Outputs of nodes that give tensors; by default, all outputs of all nodes.

    Returns
    -------
    bytes
        A model with an output int64 [rank] for each of them, named `SHAPE_OF` and the value's name.

    Raises
    ------
    ModelError
        As `exposed` does.
    """
    model = parse_model(content)
    wanted = _wanted(model.graph, names)
    if not any(entry.domain in ("", "ai.onnx") for entry in model.opset_import):
        model.opset_import.add(domain="", version=SHAPE_OPSET)
    del model.graph.output[:]
    model.graph.node.extend(make_node("Shape", [name], [SHAPE_OF + name]) for name in wanted)
    model.graph.output.extend(schema().ValueInfoProto(name=SHAPE_OF + name) for name in wanted)
    return bytes(model.SerializeToString())


def _wanted(graph: proto.GraphProto, names: Sequence[str] | None) -> list[str]:
    given = list(dict.fromkeys(value.name for value in _values(graph)))
    if names is None:
        return given
    wanted = list(dict.fromkeys(filter(None, names)))
    if unknown := sorted(set(wanted) - set(given)):
        raise ModelError("NoSuchValue", f"no node of the main graph gives {unknown[0]!r}", "Name an output of a node.")
    return wanted


def inputs_of(content: bytes, index: int, given: Collection[str] = ()) -> list[str]:
    """Return which values one node takes, its inner graphs included, without constants.

    Parameters
    ----------
    content : bytes
        An ONNX file.
    index : int
        The node's place in the main graph.
    given : collection of str
        Inputs of the model that somebody gives: a constant that is declared as one of these is none.

    Raises
    ------
    ModelError
        ``NoSuchNode``, or if `content` is no model.
    """
    graph = parse_model(content).graph
    fixed = _fixed(graph, given)
    return [name for name in _reads(_node(graph, index)) if name not in fixed]


def _fixed(graph: proto.GraphProto, given: Collection[str]) -> set[str]:
    overridden = {text(value.name) for value in graph.input} & set(given)
    return {*constant_names(graph), *_constant_nodes(graph)} - overridden


def single_node(
    content: bytes, index: int, inputs: Mapping[str, NDArray[Any]], outputs: Mapping[str, NDArray[Any]] | None = None
) -> bytes:
    """Make a model of one node of another's main graph.

    Its constants (initializers, and what Constant nodes give) come along, under their names; all else that it or its inner
    graphs read is an input, of the type and shape of the array that is given; a node with inner graphs takes any size. A
    constant that the model declares as an input gives way to an array of its name. Versions of operators and of the format,
    and local functions, are the model's.

    Parameters
    ----------
    content : bytes
        An ONNX file.
    index : int
        The node's place in the main graph.
    inputs : mapping of str to array
        Values by name, of types in `DTYPES` or strings; those that the node does not read are left out.
    outputs : mapping of str to array, optional
        What it gives, to declare types and shapes; outputs that are not there are declared by name only.

    Raises
    ------
    ModelError
        ``NoSuchNode``; ``MissingInput``, which names what is not among `inputs`; ``UnsupportedType`` for an array of a type
        that ONNX does not have; or if `content` is no model.
    """
    model = parse_model(content)
    graph = model.graph
    node = _node(graph, index)
    reads = _reads(node)
    fixed = _fixed(graph, inputs.keys()) & set(reads)
    if missing := [name for name in reads if name not in fixed and name not in inputs]:
        what = f"{_called(node)} reads {missing[0]!r}, of which there is no array"
        raise ModelError("MissingInput", what, "Give the values of all that it reads.")
    made = schema().GraphProto(
        name=f"{text(node.op_type)} alone",
        initializer=[entry for entry in graph.initializer if entry.name in fixed],
        sparse_initializer=[entry for entry in graph.sparse_initializer if entry.values.name in fixed],
        node=[*(entry for name, entry in _constant_nodes(graph).items() if name in fixed), node],
        # Within a branch that these sizes do not take, onnxruntime would find them wrong.
        input=[_described(name, inputs[name], free=bool(inner_graphs(node))) for name in reads if name not in fixed],
        output=[_described(name, (outputs or {}).get(name)) for name in map(text, node.output) if name],
    )
    if model.ir_version < INITIALIZERS_ARE_INPUTS_BEFORE:
        made.input.extend(value for value in graph.input if value.name in fixed)
    alone = schema().ModelProto(
        ir_version=model.ir_version,
        producer_name="pyapp",
        opset_import=model.opset_import,
        functions=model.functions,
        graph=made,
    )
    return bytes(alone.SerializeToString())


def _node(graph: proto.GraphProto, index: int) -> proto.NodeProto:
    if not 0 <= index < len(graph.node):
        what = f"there is no node {index}: the main graph has {len(graph.node)}"
        raise ModelError("NoSuchNode", what, "Name one of its nodes by its place, from 0.")
    node: proto.NodeProto = graph.node[index]
    return node


def _called(node: proto.NodeProto) -> str:
    return f"{text(node.op_type)} {text(node.name or next(iter(node.output), ''))!r}"


def _constant_nodes(graph: proto.GraphProto) -> dict[str, proto.NodeProto]:
    """Return the Constant nodes by what they give."""
    return {text(node.output[0]): node for node in graph.node if node.op_type == "Constant" and len(node.output) == 1}


def _reads(node: proto.NodeProto) -> list[str]:
    """Return the values around a node that it reads, those that its inner graphs read included, each once."""
    names = list(map(text, node.input))
    for graph in inner_graphs(node):
        names += _free(graph)
    return list(dict.fromkeys(filter(None, names)))


def _free(graph: proto.GraphProto) -> list[str]:
    """Return the names that an inner graph reads and does not define."""
    own = {text(name) for name in (*constant_names(graph), *(value.name for value in graph.input))}
    found: list[str] = []
    # Nodes are in the order in which they can run, and a name may hide one from outside only from there on.
    for node in graph.node:
        found += _other(_reads(node), own)
        own.update(map(text, node.output))
    return found + _other((text(value.name) for value in graph.output), own)


def _other(names: Iterable[str], own: set[str]) -> list[str]:
    return [name for name in names if name not in own]


def _described(name: str, array: NDArray[Any] | None, *, free: bool = False) -> proto.ValueInfoProto:
    value: proto.ValueInfoProto = schema().ValueInfoProto(name=name)
    if array is None:
        return value
    if array.dtype.kind in "OU":
        kind = "STRING"
    elif (found := next((key for key, dtype in DTYPES.items() if dtype == array.dtype), None)) is not None:
        kind = found
    else:
        raise ModelError("UnsupportedType", f"{name!r} is {array.dtype}, which is no type of ONNX's", "Give it another type.")
    value.type.tensor_type.elem_type = schema().TensorProto.DataType.Value(kind)
    value.type.tensor_type.shape.SetInParent()  # a number by itself has a shape too
    for size in array.shape:
        value.type.tensor_type.shape.dim.add(**({} if free else {"dim_value": size}))
    return value
