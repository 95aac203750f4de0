"""The visitor's model: what each change makes of it."""

from __future__ import annotations

import asyncio
import functools
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from fakes import FakeHost, Recorder
from onnx import TensorProto, helper, numpy_helper

from pyapp.agreement import Tolerance
from pyapp.check import Check, CheckSettings
from pyapp.engine import EngineError, EngineSpec, NodeProfile
from pyapp.errors import AppError
from pyapp.foreign import contradictions
from pyapp.native.engine import NativeEngine, open_engine
from pyapp.onnxfile import ModelError, make_model, make_node, read_model
from pyapp.onnxfile import TensorInfo as T
from pyapp.placement import Placement, PlacementSettings
from pyapp.report import merged, parse_report
from pyapp.subject import (
    GIVEN_REFERENCE,
    NOBODY,
    batchable,
    opened,
    require_same_outputs,
    with_file,
    with_fix,
    with_made,
    with_reference,
)
from pyapp.summary import summarize
from pyapp.sweep import Sweep, SweepSettings
from pyapp.tables import report_markdown
from pyapp.tune import Tune, TuneSettings
from pyapp.verdict import verdict
from tests.unit.test_onnxfile_fuzz import damaged, seeds

WEIGHTS = np.random.default_rng(5).standard_normal((6, 3)).astype(np.float32)
LINEAR = make_model(
    [make_node("MatMul", ["x", "w"], ["y"])], [T("x", "float32", ("N", 6))], [T("y", "float32", ("N", 3))], {"w": WEIGHTS}
)


def ran(test):
    @functools.wraps(test)
    def inner():
        asyncio.run(test())

    return inner


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


async def answered(subject, open_=open_engine):
    engine = await open_(EngineSpec.parse("wasm-1"), subject.model)
    return with_reference(subject, [await engine.run(case) for case in subject.inputs])


def test_a_model_comes_with_cases_made_from_its_signature():
    subject = opened("linear.onnx", LINEAR)
    assert [case["x"].shape for case in subject.inputs] == [(1, 6)] * 8
    assert subject.reference == NOBODY
    assert subject.sizes == {"N": 1}
    with pytest.raises(EngineError, match="have no reference answers"):
        _ = subject.cases().answers
    four = with_made(subject, {"N": 4}, count=2, seed=3)
    assert [case["x"].shape for case in four.inputs] == [(4, 6)] * 2
    assert "seed 3" in four.origin


@pytest.mark.parametrize(
    ("sizes", "count", "fault"),
    [({"M": 1}, 8, "no free dimension 'M'"), ({"N": -1}, 8, "N"), ({"N": 2**40}, 8, "N"), ({}, 0, "0")],
)
def test_what_no_cases_can_be_made_with_is_named(sizes, count, fault):
    with pytest.raises(AppError, match=fault):
        with_made(opened("linear.onnx", LINEAR), sizes, count=count)


def test_a_signature_that_does_not_do_is_told_and_the_model_is_there():
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, None)
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    model = helper.make_model(helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [value], [out]))
    subject = opened("rankless.onnx", model.SerializeToString())
    assert subject.problem
    assert "x" in subject.problem.message
    with pytest.raises(AppError, match="x"):
        subject.cases()
    given = with_file(subject, "cases.npz", npz(x=np.zeros((2, 2), np.float32)))
    assert len(given.cases()) == 1


def test_cases_of_a_file_bring_their_reference():
    x = np.random.default_rng(0).standard_normal((5, 6)).astype(np.float32)
    subject = with_file(opened("linear.onnx", LINEAR), "cases.npz", npz(x=x, y=x @ WEIGHTS))
    assert (len(subject.inputs), subject.reference, subject.origin) == (5, GIVEN_REFERENCE, "cases.npz")
    with pytest.raises(AppError, match="'x'"):
        with_file(subject, "wrong.npz", npz(x=np.zeros((5, 7), np.float32)))
    assert with_file(subject, "inputs.npz", npz(x=x)).reference == NOBODY


def test_weights_in_another_file_come_with_it(tmp_path):
    weights = numpy_helper.from_array(WEIGHTS, "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3])],
        [weights],
    )
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), path,
              save_as_external_data=True, location="weights.bin", size_threshold=0)  # fmt: skip
    with pytest.raises(ModelError, match=r"weights\.bin"):
        opened("model.onnx", path.read_bytes())
    subject = opened("model.onnx", path.read_bytes(), {"weights.bin": (tmp_path / "weights.bin").read_bytes()})
    assert subject.info.parameters == WEIGHTS.size
    assert read_model(subject.model).external == ()


@pytest.mark.parametrize(
    ("dims", "out", "whether"),
    [
        (("N", 6), ("N", 3), True),
        ((None, 6), (None, 3), True),
        ((1, 6), (1, 3), False),
        (("N", 6), ("M", 3), False),
        (("N", 6), (), False),
        (("N", 6), None, False),
    ],
)
def test_cases_are_stacked_where_the_first_dimensions_are_one_and_free(dims, out, whether):
    info = replace(read_model(LINEAR), inputs=(T("x", "float32", dims),), outputs=(T("y", "float32", out),))
    assert batchable(info) == whether


@ran
async def test_every_question_takes_it():
    subject = await answered(opened("linear.onnx", LINEAR))
    host, listener = FakeHost(), Recorder()
    cases = subject.cases()
    report = await Check(CheckSettings(engines=["wasm-1"], runs=20), subject.model, [cases], open_engine, host, listener).run()
    report = replace(report, model=subject.entry())
    assert report.parity[0].passed
    assert (report.agreement[0].output, report.agreement[0].criterion, report.agreement[0].max_abs) == ("y", "argmax", 0)
    assert report.agreement[0].snr_db is None
    swept = await Sweep(
        SweepSettings(engines=["wasm-1"], batches=[1, 4], widths=[1, 2], budget_s=20, precision=False),
        subject.model,
        cases,
        open_engine,
        host,
        listener,
    ).run()
    report = merged(report, swept)
    by_point = {(entry.width, entry.batch): entry for entry in report.sweep}
    assert by_point[1, 4].status == "measured"
    assert by_point[1, 4].passed
    assert "cannot be made wider" in (by_point[2, 1].reason or "")
    tuned = await Tune(
        TuneSettings(engines=["wasm-1"], budget_s=20, batch=4), subject.model, [cases], open_engine, host, listener
    ).run()
    report = merged(report, tuned)
    assert report.tune
    assert {choice.purpose for choice in report.tune.recipe} == {"single", "tail", "batch"}
    placed = await Placement(PlacementSettings(engines=["wasm-1"]), subject.model, cases, open_engine, host, listener).run()
    report = merged(report, placed)
    assert [node.op for node in report.placement[0].nodes] == ["MatMul"]
    assert report.placement[0].nodes[0].shape == "float[1,3]"
    assert contradictions(parse_report(report.to_json())) == []
    assert "the reference's answers" in verdict(report).sentence
    assert "scores" not in {line.criterion for line in verdict(report).lines}
    assert any("the reference's outputs" in sentence.text for sentence in summarize(report))
    text = report_markdown(report)
    for part in ("Model: linear", "Same outputs as the reference", "Where did it run"):
        assert part in text
    assert "Python" not in " ".join(sentence.text for sentence in summarize(report))


@ran
async def test_a_model_of_one_case_at_a_time_is_not_batched():
    fixed = make_model(
        [make_node("MatMul", ["x", "w"], ["y"])], [T("x", "float32", (1, 6))], [T("y", "float32", (1, 3))], {"w": WEIGHTS}
    )
    subject = await answered(opened("fixed.onnx", fixed))
    swept = await Sweep(
        SweepSettings(engines=["wasm-1"], batches=[1, 2], widths=[1], budget_s=20, precision=False),
        fixed,
        subject.cases(),
        open_engine,
        FakeHost(),
        Recorder(),
    ).run()
    assert [(entry.batch, entry.status) for entry in swept.sweep] == [(1, "measured"), (2, "not measured")]
    assert "one case at a time" in (swept.sweep[1].reason or "")
    tuned = await Tune(
        TuneSettings(engines=["wasm-1"], budget_s=20), fixed, [subject.cases()], open_engine, FakeHost(), Recorder()
    ).run()
    assert tuned.tune
    assert {choice.purpose for choice in tuned.tune.recipe} == {"single", "tail"}


class OffEngine(NativeEngine):
    """Adds to every output."""

    async def run(self, inputs, *, limit_s=60.0):
        return {name: array + np.float32(0.01) for name, array in (await super().run(inputs)).items()}


@ran
async def test_an_engine_that_is_off_is_told_output_by_output():
    subject = await answered(opened("linear.onnx", LINEAR))

    async def open_off(spec, model):
        return OffEngine(spec, model)

    async def check(tolerance):
        cases = replace(subject, tolerance=tolerance).cases()
        return await Check(CheckSettings(engines=["wasm-1"], runs=1), LINEAR, [cases], open_off, FakeHost(), Recorder()).run()

    report = await check(Tolerance())
    assert not report.parity[0].passed
    entry = report.agreement[0]
    assert entry.max_abs == pytest.approx(0.01, rel=1e-3)
    assert (entry.agree, entry.close) == (8, 0)  # the largest score is the same
    assert "more than rtol 0.001 and atol 0.0001 allow, in 8 of 8 cases" in entry.warnings[0]
    assert entry.snr_db == pytest.approx(
        20 * np.log10(np.sqrt(np.mean(np.square([c["y"] for c in subject.outputs]))) / 0.01), abs=0.1
    )
    assert (await check(Tolerance(0, 0.02))).parity[0].passed


@ran
async def test_a_fix_keeps_cases_and_answers():
    conv = helper.make_model(
        helper.make_graph(
            [helper.make_node("Conv", ["a b", "w"], ["y"], name="conv")],
            "g",
            [helper.make_tensor_value_info("a b", TensorProto.FLOAT, ["N", 1, 5, 5])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 2, 3, 3])],
            [numpy_helper.from_array(np.ones((2, 1, 3, 3), np.float32), "w")],
        ),
        ir_version=8,
        opset_imports=[helper.make_opsetid("", 17)],
    ).SerializeToString()
    subject = await answered(opened("conv.onnx", conv))
    codes = {finding.code: finding.fix for finding in subject.findings()}
    assert codes["conv-defaults"] == "explicit-attributes"
    assert codes["odd-name"] == "plain-names"
    for name in ("explicit-attributes", "plain-names", "batch-fixed"):
        fixed = await answered(replace(with_fix(subject, name), outputs=None))
        assert require_same_outputs(subject.outputs, fixed.outputs) == 8 * 18
        assert fixed.fixes
        subject = with_fix(subject, name)
    assert subject.info.inputs[0].dims == (1, 1, 5, 5)
    assert not {finding.fix for finding in subject.findings()} - {None}
    with pytest.raises(ModelError, match="nothing"):
        with_fix(subject, "plain-names")


def test_a_fix_that_changes_an_output_is_refused():
    one = [{"y": np.float32([1, 2])}]
    other = [{"y": np.float32([1, 2.0000002])}]
    assert require_same_outputs(one, one) == 2
    with pytest.raises(ModelError, match="'y' in case 0"):
        require_same_outputs(one, other)


@ran
async def test_nodes_on_the_cpu_of_a_gpu_and_copies_are_counted():
    class Gpu(NativeEngine):
        async def profile(self, inputs):
            return [
                NodeProfile("a", "MatMul", "WebGpuExecutionProvider", 5.0, "float[1,3]"),
                NodeProfile("b", "NonZero", "CPUExecutionProvider", 50.0),
                NodeProfile("c", "MemcpyToHost", "WebGpuExecutionProvider", 10.0),
                NodeProfile("d", "MemcpyFromHost", "WebGpuExecutionProvider", 20.0),
            ]

    asked = []

    async def open_(spec, model):
        asked.append(spec)
        if spec.strict and spec.provider == "webgpu":
            raise EngineError("Fallback", "nodes would run on the CPU")
        return Gpu(replace(spec, provider="webgpu"), model)

    subject = opened("linear.onnx", LINEAR)

    async def place(*, strict):
        settings = PlacementSettings(engines=["webgpu-stock"], strict=strict)
        return await Placement(settings, LINEAR, subject.cases(), open_, FakeHost(), Recorder()).run()

    report = await place(strict=False)
    [entry] = report.placement
    assert [node.name for node in entry.nodes] == ["b", "d", "c", "a"]
    assert (entry.copies, entry.valid) == (2, False)
    assert "1 of 4 nodes ran on the CPU although the GPU was asked for: NonZero (1)" in entry.warnings[0]
    [refused] = (await place(strict=True)).placement
    assert refused.reason
    assert "nodes would run on the CPU" in refused.reason
    assert [spec.strict for spec in asked] == [False, True]


def test_the_worked_example_can_be_brought_too():
    fixtures = Path(__file__).parents[2] / "fixtures"
    with np.load(fixtures / "states.npz") as states:
        content = npz(observation=states["observation"], q_values=states["q_values"])
    subject = with_file(opened("dqn.onnx", (fixtures / "breakout_dqn.onnx").read_bytes()), "states.npz", content)
    assert len(subject.cases()) == 60
    assert subject.cases().batchable


def test_damaged_models_are_refused_or_examined():
    """Two thousand of them: whatever can be read can be asked about, too."""
    rng = np.random.default_rng(11)
    sources = seeds()
    ends = {"refused": 0, "read": 0}
    for number in range(2_000):
        content = damaged(sources[number % len(sources)], rng)
        try:
            subject = opened("damaged.onnx", content)
        except AppError as error:
            ends["refused"] += bool(error.message)
        else:
            subject.findings()
            subject.entry()
            assert subject.inputs or subject.problem
            ends["read"] += 1
    assert sum(ends.values()) == 2_000
    assert min(ends.values()) > 50, ends
