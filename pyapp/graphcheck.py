"""Is a model's graph one that can run? Every tensor is given once, before it is read, and nothing waits for itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyapp.onnxparts import ModelError, broken, called, constant_names, inner_graphs, quoted

if TYPE_CHECKING:
    from onnx import onnx_ml_pb2 as proto

MAX_DEPTH = 50
"""Graphs in graphs; protobuf itself reads about thirty."""

NAMED = 5
"""So many nodes of a cycle are named."""


@dataclass(slots=True)
class _Scope:
    """A graph, or the body of a function.

    Attributes
    ----------
    nodes : sequence of NodeProto
        In the order of the file.
    inputs, constants, outputs : sequence of str or bytes
        Names; those of constants may be among the inputs, which then have a value of their own.
    outer : tuple of _Scope and int, or None
        The graph around it, and the place of the node there.
    depth : int
        How many graphs are around it.
    captured : dict of int to dict
        What the inner graphs of a node, by its place, read of this one: the name, and what a message calls the reader.
    within : dict of int to dict
        Likewise what the nodes of inner graphs give, and what a message calls the giver.
    """

    nodes: Sequence[proto.NodeProto]
    inputs: Sequence[str]
    constants: Sequence[str]
    outputs: Sequence[str]
    outer: tuple[_Scope, int] | None = None
    depth: int = 0
    captured: dict[int, dict[str, str]] = field(default_factory=dict)
    within: dict[int, dict[str, str]] = field(default_factory=dict)


def check_graphs(model: proto.ModelProto) -> None:
    """Refuse a model whose graph, inner graphs or functions cannot run.

    Inner graphs see the names of those around them, functions do not. An empty name stands for an input or output left out.

    Raises
    ------
    ModelError
        ``CyclicGraph`` names the nodes of a cycle. ``BrokenModel`` names a tensor that is given twice, one that a node reads
        and nothing gives, an output that nothing gives, a node that reads what a later one gives, or says that graphs are
        nested too deeply.
    """
    scopes = [_scope(model.graph)]
    scopes += [_Scope(function.node, function.input, [], function.output) for function in model.functions]
    for scope in scopes:  # which grows
        for place, node in enumerate(scope.nodes):
            inner = inner_graphs(node)
            if inner and scope.depth == MAX_DEPTH:
                raise broken(f"{called(node)} has graphs in more than {MAX_DEPTH} others")
            scopes += [_scope(graph, (scope, place)) for graph in inner]
    for scope in reversed(scopes):  # the innermost first: they say what their nodes read of those around them
        _check(scope)


def _scope(graph: proto.GraphProto, outer: tuple[_Scope, int] | None = None) -> _Scope:
    inputs, outputs = [value.name for value in graph.input], [value.name for value in graph.output]
    return _Scope(graph.node, inputs, constant_names(graph), outputs, outer, outer[0].depth + 1 if outer else 0)


def _check(scope: _Scope) -> None:
    given = _unique(scope.inputs, "inputs") | _unique(scope.constants, "constants")
    givers: dict[str, int] = {}
    for place, node in enumerate(scope.nodes):
        for name, who in scope.within.get(place, {}).items():
            # A node may itself give what its branches give: only what is there before counts.
            if name in given or name in givers:
                raise broken(f"the tensor {quoted(name)} is given twice, the second time by {who} of an inner graph")
        for name in filter(None, node.output):
            if name in given or name in givers:
                raise broken(f"the tensor {quoted(name)} is given twice, the second time by {called(node)}")
            givers[name] = place
    for name in scope.outputs:
        if name not in given and name not in givers:
            which = f"of a graph of {called(scope.outer[0].nodes[scope.outer[1]])} " if scope.outer else ""
            raise broken(f"the output {quoted(name)} {which}is given by nothing")
    needs = [_needs(scope, place, given, givers) for place in range(len(scope.nodes))]
    late = next(((place, name) for place, names in enumerate(needs) for name in names if givers[name] >= place), None)
    if late:
        _check_acyclic(scope.nodes, [[givers[name] for name in names] for names in needs])
        place, name = late
        reader, giver = called(scope.nodes[place]), called(scope.nodes[givers[name]])
        raise broken(f"its nodes are out of order: {reader} reads {quoted(name)}, which a later node gives: {giver}")
    if scope.outer:
        around, at = scope.outer
        within = around.within.setdefault(at, {})
        within.update({name: called(scope.nodes[place]) for name, place in givers.items()})
        for names in scope.within.values():
            within.update(names)


def _needs(scope: _Scope, place: int, given: set[str], givers: dict[str, int]) -> list[str]:
    """Return what a node reads of other nodes; what nothing here gives is the graph's around it to give."""
    node = scope.nodes[place]
    reads = dict.fromkeys(filter(None, node.input), called(node)) | scope.captured.get(place, {})
    for name, who in reads.items():
        if name in given or name in givers:
            continue
        if scope.outer is None:
            raise broken(f"{who} reads the tensor {quoted(name)}, which nothing gives")
        around, at = scope.outer
        around.captured.setdefault(at, {}).setdefault(name, who)
    return [name for name in reads if name in givers]


def _unique(names: Iterable[str], what: str) -> set[str]:
    found: set[str] = set()
    for name in names:
        if name in found:
            raise broken(f"the tensor {quoted(name)} is given twice: it is two of the {what}")
        found.add(name)
    return found


def _check_acyclic(nodes: Sequence[proto.NodeProto], sources: Sequence[Sequence[int]]) -> None:
    """Raise `ModelError` where nodes wait for each other; `sources` are the places of the nodes that a node reads of."""
    waits = [len(places) for places in sources]
    readers: list[list[int]] = [[] for _ in nodes]
    for place, places in enumerate(sources):
        for source in places:
            readers[source].append(place)
    ready = [place for place, count in enumerate(waits) if not count]
    while ready:
        for reader in readers[ready.pop()]:
            waits[reader] -= 1
            if not waits[reader]:
                ready.append(reader)
    waiting = [place for place, count in enumerate(waits) if count]
    if not waiting:
        return
    # What waits, waits for another that waits: going back must come to a place a second time.
    path: dict[int, None] = {}
    place = waiting[0]
    while place not in path:
        path[place] = None
        place = next(source for source in sources[place] if waits[source])
    places = list(path)
    cycle = places[places.index(place) :][::-1]
    more = f" and {len(cycle) - NAMED:,} more" if len(cycle) > NAMED else ""
    named = ", ".join(called(nodes[place]) for place in cycle[:NAMED])
    what = f"its graph has a cycle: {named}{more}" + (" wait for each other" if len(cycle) > 1 else " waits for itself")
    raise ModelError("CyclicGraph", what, "Export the model again.")
