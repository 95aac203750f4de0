"""Models with one fault each, and small ones of every type, for both levels that have a browser.

They are made on CPython, since `onnx` has no wheel for Pyodide. A fault in the committed model is a `Patch` of its bytes: a few
kilobytes to hand into a page instead of 6.7 MB, and sure to leave everything else as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Shape = tuple[int, list[int | str | None]]
"""Type and dimensions; those that are free have a name or None."""

MODEL = Path(__file__).parents[2] / "fixtures" / "breakout_dqn.onnx"


@dataclass(frozen=True)
class Patch:
    """Bytes that replace others in the committed model."""

    offset: int
    content: bytes

    def __call__(self, model: bytes) -> bytes:
        return model[: self.offset] + self.content + model[self.offset + len(self.content) :]


@cache
def _place(tensor: str) -> tuple[int, np.ndarray]:
    """Find a weight in the model's file: its offset and its values."""
    model = MODEL.read_bytes()
    [found] = [entry for entry in onnx.load_from_string(model).graph.initializer if entry.name == tensor]
    assert model.count(found.raw_data) == 1, f"the bytes of {tensor} are not unique in the file"
    return model.index(found.raw_data), numpy_helper.to_array(found)


def _one_weight(change: Callable[[np.float32], np.float32]) -> tuple[Patch]:
    """Change the weight by which action 2 hears of the unit with the largest bias, which is at work in every state."""
    offset, weights = _place("f2.weight")
    _, biases = _place("f1.bias")
    index = int(np.ravel_multi_index((2, biases.argmax()), weights.shape))
    return (Patch(offset + 4 * index, change(weights.flat[index]).tobytes()),)


def changed_weight() -> tuple[Patch, ...]:
    """Change one of 1.69 million weights, by 1."""
    return _one_weight(lambda weight: np.float32(weight + 1))


def nan_weight() -> tuple[Patch, ...]:
    """Make one weight NaN, so that one score is NaN in every state."""
    return _one_weight(lambda weight: np.float32("nan"))


def zero_scores() -> tuple[Patch, ...]:
    """Make the last layer zero, so that every score is 0: what a lost GPU device returns."""
    places = map(_place, ("f2.weight", "f2.bias"))
    return tuple(Patch(offset, bytes(values.nbytes)) for offset, values in places)


def patched(patches: tuple[Patch, ...]) -> bytes:
    """Return the committed model with a fault."""
    model = MODEL.read_bytes()
    for patch in patches:
        model = patch(model)
    return model


def endless() -> bytes:
    """Build a model that adds 1 to its input `x` 2**62 times: an engine that hangs."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["going"], ["still"]), helper.make_node("Add", ["before", "one"], ["after"])],
        "body",
        [
            helper.make_tensor_value_info("turn", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            helper.make_tensor_value_info("before", TensorProto.FLOAT, [1]),
        ],
        [
            helper.make_tensor_value_info("still", TensorProto.BOOL, []),
            helper.make_tensor_value_info("after", TensorProto.FLOAT, [1]),
        ],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["turns", "", "x"], ["y"], body=body)],
        "endless",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
        [
            numpy_helper.from_array(np.array(2**62, dtype=np.int64), "turns"),
            numpy_helper.from_array(np.ones(1, dtype=np.float32), "one"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    content: bytes = model.SerializeToString()
    return content


def _small(nodes: list[onnx.NodeProto], inputs: dict[str, Shape], outputs: dict[str, Shape], **constants: np.ndarray) -> bytes:
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info(name, *shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, *shape) for name, shape in outputs.items()],
        [numpy_helper.from_array(values, name) for name, values in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    content: bytes = model.SerializeToString()
    return content


def typed() -> bytes:
    """Build a model with four inputs and five outputs of several types, none of whose rows is a multiple of 16 bytes."""
    return _small(
        [
            helper.make_node("Mul", ["floats", "two"], ["doubled"]),
            helper.make_node("ReduceSum", ["doubled", "axes"], ["sums"], keepdims=0),
            helper.make_node("Greater", ["floats", "half"], ["large"]),
            helper.make_node("Mul", ["integers", "integers"], ["squares"]),
            helper.make_node("Cast", ["bytes"], ["as_floats"], to=TensorProto.FLOAT),
            helper.make_node("Mul", ["as_floats", "two"], ["brighter"]),
            helper.make_node("Gather", ["table", "places"], ["found"], axis=0),
        ],
        {
            "floats": (TensorProto.FLOAT, ["N", 3]),
            "integers": (TensorProto.INT32, ["N", 3]),
            "bytes": (TensorProto.UINT8, ["N", 3]),
            "places": (TensorProto.INT64, ["N"]),
        },
        {
            "sums": (TensorProto.FLOAT, ["N"]),
            "large": (TensorProto.BOOL, ["N", 3]),
            "squares": (TensorProto.INT32, ["N", 3]),
            "brighter": (TensorProto.FLOAT, ["N", 3]),
            "found": (TensorProto.UINT32, ["N", 2]),
        },
        two=np.array([2], np.float32),
        half=np.array([0.5], np.float32),
        axes=np.array([1], np.int64),
        table=np.arange(20, dtype=np.uint32).reshape(10, 2),
    )


def copied() -> bytes:
    """Build a model of one copy of its halves.

    A copy is no dispatch, so onnxruntime's captured graph leaves it out: its replay gives the first answer for ever.
    """
    shape = (TensorProto.FLOAT16, ["N", 3])
    return _small([helper.make_node("Flatten", ["x"], ["y"], axis=1)], {"x": shape}, {"y": shape})


def nameless() -> bytes:
    """Build a model that doubles its input, whose first dimension is free and has no name."""
    shape = (TensorProto.FLOAT, [None, 3])
    two = np.array([2], np.float32)
    return _small([helper.make_node("Mul", ["x", "two"], ["y"])], {"x": shape}, {"y": shape}, two=two)
