"""The convolutions that WebGPU computes wrongly: found, and padded."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from pyapp.doctor import examine
from pyapp.fixes import apply_fix
from pyapp.onnxfile import ModelError

RNG = np.random.default_rng(3)


def conv(channels, outputs, kernel, *, opset=17, group=1, constant=False, branch=False):
    """One Conv, with its weights as an initializer or a Constant, in the main graph or in a branch."""
    shape = (outputs, channels // group, *kernel)
    weights = numpy_helper.from_array(RNG.standard_normal(shape).astype(np.float32), "w")
    rank = len(kernel)
    node = helper.make_node("Conv", ["x", "w"], ["y"], name="conv", pads=[1] * 2 * rank, group=group, kernel_shape=list(kernel))
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, channels, *[6] * rank])
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * (rank + 2))
    nodes = [*([helper.make_node("Constant", [], ["w"], value=weights)] if constant else []), node]
    inputs = [value]
    if branch:
        inner = helper.make_graph([node], "inner", [], [result])
        nodes = [helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner, name="if")]
        inputs.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    graph = helper.make_graph(nodes, "g", inputs, [result], [] if constant else [weights])
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", opset)]).SerializeToString()


def run(model, channels, rank, *, branch):
    feeds = {"x": np.random.default_rng(1).standard_normal((1, channels, *[6] * rank)).astype(np.float32)}
    if branch:
        feeds["c"] = np.array(True)
    return ort.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, feeds)[0]


@pytest.mark.parametrize(
    ("channels", "outputs", "kernel", "wrong"),
    [
        (6, 8, (3,), True), (9, 8, (3, 3), True), (15, 4, (1, 5), True), (129, 8, (3,), True), (78, 12, (5,), True),
        (3, 8, (3, 3), False), (12, 8, (3, 3), False), (128, 8, (3,), False), (5, 8, (3,), False),
        (129, 6, (3,), False), (9, 8, (1, 1), False),
    ],
)  # fmt: skip
def test_which_convolutions_are_wrong(channels, outputs, kernel, wrong):
    found = [finding for finding in examine(conv(channels, outputs, kernel)) if finding.code == "conv-channels"]
    assert bool(found) == wrong
    if found:
        assert (found[0].severity, found[0].fix, found[0].node) == ("error", "channels-padded", "conv (Conv)")
    else:
        with pytest.raises(ModelError, match="finds nothing"):
            apply_fix(conv(channels, outputs, kernel), "channels-padded")


def test_on_wasm_alone_nothing_is_wrong():
    assert "conv-channels" not in {finding.code for finding in examine(conv(9, 8, (3,)), providers=["wasm"])}


def test_groups_are_left_alone():
    assert "conv-channels" not in {finding.code for finding in examine(conv(18, 8, (3,), group=2))}


@pytest.mark.parametrize("opset", [8, 10, 11, 17, 21])
@pytest.mark.parametrize("place", ["initializer", "constant", "branch"])
@pytest.mark.parametrize(("channels", "kernel"), [(9, (3, 3)), (129, (3,))])
def test_a_channel_of_zeros_changes_nothing_but_the_order_of_a_sum(opset, place, channels, kernel):
    branch = place == "branch"
    model = conv(channels, 8, kernel, opset=opset, constant=place == "constant", branch=branch)
    fixed = apply_fix(model, "channels-padded")
    assert fixed.changes == [f"conv (Conv): {channels} input channels and one of zeros"] * (2 if branch else 1)
    onnx.checker.check_model(onnx.load_from_string(fixed.content))
    before, after = (run(content, channels, len(kernel), branch=branch) for content in (model, fixed.content))
    np.testing.assert_allclose(before, after, rtol=1e-5, atol=1e-5)
    assert "conv-channels" not in {finding.code for finding in examine(fixed.content)}
