"""Inputs made from signatures: sizes, ranges, limits, and what onnxruntime says of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyapp.casefile import MAX_BYTES, NUMBERS, CaseError, read_cases
from pyapp.casemaker import MAX_COUNT, MAX_SIZE, RANGES, SIZES, free_sizes, make_cases, shape_of
from pyapp.onnxfile import ModelInfo, TensorInfo, read_model
from tests.unit.test_casefile import npz

DATA = Path(onnx.__file__).parent / "backend/test/data"


def model(*inputs: TensorInfo) -> ModelInfo:
    return ModelInfo(inputs, (), 17, {}, 8, {}, 0, 0, "")


def made(name: str, dtype: str = "float32", dims: tuple = (4, 5), *, count: int = 8, others: tuple = (), **sizes: int):
    info = model(TensorInfo(name, dtype, dims), *others)
    return np.stack([case[name] for case in make_cases(info, {**free_sizes(info), **sizes}, count=count)])


@pytest.mark.parametrize(
    ("value", "sizes"),
    [
        (TensorInfo("x", "float32", ("N", 3, "height", "width")), {"N": 1, "height": 224, "width": 224}),
        (TensorInfo("x", "float32", (None, 3, None, None)), {"x[0]": 1, "x[2]": 224, "x[3]": 224}),
        (TensorInfo("x", "uint8", (-1, -1, -1, 3)), {"x[0]": 1, "x[1]": 224, "x[2]": 224}),
        (TensorInfo("x", "float32", ("n", "C", None, None)), {"n": 1, "C": 1, "x[2]": 1, "x[3]": 1}),
        (TensorInfo("x", "float32", ("bs", "channels", 8, 8)), {"bs": 1, "channels": 3}),
        (TensorInfo("x", "int64", ("batch_size", "sequence_length")), {"batch_size": 1, "sequence_length": 16}),
        (TensorInfo("x", "int64", ("batchSize", "seqLen2")), {"batchSize": 1, "seqLen2": 16}),
        (TensorInfo("x", "float32", ("tokens", "num_tokens")), {"tokens": 16, "num_tokens": 16}),
        (TensorInfo("x", "float32", (1, 8, "past_sequence_length", 64)), {"past_sequence_length": 1}),
        (TensorInfo("x", "int8", ("past", "t+past", "time", "time+1")), {"past": 1, "t+past": 1, "time": 16, "time+1": 17}),
        (TensorInfo("x", "int8", ("past + time", "past", "time")), {"past + time": 17, "past": 1, "time": 16}),
        (TensorInfo("x", "float32", ("num_samples",)), {"num_samples": 16000}),
        (TensorInfo("x", "float32", ("batch", "foo")), {"batch": 1, "foo": 16000}),
        (TensorInfo("x", "float32", (None,)), {"x[0]": 16000}),
        (TensorInfo("x", "int64", (None, None)), {"x[0]": 1, "x[1]": 1}),
        (TensorInfo("x", "float32", None), {}),
        (TensorInfo("x", "float32", (2, 0)), {}),
    ],
)  # fmt: skip
def test_sizes_are_guessed(value, sizes):
    assert free_sizes(model(value)) == sizes
    if value.dims is not None:
        shape = shape_of(value, sizes)
        assert len(shape) == len(value.dims)


def test_a_size_is_asked_for_once():
    a, b = TensorInfo("a", "float32", ("N", "L", None)), TensorInfo("b", "float32", ("L", "N", None))
    assert list(free_sizes(model(a, b))) == ["N", "L", "a[2]", "b[2]"]


def test_every_rule_says_why():
    assert all(rule.why for rule in (*SIZES, *RANGES))
    assert SIZES[-1].fits(TensorInfo("x", "int64", (1, 2, 3)), 2, "")


@pytest.mark.parametrize(
    ("name", "dtype", "low", "high"),
    [
        ("input_ids", "int64", 1, 99),
        ("tokens", "int8", 1, 99),
        ("image", "uint8", 0, 255),
        ("labels", "int32", 0, 9),
        ("counts", "uint64", 0, 9),
    ],
)
def test_whole_numbers_fill_their_range(name, dtype, low, high):
    values = made(name, dtype, (100, 100))
    assert (values.min(), values.max()) == (low, high)


def test_floats_are_normal_and_images_are_from_0_to_1():
    for dtype in ("float16", "float32", "float64"):
        values = made("x", dtype, (100, 50))
        assert abs(values.mean()) < 0.05
        assert abs(values.std() - 1) < 0.05
        for dims in ((1, 3, 20, 20), (None, 1, 20, 20), (1, 20, 20, 4)):
            image = made("x", dtype, dims)
            assert 0 <= image.min() < 0.02
            assert 0.98 < image.max() <= 1


@pytest.mark.parametrize("dtype", ["int64", "bool", "float32", "uint8"])
def test_masks_let_the_first_through_always(dtype):
    values = made("attention_mask", dtype, (3, 20), count=9)
    assert (values[:5] == 1).all()
    assert set(np.unique(values[5:])) == {0, 1}
    assert (values[..., 0] == 1).all()
    assert (made("mask", dtype, ()) == 1).all()
    assert made("mask", dtype, (2, 0)).size == 0


def test_named_inputs():
    assert (made("token_type_ids", "int64") == 0).all()
    assert (made("segment_ids", "int32") == 0).all()
    assert (made("position_ids", "int64") == np.arange(5)).all()
    assert made("position", "int64", ()).tolist() == [0] * 8
    assert made("position_ids", "int8", (200,)).max() == 127
    assert (made("sr", "int64", ()) == 16000).all()
    assert (made("sampleRate", "float32", (1,)) == 16000).all()
    assert (made("sample_rate", "uint8", ()) == 255).all()
    assert 0.7 < made("flags", "bool", (100, 10)).mean() < 0.9


def test_lengths_tell_the_length_of_their_input():
    speech, text = TensorInfo("speech", "float32", ("B", "T", 80)), TensorInfo("text", "int64", ("B", None))
    assert (made("speech_lengths", "int32", ("B",), others=(speech, text), T=77) == 77).all()
    assert (made("text_len", "int32", ("B",), others=(speech, text), **{"text[1]": 9}) == 9).all()
    assert (made("lengths", "int32", ("B",), others=(speech, text)) == 1).all()  # of which?
    assert (made("length", "int32", ("B",), others=(speech,), T=5) == 5).all()
    assert (made("seq_len", "int64", (), others=(TensorInfo("a", "int64", (1, "seq_len")),), seq_len=6) == 6).all()
    assert (made("size", "int64", (2,)) == 1).all()
    assert (made("speech_lengths", "int8", ("B",), others=(speech,), T=500) == 127).all()


@pytest.mark.parametrize(
    ("value", "options", "kind", "words"),
    [
        (TensorInfo("x", "float32", None), {}, "FreeRank", ("'x'", "file")),
        (TensorInfo("x", "string", (1,)), {}, "UnsupportedType", ("'x'", "string")),
        (TensorInfo("x", "complex64", (1,)), {}, "UnsupportedType", ("'x'", "complex64")),
        (TensorInfo("x", "float32", ("N",)), {"sizes": {}}, "BadSize", ("'N'", "no size")),
        (TensorInfo("x", "float32", ("N",)), {"sizes": {"N": -1}}, "BadSize", ("'N'", "-1")),
        (TensorInfo("x", "float32", ("N",)), {"sizes": {"N": MAX_SIZE + 1}}, "BadSize", ("'N'", str(MAX_SIZE + 1))),
        (TensorInfo("x", "float32", (None,)), {"sizes": {"x[0]": 1.5}}, "BadSize", ("'x[0]'", "1.5")),
        (TensorInfo("x", "float32", (None,)), {"sizes": {"x[0]": True}}, "BadSize", ("True",)),
        (TensorInfo("x", "float32", (1,)), {"count": 0}, "BadCount", ("256",)),
        (TensorInfo("x", "float32", (1,)), {"count": MAX_COUNT + 1}, "BadCount", ("257",)),
        (TensorInfo("x", "float32", (1,)), {"seed": -1}, "BadSeed", ("-1",)),
        (TensorInfo("x", "float32", ("N", 1 << 20)), {"sizes": {"N": 9}}, "CasesTooLarge", ("301,989,888", "fewer")),
        (TensorInfo("x", "float32", ("N", "N")), {"sizes": {"N": MAX_SIZE}}, "CasesTooLarge", ("float32[N,N]",)),
    ],
)  # fmt: skip
def test_what_cannot_be_made(value, options, kind, words):
    info = model(value)
    with pytest.raises(CaseError) as caught:
        make_cases(info, options.pop("sizes", free_sizes(info)), **options)
    assert caught.value.kind == kind
    for word in words:
        assert word in str(caught.value)
    assert caught.value.remedy


def test_the_limit_is_exact():
    info = model(TensorInfo("x", "uint8", (MAX_BYTES // 4,)))
    assert len(make_cases(info, {}, count=4)) == 4
    with pytest.raises(CaseError):
        make_cases(info, {}, count=5)


NAMES = st.sampled_from(
    ["x", "y", "input_ids", "attention_mask", "token_type_ids", "position_ids", "lengths", "x_size", "sr", "a/b", "", "é"]
)
DIMS = st.lists(st.one_of(st.integers(-1, 5), st.sampled_from(["N", "seq", "h", "past + seq", ""]), st.none()), max_size=5)
SIGNATURES = st.lists(
    st.builds(TensorInfo, NAMES, st.sampled_from(sorted(NUMBERS)), DIMS.map(tuple)),
    max_size=4,
    unique_by=lambda value: value.name,
)


@given(SIGNATURES, st.integers(0, 4), st.integers(1, 5), st.integers(0, 2**64))
@settings(max_examples=200)
def test_made_inputs_fit_and_repeat(values, size, count, seed):
    info = model(*values)
    sizes = dict.fromkeys(free_sizes(info), size)
    cases = make_cases(info, sizes, count=count, seed=seed)
    again = make_cases(info, sizes, count=count, seed=seed)
    assert len(cases) == count
    for case, same in zip(cases, again, strict=True):
        assert list(case) == [value.name for value in values]
        for value in values:
            assert case[value.name].dtype == NUMBERS[value.dtype]
            assert case[value.name].shape == shape_of(value, sizes)
            assert case[value.name].flags.c_contiguous
            assert np.isfinite(case[value.name]).all()
            np.testing.assert_array_equal(case[value.name], same[value.name])


@given(st.sampled_from(["float32", "float16", "int64", "uint8", "bool"]), st.integers(0, 2**40))
@settings(max_examples=50)
def test_seeds_and_cases_differ(dtype, seed):
    info = model(TensorInfo("x", dtype, (10, 20)))
    arrays = [case["x"].tobytes() for by in (seed, seed + 1) for case in make_cases(info, {}, seed=by)]
    assert len(set(arrays)) == 16
    more = make_cases(info, {}, count=9, seed=seed)
    assert [case["x"].tobytes() for case in more[:8]] == arrays[:8]


def test_a_file_of_made_cases_is_read_back():
    info = model(TensorInfo("input_ids", "int64", ("N", "seq")), TensorInfo("attention_mask", "int64", ("N", "seq")))
    cases = make_cases(info, free_sizes(info))
    loaded = read_cases("made.npz", npz(**{name: np.concatenate([case[name] for case in cases]) for name in cases[0]}), info)
    for case, back in zip(cases, loaded.inputs, strict=True):
        for name, array in case.items():
            np.testing.assert_array_equal(array, back[name])


EXCLUDED = {
    **{f"test_expand_shape_model{n}": "one of its inputs is a shape that has to fit the other" for n in (1, 2, 3, 4)},
    "test_gradient_of_add": "onnxruntime has no Gradient",
    "test_gradient_of_add_and_mul": "onnxruntime has no Gradient",
    "test_sequence_model8": "one of its inputs has to add up to the length of the other",
}
STRINGS = {
    "test_strnorm_model_monday_casesensintive_lower",
    "test_strnorm_model_monday_casesensintive_nochangecase",
    "test_strnorm_model_monday_casesensintive_upper",
    "test_strnorm_model_monday_empty_output",
    "test_strnorm_model_monday_insensintive_upper_twodim",
    "test_strnorm_model_nostopwords_nochangecase",
}
SIMPLE = {path.parent.name: path for path in sorted(DATA.glob("simple/*/model.onnx"))}
LIGHT = {name: DATA / f"light/light_{name}.onnx" for name in ("squeezenet", "shufflenet")}


def test_what_is_excluded_is_there():
    assert EXCLUDED.keys() | STRINGS <= SIMPLE.keys()


@pytest.mark.parametrize("name", sorted(SIMPLE.keys() - EXCLUDED.keys() - STRINGS) + sorted(LIGHT))
def test_onnxruntime_takes_what_is_made(name):
    content = {**SIMPLE, **LIGHT}[name].read_bytes()
    info = read_model(content)
    session = ort.InferenceSession(content, providers=["CPUExecutionProvider"])
    for case in make_cases(info, free_sizes(info), count=3):
        assert len(session.run(None, case)) == len(info.outputs)


@pytest.mark.parametrize("name", sorted(STRINGS))
def test_models_of_texts_are_refused(name):
    with pytest.raises(CaseError, match="string"):
        make_cases(read_model(SIMPLE[name].read_bytes()), {})
