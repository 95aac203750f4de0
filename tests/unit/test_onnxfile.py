"""Reading, checking, widening and building ONNX, against the `onnx` package and onnxruntime."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from pyapp.cases import load_suite
from pyapp.onnxfile import (
    ModelError,
    TensorInfo,
    array_of,
    make_model,
    make_node,
    make_tensor,
    parse_model,
    read_model,
    widened,
    widened_parameters,
)

FIXTURES = Path(__file__).parents[2] / "fixtures"
MODEL = (FIXTURES / "breakout_dqn.onnx").read_bytes()


def run(model: bytes, **feeds: np.ndarray) -> list[np.ndarray]:
    return ort.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, feeds)


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


def test_weights_that_do_not_fit_their_shape_and_weights_elsewhere_are_named():
    model = onnx.load_from_string(MODEL)
    model.graph.initializer[0].raw_data = model.graph.initializer[0].raw_data[:-4]
    with pytest.raises(ModelError, match=r"c1.weight.*32,764 bytes.*32,768"):
        read_model(model.SerializeToString())
    model.graph.initializer[0].data_location = TensorProto.EXTERNAL
    with pytest.raises(ModelError, match="another file"):
        read_model(model.SerializeToString())


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


def small_chain(**options: object) -> bytes:
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


# --- a wider network ---


@pytest.mark.parametrize("factor", [2, 3, 4])
def test_a_wider_network_has_the_scores_of_the_narrow_one(factor):
    states = load_suite("states", (FIXTURES / "states.npz").read_bytes())
    wide = widened(MODEL, factor)
    onnx.checker.check_model(onnx.load_from_string(wide), full_check=True)
    [scores] = run(wide, observation=states.observation.astype(np.float32))
    assert np.abs(scores - states.q_values).max() < 1e-5
    assert (scores.argmax(axis=1) == states.action).all()
    assert len(wide) < len(MODEL) + 4_000, "the file grew"
    assert widened(MODEL, factor) == wide


def test_a_wider_network_is_laid_out_once_and_does_the_arithmetic_of_its_width(tmp_path):
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "laid-out.onnx")
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    ort.InferenceSession(widened(MODEL, 2), options, providers=["CPUExecutionProvider"])
    laid_out = read_model((tmp_path / "laid-out.onnx").read_bytes())
    assert "Tile" not in laid_out.operators
    assert laid_out.parameters == widened_parameters(MODEL, 2) == 6_722_884
    shapes = {tuple(entry.dims) for entry in parse_model((tmp_path / "laid-out.onnx").read_bytes()).graph.initializer}
    assert shapes >= {(64, 4, 8, 8), (128, 64, 4, 4), (128, 128, 3, 3), (1024, 6272), (4, 1024)}


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(
    factor=st.integers(1, 5),
    widths=st.lists(st.integers(1, 7), min_size=1, max_size=4),
    transposed=st.booleans(),
    with_bias=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_chain_keeps_its_scores_when_it_gets_wider(factor, widths, transposed, with_bias, seed):
    rng = np.random.default_rng(seed)
    sizes = [3, *widths, 2]
    nodes, constants, tensor = [], {}, "x"
    for index, (into, out) in enumerate(pairwise(sizes)):
        shape = (out, into) if transposed else (into, out)
        constants[f"w{index}"] = rng.normal(size=shape).astype(np.float32)
        constants[f"b{index}"] = rng.normal(size=out).astype(np.float32)
        names = [tensor, f"w{index}", *([f"b{index}"] if with_bias else [])]
        nodes.append(make_node("Gemm", names, [f"g{index}"], transB=int(transposed)))
        nodes.append(make_node("Sigmoid", [f"g{index}"], [f"s{index}"]))
        tensor = f"s{index}"
    if not with_bias:
        constants = {name: array for name, array in constants.items() if name.startswith("w")}
    ends = [TensorInfo("x", "float32", ("N", 3))], [TensorInfo(tensor, "float32", ("N", 2))]
    model = make_model(nodes, *ends, constants)
    x = rng.normal(size=(4, 3)).astype(np.float32)
    wide = widened(model, factor)
    onnx.checker.check_model(onnx.load_from_string(wide), full_check=True)
    np.testing.assert_allclose(run(wide, x=x)[0], run(model, x=x)[0], rtol=1e-4, atol=1e-5)


def test_convolutions_pools_and_biases_of_every_shape_get_wider():
    x = np.random.default_rng(1).normal(size=(3, 2, 4, 4)).astype(np.float32)
    for factor in (2, 3):
        wide = widened(small_chain(), factor)
        onnx.checker.check_model(onnx.load_from_string(wide), full_check=True)
        np.testing.assert_allclose(run(wide, x=x)[0], run(small_chain(), x=x)[0], rtol=1e-4, atol=1e-5)


def test_a_network_that_is_no_chain_is_refused_with_the_node():
    ends = [TensorInfo("x", "float32", ("N", 2))], [TensorInfo("y", "float32", ("N", 2))]
    weights = {"w": np.eye(2, dtype=np.float32)}
    softmax = [make_node("Gemm", ["x", "w"], ["a"]), make_node("Softmax", ["a"], ["b"]), make_node("Gemm", ["b", "w"], ["y"])]
    with pytest.raises(ModelError, match=r"'b' \(Softmax\)"):
        widened(make_model(softmax, *ends, weights), 2)
    fork = [make_node("Gemm", ["x", "w"], ["a"]), make_node("Gemm", ["x", "w"], ["y"])]
    with pytest.raises(ModelError, match="'y'"):
        widened(make_model(fork, *ends, weights), 2)
    with pytest.raises(ModelError, match="no hidden layer"):
        widened(make_model([make_node("Gemm", ["x", "w"], ["y"])], *ends, weights), 2)
    with pytest.raises(ValueError, match="factor is 0"):
        widened(MODEL, 0)


def test_weights_that_two_layers_share_get_wider_for_each():
    ends = [TensorInfo("x", "float32", ("N", 2))], [TensorInfo("y", "float32", ("N", 2))]
    weights = {"w": np.array([[1, 2], [3, 4]], dtype=np.float32)}
    model = make_model([make_node("Gemm", ["x", "w"], ["a"]), make_node("Gemm", ["a", "w"], ["y"])], *ends, weights)
    x = np.array([[1, -1]], dtype=np.float32)
    assert (run(widened(model, 4), x=x)[0] == run(model, x=x)[0]).all()
