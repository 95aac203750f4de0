"""Fixes: what they change, that not a bit of the answers changes, and what they leave alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from pyapp.fixes import FIXES, apply_fix
from pyapp.onnxfile import ModelError, parse_model

MODEL = (Path(__file__).parents[2] / "fixtures" / "breakout_dqn.onnx").read_bytes()
RANDOM = np.random.default_rng(5)


def value(name, kind=TensorProto.FLOAT, shape=(1, 4)):
    return helper.make_tensor_value_info(name, kind, shape)


def weights(name, *shape, kind=np.float32):
    return numpy_helper.from_array(RANDOM.standard_normal(shape).astype(kind), name)


def build(nodes, inputs, outputs, constants=(), opset=17, **more):
    graph = helper.make_graph(nodes, "graph", inputs, outputs, list(constants), **more)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return model.SerializeToString()


def run(content, **feeds):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return ort.InferenceSession(content, options, providers=["CPUExecutionProvider"]).run(None, feeds)


def same_bits(before, after):
    assert [each.tobytes() for each in before] == [each.tobytes() for each in after]
    assert [each.shape for each in before] == [each.shape for each in after]


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def refused(content, name, **options):
    with pytest.raises(ModelError) as caught:
        apply_fix(content, name, **options)
    assert caught.value.kind == "NothingToFix"


@pytest.mark.parametrize("name", [name for name in FIXES if name != "batch-fixed"])
def test_the_worked_example_needs_no_fix(name):
    refused(MODEL, name)


def test_every_fix_says_what_it_does():
    assert all(fix.name == name and fix.description.endswith(".") for name, fix in FIXES.items())


def test_a_fix_that_is_none_and_a_file_that_is_none():
    with pytest.raises(ValueError, match="unknown fix 'other'; known are explicit-attributes"):
        apply_fix(MODEL, "other")
    with pytest.raises(ModelError):
        apply_fix(b"no model", "plain-names")


# --- explicit-attributes ---


def convolution(op, rank, *, group=1, **attributes):
    nodes = [helper.make_node(op, ["x", "w", "b"], ["y"], name="layer", group=group, **attributes)]
    shape = (4, 6 // group, *range(2, 2 + rank)) if op == "ConvTranspose" else (6, 4 // group, *range(2, 2 + rank))
    return build(
        nodes, [value("x", shape=(1, 4, *[7] * rank))], [value("y", shape=None)], [weights("w", *shape), weights("b", 6)]
    )


@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("attributes", [{}, {"strides": 2}, {"pads": 1}, {"group": 2, "dilations": 2}])
def test_defaults_of_convolutions_are_written_out(op, rank, attributes):
    group = attributes.pop("group", 1) if "group" in attributes else 1
    lists = {key: [number] * rank * (2 if key == "pads" else 1) for key, number in attributes.items()}
    content = convolution(op, rank, group=group, **lists)
    fixed = apply_fix(content, "explicit-attributes")
    [node] = onnx.load_from_string(fixed.content).graph.node
    written = {entry.name: helper.get_attribute_value(entry) for entry in node.attribute}
    defaults = {"dilations": [1] * rank, "pads": [0] * 2 * rank, "strides": [1] * rank}
    assert written == {**defaults, "kernel_shape": list(range(2, 2 + rank)), "group": group, **lists}
    x = normal(1, 4, *[7] * rank)
    same_bits(run(content, x=x), run(fixed.content, x=x))
    refused(fixed.content, "explicit-attributes")


def test_a_change_is_told_by_the_node_and_what_was_written():
    fixed = apply_fix(convolution("Conv", 2, kernel_shape=[2, 3], pads=[0] * 4, strides=[1, 1]), "explicit-attributes")
    assert fixed.changes == ["layer (Conv): dilations = [1, 1] written out"]
    assert (fixed.renamed_inputs, fixed.retyped_inputs) == ({}, {})


@pytest.mark.parametrize(("op", "opset", "dilated"), [("MaxPool", 8, False), ("MaxPool", 12, True), ("LpPool", 18, True),
                                                      ("AveragePool", 11, False), ("AveragePool", 19, True)])  # fmt: skip
def test_defaults_of_poolings_are_written_out(op, opset, dilated):
    node = helper.make_node(op, ["x"], ["y"], kernel_shape=[2, 3])
    content = build([node], [value("x", shape=(1, 2, 6, 7))], [value("y", shape=None)], opset=opset)
    fixed = apply_fix(content, "explicit-attributes")
    names = {entry.name for entry in onnx.load_from_string(fixed.content).graph.node[0].attribute}
    assert names == {"kernel_shape", "pads", "strides"} | ({"dilations"} if dilated else set())
    x = normal(1, 2, 6, 7)
    same_bits(run(content, x=x), run(fixed.content, x=x))


@pytest.mark.parametrize("attributes", [{"auto_pad": "SAME_UPPER"}, {"auto_pad": "VALID"}])
def test_padding_that_is_computed_is_left_alone(attributes):
    refused(convolution("Conv", 2, **attributes), "explicit-attributes")


def test_an_output_shape_is_left_alone():
    refused(convolution("ConvTranspose", 2, output_shape=[9, 9]), "explicit-attributes")


def test_a_kernel_that_only_a_run_knows_is_left_alone():
    node = helper.make_node("Conv", ["x", "w"], ["y"])
    inputs = [value("x", shape=(1, 4, 7, 7)), value("w", shape=(6, 4, None, None))]
    refused(build([node], inputs, [value("y", shape=None)]), "explicit-attributes")


def test_weights_behind_a_constant_node_and_in_inner_graphs_are_found():
    inner = helper.make_node("Conv", ["x", "w"], ["inner"])
    branch = helper.make_graph([inner], "then", [], [value("inner", shape=None)])
    constant = helper.make_node("Constant", [], ["v"], value=weights("", 6, 4, 3, 3))
    other = helper.make_graph([constant, helper.make_node("Conv", ["x", "v"], ["o"])], "else", [], [value("o", shape=None)])
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=other)
    inputs = [value("x", shape=(1, 4, 7, 7)), value("c", TensorProto.BOOL, ())]
    content = build([node], inputs, [value("y", shape=None)], [weights("w", 6, 4, 2, 2)])
    fixed = apply_fix(content, "explicit-attributes")
    inner_one, other_one = sorted(fixed.changes)  # ONNX's helper sorts attributes
    assert "inner (Conv): dilations = [1, 1], group = 1, kernel_shape = [2, 2]" in inner_one
    assert "o (Conv): dilations = [1, 1], group = 1, kernel_shape = [3, 3]" in other_one
    for choice in (True, False):
        feeds = {"x": normal(1, 4, 7, 7), "c": np.array(choice)}
        same_bits(run(content, **feeds), run(fixed.content, **feeds))


# --- cast-moved ---


def cast(source, target, to=TensorProto.FLOAT, **more):
    return helper.make_node("Cast", [source], [target], to=to, **more)


@pytest.mark.parametrize("kind", ["uint8", "int8", "uint16", "int16"])
def test_small_integers_become_float32(kind):
    nodes = [cast("x", "a", name="first"), cast("x", "b"), helper.make_node("Mul", ["a", "b"], ["m"]),
             helper.make_node("MatMul", ["m", "w"], ["y"])]  # fmt: skip
    number = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    content = build(nodes, [value("x", number, (2, 4))], [value("y", shape=(2, 3))], [weights("w", 4, 3)],
                    value_info=[value("a", shape=(2, 4))])  # fmt: skip
    fixed = apply_fix(content, "cast-moved")
    onnx.checker.check_model(onnx.load_from_string(fixed.content), full_check=True)
    assert fixed.retyped_inputs == {"x": "float32"}
    assert len(fixed.changes) == 3
    assert fixed.changes[1] == "first (Cast): removed"
    assert [node.op_type for node in parse_model(fixed.content).graph.node] == ["Mul", "MatMul"]
    limits = np.iinfo(kind)
    x = RANDOM.integers(limits.min, limits.max, (2, 4), kind, endpoint=True)
    x[0, :2] = limits.min, limits.max
    same_bits(run(content, x=x), run(fixed.content, x=x.astype(np.float32)))


@pytest.mark.parametrize("kind", [TensorProto.INT32, TensorProto.INT64, TensorProto.UINT32, TensorProto.BOOL])
def test_what_float32_does_not_hold_or_was_not_asked_stays(kind):
    content = build([cast("x", "a"), helper.make_node("Relu", ["a"], ["y"])], [value("x", kind)], [value("y")])
    refused(content, "cast-moved")


def test_another_reader_another_type_or_an_output_keeps_the_input():
    uint8, double = TensorProto.UINT8, TensorProto.DOUBLE
    relu = helper.make_node("Relu", ["a"], ["y"])
    read = [cast("x", "a"), relu, helper.make_node("Identity", ["x"], ["z"])]
    refused(build(read, [value("x", uint8)], [value("y"), value("z", uint8)]), "cast-moved")
    refused(build([cast("x", "a", double), relu], [value("x", uint8)], [value("y", double)]), "cast-moved")
    branches = [helper.make_graph([cast("x", name)], name, [], [value(name)]) for name in ("p", "q")]
    choice = helper.make_node("If", ["c"], ["z"], then_branch=branches[0], else_branch=branches[1])
    inputs = [value("x", uint8), value("c", TensorProto.BOOL, ())]
    refused(build([cast("x", "a"), relu, choice], inputs, [value("y"), value("z")]), "cast-moved")


def test_a_cast_that_gives_an_output_passes_it_on():
    content = build([cast("x", "y")], [value("x", TensorProto.UINT8)], [value("y")])
    fixed = apply_fix(content, "cast-moved")
    assert fixed.changes[1] == "y (Cast): was a Cast to float32, passes its input on".replace("(Cast)", "(Identity)")
    x = RANDOM.integers(0, 256, (1, 4), np.uint8)
    same_bits(run(content, x=x), run(fixed.content, x=x.astype(np.float32)))


def test_what_inner_graphs_read_of_a_cast_is_renamed():
    branches = [helper.make_graph([helper.make_node(op, ["a"], [op])], op, [], [value(op)]) for op in ("Relu", "Neg")]
    choice = helper.make_node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1])
    inputs = [value("x", TensorProto.INT8), value("c", TensorProto.BOOL, ())]
    content = build([cast("x", "a"), choice], inputs, [value("y")])
    fixed = apply_fix(content, "cast-moved")
    for c in (True, False):
        x = RANDOM.integers(-128, 128, (1, 4), np.int8)
        same_bits(run(content, x=x, c=np.array(c)), run(fixed.content, x=x.astype(np.float32), c=np.array(c)))


# --- plain-names ---


def test_odd_names_become_plain_ones():
    nodes = [helper.make_node("Add", ["my input", "größe"], ["<out>"]), helper.make_node("Relu", ["<out>"], ["my_input"])]
    content = build(nodes, [value("my input"), value("größe")], [value("<out>"), value("my_input")])
    fixed = apply_fix(content, "plain-names")
    onnx.checker.check_model(onnx.load_from_string(fixed.content), full_check=True)
    assert fixed.renamed_inputs == {"my input": "my_input_2", "größe": "gr_e"}
    assert fixed.renamed_outputs == {"<out>": "out"}
    assert fixed.changes[0] == "input 'my input' is called 'my_input_2' now"
    a, b = normal(1, 4), normal(1, 4)
    same_bits(run(content, **{"my input": a, "größe": b}), run(fixed.content, my_input_2=a, gr_e=b))
    refused(fixed.content, "plain-names")


def test_a_name_of_signs_alone_is_called_by_what_it_is():
    content = build([helper.make_node("Relu", ["§"], ["%"])], [value("§")], [value("%")])
    fixed = apply_fix(content, "plain-names")
    assert (fixed.renamed_inputs, fixed.renamed_outputs) == ({"§": "input"}, {"%": "output"})


def loop(inner_name):
    """A loop that reads the outer `my x`, or has an input of its own of that name."""
    inner = [value("i", TensorProto.INT64, ()), value("go", TensorProto.BOOL, ()), value(inner_name)]
    nodes = [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Add", [inner_name, "my x"], ["sum"])]
    body = helper.make_graph(nodes, "body", inner, [value("on", TensorProto.BOOL, ()), value("sum")])
    node = helper.make_node("Loop", ["n", "", "my x"], ["y"], body=body)
    graph = helper.make_graph([node], "g", [value("my x"), value("n", TensorProto.INT64, ())], [value("y")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def test_inner_graphs_read_the_new_name():
    content = loop("carried")
    fixed = apply_fix(content, "plain-names")
    x, n = normal(1, 4), np.array(3)
    same_bits(run(content, **{"my x": x, "n": n}), run(fixed.content, my_x=x, n=n))


def test_a_name_that_an_inner_graph_defines_again_stays():
    refused(loop("my x"), "plain-names")


# --- batch-fixed ---


def test_the_worked_example_gets_a_batch_of_one():
    fixed = apply_fix(MODEL, "batch-fixed")
    assert fixed.changes == ["observation[0] is 1", "q_values[0] is 1"]
    x = RANDOM.integers(0, 256, (1, 4, 84, 84)).astype(np.float32)
    same_bits(run(MODEL, observation=x), run(fixed.content, observation=x))
    refused(fixed.content, "batch-fixed")


def free():
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("MatMul", ["r", "z"], ["y"])]
    inputs = [value("x", shape=("rows", "cols")), value("z", shape=("cols", None))]
    return build(nodes, inputs, [value("y", shape=("rows", None))], value_info=[value("r", shape=("rows", "cols"))])


def test_sizes_are_written_wherever_the_name_stands_and_those_alone():
    content = free()
    fixed = apply_fix(content, "batch-fixed", sizes={"rows": 2, "z[1]": 3, "other": 9})
    assert sorted(fixed.changes) == ["r[0] is 2", "x[0] is 2", "y[0] is 2", "z[1] is 3"]
    x, z = normal(2, 5), normal(5, 3)
    same_bits(run(content, x=x, z=z), run(fixed.content, x=x, z=z))
    graph = parse_model(fixed.content).graph
    assert graph.input[0].type.tensor_type.shape.dim[1].dim_param == "cols"


def test_no_name_that_looks_like_a_batch_and_sizes_that_are_none():
    refused(free(), "batch-fixed")
    refused(free(), "batch-fixed", sizes={"other": 2})
    with pytest.raises(ModelError, match="the size of 'rows' is 0"):
        apply_fix(free(), "batch-fixed", sizes={"rows": 0})


# --- what is left alone ---


@pytest.mark.parametrize("name", FIXES)
def test_the_rest_of_the_file_stays_byte_for_byte(name):
    nodes = [cast("my x", "a"), helper.make_node("Conv", ["a", "w"], ["y"], name="conv")]
    content = build(
        nodes, [value("my x", TensorProto.UINT8, ("batch", 9, 7, 7))], [value("y", shape=None)], [weights("w", 8, 9, 2, 2)]
    )
    model = onnx.load_from_string(content)
    helper.set_model_props(model, {"author": "me"})
    before = model.SerializeToString() + b"\xa2\x06\x03abc"  # a field that ONNX does not know
    after = onnx.load_from_string(apply_fix(parse_and_back(before), name).content)
    model = onnx.load_from_string(parse_and_back(before))
    assert after.graph.initializer == model.graph.initializer
    assert after.metadata_props == model.metadata_props
    for each in (model, after):
        for part in ("node", "input", "output", "value_info"):
            each.graph.ClearField(part)
    assert after.SerializeToString() == model.SerializeToString()


def parse_and_back(content):
    """A file's own unknown fields are refused, but those of messages inside it pass."""
    model = onnx.load_from_string(content[:-6])
    graph = onnx.GraphProto.FromString(model.graph.SerializeToString() + content[-6:])
    model.graph.CopyFrom(graph)
    assert b"\xa2\x06\x03abc" in model.SerializeToString()
    return model.SerializeToString()
