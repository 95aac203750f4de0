"""Variants of the worked example's model in fewer bits, made from the committed one."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from buildtools.errors import BuildError
from buildtools.tools import require_module

if TYPE_CHECKING:
    import onnx

MODEL = "fixtures/breakout_dqn.onnx"

#: Not among the fixtures, which a page loads to boot; these are loaded only when somebody asks for them.
FOLDER = "variants/"

#: The training's division by 255 is folded into the first layer, so that one in seven of its weights is below 6.1e-5. There
#: float16 has subnormals, with fewer digits, and WGSL lets a GPU take them for 0; then 5 of the 60 states get another action.
#: A power of two, not 255: it rounds neither the bytes nor the weights.
INPUT_SCALE = 256


def add_variants(site: Path) -> None:
    """Make the variants of the site's model, and put them into the site.

    Raises
    ------
    BuildError
        A module is missing, or the model has another form than this is written for.
    """
    for module in ("onnx", "onnxruntime"):
        require_module(module)
    content = (site / MODEL).read_bytes()
    target = site / FOLDER
    target.mkdir()
    for name, make in {"float16": float16, "int8": int8}.items():
        (target / f"{Path(MODEL).stem}.{name}.onnx").write_bytes(make(content))


def float16(content: bytes) -> bytes:
    """Return the model with weights and arithmetic in float16; input and output stay float32.

    Parameters
    ----------
    content
        An ONNX file of a chain of nodes, a Conv first, with float32 weights, one input in 0..255 and one output.

    Returns
    -------
    bytes
        Always the same for the same content.

    Raises
    ------
    BuildError
        The model has another form.

    Notes
    -----
    By hand, for ``onnxruntime.transformers.float16`` (1.32) puts its Cast nodes behind those that read from them, which
    ``onnx.checker`` refuses.
    """
    import numpy as np
    import onnx
    from onnx import numpy_helper

    model = _chain(content)
    graph = model.graph
    first, last = graph.node[0], graph.node[-1]
    for weight in graph.initializer:
        scale = np.float32(INPUT_SCALE if weight.name == first.input[1] else 1)
        weight.CopyFrom(numpy_helper.from_array((numpy_helper.to_array(weight) * scale).astype(np.float16), weight.name))
    graph.initializer.append(numpy_helper.from_array(np.array(1 / INPUT_SCALE, np.float16), "input_scale"))
    make, types = onnx.helper.make_node, onnx.TensorProto
    to_float16 = make("Cast", [graph.input[0].name], ["input_float16"], name="to_float16", to=types.FLOAT16)
    rescale = make("Mul", ["input_float16", "input_scale"], ["input_scaled"], name="rescale")
    to_float32 = make("Cast", ["output_float16"], [graph.output[0].name], name="to_float32", to=types.FLOAT)
    first.input[0], last.output[0] = "input_scaled", "output_float16"
    nodes = [to_float16, rescale, *graph.node, to_float32]
    del graph.node[:], graph.value_info[:]  # what is known of values between the nodes is that they are float32
    graph.node.extend(nodes)
    return _checked(model)


def int8(content: bytes) -> bytes:
    """Return the model with its large Gemm in 8-bit integers, by onnxruntime's dynamic quantisation.

    Parameters
    ----------
    content
        An ONNX file of a chain of nodes, a Conv first and a Gemm last, with float32 weights.

    Returns
    -------
    bytes
        Always the same for the same content.

    Raises
    ------
    BuildError
        The model has another form.

    Notes
    -----
    One Gemm has 95 % of the weights. With the convolutions in integers, too, WASM takes 0.8 times as long, but one of the 60
    states gets another action, and scores are off by 0.35 instead of 0.07. The last Gemm stays as it is: its 2,048 weights are
    no gain, and its rounding goes straight into the scores. Weights are uint8, since with int8 ones x86 processors without VNNI
    saturate sums of products.
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.shape_inference import quant_pre_process

    model = _chain(content)
    last = model.graph.node[-1].name
    with tempfile.TemporaryDirectory() as folder:
        prepared, quantised = Path(folder, "prepared.onnx"), Path(folder, "quantised.onnx")
        # Of the preparation only the types: the optimiser's work is onnxruntime's when it loads the model.
        quant_pre_process(model, prepared, skip_optimization=True, skip_symbolic_shape=True)
        quantize_dynamic(
            prepared,
            quantised,
            per_channel=True,
            weight_type=QuantType.QUInt8,
            op_types_to_quantize=["MatMul"],
            nodes_to_exclude=[f"{last}_MatMul"],  # what becomes of a Gemm
        )
        return _checked(onnx.load(quantised))


def _chain(content: bytes) -> onnx.ModelProto:
    """Read a model, and see that it is a chain with a Conv first and a Gemm last."""
    import onnx

    model = onnx.load_from_string(content)
    nodes = model.graph.node
    kinds = [node.op_type for node in nodes]
    chained = all(after.input[0] == before.output[0] for before, after in itertools.pairwise(nodes))
    if not chained or kinds[:1] != ["Conv"] or kinds[-1:] != ["Gemm"]:
        raise BuildError(
            f"{MODEL} is no chain from a Conv to a Gemm ({', '.join(kinds)})",
            "restore it from git, or teach buildtools/variants.py the new one",
        )
    return model


def _checked(model: onnx.ModelProto) -> bytes:
    import onnx

    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString(deterministic=True))
