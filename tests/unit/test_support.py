"""The table of operators: what it says, what it refuses, and that the wheel has it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import onnx
import pytest

from pyapp.errors import AppError
from pyapp.support import MAX_IR_VERSION, MAX_OPSET, MIN_OPSET, PROVIDERS, operators, read_table

ROOT = Path(__file__).parents[2]
ROW = {"wasm": "yes", "webgpu": "cpu"}


def table(rows):
    return read_table(json.dumps({"onnxruntime_web": "1.30.0", "measured": "2026-12-03", "operators": rows}))


def test_the_table_is_of_the_runtime_that_the_site_ships():
    package = json.loads((ROOT / "package.json").read_text())
    versions = {**package.get("dependencies", {}), **package.get("devDependencies", {})}
    assert operators().version == versions["onnxruntime-web"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", operators().measured)


def test_every_operator_of_onnx_is_in_the_table():
    known = [
        schema
        for schema in onnx.defs.get_all_schemas_with_history()
        if schema.domain in ("", "ai.onnx.ml") and MIN_OPSET <= schema.since_version <= MAX_OPSET and not schema.deprecated
    ]
    assert len(known) > 400
    unknown = {
        f"{schema.domain}::{schema.name}"
        for schema in known
        if None in [operators().support(schema.name, schema.domain, schema.since_version, one) for one in PROVIDERS]
    }
    assert unknown == set()


def test_what_is_known_of_some_operators():
    support = operators().support
    assert support("Conv", "", 17, "webgpu") == support("Conv", "ai.onnx", 17, "wasm") == "yes"
    assert support("NonZero", "", 17, "webgpu") == "cpu"
    assert support("Scaler", "ai.onnx.ml", 1, "webgpu") == "no"
    assert support("Gelu", "com.microsoft", 1, "webgpu") == "yes"
    assert support("Nothing", "", 17, "wasm") is None
    assert support("Conv", "elsewhere", 17, "wasm") is None


def test_kernels_that_end_at_a_version_are_told_apart():
    support = operators().support
    assert [support("MaxPool", "", opset, "webgpu") for opset in (12, 21, 22, 26)] == ["yes", "yes", "cpu", "cpu"]
    assert [support("RoiAlign", "", opset, "wasm") for opset in (16, 21, 22)] == ["yes", "yes", "no"]


def test_the_newest_row_that_is_not_too_new_holds():
    rows = {"A@10": ROW, "A@20": {"wasm": "no", "webgpu": "no"}, "B": ROW}
    assert [table(rows).support("A", "", opset, "wasm") for opset in (9, 10, 19, 20, 30)] == [None, "yes", "yes", "no", "no"]
    assert table(rows).support("B", "", 0, "webgpu") == "cpu"


BAD_ROWS = [{"A": {}}, {"A": 3}, {"A": {**ROW, "webgpu": "maybe"}}, {"A": {**ROW, "wasm": "cpu"}}, {"A@x": ROW}, {"": ROW}, 3]
BAD_TABLES = [json.dumps({"onnxruntime_web": "1", "measured": "", "operators": rows}) for rows in BAD_ROWS]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"operators": 3}', '{"operators": {}}', *BAD_TABLES])
def test_what_is_no_table_is_refused(text):
    with pytest.raises(AppError, match="no table of operators") as caught:
        read_table(text)
    assert caught.value.kind == "BadOperatorTable"


def test_the_limits_are_those_of_the_measured_runtime():
    assert (MIN_OPSET, MAX_OPSET, MAX_IR_VERSION) == (7, 26, 13)
