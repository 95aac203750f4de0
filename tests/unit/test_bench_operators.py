"""What `bench/operators.py` makes of results: rows, places, and the doctor's table."""

import importlib
from pathlib import Path
from types import SimpleNamespace

import pytest

BENCH = Path(__file__).parents[2] / "bench"
ENGINES = ("wasm-1", "webgpu-stock")
FACTS = {"onnxruntime_web": "1.30.0", "date": "2026-12-03T00:00:00+00:00"}


@pytest.fixture(scope="module")
def operators():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCH))
        yield importlib.import_module("operators")


def a_test(operators, name="test_conv", operator="Conv", opset=22, *, expanded=False, skip=""):
    return operators.Test(name, operator, opset, expanded, skip, None, None, None)


def ran(status="pass", nodes=None):
    return {"status": status, "open_ms": 1.0, "run_ms": 1.0} | ({} if nodes is None else {"nodes": nodes})


REFUSED = {"status": "unsupported", "why": "opening: no kernel: Conv"}


def test_every_test_of_onnx_has_an_operator_and_most_can_cross(operators):
    tests = operators.collect()
    assert len(tests) > 1800
    assert tests["test_abs"].operator == "Abs"
    assert tests["test_gelu_default_1_expanded"].row == "Gelu (expanded)"
    assert tests["test_ai_onnx_ml_binarizer"].operator == "ai.onnx.ml::Binarizer"
    assert sum(not test.skip for test in tests.values()) > 1600


def test_what_cannot_cross_says_which_type(operators):
    tests = operators.collect()
    assert tests["test_cast_FLOAT_to_BFLOAT16"].skip == "bfloat16"
    assert tests["test_string_concat"].skip == "string"
    assert tests["test_sequence_insert_at_front"].skip == "sequence"


def test_a_model_that_is_too_new_gets_the_newest_opset_where_its_operator_is_there(operators):
    tests = operators.collect()
    assert (tests["test_mod_uint8"].opset, tests["test_mod_uint8"].lowered) == (26, 28)
    assert (tests["test_swiglu"].opset, tests["test_swiglu"].lowered) == (28, None)
    assert (tests["test_abs"].opset, tests["test_abs"].lowered) == (13, None)


@pytest.mark.parametrize(
    ("nodes", "place"),
    [
        (["Conv:gpu", "Transpose:gpu"], "gpu"),
        (["Conv:cpu", "MemcpyToHost:gpu"], "cpu"),
        (["Conv:cpu", "Transpose:gpu"], "cpu"),
        (["Add:cpu", "Mul:gpu"], "mixed"),
        (["Add:gpu", "Mul:gpu"], "gpu"),
        ([], "removed"),
        (None, ""),
    ],
)
def test_place(operators, nodes, place):
    assert operators.place(a_test(operators), ran(nodes=nodes)) == place


def supported(operators, rows, results, version="1.30.0", **test):
    base = {"onnxruntime_web": version, "measured": "2026-01-01", "operators": rows}
    tests = [a_test(operators, name=f"test_{index}", **test) for index in range(len(results))]
    found = {test.name: dict(zip(ENGINES, both, strict=True)) for test, both in zip(tests, results, strict=True)}
    return operators.supported(tests, found, base, FACTS)["operators"]


def test_one_case_that_works_makes_a_yes(operators):
    results = [(REFUSED, REFUSED), (ran(), ran(nodes=["Conv:cpu"])), (ran(), ran(nodes=["Conv:gpu"]))]
    assert supported(operators, {}, results) == {"Conv": {"wasm": "yes", "webgpu": "yes"}}
    assert supported(operators, {}, results[:2]) == {"Conv": {"wasm": "yes", "webgpu": "cpu"}}
    assert supported(operators, {}, results[:1]) == {"Conv": {"wasm": "no", "webgpu": "no"}}


def test_a_row_gets_no_worse_for_the_same_onnxruntime_and_is_new_for_another(operators):
    rows = {"Conv": {"wasm": "yes", "webgpu": "yes"}, "com.microsoft::Gelu": {"wasm": "yes", "webgpu": "yes"}}
    worse = [(ran(), ran(nodes=["Conv:cpu"]))]
    assert supported(operators, rows, worse) == rows
    assert supported(operators, rows, worse, "1.29.0") == rows | {"Conv": {"wasm": "yes", "webgpu": "cpu"}}


def test_a_test_speaks_for_the_row_of_its_opset(operators):
    rows = {"Conv": {"wasm": "no", "webgpu": "no"}, "Conv@22": {"wasm": "no", "webgpu": "no"}}
    better = [(ran(), ran(nodes=["Conv:gpu"]))]
    good = {"wasm": "yes", "webgpu": "yes"}
    assert supported(operators, rows, better, opset=23) == rows | {"Conv@22": good}
    assert supported(operators, rows, better, opset=21) == rows | {"Conv": good}


def test_what_failed_to_open_says_nothing_and_what_is_expanded_neither(operators):
    rows = {"Conv": {"wasm": "no", "webgpu": "no"}}
    broken = {"status": "fail", "failure": "opening: …"}
    assert supported(operators, rows, [(broken, broken)]) == rows
    assert supported(operators, rows, [(ran(), ran(nodes=["Add:gpu"]))], expanded=True) == rows


def test_a_browser_that_ends_costs_only_the_test_that_ended_it(operators, monkeypatch, capsys):
    tests = [operators.collect()[name] for name in ("test_abs", "test_add", "test_relu")]
    asked = []

    def ask(self, engines, batch, fresh):
        asked.append([test.name for test in batch])
        if "test_add" in asked[-1]:
            raise operators.BrowserError("the tab crashed")
        return {test.name: {engine: ran() for engine in engines} for test in batch}

    monkeypatch.setattr(operators.Bench, "_ask", ask)
    with operators.Bench(SimpleNamespace()) as bench:
        found = bench.measure(tests, again=False)
    assert {name: ones["wasm-1"]["status"] for name, ones in found.items()} == {
        "test_abs": "pass",
        "test_add": "error",
        "test_relu": "pass",
    }
    assert "the tab crashed" in found["test_add"]["webgpu-stock"]["why"]
    assert asked == [["test_abs", "test_add", "test_relu"], ["test_abs"], ["test_add"], ["test_relu"]]
    capsys.readouterr()
