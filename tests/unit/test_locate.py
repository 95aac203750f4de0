"""Where it goes wrong, with onnxruntime as the reference and, edited on its way, as the engine that errs."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

import numpy as np
import onnx
import pytest
from fakes import FakeHost, Recorder
from onnx import TensorProto, helper, numpy_helper

from pyapp import sidebyside
from pyapp.agreement import Tolerance
from pyapp.cases import CaseSet, load_suite
from pyapp.engine import EngineError, EngineSpec
from pyapp.graphedit import values_of
from pyapp.locate import Locate, LocateSettings, heat_map
from pyapp.native.engine import open_engine
from pyapp.onnxfile import ModelError
from pyapp.report import merged, parse_report
from pyapp.sidebyside import groups

FIXTURES = Path(__file__).parents[2] / "fixtures"
MODEL = (FIXTURES / "breakout_dqn.onnx").read_bytes()
STATES = load_suite("states", (FIXTURES / "states.npz").read_bytes())
SEQUENCES = (Path(onnx.__file__).parent / "backend/test/data/simple/test_sequence_model3/model.onnx").read_bytes()
FLOAT = TensorProto.FLOAT


class Engines:
    """Opens onnxruntime; what it gives the engine to look into is changed by `edit`. It knows which engines are open."""

    def __init__(self, edit=lambda model: None, *, refuse=lambda spec, model: False, answer=lambda outputs, inputs: outputs):
        self.edit, self.refuse, self.answer = edit, refuse, answer
        self.opened, self.names = [], []

    async def __call__(self, spec, content):
        model = onnx.load_from_string(content)
        if self.refuse(spec, model):
            raise EngineError("InvalidModel", f"{spec.name} does not take it", "Use another.")
        if spec.name == "webgpu-stock":
            self.edit(model)
        engine = await open_engine(spec, model.SerializeToString())
        self.opened.append(engine)
        self.names.append(spec.name)
        if spec.name == "webgpu-stock":
            run = engine.run

            async def changed(inputs, *, limit_s=60.0):
                return self.answer(await run(inputs), inputs)

            engine.run = changed
        return engine


def nudged(*weights, by=1e-2):
    """Add to a weight wherever it is."""

    def edit(model):
        for entry in model.graph.initializer:
            if entry.name in weights:
                entry.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(entry) + np.float32(by), entry.name))

    return edit


def shaken(name):
    """Change an input of a whole model; a node alone is spared."""

    def edit(model):
        if len(model.graph.node) > 1:
            for node in model.graph.node:
                node.input[:] = [f"{name}.shaken" if read == name else read for read in node.input]
            model.graph.initializer.append(numpy_helper.from_array(np.float32(1.05), "shake"))
            model.graph.node.insert(0, helper.make_node("Mul", [name, "shake"], [f"{name}.shaken"]))

    return edit


def outputs_of(model):
    return [output.name for output in model.graph.output]


def locate(engines, *, model=MODEL, cases=STATES, tolerance=None, **settings):
    recorder = Recorder()
    wanted = LocateSettings(**settings)
    question = Locate(wanted, model, cases, tolerance or Tolerance(), engines, FakeHost(), recorder)
    report = asyncio.run(question.run())
    assert all(engine._session is None for engine in engines.opened), "engines are closed"
    assert recorder.heard[-1] == ("located", 1, 1)
    assert all(0 <= done <= total for _, done, total in recorder.heard)
    assert parse_report(report.to_json()) == report
    assert [section for name, section in recorder.sections if name == "faults"] == report.faults
    return report, question


def made(nodes, inputs, outputs, constants):
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "made",
        [value(name, FLOAT, shape) for name, shape in inputs.items()],
        [value(name, FLOAT, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def case(**arrays):
    return CaseSet("made", [{name: np.float32(array) for name, array in arrays.items()}], None, "a test")


# --- kinds ---


@pytest.mark.parametrize(
    ("weight", "node", "op"),
    [("c1.weight", "c1", "Conv"), ("c2.bias", "c2", "Conv"), ("f1.weight", "f1", "Gemm"), ("f2.bias", "f2", "Gemm")],
)
def test_the_node_with_a_wrong_weight_is_the_source(weight, node, op):
    report, question = locate(Engines(nudged(weight)))
    [entry] = report.faults
    assert (entry.kind, entry.node, entry.op, entry.valid) == ("source", node, op, True)
    assert entry.warnings[0].startswith(f"{op} '{node}' errs on the reference's own inputs: it differs by up to ")
    assert "(rtol 0.001, atol 0.0001)" in entry.warnings[0]
    assert (entry.engine, entry.reference, entry.suite, entry.case) == ("webgpu-stock", "wasm-1", "states", 0)
    assert entry.compared == 10
    assert entry.alone.node == node
    assert not entry.alone.close
    far = [step.node for step in entry.steps if not step.close]
    assert far[0] == node
    before = [step.output for step in entry.steps][: -len(far)]
    assert before == [value.name for value in values_of(MODEL)][: len(before)], "the error goes on to the end"
    assert [engine.name for engine in report.engines] == ["wasm-1", "webgpu-stock"]
    assert question.reproducer.name == f"{op}-{node}"


def test_the_reproducer_shows_the_error_to_anybody():
    edit = nudged("c2.weight")
    _, question = locate(Engines(edit))
    arrays = dict(np.load(io.BytesIO(question.reproducer.npz)))
    assert sorted(arrays) == ["inputs.c1.relu", "outputs.c2.out"]
    model = onnx.load_from_string(question.reproducer.model)
    onnx.checker.check_model(model)

    async def answer(content):
        engine = await open_engine(EngineSpec("cpu-1", "cpu"), content)
        return (await engine.run({"c1.relu": arrays["inputs.c1.relu"]}))["c2.out"]

    np.testing.assert_allclose(asyncio.run(answer(question.reproducer.model)), arrays["outputs.c2.out"], rtol=1e-5, atol=1e-6)
    edit(model)
    assert np.abs(asyncio.run(answer(model.SerializeToString())) - arrays["outputs.c2.out"]).max() > 1e-2


def test_an_engine_that_is_right_has_no_fault():
    report, question = locate(Engines())
    [entry] = report.faults
    assert (entry.kind, entry.node, entry.alone, entry.map, entry.compared) == ("none", "", None, None, 10)
    assert all(step.close for step in entry.steps)
    assert len(entry.steps) == 10
    assert entry.warnings == ["nothing differs: neither the outputs in 8 cases nor a value within the model in case 0"]
    assert question.reproducer is None


def test_an_engine_that_takes_the_input_wrong_has_no_node_that_errs():
    report, question = locate(Engines(shaken("observation")))
    [entry] = report.faults
    assert (entry.kind, entry.node, entry.op, entry.valid) == ("inherited", "c1", "Conv", True)
    assert entry.alone.close
    assert not entry.steps[0].close
    assert "Alone, on the reference's inputs, it does not err, nor does any of the next 9 that are" in entry.warnings[0]
    assert question.reproducer.name == "Conv-c1"


def test_a_source_behind_an_inherited_error_is_found():
    def edit(model):
        nudged("c3.weight")(model)
        shaken("observation")(model)

    report, _ = locate(Engines(edit))
    [entry] = report.faults
    assert (entry.kind, entry.node) == ("source", "c3")
    assert next(step.node for step in entry.steps if not step.close) == "c1"


def test_a_small_error_that_a_node_enlarges_is_inherited():
    model = made(
        [helper.make_node("Mul", ["x", "w"], ["y"], name="small"), helper.make_node("Sub", ["y", "c"], ["z"], name="cancels")],
        {"x": [2]},
        ["z"],
        {"w": np.float32([3, 3]), "c": np.float32([2.9, 2.9])},
    )
    report, question = locate(Engines(nudged("w", by=1.5e-3)), model=model, cases=case(x=[1, 1]))
    [entry] = report.faults
    assert (entry.kind, entry.node, entry.alone.close) == ("inherited", "cancels", True)
    assert [step.close for step in entry.steps] == [True, False]
    assert sorted(np.load(io.BytesIO(question.reproducer.npz))) == ["inputs.y", "outputs.z"]


def test_an_error_that_goes_as_soon_as_values_are_asked_for_is_a_fused_one():
    def edit(model):
        if outputs_of(model) == ["q_values"]:
            nudged("c2.weight")(model)

    report, question = locate(Engines(edit))
    [entry] = report.faults
    assert (entry.kind, entry.node, entry.alone, entry.compared) == ("fused", "", None, 10)
    assert [(step.output, step.node, step.close) for step in entry.steps] == [("q_values", "f2", False)]
    assert entry.map is not None
    assert "what onnxruntime makes of several nodes errs" in entry.warnings[0]
    assert question.reproducer is None


def test_a_fused_error_is_one_in_the_run_of_a_later_group_too(monkeypatch):
    monkeypatch.setattr(sidebyside, "MOST_VALUES", 3)

    def edit(model):
        if "c1.out" not in outputs_of(model) and len(model.graph.node) > 1:
            nudged("c1.weight")(model)

    report, _ = locate(Engines(edit))
    [entry] = report.faults
    assert entry.kind == "fused"
    assert "'c2.out'" in entry.warnings[0]
    assert [step.close for step in entry.steps][:4] == [True, True, True, False]


def test_values_within_are_looked_into_where_the_outputs_agree():
    model = made(
        [
            helper.make_node("Add", ["x", "w"], ["y"], name="off"),
            helper.make_node("Clip", ["y", "", "top"], ["z"], name="clip"),
        ],
        {"x": [2]},
        ["z"],
        {"w": np.float32([3, 3]), "top": np.float32(1)},
    )
    report, _ = locate(Engines(nudged("w")), model=model, cases=case(x=[1, 1]))
    [entry] = report.faults
    assert (entry.kind, entry.node) == ("source", "off")
    assert "the model's outputs are within the tolerance all the same" in entry.warnings


def test_a_number_that_is_none_is_a_fault_where_the_reference_has_one():
    model = made(
        [helper.make_node("Log", ["x"], ["y"], name="log"), helper.make_node("Add", ["y", "w"], ["z"], name="add")],
        {"x": [3]},
        ["z"],
        {"w": np.float32([1, 1, 1])},
    )
    cases = case(x=[0, 1, -1])  # -inf and NaN on both

    def spoilt(model):
        for entry in model.graph.initializer:
            entry.CopyFrom(numpy_helper.from_array(np.float32([1, np.inf, 1]), entry.name))

    assert locate(Engines(), model=model, cases=cases)[0].faults[0].kind == "none"
    report, _ = locate(Engines(spoilt), model=model, cases=cases)
    [entry] = report.faults
    assert (entry.kind, entry.node) == ("source", "add")
    assert (entry.alone.failure, entry.alone.max_abs) == ("non-finite", None)
    assert entry.warnings[0].endswith("its answer is non-finite")
    assert entry.map.values == [[0, None], [0, None]]


# --- what is run ---


def test_the_first_case_that_differs_is_looked_into():
    sums = [float(STATES.inputs(index)["observation"].sum()) for index in range(8)]
    first = next(index for index, total in enumerate(sums) if total != sums[0])

    def right(inputs):
        return "observation" in inputs and float(inputs["observation"].sum()) == sums[0]

    def answer(outputs, inputs):
        # Of whole models, all but the first case.
        off = np.float32("observation" in inputs and not right(inputs))
        return {name: array + off for name, array in outputs.items()}

    assert locate(Engines(answer=answer))[0].faults[0].case == first
    assert locate(Engines(answer=answer), case=0)[0].faults[0].kind == "none"
    report, _ = locate(Engines(answer=answer), case=first)
    assert (report.faults[0].kind, report.faults[0].node) == ("source", "c1")


def test_a_tolerance_of_the_settings_goes_before_the_cases_own():
    engines = Engines(nudged("f2.bias"))
    assert locate(engines, atol=0.1)[0].faults[0].kind == "none"
    report, _ = locate(engines, tolerance=Tolerance(atol=0.1, rtol=0.0), rtol=1e-3)
    assert (report.faults[0].kind, report.faults[0].rtol, report.faults[0].atol) == ("none", 1e-3, 0.1)


def test_values_come_in_groups_of_which_each_has_a_session_of_its_own(monkeypatch):
    monkeypatch.setattr(sidebyside, "MOST_VALUES", 4)
    engines = Engines(nudged("f1.weight"))
    report, _ = locate(engines)
    assert (report.faults[0].kind, report.faults[0].node, report.faults[0].compared) == ("source", "f1", 10)
    # Outputs, shapes, three groups, and one node: its inputs on the reference, and itself on the engine.
    assert engines.names.count("webgpu-stock") == 1 + 3 + 1
    assert engines.names.count("wasm-1") == 1 + 1 + 3 + 1


def test_groups_hold_what_memory_can():
    names = list("abcdefg")
    assert list(groups(names, dict.fromkeys(names, 1), 3, 100)) == [["a", "b", "c"], ["d", "e", "f"], ["g"]]
    assert list(groups(names[:4], {"a": 60, "b": 50, "c": 200, "d": 1}, 9, 100)) == [["a"], ["b"], ["c"], ["d"]]
    assert list(groups(names[:3], {"a": 1, "c": 1}, 9, 100)) == [["a"], ["b"], ["c"]], "b may be anything"
    assert list(groups(names, {}, 64, 100)) == [names]
    assert list(groups([], {}, 64, 100)) == []


@pytest.mark.parametrize("name", ["wasm-1", "webgpu-stock"])
def test_a_value_that_an_engine_does_not_give_is_left_out_with_a_warning(name):
    engines = Engines(nudged("f1.weight"), refuse=lambda spec, model: spec.name == name and "c2.relu" in outputs_of(model))
    report, _ = locate(engines)
    [entry] = report.faults
    assert (entry.kind, entry.node, entry.compared) == ("source", "f1", 9)
    assert f"the value 'c2.relu' was not compared: {name} does not take it" in entry.warnings


def test_a_node_that_cannot_be_run_alone_is_said_and_leaves_the_answer_open():
    engines = Engines(
        nudged("f2.weight"), refuse=lambda spec, model: spec.name == "webgpu-stock" and len(model.graph.node) == 1
    )
    report, question = locate(engines)
    [entry] = report.faults
    assert (entry.kind, entry.node, entry.valid, entry.alone) == ("inherited", "f2", False, None)
    assert "Gemm 'f2' could not be run alone: webgpu-stock does not take it" in entry.warnings
    assert question.reproducer is None


def test_values_that_are_no_tensors_are_left_out():
    rng = np.random.default_rng(0)
    cases = case(**{name: rng.random((2, 3, 4)) for name in "XYZ"})
    report, _ = locate(Engines(), model=SEQUENCES, cases=cases)
    [entry] = report.faults
    assert (entry.kind, entry.compared) == ("none", 1)
    assert sum("it is no tensor" in warning for warning in entry.warnings) == len(values_of(SEQUENCES)) - 1


def test_what_hangs_on_constants_alone_is_not_compared_but_read_by_a_node_that_is_run_alone():
    model = made(
        [
            helper.make_node("Constant", [], ["k"], value=numpy_helper.from_array(np.float32([1, 2]))),
            helper.make_node("Neg", ["w"], ["v"]),
            helper.make_node("Mul", ["k", "v"], ["kv"]),
            helper.make_node("Add", ["x", "kv"], ["y"]),
        ],
        {"x": [2]},
        ["y"],
        {"w": np.float32([3, 4])},
    )

    def edit(model):
        for node in model.graph.node:
            node.op_type = "Sub" if node.op_type == "Add" else node.op_type

    report, question = locate(Engines(edit), model=model, cases=case(x=[1, 1]))
    assert [step.output for step in report.faults[0].steps] == ["y"]
    assert (report.faults[0].kind, report.faults[0].node) == ("source", "y")
    arrays = np.load(io.BytesIO(question.reproducer.npz))
    assert arrays["inputs.kv"].tolist() == [-3, -8]
    assert arrays["outputs.y"].tolist() == [-2, -7]


def test_random_numbers_are_said_to_be_no_engines_fault():
    model = made([helper.make_node("RandomNormalLike", ["x"], ["y"])], {"x": [4]}, ["y"], {})

    def reseeded(model):
        model.graph.node[-1].attribute.append(helper.make_attribute("seed", 7.0))

    report, _ = locate(Engines(reseeded), model=model, cases=case(x=[1, 1, 1, 1]))
    assert report.faults[0].kind == "source"
    assert any("random numbers" in warning for warning in report.faults[0].warnings)


# --- what fails ---


@pytest.mark.parametrize("name", ["wasm-1", "webgpu-stock"])
def test_an_engine_that_does_not_open_is_a_result(name):
    report, question = locate(Engines(refuse=lambda spec, model: spec.name == name))
    assert report.faults == []
    assert {entry.name: entry.error.name for entry in report.engines if entry.error} == {name: "InvalidModel"}
    assert question.reproducer is None


def test_an_engine_that_takes_no_more_models_is_told_of_as_failed(monkeypatch):
    monkeypatch.setattr(sidebyside, "MOST_REFUSED", 3)
    engines = Engines(refuse=lambda spec, model: spec.name == "webgpu-stock" and len(outputs_of(model)) > 1)
    report, _ = locate(engines)
    assert report.faults == []
    assert [entry.name for entry in report.engines if entry.error] == ["webgpu-stock"]


def test_an_engine_that_hangs_is_not_asked_again_and_again():
    class Hangs(Engines):
        async def __call__(self, spec, content):
            if spec.name == "webgpu-stock" and len(outputs_of(onnx.load_from_string(content))) > 1:
                self.names.append("hung")
                raise EngineError("EngineTimeout", "no answer", "Leave it out.")
            return await super().__call__(spec, content)

    engines = Hangs()
    report, _ = locate(engines)
    assert [entry.error.name for entry in report.engines if entry.error] == ["EngineTimeout"]
    assert engines.names.count("hung") == 1


def test_no_model_is_told():
    with pytest.raises(ModelError, match="no ONNX file"):
        locate(Engines(), model=b"no model")


def test_a_run_that_is_cancelled_closes_its_engines():
    engines = Engines()

    async def cancelled():
        waiting = asyncio.Event()

        async def opener(spec, content):
            engine = await engines(spec, content)

            async def forever(inputs, *, limit_s=60.0):
                waiting.set()
                await asyncio.Event().wait()

            engine.run = forever
            return engine

        question = Locate(LocateSettings(), MODEL, STATES, Tolerance(), opener, FakeHost(), Recorder())
        task = asyncio.ensure_future(question.run())
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert len(engines.opened) == 2
    assert all(engine._session is None for engine in engines.opened)


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ({"engine": "cuda"}, "unknown engine 'cuda'"),
        ({"reference": "webgpu"}, "unknown engine 'webgpu'"),
        ({"engine": "wasm-1"}, "named twice"),
        ({"engine": "webgpu-stock-float16"}, "webgpu-stock-float16 runs another model"),
        ({"case": -1}, "case is -1"),
        ({"case": "first"}, "first"),
        ({"rtol": 2}, "rtol is 2"),
        ({"atol": -1.0}, "atol is -1"),
        ({"speed": 1}, "speed"),
    ],
)
def test_bad_settings_are_named(data, fault):
    with pytest.raises(ValueError, match=fault):
        LocateSettings.from_data(data)


def test_settings_are_read_from_data():
    assert LocateSettings.from_data({}) == LocateSettings()
    assert LocateSettings.from_data({"engine": "wasm-2", "case": 3, "rtol": 0}).case == 3


def test_a_case_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(ValueError, match=r"case is 60; 'states' has the cases 0 to 59"):
        locate(Engines(), case=60)
    with pytest.raises(ValueError, match="no cases"):
        locate(Engines(), cases=CaseSet("empty", [], None, "a test"))


def test_faults_are_added_to_a_report_of_a_check():
    report, _ = locate(Engines())
    other, _ = locate(Engines(nudged("c1.weight")))
    assert merged(report, other).faults == other.faults


# --- pictures ---


def test_a_large_tensor_is_compared_bit_by_bit(monkeypatch):
    rng = np.random.default_rng(0)
    expected = rng.random((70, 90)).astype(np.float32)
    found = expected + np.float32(1e-3) * rng.random((70, 90)).astype(np.float32)
    expected[3, 3] = found[3, 3] = np.nan
    tolerance = Tolerance()

    def judged():
        off = sidebyside._difference(found, expected, tolerance)
        return (off.failure, off.close, off.max_abs, off.max_rel, off.max_ulp), heat_map(found, expected)

    whole, whole_map = judged()
    monkeypatch.setattr(sidebyside, "CHUNK", 64)
    assert judged() == (whole, whole_map)
    assert whole[:2] == (None, False)
    found[60, 0] = np.inf
    assert judged()[0][0] == "non-finite"
    assert sidebyside._difference(found[:1], expected, tolerance).failure == "wrong-shape"


@pytest.mark.parametrize(
    ("shape", "height", "width"),
    [((), 1, 1), ((1,), 1, 1), ((10,), 3, 4), ((1, 9), 3, 3), ((2, 3, 4), 6, 4), ((5, 1), 5, 1), ((64, 100), 64, 100)],
)
def test_a_tensor_is_laid_out_as_a_matrix(shape, height, width):
    picture = heat_map(np.ones(shape, np.float32), np.zeros(shape, np.float32))
    assert (picture.height, picture.width) == (height, width)
    assert len(picture.values) == min(height, 48)
    assert {len(row) for row in picture.values} == {min(width, 48)}
    assert {cell for row in picture.values for cell in row} <= {1.0, None}


def test_the_largest_difference_of_each_part_is_shown():
    expected = np.zeros((100, 130), np.float32)
    found = expected.copy()
    found[99, 129], found[0, 0], found[50, 66] = -3, 2, 0.12345678
    values = heat_map(found, expected, most=2).values
    assert values == [[2, 0], [0, 3]]
    assert max(cell for row in heat_map(found, expected).values for cell in row) == 3


def test_a_number_that_is_none_shows_as_none_and_the_end_of_a_vector_hides_nothing():
    found, expected = np.float32([1, np.nan, np.inf, 5, np.nan]), np.float32([0, np.nan, np.inf, 5, 1])
    assert heat_map(found, expected).values == [[1, 0, 0], [0, None, None]]
    assert heat_map(found, expected, most=1).values == [[None]]
    assert heat_map(found[:3], expected[:3], most=1).values == [[1]]


def test_whole_numbers_and_truth_have_pictures():
    assert heat_map(np.array([[1, 5]], np.uint8), np.array([[3, 5]], np.uint8)).values == [[2, 0]]
    assert heat_map(np.array([True]), np.array([False])).values == [[1]]
