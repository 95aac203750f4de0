"""Files of cases: their forms, how many cases they are, types, shapes, and files that do harm."""

from __future__ import annotations

import io
import json
import pickle
import random
import tracemalloc
import zipfile

import numpy as np
import pytest

from pyapp.arrayfile import MAX_BYTES, MAX_DEPTH, MAX_JSON_BYTES
from pyapp.casefile import CaseError, LoadedCases, described, read_cases, spelled
from pyapp.onnxfile import ModelInfo, TensorInfo

X = TensorInfo("x", "float32", ("N", 3))
Y = TensorInfo("y", "float32", ("N", 2))


def model(*inputs: TensorInfo, outputs: tuple[TensorInfo, ...] = (Y,)) -> ModelInfo:
    return ModelInfo(inputs, outputs, 17, {}, 8, {}, 0, 0, "")


def npz(save=np.savez, **arrays) -> bytes:
    stream = io.BytesIO()
    save(stream, **arrays)
    return stream.getvalue()


def npy(array, **options) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asanyarray(array), **options)
    return stream.getvalue()


def text(value) -> bytes:
    return json.dumps(value).encode()


def refused(content: bytes, info: ModelInfo, kind: str, *words: str, name: str = "cases") -> CaseError:
    with pytest.raises(CaseError) as caught:
        read_cases(name, content, info)
    assert caught.value.kind == kind
    for word in words:
        assert word in str(caught.value)
    return caught.value


F3 = np.arange(24, dtype=np.float32).reshape(8, 3)
F2 = np.arange(16, dtype=np.float32).reshape(8, 2)


# --- forms ---


@pytest.mark.parametrize(
    "content",
    [
        npz(x=F3[:1], y=F2[:1]),
        npz(np.savez_compressed, x=F3[:1], y=F2[:1]),
        npz(**{"inputs.x": F3[:1], "outputs/y": F2[:1]}),
        npz(**{"inputs/x": F3[:1], "y": F2[:1]}),
        text({"x": F3[:1].tolist(), "y": F2[:1].tolist()}),
        text({"inputs": {"x": F3[:1].tolist()}, "outputs": {"y": F2[:1].tolist()}}),
        text([{"inputs": {"x": F3[:1].tolist()}, "outputs": {"y": F2[:1].tolist()}}]),
        text({"cases": [{"x": F3[:1].tolist(), "y": F2[:1].tolist()}]}),
        b"\xef\xbb\xbf" + text({"inputs.x": F3[:1].tolist(), "outputs.y": F2[:1].tolist()}),
    ],
)
def test_every_form_gives_the_same(content):
    loaded = read_cases("anything.bin", content, model(X))
    assert len(loaded.inputs) == 1
    assert loaded.outputs is not None
    for got, want in ((loaded.inputs[0]["x"], F3[:1]), (loaded.outputs[0]["y"], F2[:1])):
        np.testing.assert_array_equal(got, want)
        assert got.dtype == np.float32
        assert got.flags.c_contiguous


@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
def test_an_npy_is_for_a_model_with_one_input(version):
    content = npy(np.asfortranarray(F3), version=version)
    loaded = read_cases("a.npy", content, model(X))
    assert loaded.outputs is None
    assert all(case["x"].flags.c_contiguous for case in loaded.inputs)
    np.testing.assert_array_equal(np.concatenate([case["x"] for case in loaded.inputs]), F3)
    refused(content, model(X, TensorInfo("z", "float32", ("N", 3))), "BadCases", "2 inputs: 'x', 'z'")


def test_names_that_an_input_and_an_output_share():
    info = model(X, outputs=(TensorInfo("x", "float32", ("N", 3)),))
    refused(npz(x=F3), info, "BadCases", "both an input and an output", "inputs.x")
    loaded = read_cases("a", npz(**{"inputs.x": F3, "outputs.x": F3 + 1}), info)
    np.testing.assert_array_equal(loaded.outputs[3]["x"], loaded.inputs[3]["x"] + 1)
    refused(npz(**{"inputs.x": F3, "inputs/x": F3}), info, "BadCases", "twice")


def test_names_with_slashes_and_words_of_ours():
    odd = [TensorInfo(name, "float32", (None, 3)) for name in ("gpu_0/data_0", "inputs", "cases", "inputs.q")]
    loaded = read_cases("a", npz(**{one.name: F3 for one in odd}), model(*odd))
    assert list(loaded.inputs[0]) == [one.name for one in odd]
    assert len(read_cases("a", text({"cases": F3.tolist()}), model(odd[2])).inputs) == 8
    assert len(read_cases("a", text({"inputs": F3.tolist()}), model(odd[1])).inputs) == 8


def test_a_listed_case_is_one_case_of_any_batch():
    loaded = read_cases("a", text([{"x": F3[:2].tolist()}, {"x": F3.tolist()}]), model(X))
    assert [case["x"].shape for case in loaded.inputs] == [(2, 3), (8, 3)]
    refused(text([{"x": F3.tolist()}, {"x": [F3.tolist()]}]), model(X), "WrongShape", "of case 1", "[1,8,3]", "float32[N,3]")


def test_some_outputs_are_enough_but_in_every_case_the_same():
    z = TensorInfo("z", "float32", ("N",))
    loaded = read_cases("a", npz(x=F3, z=F3[:, 0]), model(X, outputs=(Y, z)))
    assert [list(case) for case in loaded.outputs] == [["z"]] * 8
    refused(text([{"x": [[1, 2, 3]], "y": [[1, 2]]}, {"x": [[1, 2, 3]]}]), model(X), "BadCases", "case 1 has answers for []")


def test_a_model_without_inputs():
    assert read_cases("a", npz(y=F2), model()).inputs == [{}]
    assert read_cases("a", text({"inputs": {}}), model()) == LoadedCases([{}], None)


def test_numbers_of_json():
    loaded = read_cases("a", b'{"x": [[NaN, Infinity, -Infinity]]}', model(X))
    np.testing.assert_array_equal(loaded.inputs[0]["x"], [[np.nan, np.inf, -np.inf]])


# --- how many cases ---

S = TensorInfo("s", "int64", ())
FIXED = TensorInfo("x", "float32", (1, 3))


@pytest.mark.parametrize(
    ("values", "arrays", "shapes"),
    [
        ([X], {"x": F3}, [(1, 3)] * 8),
        ([X], {"x": F3[:1]}, [(1, 3)]),
        ([X], {"x": F3[:, None]}, [(1, 3)] * 8),
        ([X], {"x": np.zeros((2, 4, 3), "f4")}, [(4, 3)] * 2),
        ([FIXED], {"x": F3}, [(1, 3)] * 8),
        ([FIXED], {"x": F3, "y": F2}, [(1, 3)] * 8),
        ([X], {"x": F3, "y": F2[:1]}, [(8, 3)]),  # the answer is one for all
        ([TensorInfo("x", "float32", (8, 3))], {"x": F3}, [(8, 3)]),
        ([TensorInfo("x", "float32", (-1, 3))], {"x": F3}, [(1, 3)] * 8),
        ([TensorInfo("x", "float32", None)], {"x": F3}, [(8, 3)]),
        ([TensorInfo("x", "float32", ("N",))], {"x": F3[0]}, [(3,)]),
        ([TensorInfo("x", "float32", ("N",))], {"x": F3}, [(3,)] * 8),
        ([TensorInfo("x", "float32", ("seq_len", 3))], {"x": F3}, [(8, 3)]),
        ([TensorInfo("x", "float32", ("N", "N"))], {"x": np.zeros((4, 4), "f4")}, [(4, 4)]),
        ([TensorInfo("x", "float32", ())], {"x": np.float32(2)}, [()]),
        ([TensorInfo("x", "float32", ())], {"x": F3[0]}, [()] * 3),
        ([X, S], {"x": F3, "s": np.arange(8)}, [(1, 3)] * 8),
        ([X, S], {"x": F3, "s": np.int64(5)}, [(8, 3)]),
        ([X, S], {"x": F3[:2], "s": np.array([5])}, [(2, 3)]),
    ],
)
def test_how_many_cases_arrays_are(values, arrays, shapes):
    loaded = read_cases("a", npz(**arrays), model(*values))
    assert [case["x"].shape for case in loaded.inputs] == shapes
    together = np.concatenate([case["x"].ravel() for case in loaded.inputs])
    np.testing.assert_array_equal(together, arrays["x"].ravel())


@pytest.mark.parametrize(
    ("dims", "given", "shape"),
    [
        (None, F2, (1, 2)),  # of a batch
        (("N",), F2[:, 0], (1,)),
        ((1, 2), F2, (1, 2)),
        (("N", 2), F2[:, None], (1, 2)),
        ((), F2[:, 0], ()),
    ],
)
def test_answers_are_taken_apart_as_their_inputs(dims, given, shape):
    loaded = read_cases("a", npz(x=F3, y=given), model(X, outputs=(TensorInfo("y", "float32", dims),)))
    assert [case["y"].shape for case in loaded.outputs] == [shape] * 8
    np.testing.assert_array_equal(np.concatenate([case["y"].ravel() for case in loaded.outputs]), given.ravel())


def test_answers_of_free_rank_follow_stacked_inputs():
    loaded = read_cases("a", npz(x=F3[:, None], y=F2), model(X, outputs=(TensorInfo("y", "float32", None),)))
    assert [case["y"].shape for case in loaded.outputs] == [(2,)] * 8


@pytest.mark.parametrize(
    ("arrays", "kind"),
    [
        ({"x": F3[:0]}, "NoCases"),
        ({"x": F3[:0, None]}, "NoCases"),
        ({"x": F3[:, None], "y": F2[:3, None]}, "CountsDiffer"),
        ({"x": F3[:, None], "y": F2[:3]}, "CountsDiffer"),
        ({"x": F3[:, None, None]}, "WrongShape"),
        ({"x": F3[0]}, "WrongShape"),
    ],
)
def test_arrays_that_are_no_cases(arrays, kind):
    refused(npz(**arrays), model(X), kind)


def test_lists_of_no_cases():
    refused(b"[]", model(X), "NoCases")
    refused(b'{"cases": []}', model(X), "NoCases")


def test_too_many_cases():
    refused(npz(x=np.zeros((100_001, 3), "f4")), model(X), "CasesTooLarge", "100,001 cases")
    refused(b"[" + b"{}," * 100_000 + b"{}]", model(X), "CasesTooLarge", "100,001 cases")


# --- names, types, shapes ---


def test_names_are_said():
    refused(npz(q=F3), model(X), "UnknownName", "'q'", "inputs are 'x'", "outputs are 'y'")
    refused(npz(y=F2), model(X), "MissingInput", "input 'x' is missing", "has none")
    refused(text({"inputs": {"x": [[1, 2, 3]], "q": 1}}), model(X), "UnknownName", "'q'", "no input")
    refused(text({"inputs": {"x": [[1, 2, 3]]}, "outputs": {"x": 1}}), model(X), "UnknownName", "no output")
    refused(text([{"x": [[1, 2, 3]]}, {}]), model(X), "MissingInput", "of case 1")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (np.uint8, "float32"),
        (np.uint8, "float16"),
        (np.float16, "float32"),
        (np.float64, "float32"),
        (">f4", "float32"),
        (np.int64, "int32"),
        (np.int32, "int64"),
        (np.bool_, "int64"),
        (np.int64, "float64"),
    ],
)
def test_types_that_convert(given, wanted):
    loaded = read_cases("a", npz(x=np.ones((1, 3), given)), model(TensorInfo("x", wanted, (1, 3))))
    assert loaded.inputs[0]["x"].dtype == np.dtype(wanted)
    assert loaded.inputs[0]["x"].dtype.isnative
    assert (loaded.inputs[0]["x"] == 1).all()


@pytest.mark.parametrize(
    ("array", "wanted", "words"),
    [
        (np.ones((1, 3)), "int64", ("input 'x' is float64", "wants int64", "astype('int64')")),
        (np.ones((1, 3), "i8"), "float32", ("int64", "float32")),
        (np.ones((1, 3), "i4"), "uint8", ("int32", "uint8")),
        (np.ones((1, 3), "f4"), "float16", ("float32", "float16")),
        (np.ones((1, 3), "u1"), "bool", ("uint8", "bool")),
        (np.ones((1, 3), "c8"), "float32", ("complex64",)),
        (np.full((1, 3), 1e300), "float32", ("has no room for",)),
        (np.full((1, 3), 1 << 40), "int32", ("has no room for",)),
        (np.array([["a", "b", "c"]]), "float32", ("'x' in cases is an array of <U1",)),
        (np.zeros((1, 3), "M8[s]"), "int64", ("datetime64",)),
        (np.zeros((1, 3), [("a", "f4")]), "float32", ("array of",)),
    ],
)
def test_types_that_do_not(array, wanted, words):
    refused(npz(x=array), model(TensorInfo("x", wanted, (1, 3))), "WrongType", *words)


def test_booleans_are_0_and_1_whatever_the_bytes():
    content = npy(np.ones((1, 3), bool))[:-3] + b"\2\0\xff"
    for wanted in ("bool", "uint8"):
        array = read_cases("a", content, model(TensorInfo("x", wanted, (1, 3)))).inputs[0]["x"]
        assert array.view(np.uint8).tolist() == [[1, 0, 1]]


def test_infinities_pass_where_they_were_given():
    loaded = read_cases("a", npz(x=np.array([[np.nan, np.inf, 1.0]])), model(X))
    np.testing.assert_array_equal(loaded.inputs[0]["x"], np.array([[np.nan, np.inf, 1]], "f4"))


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ([0, 255, 7], "uint8"),
        ([1, 2, 3], "float16"),
        ([2**64 - 1, 0, 1], "uint64"),
        ([-(2**63), 0, 1], "int64"),
        ([1.5, 2, 3], "float32"),
        ([10**300, 1, 1], "float64"),
        ([True, False, True], "bool"),
        ([True, False, True], "float32"),
    ],
)
def test_json_types_that_convert(given, wanted):
    array = read_cases("a", text({"x": [given]}), model(TensorInfo("x", wanted, (1, 3)))).inputs[0]["x"]
    assert array.dtype == np.dtype(wanted)
    assert array[0].tolist() == [float(x) for x in given] if array.dtype.kind == "f" else given


@pytest.mark.parametrize(
    ("given", "wanted", "kind", "word"),
    [
        ([0, 256, 7], "uint8", "WrongType", "no room"),
        ([0, -1, 7], "uint64", "WrongType", "no room"),
        ([2**63, 0, 0], "int64", "WrongType", "no room"),
        ([2**64, 0, 0], "int64", "WrongType", "float64"),
        ([10**400, 0, 0], "float64", "WrongType", "beyond"),
        ([1e300, 0, 0], "float32", "WrongType", "no room"),
        ([70000, 0, 0], "float16", "WrongType", "no room"),
        ([1.0, 2.0, 3.0], "int64", "WrongType", "whole numbers"),
        ([0, 1, 1], "bool", "WrongType", "true and false"),
        ([True, 1, 1], "bool", "WrongType", "mixes"),
        (["1", 2, 3], "float32", "WrongType", "a text"),
        ([None, 2, 3], "float32", "WrongType", "null"),
        ([{}, 2, 3], "float32", "WrongType", "an object"),
        ([[1], 2, 3], "float32", "WrongShape", "input 'x' has lists of unlike lengths"),
        ([[1], [2, 3], []], "float32", "WrongShape", "unlike lengths"),
    ],
)
def test_json_types_that_do_not(given, wanted, kind, word):
    refused(text({"x": [given]}), model(TensorInfo("x", wanted, (1, 3))), kind, word)


@pytest.mark.parametrize("dtype", ["string", "bfloat16", "complex64", "undefined"])
def test_models_that_are_not_fed_numbers(dtype):
    refused(npz(x=F3), model(TensorInfo("x", dtype, (None, 3))), "UnsupportedType", "'x'", dtype, "numbers only")
    info = model(X, outputs=(TensorInfo("y", dtype, (None,)),))
    assert read_cases("a", npz(x=F3), info).outputs is None
    refused(npz(x=F3, y=F2[:, 0]), info, "UnsupportedType", "'y'")


def test_shapes_that_do_not_fit():
    image = TensorInfo("x", "float32", ("N", 3, None, 224))
    refused(npz(x=np.zeros((2, 3, 5, 225), "f4")), model(image), "WrongShape", "input 'x'", "[1,3,5,225]", "float32[N,3,?,224]")
    refused(npz(x=F3, y=F3), model(X), "WrongShape", "output 'y' of every case", "[1,3]", "float32[N,2]")
    refused(npz(x=F3[:3], y=F2), model(FIXED), "WrongShape", "input 'x'", "[3,3]", "float32[1,3]")
    a, b = TensorInfo("a", "float32", (1, "L")), TensorInfo("b", "float32", (1, "L", "M"))
    arrays = {"a": np.zeros((1, 4), "f4"), "b": np.zeros((1, 5, 4), "f4")}
    refused(npz(**arrays), model(a, b), "WrongShape", "input 'b'", "L = 5", "input 'a' has 4")


def test_descriptions():
    assert described(TensorInfo("x", "float32", ("N", 3, None, -1, 0))) == "float32[N,3,?,?,0]"
    assert described(TensorInfo("x", "int64", None)) == "int64[…]"
    assert described(TensorInfo("x", "int64", ())) == "int64[]"
    assert spelled("inputLength2") == "_input_length_"
    assert spelled("") == "__"


# --- harm ---


class Trap:
    def __reduce__(self):
        return (pytest.fail, ("the pickle was read",))


@pytest.mark.parametrize(
    "content",
    [
        npy(np.array([[Trap()]]), allow_pickle=True),
        npz(x=np.array([[Trap()]])),
        npz(x=np.zeros((1, 3), [("a", "O")])),
        pickle.dumps([[Trap()]]),
    ],
)
def test_pickles_are_not_read(content):
    refused(content, model(X), "PickledArray", "arrays of Python objects are not read, since reading them could run code")


def zipped(data: bytes, name: str = "x.npy", method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        archive.writestr(name, data)
    return stream.getvalue()


def test_a_zip_bomb_is_not_unpacked():
    content = zipped(bytes(MAX_BYTES + 1))
    assert len(content) < MAX_BYTES // 500
    liar = content.replace((MAX_BYTES + 1).to_bytes(4, "little"), (1000).to_bytes(4, "little"))
    tracemalloc.start()
    try:
        refused(content, model(X), "CasesTooLarge", f"{MAX_BYTES + 1:,} bytes")
        refused(liar, model(X), "BadCases")
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_a_header_that_claims_too_much_makes_no_room():
    header = npy(np.zeros(3, "f4"))[:128].replace(b"(3,), }    ", b"(3, 1<<40)")
    huge = npy(np.zeros(3, "f4"))[:128].replace(b"(3,), }               ", b"(3000000000000000,), }")
    negative = npy(np.zeros(3, "f4")).replace(b"(3,), } ", b"(-3,), }")
    for content in (header, huge, negative, zipped(huge)):
        refused(content, model(X), "BadCases", "damaged or incomplete")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK",
        npz(x=F3)[:-30],
        npz(x=F3)[:200],
        npy(F3)[:-1],
        npy(F3) + b"\0",
        npy(F3)[:8],
        npy(F3).replace(b"{", b"[", 1),
        npy(F3, version=(3, 0)),
        zipped(b"x", "readme.txt"),
        zipped(npy(F3), method=zipfile.ZIP_BZIP2),
        b"\x93NUMPY\x01\x00" + (60000).to_bytes(2, "little") + b"(" * 60000,
        b"{",
        b"[1, 2]",
        b"3",
        b'{"x": 1, "x": 2}',
        b"\xff\xfe",
        b'{"x": ' + b"9" * 5000 + b"}",
        b"[" * 100_000,
        b'{"x": ' + b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1) + b"}",
        b'{"a":' * 100_000,
    ],
)
def test_damaged_files(content):
    refused(content, model(X), "BadCases")


def test_files_that_are_too_large():
    class Long(bytes):
        def __len__(self):
            return MAX_BYTES + 1

    refused(Long(npz(x=F3)), model(X), "CasesTooLarge")
    refused(b" " * (MAX_JSON_BYTES + 1), model(X), "CasesTooLarge", "JSON")
    wide = TensorInfo("x", "float64", (None, 1 << 20))
    refused(npz(np.savez_compressed, x=np.zeros((40, 1 << 20), np.uint8)), model(wide), "CasesTooLarge", "as float64")


def test_mutated_files_give_cases_or_an_error():
    chance = random.Random(1)
    z = TensorInfo("z", "int64", ("N", None))
    arrays = {"x": F3, "z": np.arange(16).reshape(8, 2), "y": F2}
    nested = {name: array[:2].tolist() for name, array in arrays.items()}
    originals = [
        (npz(**arrays), model(X, z)),
        (npz(np.savez_compressed, **arrays), model(X, z)),
        (npy(F3), model(X)),
        (text(nested), model(X, z)),
        (text({"cases": [{"inputs": {"x": nested["x"], "z": nested["z"]}, "outputs": {"y": nested["y"]}}] * 2}), model(X, z)),
    ]
    tally, longest = {"cases": 0, "error": 0}, 0
    for number in range(2000):
        original, info = originals[number % len(originals)]
        content = bytearray(original)
        for _ in range(chance.randint(1, 2)):
            at = chance.randrange(len(content))
            match chance.randrange(5):
                case 0:
                    content[at] = chance.randrange(256)
                case 1:
                    content[at] ^= 1 << chance.randrange(8)
                case 2:
                    del content[at : at + chance.choice((1, 4, 100))]
                case 3:
                    content[at:at] = chance.choice((b"[", b"]", b"-", b"9" * 30, b"\0" * 5, b"(", b"1e999", b"O", b"\xff" * 4))
                case _:
                    content[at : at + 1] = content[chance.randrange(len(content)) :][:20]
            if not content:
                break
        if original[:1] == b"\x93" and number % 2:  # with the right checksum
            content = zipped(bytes(content))
        try:
            loaded = read_cases("mutant", bytes(content), info)
        except CaseError as error:
            tally["error"] += 1
            longest = max(longest, len(str(error)))
        else:
            assert isinstance(loaded, LoadedCases)
            assert loaded.inputs
            tally["cases"] += 1
    assert min(tally.values()) > 100, tally
    assert longest < 1000
