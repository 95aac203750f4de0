import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

ROOT = Path(__file__).resolve().parents[2]


def load_script(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


export_onnx = load_script("export_onnx", ROOT / "training" / "export_onnx.py")


@pytest.fixture(scope="module")
def weights():
    """Random weights of PyTorch's default scale: every layer's output stays of order 1."""
    random = np.random.default_rng(0)
    return {
        key: random.uniform(-1, 1, shape).astype(np.float32) / np.sqrt(np.prod(shape[1:]) if len(shape) > 1 else 64)
        for key, shape in export_onnx.expected_shapes().items()
    }


@pytest.fixture(scope="module")
def model(weights):
    return export_onnx.build_model(weights)


def correlate(x, weight, bias, stride):
    """One image through one convolution, as its definition says: a loop over output pixels."""
    kernel = weight.shape[-1]
    side = (x.shape[-1] - kernel) // stride + 1
    out = np.empty((len(weight), side, side))
    for row in range(side):
        for column in range(side):
            patch = x[:, row * stride : row * stride + kernel, column * stride : column * stride + kernel]
            out[:, row, column] = (weight * patch).sum((1, 2, 3)) + bias
    return np.maximum(out, 0)


def reference(weights, observation):
    """PyTorch's network in float64: the input divided by 255, which the ONNX file must not need."""
    w = {key: array.astype(np.float64) for key, array in weights.items()}
    x = observation / 255
    for key, stride in (("c1", 4), ("c2", 2), ("c3", 1)):
        x = correlate(x, w[f"{key}.weight"], w[f"{key}.bias"], stride)
    hidden = np.maximum(w["f1.weight"] @ x.ravel() + w["f1.bias"], 0)
    return w["f2.weight"] @ hidden + w["f2.bias"]


def run(model, observations):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(["q_values"], {"observation": observations.astype(np.float32)})[0]


def test_it_computes_what_pytorch_computes(weights, model):
    observations = np.random.default_rng(1).integers(0, 256, (3, 4, 84, 84), dtype=np.uint8)
    expected = [reference(weights, observation) for observation in observations]
    np.testing.assert_allclose(run(model, observations), expected, rtol=0, atol=2e-6)


def test_any_batch_size(model):
    assert run(model, np.zeros((1, 4, 84, 84))).shape == (1, 4)
    assert run(model, np.zeros((5, 4, 84, 84))).shape == (5, 4)


def test_the_same_weights_give_the_same_bytes(weights, model, tmp_path):
    backwards = dict(reversed(weights.items()))
    archive, target = tmp_path / "w.npz", tmp_path / "m.onnx"
    np.savez(archive, **backwards)
    assert export_onnx.main([str(archive), str(target)]) == 0
    assert target.read_bytes() == export_onnx.serialise(model)


def test_a_missing_key_is_named(weights):
    lacking = {key: array for key, array in weights.items() if key != "c2.bias"}
    with pytest.raises(export_onnx.WeightsError, match=r"no array 'c2.bias' of shape \(64,\).*state_dict") as error:
        export_onnx.build_model(lacking)
    assert "'c1.bias', 'c1.weight', 'c2.weight'" in str(error.value)


def test_a_wrong_shape_is_named_with_what_was_expected(weights):
    for_six_actions = weights | {"f2.weight": np.zeros((6, 512), np.float32)}
    with pytest.raises(export_onnx.WeightsError, match=r"'f2.weight' has shape \(6, 512\), expected \(4, 512\)\. Export"):
        export_onnx.build_model(for_six_actions)


@pytest.mark.parametrize("bad", [np.full((4,), np.nan, np.float32), np.zeros((4,), np.int64), np.array(["a"] * 4)])
def test_values_that_are_no_numbers_are_refused(weights, bad):
    with pytest.raises(export_onnx.WeightsError, match=r"'f2.bias'.*checkpoint"):
        export_onnx.build_model(weights | {"f2.bias": bad})


@pytest.mark.parametrize("content", [None, b"", b"not an archive", b"PK\x03\x04 broken"])
def test_a_file_that_is_no_archive_leaves_one_line_and_no_output(content, tmp_path, capsys):
    archive, target = tmp_path / "w.npz", tmp_path / "m.onnx"
    if content is not None:
        archive.write_bytes(content)
    assert export_onnx.main([str(archive), str(target)]) == 2
    message = capsys.readouterr().err
    assert message.startswith(f"error: {archive}")
    assert message.count("\n") == 1
    assert not target.exists()


def test_a_lone_array_is_no_archive(tmp_path, capsys):
    np.save(tmp_path / "w.npy", np.zeros(3))
    assert export_onnx.main([str(tmp_path / "w.npy"), str(tmp_path / "m.onnx")]) == 2
    assert "no readable .npz archive" in capsys.readouterr().err
