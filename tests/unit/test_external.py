"""Weights in other files: brought in, they give onnxruntime's own answers; whatever is wrong with them is told."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data

from pyapp.external import external_files, inlined
from pyapp.onnxfile import ModelError, read_model
from tests.unit.test_onnxfile import MODEL, small_chain


def elsewhere(location: str = "w.bin", **entries: object) -> TensorProto:
    """Two float32 numbers in another file."""
    tensor = TensorProto(name="w", dims=[2], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def adding(*tensors: TensorProto) -> bytes:
    """y = x + every tensor."""
    ends = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])] for name in ("x", f"s{len(tensors)}")]
    nodes = [helper.make_node("Identity", ["x"], ["s0"])]
    for number, tensor in enumerate(tensors):
        tensor.name = f"w{number}"
        nodes.append(helper.make_node("Add", [f"s{number}", tensor.name], [f"s{number + 1}"]))
    graph = helper.make_graph(nodes, "g", *ends, list(tensors))
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()


def run(model: bytes | str, **feeds: np.ndarray) -> list[np.ndarray]:
    return ort.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, feeds)


def refusal(content: bytes, files: dict[str, bytes], **options: int) -> ModelError:
    with pytest.raises(ModelError) as caught:
        inlined(content, files, **options)
    return caught.value


NUMBERS = np.array([1, 2, 3, 4], np.float32).tobytes()


@pytest.mark.parametrize("together", [True, False])
def test_what_onnx_saved_in_other_files_has_the_same_scores_once_it_is_inside(tmp_path, together):
    path = tmp_path / "model.onnx"
    model = onnx.load_from_string(MODEL)
    onnx.save(
        model, path, save_as_external_data=True, all_tensors_to_one_file=together, location="all.bin" if together else None
    )
    content = path.read_bytes()
    sizes = external_files(content)
    assert len(content) < 10_000
    assert read_model(content).external == tuple(sizes)
    assert read_model(content).parameters == 1_686_180
    files = {name: (tmp_path / name).read_bytes() for name in sizes}
    assert {name: len(file) for name, file in files.items()} == sizes
    inside = inlined(content, files)
    assert external_files(inside) == {}
    assert read_model(inside).external == ()
    x = np.random.default_rng(0).integers(0, 256, (3, 4, 84, 84)).astype(np.float32)
    assert (run(inside, observation=x)[0] == run(str(path), observation=x)[0]).all()
    assert (run(inside, observation=x)[0] == run(MODEL, observation=x)[0]).all()


def test_a_model_with_all_inside_comes_back_as_it_is():
    small = small_chain()
    assert external_files(small) == {}
    assert inlined(small, {}) is small


def test_the_size_of_a_file_is_the_furthest_that_weights_reach():
    content = adding(elsewhere(offset=8, length=8), elsewhere(offset=4), elsewhere("v.bin"))
    assert external_files(content) == {"w.bin": 16, "v.bin": 8}


def test_weights_lie_where_offset_and_length_say():
    content = adding(elsewhere(offset=8, length=8), elsewhere(offset=4), elsewhere())
    [y] = run(inlined(content, {"w.bin": NUMBERS}), x=np.zeros(2, np.float32))
    assert y.tolist() == [3 + 2 + 1, 4 + 3 + 2]


@pytest.mark.parametrize(
    "location", ["w.bin", "some/folder/w.bin", "some\\folder\\w.bin", "/etc/w.bin", "../../w.bin", "C:\\w.bin"]
)
def test_a_file_is_known_by_its_name_without_folders(location):
    content = adding(elsewhere(location))
    assert external_files(content) == {location: 8}
    inside = inlined(content, {"w.bin": NUMBERS, "other.bin": b""})
    assert run(inside, x=np.zeros(2, np.float32))[0].tolist() == [1, 2]
    assert inlined(content, {location: NUMBERS, "w.bin": bytes(16)} if location != "w.bin" else {"w.bin": NUMBERS}) == inside


def test_files_of_the_same_name_are_not_taken_for_each_other():
    content = adding(elsewhere("a/w.bin"), elsewhere("b/w.bin"))
    assert refusal(content, {"w.bin": NUMBERS}).kind == "AmbiguousFiles"
    assert refusal(adding(elsewhere("w.bin"), elsewhere("b/w.bin")), {"w.bin": NUMBERS}).kind == "AmbiguousFiles"
    inside = inlined(content, {"a/w.bin": NUMBERS, "b/w.bin": NUMBERS[8:]})
    assert run(inside, x=np.zeros(2, np.float32))[0].tolist() == [4, 6]
    assert inlined(adding(elsewhere("./w.bin"), elsewhere("w.bin")), {"w.bin": NUMBERS})


def test_every_missing_file_is_named():
    error = refusal(adding(elsewhere("a.bin"), elsewhere("dir/b.bin"), elsewhere("c.bin")), {"c.bin": NUMBERS})
    assert (error.kind, error.remedy) == ("ExternalDataMissing", "Give them together with the model.")
    assert "'a.bin', 'dir/b.bin'" in error.message
    assert "c.bin" not in error.message


@pytest.mark.parametrize(
    ("tensor", "says"),
    [
        (elsewhere(offset=12, length=8), "'w0' are bytes 12 to 20 of 'w.bin', which has 16"),
        (elsewhere(offset=10**17), "bytes 100,000,000,000,000,000 to"),
        (elsewhere(length=12), "'w0' have 12 bytes in 'w.bin', where their shape needs 8"),
        (elsewhere(length=-8), "the length '-8'"),
        (elsewhere(offset="-1"), "the offset '-1'"),
        (elsewhere(offset="1_0"), "'1_0'"),
        (elsewhere(offset="9" * 5_000), "no number of bytes"),
        (elsewhere(offset="٣"), "no number of bytes"),
        (elsewhere(""), "not said in which"),
        (elsewhere("folder/"), "'folder/' names none"),
        (elsewhere(".."), "names none"),
    ],
)
def test_what_contradicts_itself_is_told_with_the_tensor(tensor, says):
    error = refusal(adding(tensor), {"w.bin": NUMBERS})
    assert error.kind == "BrokenModel"
    assert says in error.message
    assert "'w0'" in error.message


def test_a_type_of_no_size_needs_a_length():
    tensor = elsewhere()
    tensor.data_type = TensorProto.STRING
    assert "how long" in refusal(adding(tensor), {"w.bin": NUMBERS}).message


@pytest.mark.parametrize(("kind", "size"), [("INT4", 3), ("BFLOAT16", 10), ("FLOAT8E5M2", 5), ("UINT2", 2), ("FLOAT6E2M3", 4)])
def test_small_types_are_packed(kind, size):
    tensor = elsewhere()
    tensor.data_type = TensorProto.DataType.Value(kind)
    tensor.dims[:] = [5]
    assert external_files(adding(tensor)) == {"w.bin": size}


def test_the_limit_counts_the_weights_of_every_tensor():
    content = adding(*[elsewhere() for _ in range(10)])
    error = refusal(content, {"w.bin": NUMBERS}, limit=len(content) + 79)
    assert (error.kind, f"{len(content) + 80:,} bytes" in error.message) == ("ModelTooLarge", True)
    assert inlined(content, {"w.bin": NUMBERS}, limit=len(content) + 80)
    assert refusal(content, {}, limit=10).kind == "ModelTooLarge"


def test_weights_of_inner_graphs_attributes_sparse_tensors_and_functions_are_found():
    info = helper.make_tensor_value_info

    def constant(location: str) -> TensorProto:
        return elsewhere(location)

    def branch(location: str) -> onnx.GraphProto:
        inner = elsewhere(f"{location}.init")
        inner.name = f"{location}.w"
        made = helper.make_node("Constant", [], [f"{location}.c"], value=constant(f"{location}.value"))
        summed = helper.make_node("Add", [inner.name, f"{location}.c"], [f"{location}.y"])
        return helper.make_graph([made, summed], "b", [], [info(f"{location}.y", TensorProto.FLOAT, [2])], [inner])

    values, indices = elsewhere("values"), elsewhere("indices")
    values.name, indices.data_type = "sparse", TensorProto.INT64
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch("then"), else_branch=branch("else"))
    several = helper.make_node("Own", [], ["z"], domain="own")
    attribute = several.attribute.add(name="several", type=onnx.AttributeProto.TENSORS)
    attribute.tensors.extend([constant("several.0"), constant("several.1")])
    graph = helper.make_graph([node, several], "g", [info("c", TensorProto.BOOL, [])], [info("y", TensorProto.FLOAT, [2])])
    graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [9]))
    body = helper.make_node("Constant", [], ["z"], value=constant("function"))
    opset = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    function = helper.make_function("own", "Own", [], ["z"], [body], opset[:1])
    content = helper.make_model(graph, opset_imports=opset, functions=[function]).SerializeToString()
    inner = {f"{name}.{part}": 8 for name in ("then", "else") for part in ("init", "value")}
    wanted = inner | {"values": 8, "indices": 16, "several.0": 8, "several.1": 8, "function": 8}
    assert external_files(content) == wanted
    assert set(read_model(content).external) == set(wanted)
    inside = onnx.load_from_string(inlined(content, {name: NUMBERS[:size] for name, size in wanted.items()}))
    assert numpy_helper.to_array(inside.graph.node[0].attribute[0].g.initializer[0]).tolist() == [1, 2]
    assert numpy_helper.to_array(inside.functions[0].node[0].attribute[0].t).tolist() == [1, 2]
    assert external_files(inside.SerializeToString()) == {}


def test_onnx_itself_reads_the_same_numbers(tmp_path):
    """Several tensors in one file, as `onnx` lays them out, small types too."""
    rng = np.random.default_rng(2)
    arrays = [rng.integers(0, 99, (3, 5)).astype(dtype) for dtype in ("uint8", "float16", "int64", "bool", "float64")]
    tensors = [numpy_helper.from_array(array, f"t{number}") for number, array in enumerate(arrays)]
    data, places = b"", []
    for tensor in tensors:
        places.append(len(data))
        data += tensor.raw_data
        set_external_data(tensor, "t.bin", places[-1], len(tensor.raw_data))
        tensor.ClearField("raw_data")
    outputs = [helper.make_tensor_value_info(tensor.name, tensor.data_type, [3, 5]) for tensor in tensors]
    path = tmp_path / "m.onnx"
    path.write_bytes(helper.make_model(helper.make_graph([], "g", [], outputs, tensors)).SerializeToString())
    (tmp_path / "t.bin").write_bytes(data)
    inside = onnx.load_from_string(inlined(path.read_bytes(), {"t.bin": data}))
    for ours, theirs, array in zip(inside.graph.initializer, onnx.load(path).graph.initializer, arrays, strict=True):
        assert (numpy_helper.to_array(ours) == array).all()
        assert (numpy_helper.to_array(theirs) == array).all()
