"""Damaged models end in a description or in our error, and soon."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from pyapp.external import external_files, inlined
from pyapp.onnxfile import ModelError, array_of, parse_model, read_model
from tests.unit.test_external import adding, elsewhere
from tests.unit.test_graphcheck import RUNS
from tests.unit.test_onnxfile import small_chain

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
FILES = 2_000
SLOW_S = 5.0


def seeds() -> list[bytes]:
    """Small models of several exporters, and ours with what those lack: other files, inner graphs, functions, odd tensors."""
    names = (
        "light/light_bvlc_alexnet.onnx",
        "light/light_zfnet512.onnx",
        "light/light_squeezenet.onnx",
        "simple/test_sequence_model3/model.onnx",
        "simple/test_strnorm_model_monday_empty_output/model.onnx",
        "simple/test_expand_shape_model1/model.onnx",
        "pytorch-converted/test_Conv2d_groups/model.onnx",
        "pytorch-converted/test_BatchNorm1d_3d_input_eval/model.onnx",
        "pytorch-operator/test_operator_convtranspose/model.onnx",
    )
    typed = [
        helper.make_tensor(f"t{kind}", kind, [2, 2], [1, 0, 1, 1])
        for kind in (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.UINT8, TensorProto.BOOL, TensorProto.UINT64)
    ]
    outputs = [helper.make_tensor_value_info(tensor.name, tensor.data_type, [2, 2]) for tensor in typed]
    odd = helper.make_model(helper.make_graph([], "g", [], outputs, typed)).SerializeToString()
    other = adding(elsewhere("dir/a.bin", offset=8, length=8), elsewhere("b.bin"), elsewhere("a.bin", offset=0))
    inner = [RUNS[key] for key in ("a branch in a branch", "constants of a branch", "a function")]
    return [*((DATA / name).read_bytes() for name in names), small_chain(), odd, other, *inner]


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Damage a file in one or two ways."""
    data = bytearray(content)
    for _ in range(rng.integers(1, 3)):
        size = max(len(data), 1)
        place, other = (int(number) for number in rng.integers(0, size, 2))
        run = int(rng.integers(1, 40))
        match rng.choice(["bit", "byte", "bit", "byte", "cut", "splice", "insert", "swap", "drop", "long"]):
            case "bit" if data:
                data[place] ^= 1 << int(rng.integers(8))
            case "byte" if data:
                data[place] = int(rng.choice([0, 1, 127, 128, 255, rng.integers(256)]))
            case "cut":
                del data[place:]
            case "splice":
                data[place : place + run] = data[other : other + run]
            case "insert":
                data[place:place] = rng.bytes(run)
            case "swap":
                data = data[place:] + data[:place]
            case "drop":
                del data[place : place + run]
            case "long":  # a number of ten bytes: negative, or absurdly large
                data[place : place + 1] = b"\xff" * 9 + b"\x01"
    return bytes(data)


NUMBERS = (0, 1, -1, 2, 7, 8, 1 << 31, 1 << 62, -(1 << 63), 255)


def rewritten(content: bytes, rng: np.random.Generator) -> bytes:
    """Change one to three fields to other values of their type: damage that protobuf has nothing against."""
    model = onnx.ModelProto.FromString(content)
    for _ in range(rng.integers(1, 4)):
        messages, texts = inside(model)
        message = messages[rng.integers(len(messages))]
        fields = [field for field, _ in message.ListFields()] if rng.random() < 0.8 else message.DESCRIPTOR.fields
        if fields:
            rewrite(message, fields[rng.integers(len(fields))], texts, rng)
    return model.SerializeToString()


def inside(model: onnx.ModelProto) -> tuple[list, list[str]]:
    """Return all messages of a model, and all texts, with some that are special."""
    texts = ["", "x", "y", "a/b", "..", "location", "length", "-1", "9" * 30, "\0"]
    messages, left = [], [model]
    while left:
        messages.append(left.pop())
        for field, value in messages[-1].ListFields():
            values = list(value) if field.is_repeated else [value]
            if field.message_type:
                left += values
            elif field.type == field.TYPE_STRING:
                texts += values
    return messages, texts


def rewrite(message, field, texts: list[str], rng: np.random.Generator) -> None:
    """Clear a field, give it another value, or repeat and replace its values by each other."""
    value = getattr(message, field.name)
    if rng.random() < 0.2:
        message.ClearField(field.name)
    elif field.is_repeated and len(value) and rng.random() < 0.7:
        at, other = rng.integers(0, len(value), 2)
        if field.message_type:
            value[at].CopyFrom(value[other])
        else:
            value[at] = value[other]
        if rng.random() < 0.7:
            value.extend([value[other]] if rng.random() < 0.5 else [value[at]] * 60)
    elif not field.message_type:
        made = scalar(field, texts, rng)
        if field.is_repeated:
            value.append(made)
        else:
            setattr(message, field.name, made)


def scalar(field, texts: list[str], rng: np.random.Generator) -> object:
    """Return any value of a field's type."""
    if field.type == field.TYPE_STRING:
        return texts[rng.integers(len(texts))]
    if field.type == field.TYPE_BYTES:
        return rng.bytes(int(rng.choice([0, 1, 8, 33])))
    if field.type in (field.TYPE_FLOAT, field.TYPE_DOUBLE):
        return float(rng.choice([0, np.nan, np.inf, -1e30]))
    if field.type == field.TYPE_ENUM:
        return int(rng.choice([value.number for value in field.enum_type.values]))
    number = int(rng.choice(np.array(NUMBERS)))
    if field.type == field.TYPE_INT32:
        return max(-(1 << 31), min(number, 40 if field.name == "data_type" else (1 << 31) - 1))
    return abs(number + 1) if field.type == field.TYPE_UINT64 else number


def asked(content: bytes) -> str:
    """Ask all that there is of a file; say how it ended."""
    wrong = None
    try:
        assert read_model(content).size == len(content)
        files = {name: bytes(min(size, 1 << 16)) for name, size in external_files(content).items()}
        for tensor in parse_model(inlined(content, files)).graph.initializer:
            array_of(tensor)
    except ModelError as error:
        wrong = error
    assert wrong is None or (wrong.remedy and len(str(wrong)) < 5_000)
    return wrong.kind if wrong else "read"


@pytest.mark.parametrize("damage", [damaged, rewritten])
def test_damaged_files_end_in_a_description_or_in_our_error(damage):
    rng = np.random.default_rng(20)
    models = seeds()
    ends: Counter[str] = Counter()
    for number in range(FILES):
        content = models[number % len(models)]
        wrong = damage(content, rng)
        started = time.perf_counter()
        try:
            ends[asked(wrong)] += 1
        except Exception as error:
            raise AssertionError(f"file {number}, of model {number % len(models)}: {wrong.hex()[:2_000]}") from error
        assert time.perf_counter() - started < SLOW_S, f"file {number} took too long"
    assert all(asked(content) == "read" for content in models)
    assert {"read", "BrokenModel"} <= set(ends), ends
    assert min(ends["read"], FILES - ends["read"]) > FILES // 20, ends
