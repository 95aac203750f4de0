"""What the doctor finds in small models, what it does not find in healthy ones, and that no file upsets it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pyapp.doctor import SEVERITIES, examine
from pyapp.fixes import FIXES, apply_fix
from pyapp.onnxfile import ModelError
from pyapp.support import MAX_IR_VERSION, MAX_OPSET

MODEL = (Path(__file__).parents[2] / "fixtures" / "breakout_dqn.onnx").read_bytes()
DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"


def value(name, kind=TensorProto.FLOAT, shape=(1, 4)):
    return helper.make_tensor_value_info(name, kind, shape)


def build(nodes, inputs=None, outputs=None, constants=(), opset=17, *, ir_version=8, domains=(), functions=()):
    inputs = [value("x")] if inputs is None else inputs
    outputs = [value("y")] if outputs is None else outputs
    graph = helper.make_graph(nodes, "graph", inputs, outputs, list(constants))
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir_version, functions=list(functions)).SerializeToString()


def node(op, inputs=("x",), outputs=("y",), **more):
    return helper.make_node(op, list(inputs), list(outputs), **{"name": f"the {op}", **more})


def found(content, code, **options):
    return [finding for finding in examine(content, **options) if finding.code == code]


def only(content, code, **options):
    [finding] = found(content, code, **options)
    return finding


HEALTHY = build([node("Relu")])


def test_a_healthy_model_has_nothing():
    assert examine(HEALTHY) == []


def test_the_worked_example_has_a_free_dimension_alone():
    [finding] = examine(MODEL)
    assert (finding.code, finding.severity, finding.fix) == ("free-dimensions", "note", "batch-fixed")
    assert "N (in observation[0])" in finding.message
    assert examine(apply_fix(MODEL, "batch-fixed").content) == []


def test_findings_come_errors_first_and_name_fixes_that_exist():
    content = build(
        [node("Nothing", domain="mine"), node("NonZero", outputs=["n"])], [value("my x"), value("x", shape=("N", 4))]
    )
    findings = examine(content)
    assert [each.severity for each in findings] == sorted((each.severity for each in findings), key=SEVERITIES.index)
    assert {each.severity for each in findings} == set(SEVERITIES)
    assert {each.fix for each in findings} <= {None, *FIXES}


def test_what_is_no_model_and_a_provider_that_is_none():
    with pytest.raises(ModelError):
        examine(b"no model")
    with pytest.raises(ValueError, match=r"unknown providers \['cuda'\]; known are wasm, webgpu"):
        examine(HEALTHY, providers=["cuda"])


# --- operators ---


def test_an_operator_that_a_provider_lacks():
    roi = node("RoiAlign", ["x", "r", "b"])
    inputs = [value("x"), value("r"), value("b", TensorProto.INT32)]
    finding = only(build([roi], inputs, opset=22), "operator-missing")
    assert (finding.severity, finding.node, finding.fix) == ("error", "the RoiAlign (RoiAlign)", None)
    assert "no kernel on wasm and webgpu for RoiAlign at opset 22" in finding.message
    assert not found(build([roi], inputs, opset=16), "operator-missing")


def test_an_operator_that_webgpu_alone_lacks_is_no_trouble_on_wasm():
    content = build([node("Scaler", domain="ai.onnx.ml")], domains=["ai.onnx.ml"])
    assert "WASM" in only(content, "operator-missing").remedy
    assert examine(content, providers=["wasm"]) == []


def test_operators_on_the_cpu_are_one_finding_with_the_first_names():
    nodes = [node("NonZero", outputs=[f"n{count}"], name=f"nz{count}") for count in range(5)]
    finding = only(build([*nodes, node("Selu")]), "operator-on-cpu")
    assert finding.severity == "warning"
    assert finding.node == "nz0 (NonZero), nz1 (NonZero), nz2 (NonZero) and 3 more"
    assert "NonZero (5), Selu at opset 17: 6 nodes" in finding.message
    assert not found(build(nodes), "operator-on-cpu", providers=["wasm"])


def test_kernels_that_end_at_an_opset():
    pool = node("MaxPool", kernel_shape=[1, 1], strides=[1, 1], pads=[0] * 4, dilations=[1, 1])
    assert examine(build([pool], opset=17)) == []
    assert only(build([pool], opset=22), "operator-on-cpu").node == "the MaxPool (MaxPool)"


def test_operators_in_inner_graphs_count():
    branches = [helper.make_graph([node("Selu", outputs=[name])], name, [], [value(name)]) for name in ("p", "q")]
    choice = node("If", ["c"], then_branch=branches[0], else_branch=branches[1])
    content = build([choice], [value("x"), value("c", TensorProto.BOOL, ())])
    assert "Selu (2)" in only(content, "operator-on-cpu").message
    assert not found(content, "unused-input")
    assert only(content, "control-flow").node == "the If (If)"
    assert not found(content, "control-flow", providers=["wasm"])


def test_unknown_operators_are_a_note_and_unknown_domains_an_error():
    finding = only(build([node("Frobnicate")]), "operator-unknown")
    assert (finding.severity, finding.message) == (
        "note",
        "nothing is known about Frobnicate in onnxruntime-web 1.30.0 (1 node)",
    )
    finding = only(build([node("Mine", domain="my.ops")], domains=["my.ops"]), "unknown-domain")
    assert finding.severity == "error"
    assert "the domain 'my.ops'" in finding.message
    assert examine(build([node("Gelu", domain="com.microsoft")], domains=["com.microsoft"])) == []


def test_a_function_of_the_model_is_what_its_body_is():
    opsets = [helper.make_opsetid("", 17)]
    function = helper.make_function("mine", "Twice", ["a"], ["b"], [node("Selu", ["a"], ["b"])], opsets)
    content = build([node("Twice", domain="mine")], domains=["mine"], functions=[function])
    assert [finding.code for finding in examine(content)] == ["operator-on-cpu"]


@pytest.mark.parametrize("op", ["Conv", "ConvTranspose", "MaxPool"])
def test_defaults_that_one_build_refuses(op):
    pool = {"kernel_shape": [2, 2]} if op == "MaxPool" else {}
    constants = [numpy_helper.from_array(np.ones((4, 4, 2, 2), np.float32), "w")]
    inputs = [value("x", shape=(1, 4, 6, 6))]
    content = build([node(op, ["x"] if pool else ["x", "w"], **pool)], inputs, [value("y", shape=(1, 4, 5, 5))], constants)
    finding = only(content, "conv-defaults")
    assert (finding.severity, finding.node, finding.fix) == ("warning", f"the {op} ({op})", "explicit-attributes")
    assert "dilations" in finding.message
    assert not found(content, "conv-defaults", providers=["wasm"])
    assert not found(apply_fix(content, finding.fix).content, "conv-defaults")


def test_defaults_that_cannot_be_written_out_have_no_fix():
    content = build([node("Conv", ["x", "w"])], [value("x"), value("w", shape=(4, 4, None, None))])
    assert only(content, "conv-defaults").fix is None
    assert not found(build([node("Conv", ["x", "w"], auto_pad="VALID")], [value("x"), value("w")]), "conv-defaults")


# --- types ---


def test_small_integers_that_are_cast_at_once():
    cast = node("Cast", outputs=["f"], to=TensorProto.FLOAT)
    finding = only(build([cast, node("Relu", ["f"])], [value("x", TensorProto.UINT8)]), "integer-input")
    assert (finding.severity, finding.node, finding.fix) == ("warning", "the Cast (Cast)", "cast-moved")
    finding = only(build([node("Identity")], [value("x", TensorProto.INT16)]), "integer-input")
    assert (finding.severity, finding.fix) == ("note", None)


def test_integers_of_64_bits_are_told_for_every_provider():
    content = build([node("Gather", ["x", "i"])], [value("x"), value("i", TensorProto.INT64)])
    finding = only(content, "integer-input", providers=["wasm"])
    assert (finding.severity, finding.fix) == ("warning", None)
    assert "i (int64)" in finding.message
    assert not found(build([node("Relu")], [value("x", TensorProto.INT32)]), "integer-input")


@pytest.mark.parametrize(("known", "severity"), [(None, "warning"), (False, "error"), (True, None)])
def test_16_bit_floats_and_the_adapter(known, severity):
    content = build([node("Relu")], [value("x", TensorProto.FLOAT16)], [value("y", TensorProto.FLOAT16)])
    assert [each.severity for each in found(content, "float16", adapter_float16=known)] == ([severity] if severity else [])
    assert not found(content, "float16", providers=["wasm"], adapter_float16=False)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (TensorProto.FLOAT16, "float16"),
        (TensorProto.DOUBLE, "double-precision"),
        (TensorProto.INT16, "short-integers"),
        (TensorProto.STRING, "string-tensors"),
    ],
)
def test_types_are_found_in_inputs_constants_and_casts(kind, code):
    assert "input z" in only(build([node("Relu")], [value("x"), value("z", kind)]), code).message
    constant = helper.make_tensor("c", kind, [1], [b"a"] if kind == TensorProto.STRING else [1.0])
    assert "constant c" in only(build([node("Relu")], constants=[constant]), code).message
    inside = node("Constant", [], ["k"], value=constant)
    assert "constant c" in only(build([inside, node("Relu")]), code).message
    assert "cast the Cast (Cast)" in only(build([node("Cast", outputs=["f"], to=kind), node("Relu")]), code).message
    assert not found(HEALTHY, code)


def test_what_is_no_tensor_cannot_be_fed():
    sequence = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    optional = helper.make_value_info("o", helper.make_optional_type_proto(helper.make_tensor_type_proto(1, [2])))
    finding = only(build([node("Relu")], [value("x"), sequence, optional]), "not-tensor")
    assert finding.severity == "error"
    assert "s (sequence type), o (optional type)" in finding.message


# --- the file ---


def external(**entries):
    tensor = helper.make_tensor("w", TensorProto.FLOAT, [4], np.zeros(4, np.float32).tobytes(), raw=True)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, text in entries.items():
        tensor.external_data.add(key=key, value=str(text))
    return build([node("Add", ["x", "w"])], constants=[tensor])


def test_other_files_with_weights_are_named():
    finding = only(external(location="weights.bin", offset=100), "external-missing")
    assert (finding.severity, finding.message) == ("warning", "weights are in 1 other file: weights.bin (116 bytes)")
    assert not found(HEALTHY, "external-missing")


def test_sizes_count_other_files():
    assert only(external(location="a", offset=1 << 31), "too-large").severity == "error"
    assert only(external(location="a", offset=200_000_000), "too-large").severity == "note"
    assert not found(external(location="a", offset=1000), "too-large")


def test_versions_that_the_runtime_does_not_load():
    assert "loads up to 26" in only(build([node("Relu")], opset=MAX_OPSET + 1), "opset-too-new").message
    finding = only(build([node("Relu")], ir_version=MAX_IR_VERSION + 1), "opset-too-new")
    assert (finding.severity, "format version 14" in finding.message) == ("error", True)
    assert examine(build([node("Relu")], opset=MAX_OPSET, ir_version=MAX_IR_VERSION)) == []
    assert only(build([node("Relu")], opset=6), "opset-old").severity == "note"


@pytest.mark.parametrize("name", ["my input", "größe", "<b>", "x\n"])
def test_odd_names_of_inputs_and_outputs(name):
    finding = only(build([node("Relu", [name])], [value(name)]), "odd-name")
    assert (finding.severity, finding.fix, repr(name) in finding.message) == ("warning", "plain-names", True)
    assert "1 output with" in only(build([node("Relu", outputs=[name])], None, [value(name)]), "odd-name").message


@pytest.mark.parametrize("name", ["x", "0", "onnx::Conv_1", "model/layer.1/x:0", "a-b"])
def test_plain_names_are_no_trouble(name):
    assert examine(build([node("Relu", [name])], [value(name)])) == []


def test_names_that_are_missing_or_given_twice():
    assert only(build([node("Relu")], [value("x"), value("x")]), "odd-name").severity == "error"
    assert only(build([node("Relu")], [value("x"), value("")]), "odd-name").severity == "error"
    nodes = [node("Relu", outputs=["a"], name="same"), node("Neg", ["a"], name="same")]
    finding = only(build(nodes), "odd-name")
    assert (finding.severity, "'same'" in finding.message) == ("note", True)
    assert "1 node without a name" in only(build([node("Relu", name="")]), "odd-name").message


def test_free_dimensions_and_the_sizes_that_are_given():
    content = build([node("Relu")], [value("x", shape=("rows", None))])
    finding = only(content, "free-dimensions")
    assert (finding.severity, finding.fix) == ("note", None)
    assert "2 free dimensions of inputs: rows (in x[0]), x[1]" in finding.message
    assert only(content, "free-dimensions", sizes={"rows": 3}).fix == "batch-fixed"
    assert only(content, "free-dimensions", sizes={"x[1]": 3}).fix == "batch-fixed"


def test_an_input_that_nothing_reads_and_a_model_without_nodes():
    assert "'z'" in only(build([node("Relu")], [value("x"), value("z")]), "unused-input").message
    findings = examine(build([], [value("x")], [value("x")]))
    assert [(finding.code, finding.severity) for finding in findings] == [("no-nodes", "note")]


def test_a_constant_that_is_an_input_too_is_no_input():
    constant = numpy_helper.from_array(np.zeros((1, 4), np.float32), "bad name")
    assert examine(build([node("Relu")], [value("x"), value("bad name")], constants=[constant])) == []


# --- any file ---


def test_every_standard_model_is_examined_and_every_fix_that_is_offered_applies():
    files = sorted(DATA.glob("*/*/model.onnx"))[::5]
    assert len(files) > 10
    codes = set()
    for file in files:
        content = file.read_bytes()
        try:
            findings = examine(content)
        except ModelError:
            continue
        for finding in findings:
            codes.add(finding.code)
            assert re.fullmatch(r"[a-z0-9-]+", finding.code)
            assert finding.message
            if finding.fix:
                apply_fix(content, finding.fix)
    assert codes


@pytest.mark.parametrize("seed", range(20))
def test_a_damaged_file_raises_model_errors_alone(seed):
    random = np.random.default_rng(seed)
    content = bytearray(external(location="a", offset="7", length="x"))
    for _ in range(3):
        content[random.integers(len(content))] = random.integers(256)
    try:
        for finding in examine(bytes(content)):
            if finding.fix:
                apply_fix(bytes(content), finding.fix)
    except ModelError:
        pass
