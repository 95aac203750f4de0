"""Export trained weights (NumPy archive, PyTorch's layout) to the ONNX file that every engine runs.

Usage::

    python training/export_onnx.py WEIGHTS.npz OUT.onnx

The same weights give the same bytes: the file holds no date and no version of the tool that wrote it.
"""

from __future__ import annotations

import argparse
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

OPSET = 17
IR_VERSION = 8  # the oldest that carries opset 17, so that older runtimes load the file
PRODUCER = ("breakout-dqn", "1")

STACK, SIDE = 4, 84
HIDDEN, N_ACTIONS = 512, 4


@dataclass(frozen=True, slots=True)
class Convolution:
    """One convolution of the network: its key in the archive, channels in and out, kernel side and stride."""

    key: str
    inputs: int
    outputs: int
    kernel: int
    stride: int


CONVOLUTIONS = (
    Convolution("c1", STACK, 32, kernel=8, stride=4),
    Convolution("c2", 32, 64, kernel=4, stride=2),
    Convolution("c3", 64, 64, kernel=3, stride=1),
)
FLAT = 64 * 7 * 7


class WeightsError(ValueError):
    """The archive does not hold the weights of this network; the message says what to do."""


def expected_shapes() -> dict[str, tuple[int, ...]]:
    """Return the shape of every array that the archive must hold, by key."""
    shapes: dict[str, tuple[int, ...]] = {}
    for conv in CONVOLUTIONS:
        shapes[f"{conv.key}.weight"] = (conv.outputs, conv.inputs, conv.kernel, conv.kernel)
        shapes[f"{conv.key}.bias"] = (conv.outputs,)
    return shapes | {
        "f1.weight": (HIDDEN, FLAT),
        "f1.bias": (HIDDEN,),
        "f2.weight": (N_ACTIONS, HIDDEN),
        "f2.bias": (N_ACTIONS,),
    }


def check_weights(weights: Mapping[str, NDArray[np.generic]]) -> dict[str, NDArray[np.float32]]:
    """Check names, shapes and values.

    Parameters
    ----------
    weights
        Arrays by key: ``c1.weight`` (32,4,8,8) … ``f2.bias`` (4,), floating point.

    Returns
    -------
    dict
        The same arrays as float32.

    Raises
    ------
    WeightsError
        A key is missing, a shape is wrong, or a value is not a finite number.
    """
    checked = {}
    for key, shape in expected_shapes().items():
        if key not in weights:
            raise WeightsError(
                f"no array {key!r} of shape {shape}; the archive holds {sorted(weights)}. "
                "Save the state_dict of a network whose layers are named c1, c2, c3, f1 and f2."
            )
        array = np.asarray(weights[key])
        if array.shape != shape:
            raise WeightsError(
                f"{key!r} has shape {array.shape}, expected {shape}. "
                "Export weights of the Nature DQN for 4 frames of 84x84 and 4 actions, in PyTorch's layout."
            )
        if not np.issubdtype(array.dtype, np.floating) or not np.isfinite(array).all():
            raise WeightsError(
                f"{key!r} (dtype {array.dtype}) holds values that are no finite floating-point numbers. "
                "Take an earlier checkpoint: training has diverged, or the file is not of weights."
            )
        checked[key] = array.astype(np.float32)
    return checked


def load_weights(path: Path) -> dict[str, NDArray[np.float32]]:
    """Read and check a NumPy archive of weights.

    Raises
    ------
    WeightsError
        The file cannot be read as an archive, or `check_weights` refuses it.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            return check_weights({key: archive[key] for key in archive.files})
    except WeightsError as error:
        raise WeightsError(f"{path}: {error}") from None
    except (OSError, EOFError, TypeError, ValueError, zipfile.BadZipFile) as error:  # TypeError: a lone array
        raise WeightsError(f"{path} is no readable .npz archive ({error}). Give the file that training saved.") from error


def build_model(weights: Mapping[str, NDArray[np.generic]]) -> onnx.ModelProto:
    """Build the network as ONNX.

    Parameters
    ----------
    weights
        As for `check_weights`; trained on inputs divided by 255.

    Returns
    -------
    onnx.ModelProto
        Input ``observation`` float32 [N,4,84,84] in 0..255, output ``q_values`` float32 [N,4].

    Raises
    ------
    WeightsError
        See `check_weights`.

    Notes
    -----
    The division by 255 is folded into the first convolution: one operator less on every engine, and no
    question whether a caller has to divide. It is done in float64 and rounded once.
    """
    arrays = check_weights(weights)
    arrays["c1.weight"] = (arrays["c1.weight"].astype(np.float64) / 255).astype(np.float32)
    graph = helper.make_graph(
        _nodes(),
        "breakout_dqn",
        [helper.make_tensor_value_info("observation", TensorProto.FLOAT, ["N", STACK, SIDE, SIDE])],
        [helper.make_tensor_value_info("q_values", TensorProto.FLOAT, ["N", N_ACTIONS])],
        initializer=[numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    name, version = PRODUCER
    model = helper.make_model(
        graph,
        producer_name=name,
        producer_version=version,
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET)],
    )
    onnx.checker.check_model(model, full_check=True)
    _check_inferred_output(model)
    return model


def _nodes() -> list[onnx.NodeProto]:
    nodes = []
    value = "observation"
    for conv in CONVOLUTIONS:
        # Every attribute is spelt out: onnxruntime-web's older WebGPU build refuses a Conv that relies on defaults.
        nodes += [
            helper.make_node(
                "Conv",
                [value, f"{conv.key}.weight", f"{conv.key}.bias"],
                [f"{conv.key}.out"],
                name=conv.key,
                dilations=[1, 1],
                group=1,
                kernel_shape=[conv.kernel, conv.kernel],
                pads=[0, 0, 0, 0],
                strides=[conv.stride, conv.stride],
            ),
            helper.make_node("Relu", [f"{conv.key}.out"], [f"{conv.key}.relu"], name=f"{conv.key}_relu"),
        ]
        value = f"{conv.key}.relu"
    return [
        *nodes,
        helper.make_node("Flatten", [value], ["flat"], name="flatten", axis=1),
        _gemm("flat", "f1", "f1.out"),
        helper.make_node("Relu", ["f1.out"], ["f1.relu"], name="f1_relu"),
        _gemm("f1.relu", "f2", "q_values"),
    ]


def _gemm(source: str, key: str, target: str) -> onnx.NodeProto:
    inputs = [source, f"{key}.weight", f"{key}.bias"]
    return helper.make_node("Gemm", inputs, [target], name=key, alpha=1.0, beta=1.0, transA=0, transB=1)


def _check_inferred_output(model: onnx.ModelProto) -> None:
    """Let ONNX derive the output's shape from the nodes alone: a declared shape proves nothing."""
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    bare.graph.output[0].type.tensor_type.ClearField("shape")
    inferred = onnx.shape_inference.infer_shapes(bare, check_type=True, strict_mode=True, data_prop=True)
    dims = [dim.dim_param or dim.dim_value for dim in inferred.graph.output[0].type.tensor_type.shape.dim]
    if dims != ["N", N_ACTIONS]:
        raise AssertionError(f"shape inference gives q_values the shape {dims}, expected {['N', N_ACTIONS]}")


def serialise(model: onnx.ModelProto) -> bytes:
    """Return the model's bytes; the same model gives the same bytes."""
    data: bytes = model.SerializeToString(deterministic=True)
    return data


def export(weights: Path, target: Path) -> int:
    """Export one archive and return the number of bytes written.

    Raises
    ------
    WeightsError
        See `load_weights`.
    OSError
        `target` cannot be written.
    """
    return target.write_bytes(serialise(build_model(load_weights(weights))))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 2 with one line on stderr."""
    parser = argparse.ArgumentParser(description="Export DQN weights (.npz, PyTorch's layout) to ONNX.")
    parser.add_argument("weights", type=Path, help="archive with c1.weight … f2.bias")
    parser.add_argument("out", type=Path, help="ONNX file to write")
    options = parser.parse_args(arguments)
    try:
        size = export(options.weights, options.out)
    except (WeightsError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{options.out}: {size:,} bytes", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
