"""Networks made wider, against the narrow ones in onnxruntime."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyapp.cases import load_suite
from pyapp.onnxfile import ModelError, TensorInfo, make_model, make_node, parse_model, read_model
from pyapp.widen import widened, widened_parameters
from tests.unit.test_onnxfile import small_chain

FIXTURES = Path(__file__).parents[2] / "fixtures"
MODEL = (FIXTURES / "breakout_dqn.onnx").read_bytes()


def run(model: bytes, **feeds: np.ndarray) -> list[np.ndarray]:
    return ort.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, feeds)


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
