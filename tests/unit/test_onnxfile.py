"""Reading, checking and building ONNX, against the `onnx` package."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data

from pyapp.onnxfile import (
    ModelError,
    TensorInfo,
    array_of,
    make_model,
    make_node,
    make_tensor,
    read_model,
)

FIXTURES = Path(__file__).parents[2] / "fixtures"
MODEL = (FIXTURES / "breakout_dqn.onnx").read_bytes()


# --- reading ---


def test_the_worked_example_is_described():
    info = read_model(MODEL)
    assert info.inputs == (TensorInfo("observation", "float32", ("N", 4, 84, 84)),)
    assert info.outputs == (TensorInfo("q_values", "float32", ("N", 4)),)
    assert (info.opset, info.ir_version, info.producer) == (17, 8, "breakout-dqn 1")
    assert info.operators == {"Relu": 4, "Conv": 3, "Gemm": 2, "Flatten": 1}
    loaded = onnx.load_from_string(MODEL)
    assert info.parameters == sum(numpy_helper.to_array(entry).size for entry in loaded.graph.initializer) == 1_686_180
    assert info.size == len(MODEL)


def test_every_standard_model_is_described_as_onnx_itself_does():
    data = Path(onnx.__file__).parent / "backend" / "test" / "data"
    files = sorted(data.glob("*/*/model.onnx"))[::7]
    assert len(files) > 10
    for file in files:
        info = read_model(file.read_bytes())
        model = onnx.load(file)
        assert [value.name for value in info.outputs] == [value.name for value in model.graph.output]
        assert info.opset == max((entry.version for entry in model.opset_import if not entry.domain), default=0)
        assert set(info.operators) >= {node.op_type for node in model.graph.node}


def test_free_dimensions_and_inner_graphs_are_told():
    free = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, "N", 3])
    rankless = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    branch = helper.make_graph([helper.make_node("Sqrt", ["x"], ["y"])], "branch", [], [rankless])
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    model = helper.make_model(helper.make_graph([node], "g", [free, condition], [rankless]))
    info = read_model(model.SerializeToString())
    assert info.inputs == (TensorInfo("x", "float32", (None, "N", 3)), TensorInfo("c", "bool", ()))
    assert info.outputs[0].dims is None
    assert info.operators == {"Sqrt": 2, "If": 1}


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "EmptyModel"),
        (b"<!doctype html><html><body>not found</body></html>", "NotOnnx"),
        (b'{"model": 1}', "NotOnnx"),
        (b"hello, this is text", "NotOnnx"),
        (b"PK\x03\x04" + bytes(100), "NotOnnx"),
        (b"\x89PNG\r\n\x1a\n" + bytes(50), "NotOnnx"),
        (b"\x80\x02}q\x00", "NotOnnx"),
        (b"\x08\x08", "NotOnnx"),
        (b"\xff" * 40, "NotOnnx"),
        (MODEL[:-1], "TruncatedModel"),
        (MODEL[: len(MODEL) // 2], "TruncatedModel"),
        (MODEL[:100], "TruncatedModel"),
    ],
)
def test_what_is_no_model_is_told_by_kind(content, kind):
    with pytest.raises(ModelError) as caught:
        read_model(content)
    assert caught.value.kind == kind
    assert caught.value.remedy


def test_a_model_over_the_limit_is_refused_before_it_is_parsed():
    with pytest.raises(ModelError, match="at most 1,000") as caught:
        read_model(MODEL, limit=1_000)
    assert caught.value.kind == "ModelTooLarge"


def test_weights_that_do_not_fit_their_shape_are_named():
    model = onnx.load_from_string(MODEL)
    model.graph.initializer[0].raw_data = model.graph.initializer[0].raw_data[:-4]
    with pytest.raises(ModelError, match=r"c1.weight.*32,764 bytes.*32,768"):
        read_model(model.SerializeToString())
    for data, count in ((b"", "0 numbers.*8,192"), (bytes(3), "3 bytes")):
        model.graph.initializer[0].raw_data = data
        with pytest.raises(ModelError, match=f"c1.weight.*{count}"):
            read_model(model.SerializeToString())


def test_weights_elsewhere_are_described_and_cannot_be_had():
    model = onnx.load_from_string(MODEL)
    weights = model.graph.initializer[0]
    set_external_data(weights, "weights/c1.bin", 0, len(weights.raw_data))
    weights.ClearField("raw_data")
    info = read_model(model.SerializeToString())
    assert (info.external, info.parameters) == (("weights/c1.bin",), 1_686_180)
    assert read_model(MODEL).external == ()
    with pytest.raises(ModelError, match=r"c1\.weight.*another file") as caught:
        array_of(weights)
    assert caught.value.kind == "ExternalData"


@pytest.mark.parametrize(
    ("dims", "what"),
    [([2, -1], "negative"), ([1 << 62] * 3, "impossible"), ([0, 1 << 62], "impossible"), ([1] * 65, "65 dimensions")],
)
def test_shapes_that_are_none_are_refused(dims, what):
    model = onnx.load_from_string(small_chain())
    del model.graph.initializer[0].dims[:]
    model.graph.initializer[0].dims.extend(dims)
    with pytest.raises(ModelError, match=f"'w1'.*{what}") as caught:
        read_model(model.SerializeToString())
    assert caught.value.kind == "BrokenModel"


def test_a_constant_of_an_inner_graph_is_checked_too():
    wrong = TensorProto(name="w", dims=[3], data_type=TensorProto.FLOAT, raw_data=bytes(8))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])
    branch = helper.make_graph([helper.make_node("Constant", [], ["y"], value=wrong)], "branch", [], [y])
    node = helper.make_node("If", ["c"], ["z"], then_branch=branch, else_branch=branch)
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    z = helper.make_tensor_value_info("z", TensorProto.FLOAT, [3])
    with pytest.raises(ModelError, match=r"'w' have 8 bytes.*12"):
        read_model(helper.make_model(helper.make_graph([node], "g", [condition], [z])).SerializeToString())


def test_names_that_are_no_text_or_endless_are_told_all_the_same():
    # So does protobuf that is compiled; that in Python, which the browser has, refuses such names itself.
    content = small_chain().replace(b"\x02w1", b"\x02\xff\xfe")
    assert read_model(content).parameters == read_model(small_chain()).parameters
    model = onnx.load_from_string(small_chain())
    model.graph.initializer[0].name = "n" * 10_000
    with pytest.raises(ModelError, match="'w1', which nothing gives"):
        read_model(model.SerializeToString())
    model.graph.initializer[0].raw_data = b""
    with pytest.raises(ModelError) as caught:
        read_model(model.SerializeToString())
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("name", ["?", "*", "-1", "None", ""])
def test_what_stands_for_no_name_is_none(name):
    values = [helper.make_tensor_value_info(value, TensorProto.FLOAT, [name, 3, name]) for value in "xy"]
    model = helper.make_model(helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", values[:1], values[1:]))
    assert read_model(model.SerializeToString()).inputs[0].dims == (None, 3, None)


def test_a_negative_size_of_an_input_is_a_free_one():
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [-1, 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [-1, 3])
    model = helper.make_model(helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y]))
    assert read_model(model.SerializeToString()).inputs[0].dims == (None, 3)


@settings(max_examples=200)
@given(st.data())
def test_damaged_files_end_in_our_error_or_in_a_description(data):
    small = small_chain()
    place = data.draw(st.integers(0, len(small) - 1))
    damaged = bytearray(small)
    damaged[place] ^= data.draw(st.integers(1, 255))
    cut = data.draw(st.integers(0, len(small)))
    for content in (bytes(damaged), bytes(damaged[:cut])):
        with contextlib.suppress(ModelError):
            assert read_model(content).size == len(content)


def test_importing_the_package_imports_no_protobuf():
    # The page's boot imports these.
    code = "import sys, pyapp, pyapp.onnxfile; sys.exit(any(name.startswith('google') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- building ---


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "int32", "uint8", "bool", "uint64"])
def test_tensors_are_those_of_onnx(dtype):
    array = np.arange(6).reshape(2, 3).astype(dtype)
    made = make_tensor("t", array)
    assert (numpy_helper.to_array(made) == array).all()
    assert (array_of(made) == array).all()
    typed = helper.make_tensor("t", helper.np_dtype_to_tensor_dtype(array.dtype), [2, 3], array.ravel().tolist())
    assert (array_of(typed) == array).all()


def small_chain() -> bytes:
    rng = np.random.default_rng(0)
    return make_model(
        [
            make_node("Conv", ["x", "w1", "b1"], ["a"], kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1]),
            make_node("LeakyRelu", ["a"], ["b"], alpha=0.2),
            make_node("MaxPool", ["b"], ["c"], kernel_shape=[2, 2], strides=[2, 2]),
            make_node("Flatten", ["c"], ["d"], axis=1),
            make_node("Gemm", ["d", "w2", "b2"], ["e"], alpha=0.5),
            make_node("Tanh", ["e"], ["f"]),
            make_node("Gemm", ["f", "w3"], ["y"], transB=1),
        ],
        [TensorInfo("x", "float32", ("N", 2, 4, 4))],
        [TensorInfo("y", "float32", ("N", 3))],
        {
            "w1": rng.normal(size=(3, 2, 3, 3)).astype(np.float32),
            "b1": rng.normal(size=3).astype(np.float32),
            "w2": rng.normal(size=(12, 5)).astype(np.float32),
            "b2": rng.normal(size=(1, 5)).astype(np.float32),
            "w3": rng.normal(size=(3, 5)).astype(np.float32),
        },
    )


def test_a_built_model_passes_onnxs_own_checker():
    model = onnx.load_from_string(small_chain())
    onnx.checker.check_model(model, full_check=True)
    assert read_model(small_chain()).operators["Gemm"] == 2
