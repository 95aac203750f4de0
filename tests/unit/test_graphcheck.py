"""Graphs that cannot run are told from those that can, in onnxruntime's and ONNX's own opinion too."""

from __future__ import annotations

import contextlib

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from pyapp.graphcheck import MAX_DEPTH, check_graphs
from pyapp.onnxfile import ModelError, parse_model, read_model

node = helper.make_node


def info(name: str, kind: int = TensorProto.FLOAT, shape: tuple[int, ...] = (2,)) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def weight(name: str) -> TensorProto:
    return numpy_helper.from_array(np.ones(2, np.float32), name)


def model(nodes, outputs=("y",), inputs=("x",), constants=(), **options) -> bytes:
    ends = [info("c", TensorProto.BOOL, ()), *map(info, inputs)], list(map(info, outputs))
    graph = helper.make_graph(nodes, "g", *ends, [weight(name) for name in constants])
    opset = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, ir_version=8, opset_imports=opset, **options).SerializeToString()


def choice(nodes, output="q", given="y", constants=(), name="choice") -> onnx.NodeProto:
    graph = helper.make_graph(nodes, "b", [], [info(output)], [weight(name) for name in constants])
    return node("If", ["c"], [given], name=name, then_branch=graph, else_branch=graph)


def refusal(content: bytes) -> ModelError:
    with pytest.raises(ModelError) as caught:
        read_model(content)
    assert caught.value.remedy
    return caught.value


RUNS = {
    "a chain": model([node("Neg", ["x"], ["a"]), node("Relu", ["a"], ["y"])]),
    "an output that is an input": model([node("Neg", ["x"], ["y"])], outputs=("y", "x")),
    "an output that is a constant": model([node("Neg", ["x"], ["y"])], outputs=("y", "w"), constants=("w",)),
    "a constant that is an input too": model([node("Add", ["x", "w"], ["y"])], inputs=("x", "w"), constants=("w",)),
    "inputs and outputs left out": model([node("Clip", ["x", "", ""], ["a"]), node("Dropout", ["a"], ["y", ""])]),
    "the same input twice": model([node("Add", ["x", "x"], ["y"])]),
    "a branch that reads the outer graph": model([node("Neg", ["x"], ["a"]), choice([node("Relu", ["a"], ["q"])])]),
    "a branch with the outer node's name": model([choice([node("Relu", ["x"], ["y"])], output="y")]),
    "constants of a branch": model([choice([node("Add", ["x", "k"], ["q"])], constants=("k",))]),
    "a branch in a branch": model([choice([choice([node("Neg", ["x"], ["r"])], output="r", given="q", name="inner")])]),
    "a function": model(
        [node("Own", ["x"], ["y"], domain="own")],
        functions=[
            helper.make_function("own", "Own", ["p"], ["s"], [node("Neg", ["p"], ["s"])], [helper.make_opsetid("", 17)])
        ],
    ),
}


@pytest.mark.parametrize("content", RUNS.values(), ids=RUNS.keys())
def test_what_onnxruntime_runs_is_taken(content):
    assert read_model(content).outputs[0].name == "y"
    onnx.checker.check_model(onnx.load_from_string(content))
    ort.InferenceSession(content, providers=["CPUExecutionProvider"])


REFUSED = {
    "unknown": (
        model([node("Add", ["x", "q"], ["y"], name="n")]),
        r"node 'n' \(Add\) reads the tensor 'q', which nothing gives",
    ),
    "unknown, without a node's name": (model([node("Add", ["x", "q"], ["y"])]), r"node 'y' \(Add\) reads the tensor 'q'"),
    "unknown in a branch": (model([choice([node("Neg", ["w"], ["q"], name="deep")])]), r"'deep' \(Neg\) reads the tensor 'w'"),
    "what another branch gives": (
        model([choice([node("Neg", ["x"], ["q"])], given="z"), node("Neg", ["q"], ["y"], name="n")]),
        "'n'.*'q', which nothing gives",
    ),
    "given twice by nodes": (
        model([node("Neg", ["x"], ["y"]), node("Relu", ["x"], ["y"], name="n")]),
        r"'y' is given twice.*'n' \(Relu\)",
    ),
    "given twice by one node": (model([node("Split", ["x"], ["y", "y"])]), "'y' is given twice"),
    "an input and a node": (model([node("Neg", ["x"], ["x"]), node("Relu", ["x"], ["y"])]), "'x' is given twice"),
    "a constant and a node": (model([node("Neg", ["x"], ["w"]), node("Relu", ["w"], ["y"])], constants=("w",)), "'w' is given"),
    "two inputs": (model([node("Neg", ["x"], ["y"])], inputs=("x", "x")), "'x' is given twice: it is two of the inputs"),
    "in a branch again": (
        model([node("Neg", ["x"], ["q"]), choice([node("Relu", ["x"], ["q"], name="n")])]),
        r"'q' is given twice.*'n' \(Relu\) of an inner graph",
    ),
    "no output": (model([node("Neg", ["x"], ["y"])], outputs=("y", "z")), "output 'z' is given by nothing"),
    "no output of a branch": (model([choice([node("Neg", ["x"], ["r"])])]), r"output 'q' of a graph of node 'choice' \(If\)"),
    "a branch that only passes on": (model([choice([], output="x")]), "output 'x' of a graph"),
}


@pytest.mark.parametrize(("content", "says"), REFUSED.values(), ids=REFUSED.keys())
def test_what_onnxruntime_refuses_is_refused_with_the_tensor(content, says):
    error = refusal(content)
    assert error.kind == "BrokenModel"
    with pytest.raises(ModelError, match=says):
        read_model(content)
    with pytest.raises(Exception, match="ONNXRuntimeError"):
        ort.InferenceSession(content, providers=["CPUExecutionProvider"])


CYCLES = {
    "of two": (
        model([node("Add", ["x", "b"], ["a"], name="p"), node("Neg", ["a"], ["b"], name="q"), node("Neg", ["a"], ["y"])]),
        ["node 'p' (Add)", "node 'q' (Neg)", "wait for each other"],
    ),
    "of itself": (model([node("Add", ["x", "y"], ["y"], name="p")]), ["node 'p' (Add) waits for itself"]),
    "through a branch": (
        model([choice([node("Neg", ["b"], ["q"])], given="y"), node("Relu", ["y"], ["b"], name="back")]),
        ["node 'choice' (If)", "node 'back' (Relu)"],
    ),
    "of eight": (
        model(
            [node("Add", ["x", f"t{(i + 7) % 8}"], [f"t{i}"], name=f"n{i}") for i in range(8)] + [node("Neg", ["t0"], ["y"])]
        ),
        ["and 3 more"],
    ),
    "in a branch": (
        model([choice([node("Add", ["x", "r"], ["q"], name="p"), node("Neg", ["q"], ["r"], name="s")])]),
        ["node 'p' (Add)", "node 's' (Neg)"],
    ),
}


@pytest.mark.parametrize(("content", "says"), CYCLES.values(), ids=CYCLES.keys())
def test_a_cycle_is_told_with_its_nodes(content, says):
    error = refusal(content)
    assert error.kind == "CyclicGraph"
    assert all(part in error.message for part in says)
    assert error.message.count("node '") <= 5
    with pytest.raises(Exception, match="ONNXRuntimeError"):
        ort.InferenceSession(content, providers=["CPUExecutionProvider"])


def test_nodes_beside_a_cycle_are_not_named():
    ahead, behind = node("Neg", ["x"], ["f"], name="ahead"), node("Neg", ["a"], ["y"], name="behind")
    circle = [node("Sum", ["f", "b"], ["a"], name="p"), node("Neg", ["a"], ["b"], name="q")]
    message = refusal(model([ahead, behind, *circle])).message
    assert "'p'" in message
    assert "'q'" in message
    assert "ahead" not in message
    assert "behind" not in message


@pytest.mark.parametrize(
    "nodes",
    [
        [node("Relu", ["a"], ["y"], name="early"), node("Neg", ["x"], ["a"], name="late")],
        [choice([node("Relu", ["a"], ["q"])], name="early"), node("Neg", ["x"], ["a"], name="late")],
        [choice([node("Relu", ["a"], ["q"], name="early"), node("Neg", ["x"], ["a"], name="late")])],
    ],
)
def test_disorder_is_no_cycle(nodes):
    error = refusal(model(nodes))
    assert error.kind == "BrokenModel"
    assert "out of order: node 'early'" in error.message
    assert "reads 'a', which a later node gives: node 'late' (Neg)" in error.message
    with pytest.raises(onnx.checker.ValidationError):
        onnx.checker.check_model(onnx.load_from_string(model(nodes)))


def test_the_body_of_a_function_is_checked_and_sees_only_its_own():
    opset = [helper.make_opsetid("", 17)]
    wrong = helper.make_function("own", "Own", ["p"], ["s"], [node("Add", ["p", "x"], ["s"], name="n")], opset)
    assert (
        "'n' (Add) reads the tensor 'x'" in refusal(model([node("Own", ["x"], ["y"], domain="own")], functions=[wrong])).message
    )


def test_graphs_nested_too_deeply_are_refused_without_recursion():
    def nested(depth: int) -> onnx.ModelProto:
        content = onnx.ModelProto()
        graph = content.graph
        graph.input.add(name="x")
        for level in range(depth):
            graph.output.add(name=f"t{level}")
            graph.node.add(op_type="If", output=[f"t{level}"]).attribute.add(name="then_branch", type=5)
            graph = graph.node[0].attribute[0].g
        graph.output.add(name="end")
        graph.node.add(op_type="Neg", input=["x"], output=["end"])
        return content

    check_graphs(nested(MAX_DEPTH))
    for depth in (MAX_DEPTH + 1, 3_000):
        with pytest.raises(ModelError, match=f"more than {MAX_DEPTH}"):
            check_graphs(nested(depth))
    # Protobuf refuses sooner, in words of its own.
    with pytest.raises(ModelError, match="cannot read"):
        read_model(nested(60).SerializeToString())


def test_parsing_alone_does_not_look_at_the_graph():
    for content, _ in CYCLES.values():
        assert parse_model(content).graph.node


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs_are_judged_as_onnx_judges_them(seed):
    """Nodes that read and give a few names at random, some of them in branches."""
    rng = np.random.default_rng(seed)
    agreed = 0
    for _ in range(100):
        names = ["x", *(f"t{i}" for i in range(4)), "y"]

        def nodes(count, last, names=names):
            made = [node("Add", list(rng.choice(names, 2)), [str(rng.choice(names[1:]))]) for _ in range(count)]
            return [*made, node("Neg", [str(rng.choice(names))], [last])]

        content = nodes(rng.integers(0, 3), "y")
        if rng.random() < 0.5:
            place = rng.integers(0, len(content) + 1)
            content.insert(place, choice(nodes(rng.integers(0, 2), "q"), given=str(rng.choice(["z", "t0"]))))
        made = model(content)
        ours = theirs = False
        with contextlib.suppress(ModelError):
            ours = bool(read_model(made))
        with contextlib.suppress(onnx.checker.ValidationError):
            onnx.checker.check_model(onnx.load_from_string(made))
            theirs = True
        assert ours == theirs, onnx.printer.to_text(onnx.load_from_string(made))
        agreed += ours
    assert agreed
