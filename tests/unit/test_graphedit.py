"""Models made of a model, run by onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from pyapp.cases import load_suite
from pyapp.graphedit import SHAPE_OF, Value, exposed, folded, inputs_of, shapes, single_node, values_of
from pyapp.onnxfile import ModelError, TensorInfo, make_model, make_node

FIXTURES = Path(__file__).parents[2] / "fixtures"
MODEL = (FIXTURES / "breakout_dqn.onnx").read_bytes()
STATES = load_suite("states", (FIXTURES / "states.npz").read_bytes())
DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
STANDARD = (
    "light/light_squeezenet.onnx",
    "light/light_shufflenet.onnx",
    "pytorch-converted/test_PixelShuffle/model.onnx",
    "pytorch-operator/test_operator_repeat_dim_overflow/model.onnx",
    "pytorch-operator/test_operator_symbolic_override_nested/model.onnx",
    "simple/test_sequence_model3/model.onnx",
)
FLOAT = TensorProto.FLOAT


def session(model: bytes) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def run(model: bytes, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    opened = session(model)
    return dict(zip([output.name for output in opened.get_outputs()], opened.run(None, feeds), strict=True))


def random_feeds(model: bytes) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    kinds = {"tensor(float)": np.float32, "tensor(int64)": np.int64}
    shapes_ = {
        entry.name: [size if isinstance(size, int) else 2 for size in entry.shape] for entry in session(model).get_inputs()
    }
    types = {entry.name: kinds[entry.type] for entry in session(model).get_inputs()}
    return {
        name: np.asarray(rng.random(shape) if types[name] == np.float32 else rng.integers(0, 2, shape), types[name])
        for name, shape in shapes_.items()
    }


def branches() -> bytes:
    """If that reads `a` (a node's), `x` (an input) and `c` (a constant) of the graph around it, and a name that it hides."""

    def branch(name: str, op: str, other: str) -> onnx.GraphProto:
        nodes = [
            helper.make_node(op, ["a", other], [f"{name}.sum"]),
            helper.make_node("Mul", [f"{name}.sum", "c"], [f"{name}.product"]),
        ]
        return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(f"{name}.product", FLOAT, None)])

    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="before"),
        helper.make_node(
            "If", ["take"], ["y"], name="choice", then_branch=branch("t", "Add", "x"), else_branch=branch("e", "Sub", "x")
        ),
    ]
    graph = helper.make_graph(
        nodes,
        "branches",
        [helper.make_tensor_value_info("x", FLOAT, [3]), helper.make_tensor_value_info("take", TensorProto.BOOL, [])],
        [helper.make_tensor_value_info("y", FLOAT, None)],
        [numpy_helper.from_array(np.float32([2, 3, 4]), "c")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


# --- exposed ---


def test_the_values_of_the_worked_example_are_its_nodes_outputs_in_order():
    graph = onnx.load_from_string(MODEL).graph
    values = values_of(MODEL)
    assert [value.name for value in values] == [name for node in graph.node for name in node.output]
    assert values[2] == Value(graph.node[2].output[0], graph.node[2].name, graph.node[2].op_type, 2)


def test_values_that_hang_on_constants_alone_are_known():
    nodes = [
        helper.make_node("Constant", [], ["k"], value_float=1.0),
        helper.make_node("Neg", ["w"], ["minus"]),
        helper.make_node("Add", ["k", "minus"], ["sum"]),
        helper.make_node("RandomNormalLike", ["sum"], ["random"]),
        helper.make_node("RandomNormal", [], ["more"], shape=[1]),
        helper.make_node("Neg", ["b"], ["replaceable"]),
        helper.make_node("Add", ["sum", "x"], ["y"]),
    ]
    described = [helper.make_tensor_value_info(name, FLOAT, [1]) for name in ("x", "b")]
    constants = [numpy_helper.from_array(np.float32([2]), name) for name in ("w", "b")]
    graph = helper.make_graph(nodes, "g", described, [helper.make_tensor_value_info("y", FLOAT, [1])], constants)
    made = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    assert folded(made.SerializeToString()) == {"k", "minus", "sum"}
    made.ir_version = 3
    assert folded(made.SerializeToString()) == {"k", "minus", "sum", "replaceable"}
    assert folded(MODEL) == set()


def test_exposing_the_worked_example_keeps_its_outputs():
    inputs = STATES.inputs(0)
    plain, shown = run(MODEL, inputs), run(exposed(MODEL), inputs)
    assert next(iter(shown)) == "q_values"
    assert set(shown) == {value.name for value in values_of(MODEL)}
    np.testing.assert_array_equal(shown["q_values"], plain["q_values"])


@pytest.mark.parametrize("file", STANDARD)
def test_exposing_a_standard_model_keeps_its_outputs(file):
    content = (DATA / file).read_bytes()
    feeds = random_feeds(content)
    plain, shown = run(content, feeds), run(exposed(content), feeds)
    assert list(shown)[: len(plain)] == list(plain)
    assert set(shown) == {value.name for value in values_of(content)} | set(plain)
    for name, expected in plain.items():
        np.testing.assert_array_equal(shown[name], expected)


def test_named_values_are_exposed_once_and_outputs_and_empty_names_are_left_out():
    names = [value.name for value in values_of(MODEL)]
    shown = onnx.load_from_string(exposed(MODEL, ["", names[1], names[1], "q_values"]))
    assert [output.name for output in shown.graph.output] == ["q_values", names[1]]
    assert exposed(MODEL, []) == onnx.load_from_string(MODEL).SerializeToString()


def test_an_optional_output_that_is_not_asked_for_is_no_value():
    node = helper.make_node("MaxPool", ["x"], ["y", ""], kernel_shape=[1, 1])
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", FLOAT, [1, 1, 2, 2])],
        [helper.make_tensor_value_info("y", FLOAT, None)],
    )
    content = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    assert [value.name for value in values_of(content)] == ["y"]
    assert list(run(exposed(content), {"x": np.ones((1, 1, 2, 2), np.float32)})) == ["y"]


@pytest.mark.parametrize("make", [exposed, shapes])
@pytest.mark.parametrize("name", ["nothing", "observation"])
def test_a_value_that_no_node_gives_is_named(make, name):
    with pytest.raises(ModelError, match=f"gives '{name}'") as caught:
        make(MODEL, [name])
    assert caught.value.kind == "NoSuchValue"


@pytest.mark.parametrize("make", [exposed, shapes, values_of, lambda content: single_node(content, 0, {})])
def test_no_model_is_none(make):
    with pytest.raises(ModelError):
        make(b"no model")


def test_shapes_are_those_of_the_values():
    inputs = STATES.inputs(0)
    shown, sizes = run(exposed(MODEL), inputs), run(shapes(MODEL), inputs)
    assert {name: tuple(size) for name, size in sizes.items()} == {
        SHAPE_OF + name: array.shape for name, array in shown.items()
    }


def test_shapes_can_be_asked_for_where_onnx_s_own_operators_are_not_used():
    node = helper.make_node("Binarizer", ["x"], ["y"], domain="ai.onnx.ml", threshold=0.5)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", FLOAT, [2, 3])], [helper.make_tensor_value_info("y", FLOAT, None)]
    )
    content = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("ai.onnx.ml", 1)]).SerializeToString()
    assert run(shapes(content), {"x": np.ones((2, 3), np.float32)})[SHAPE_OF + "y"].tolist() == [2, 3]


# --- a node alone ---


def each_alone(content: bytes, feeds: dict[str, np.ndarray]) -> int:
    """Run every node alone on what the whole model gives it; return how many there were."""
    known = {**feeds, **run(exposed(content), feeds)}
    count = 0
    for index in sorted({value.index for value in values_of(content) if value.op != "Constant"}):
        outputs = {value.name: known[value.name] for value in values_of(content) if value.index == index}
        given = {name: known[name] for name in inputs_of(content, index)}
        alone = single_node(content, index, given, outputs)
        onnx.checker.check_model(onnx.load_from_string(alone))
        for name, found in run(alone, given).items():
            np.testing.assert_allclose(found, known[name], rtol=1e-5, atol=1e-6)
        count += 1
    return count


def test_every_node_of_the_worked_example_does_alone_what_it_does_within():
    assert each_alone(MODEL, STATES.inputs(0)) == 10


@pytest.mark.parametrize("file", [STANDARD[2], STANDARD[3], STANDARD[4]])
def test_every_node_of_a_standard_model_does_alone_what_it_does_within(file):
    content = (DATA / file).read_bytes()
    assert each_alone(content, random_feeds(content)) >= 2


def test_constants_come_along_and_versions_stay():
    alone = onnx.load_from_string(single_node(MODEL, 0, STATES.inputs(0)))
    whole = onnx.load_from_string(MODEL)
    assert alone.graph.node[:] == whole.graph.node[:1]
    assert [entry.name for entry in alone.graph.initializer] == list(whole.graph.node[0].input[1:])
    assert (alone.ir_version, alone.opset_import[0].version) == (whole.ir_version, whole.opset_import[0].version)
    [value] = alone.graph.input
    assert (value.name, [size.dim_value for size in value.type.tensor_type.shape.dim]) == ("observation", [1, 4, 84, 84])


@pytest.mark.parametrize("take", [True, False])
def test_inner_graphs_keep_reading_what_is_around_them(take):
    content = branches()
    assert inputs_of(content, 1) == ["take", "a", "x"]
    feeds = {"x": np.float32([-1, 2, 3]), "take": np.array(take)}
    known = {**feeds, "a": np.maximum(feeds["x"], 0)}
    alone = single_node(content, 1, known)
    # A branch that is not taken may not fit these sizes, and onnxruntime would refuse the model for it.
    sizes = [
        dim.HasField("dim_value")
        for value in onnx.load_from_string(alone).graph.input
        for dim in value.type.tensor_type.shape.dim
    ]
    assert not any(sizes)
    np.testing.assert_array_equal(run(alone, known)["y"], run(content, feeds)["y"])
    assert each_alone(content, feeds) == 2


def test_a_loops_body_reads_its_own_inputs_and_what_is_around_it():
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Add", ["carried", "step"], ["next"]), helper.make_node("Identity", ["go"], ["on"])],
        "body",
        [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []), value("carried", FLOAT, [2])],
        [value("on", TensorProto.BOOL, []), value("next", FLOAT, [2])],
    )
    nodes = [
        helper.make_node("Neg", ["x"], ["step"]),
        helper.make_node("Constant", [], ["times"], value=numpy_helper.from_array(np.array(3, np.int64))),
        helper.make_node("Loop", ["times", "", "x"], ["y"], body=body),
    ]
    graph = helper.make_graph(nodes, "loop", [value("x", FLOAT, [2])], [value("y", FLOAT, [2])])
    content = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    assert inputs_of(content, 2) == ["x", "step"]
    assert each_alone(content, {"x": np.float32([1, 2])}) == 2


def test_a_local_function_comes_along():
    function = helper.make_function(
        "mine", "Double", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 17)]
    )
    graph = helper.make_graph(
        [helper.make_node("Double", ["x"], ["y"], domain="mine")],
        "g",
        [helper.make_tensor_value_info("x", FLOAT, [2])],
        [helper.make_tensor_value_info("y", FLOAT, [2])],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    content = helper.make_model(graph, functions=[function], opset_imports=imports, ir_version=8).SerializeToString()
    assert each_alone(content, {"x": np.float32([1, 2])}) == 1


def test_a_constant_that_is_an_input_too_gives_way_to_an_array():
    model = onnx.load_from_string(
        make_model(
            [make_node("Add", ["x", "b"], ["y"])],
            [TensorInfo("x", "float32", (2,)), TensorInfo("b", "float32", (2,))],
            [TensorInfo("y", "float32", (2,))],
            {"b": np.float32([1, 1])},
        )
    )
    content, x, b = model.SerializeToString(), np.float32([1, 2]), np.float32([5, 5])
    assert inputs_of(content, 0) == ["x"]
    assert inputs_of(content, 0, ["x", "b"]) == ["x", "b"]
    assert run(single_node(content, 0, {"x": x}), {"x": x})["y"].tolist() == [2, 3]
    assert run(single_node(content, 0, {"x": x, "b": b}), {"x": x, "b": b})["y"].tolist() == [6, 7]


@pytest.mark.parametrize(
    ("index", "inputs", "kind", "named"),
    [
        (10, {}, "NoSuchNode", "no node 10"),
        (-1, {}, "NoSuchNode", "no node -1"),
        (0, {}, "MissingInput", "observation"),
        (0, {"observation": np.zeros(3, np.complex64)}, "UnsupportedType", "complex64"),
    ],
)
def test_what_is_missing_is_named(index, inputs, kind, named):
    with pytest.raises(ModelError, match=named) as caught:
        single_node(MODEL, index, inputs)
    assert caught.value.kind == kind


def test_a_missing_value_that_only_an_inner_graph_reads_is_named():
    with pytest.raises(ModelError, match="If 'choice' reads 'a'"):
        single_node(branches(), 1, {"take": np.array(True), "x": np.zeros(3, np.float32)})
