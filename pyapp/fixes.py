"""Changes to a model's file after which onnxruntime-web takes it more readily.

None of them changes what the model computes; the page proves to the bit, on the cases at hand, what it applies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyapp.convchannels import pad_channels
from pyapp.graphs import Dims, all_graphs, called, defined, defined_below, known_shapes, read_below, real_inputs
from pyapp.onnxfile import ModelError, make_node, parse_model, schema
from pyapp.onnxparts import inner_graphs, size_of, text, type_name, walked
from pyapp.support import OWN_DOMAINS

if TYPE_CHECKING:
    from onnx import onnx_ml_pb2 as proto

CONVOLUTIONS, POOLS = frozenset({"Conv", "ConvTranspose"}), frozenset({"MaxPool", "AveragePool", "LpPool"})
DILATED_FROM = {"Conv": 1, "ConvTranspose": 1, "MaxPool": 10, "LpPool": 18, "AveragePool": 19}
"""Version of ONNX's operators from which an operator has dilations."""

EXACT_IN_FLOAT32 = ("UINT8", "INT8", "UINT16", "INT16")
"""Types of integers that float32 holds exactly, every one of them."""

PLAIN = re.compile(r"[A-Za-z0-9_.:/-]+")
BATCH = re.compile(r"n|bs?|.*batch.*", re.IGNORECASE)
"""Names of free dimensions that stand for how many inputs are computed at once."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """A model after a fix.

    Attributes
    ----------
    content : bytes
        The file.
    changes : list of str
        What was changed, a line for each change.
    renamed_inputs, renamed_outputs : dict of str to str
        New names by old ones.
    retyped_inputs : dict of str to str
        New types, such as ``float32``, by the names of inputs.
    """

    content: bytes
    changes: list[str]
    renamed_inputs: dict[str, str] = field(default_factory=dict)
    retyped_inputs: dict[str, str] = field(default_factory=dict)
    renamed_outputs: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Edit:
    """A model that is being changed, and what was done so far."""

    model: proto.ModelProto
    sizes: Mapping[str, int]
    changes: list[str] = field(default_factory=list)
    renamed_inputs: dict[str, str] = field(default_factory=dict)
    renamed_outputs: dict[str, str] = field(default_factory=dict)
    retyped_inputs: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fix:
    """A change that can be applied.

    Attributes
    ----------
    name : str
        What code calls it.
    description : str
        What it does, and what changes for who feeds the model.
    """

    name: str
    description: str
    _apply: Callable[[_Edit], None]


def apply_fix(content: bytes, name: str, *, sizes: Mapping[str, int] | None = None) -> Fixed:
    """Apply a fix to a model.

    Parameters
    ----------
    content : bytes
        An ONNX file.
    name : str
        One of `FIXES`.
    sizes : mapping of str to int
        For ``batch-fixed``: sizes of free dimensions by their names, or by ``input[axis]`` where they have none. With none
        given, those whose names look like a batch become 1.

    Raises
    ------
    ModelError
        ``NothingToFix`` where there is nothing that it can safely change; ``BadSize``; or as of `pyapp.onnxfile.parse_model`.
    ValueError
        If there is no such fix.
    """
    if name not in FIXES:
        raise ValueError(f"unknown fix {name!r}; known are {', '.join(FIXES)}")
    edit = _Edit(parse_model(content), sizes or {})
    for dimension, size in edit.sizes.items():
        if size < 1:
            raise ModelError("BadSize", f"the size of {dimension!r} is {size}", "Give a whole number from 1.")
    FIXES[name]._apply(edit)
    if not edit.changes:
        raise ModelError("NothingToFix", f"{name} finds nothing that it can safely change", "Use the model as it is.")
    return Fixed(edit.model.SerializeToString(), edit.changes, edit.renamed_inputs, edit.retyped_inputs, edit.renamed_outputs)


def can_fix(model: proto.ModelProto, name: str, *, sizes: Mapping[str, int]) -> bool:
    """Say whether a fix would change a model; it may lack its weights' numbers, and stays as it is."""
    copy = type(model)()
    copy.CopyFrom(model)
    edit = _Edit(copy, {dimension: size for dimension, size in sizes.items() if size > 0})
    FIXES[name]._apply(edit)
    return bool(edit.changes)


def own_opset(model: proto.ModelProto) -> int:
    """Return the version of ONNX's own operators in a model; 0 where it names none."""
    return max((entry.version for entry in model.opset_import if text(entry.domain) in OWN_DOMAINS), default=0)


# --- explicit-attributes ---


def missing_attributes(node: proto.NodeProto, opset: int) -> list[str]:
    """Name the attributes that a convolution or a pooling leaves to their defaults, of those that a build wants written."""
    if node.op_type not in CONVOLUTIONS | POOLS or text(node.domain) not in OWN_DOMAINS:
        return []
    written = {entry.name: entry for entry in node.attribute}
    if "output_shape" in written or ("auto_pad" in written and written["auto_pad"].s != b"NOTSET"):
        return []  # pads come from those, and may not be written beside them
    wanted = ["dilations"] if max(opset, 1) >= DILATED_FROM[node.op_type] else []
    wanted += ["group", "kernel_shape"] if node.op_type in CONVOLUTIONS else []
    return [name for name in (*wanted, "pads", "strides") if name not in written]


def _explicit_attributes(edit: _Edit) -> None:
    opset = own_opset(edit.model)
    _write_attributes(edit, edit.model.graph.node, known_shapes(edit.model.graph.node, edit.model.graph, {}), opset)
    for function in edit.model.functions:
        versions = [entry.version for entry in function.opset_import if text(entry.domain) in OWN_DOMAINS]
        _write_attributes(edit, function.node, known_shapes(function.node, None, {}), max(versions, default=opset))


def _write_attributes(edit: _Edit, nodes: Iterable[proto.NodeProto], shapes: Mapping[str, Dims], opset: int) -> None:
    for node in nodes:
        for graph in inner_graphs(node):
            _write_attributes(edit, graph.node, known_shapes(graph.node, graph, shapes), opset)
        missing = missing_attributes(node, opset)
        kernel = _kernel(node, shapes) if missing else None
        if not kernel:
            continue
        rank = len(kernel)
        values: dict[str, int | list[int]] = {
            "dilations": [1] * rank, "group": 1, "kernel_shape": kernel, "pads": [0] * 2 * rank, "strides": [1] * rank,
        }  # fmt: skip
        written = {name: values[name] for name in missing}
        node.attribute.extend(make_node(node.op_type, [], [""], **written).attribute)
        told = ", ".join(f"{name} = {value}" for name, value in written.items())
        edit.changes.append(f"{called(node)}: {told} written out")


def _kernel(node: proto.NodeProto, shapes: Mapping[str, Dims]) -> list[int] | None:
    """Return a kernel's shape, None where the file does not say it."""
    for attribute in node.attribute:
        if attribute.name == "kernel_shape":
            return list(attribute.ints) or None  # none where a function's argument gives it
    if node.op_type in CONVOLUTIONS and len(node.input) > 1:
        return list(shapes.get(node.input[1], ()))[2:] or None
    return None


# --- cast-moved ---


def movable_casts(model: proto.ModelProto) -> dict[str, list[proto.NodeProto]]:
    """Return, by their names, the inputs of few bits that are only ever cast to float32, each with its Casts."""
    graph = model.graph
    below, given = read_below(graph), {value.name for value in graph.output}
    found = {}
    for value in real_inputs(graph):
        readers = [node for node in graph.node if value.name in node.input]
        cast = readers and all(_casts_to_float(node) for node in readers)
        kind = type_name(value.type.tensor_type.elem_type)
        if cast and kind in EXACT_IN_FLOAT32 and value.name not in below and value.name not in given:
            found[value.name] = readers
    return found


def _casts_to_float(node: proto.NodeProto) -> bool:
    to = [entry.i for entry in node.attribute if entry.name == "to" and not entry.ref_attr_name]
    return node.op_type == "Cast" and text(node.domain) in OWN_DOMAINS and [type_name(kind) for kind in to] == ["FLOAT"]


def _cast_moved(edit: _Edit) -> None:
    graph = edit.model.graph
    # A name that an inner graph defines again, or that is an output, has to stay: an Identity keeps it.
    kept = defined_below(graph) | {value.name for value in graph.output}
    for name, nodes in movable_casts(edit.model).items():
        for value in (entry for entry in (*graph.value_info, *graph.input) if entry.name == name):
            old = type_name(value.type.tensor_type.elem_type).lower()
            value.type.tensor_type.elem_type = schema().TensorProto.FLOAT
        edit.retyped_inputs[text(name)] = "float32"
        edit.changes.append(f"input {text(name)!r}: {old} became float32; feed the same numbers as float32")
        for node in nodes:
            given = node.output[0]
            if {given, name} & kept:
                node.op_type = "Identity"
                del node.attribute[:]
                edit.changes.append(f"{called(node)}: was a Cast to float32, passes its input on")
                continue
            edit.changes.append(f"{called(node)}: removed")
            graph.node.remove(node)
            for value in [entry for entry in graph.value_info if entry.name == given]:
                graph.value_info.remove(value)
            _rename(graph, {given: name})


# --- plain-names ---


def odd_names(values: Iterable[proto.ValueInfoProto]) -> list[str]:
    """Return the names of inputs or outputs that hold more than letters, digits and ``_ . : / -``, or nothing."""
    return [text(value.name) for value in values if not PLAIN.fullmatch(text(value.name))]


def _plain_names(edit: _Edit) -> None:
    graph = edit.model.graph
    taken = {text(name) for each in all_graphs(edit.model) for name in _names(each)}
    shadowed = defined_below(graph)
    listed = [(value.name, edit.renamed_inputs, "input") for value in real_inputs(graph)]
    listed += [(value.name, edit.renamed_outputs, "output") for value in graph.output]
    counts = {name: sum(name == other for other, *_ in listed) for name, *_ in listed}
    changed: dict[str, str] = {}
    for name, renamed, kind in listed:
        # Empty or twice: the file is broken. Defined again inside: which of the two is meant changes with the place.
        if PLAIN.fullmatch(text(name)) or not name or counts[name] > 1 or name in shadowed:
            continue
        stem = re.sub(r"[^A-Za-z0-9_.:/-]+", "_", text(name)).strip("_") or kind
        new = next(each for each in (stem, *(f"{stem}_{count}" for count in range(2, len(taken) + 3))) if each not in taken)
        taken.add(new)
        changed[name] = renamed[text(name)] = new
        edit.changes.append(f"{kind} {text(name)!r} is called {new!r} now")
    _rename(graph, changed)


def _names(graph: proto.GraphProto) -> set[str]:
    return defined(graph) | {name for node in graph.node for name in node.input} | {value.name for value in graph.output}


def _rename(graph: proto.GraphProto, new: Mapping[str, str]) -> None:
    """Rename tensors wherever a graph or one inside it speaks of them. No inner graph may define the old names."""
    values = (*graph.input, *graph.output, *graph.value_info, *graph.initializer)
    for named in (*values, *(entry.values for entry in graph.sparse_initializer)):
        if named.name in new:
            named.name = new[named.name]
    for node in walked(graph.node):
        for names in (node.input, node.output):
            for index, name in enumerate(names):
                if name in new:
                    names[index] = new[name]
        for inner in inner_graphs(node):
            for value in (*inner.output, *inner.value_info):
                if value.name in new:
                    value.name = new[value.name]
    for note in graph.quantization_annotation:
        note.tensor_name = new.get(note.tensor_name, note.tensor_name)


# --- batch-fixed ---


def free_dimensions(graph: proto.GraphProto) -> dict[str, list[str]]:
    """Return the free dimensions of a graph's inputs by their names, each with the places where it stands: ``input[axis]``."""
    found: dict[str, list[str]] = {}
    for value in real_inputs(graph):
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            size = size_of(dim)
            if not isinstance(size, int):
                place = f"{text(value.name)}[{axis}]"
                found.setdefault(size or place, []).append(place)
    return found


def _batch_fixed(edit: _Edit) -> None:
    free = free_dimensions(edit.model.graph)
    sizes = edit.sizes or {name: 1 for name, places in free.items() if name not in places and BATCH.fullmatch(name)}
    inputs = {value.name for value in real_inputs(edit.model.graph)}
    for depth, graph in enumerate(all_graphs(edit.model)):
        for value in (*graph.input, *graph.output, *graph.value_info):
            for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                name = size_of(dim)
                if isinstance(name, int):
                    continue
                place = f"{text(value.name)}[{axis}]"
                size = sizes.get(name or place) if name or (depth == 0 and value.name in inputs) else None
                if size is not None:
                    dim.dim_value = size
                    edit.changes.append(f"{place} is {size}")


FIXES: dict[str, Fix] = {
    fix.name: fix
    for fix in (
        Fix(
            "explicit-attributes",
            "Writes out dilations, group, kernel_shape, pads and strides of convolutions and poolings, with the values that "
            "they have by default. Nothing changes for who feeds the model.",
            _explicit_attributes,
        ),
        Fix(
            "channels-padded",
            "Gives convolutions that onnxruntime-web computes wrongly on WebGPU one more input channel, of zeros. Nothing "
            "changes for who feeds the model.",
            lambda edit: edit.changes.extend(pad_channels(edit.model, own_opset(edit.model))),
        ),
        Fix(
            "cast-moved",
            "Makes inputs of 8 or 16 bits that are cast to float32 at once float32, and removes the casts. Who feeds the model "
            "gives the same numbers as float32, four or two times as many bytes.",
            _cast_moved,
        ),
        Fix(
            "plain-names",
            "Renames inputs and outputs whose names hold more than letters, digits and _ . : / -. Who feeds the model uses the "
            "new names.",
            _plain_names,
        ),
        Fix(
            "batch-fixed",
            "Writes sizes in place of free dimensions. The model then takes inputs of this size alone.",
            _batch_fixed,
        ),
    )
}
"""The fixes by name."""
