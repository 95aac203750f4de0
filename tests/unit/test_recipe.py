import json
from dataclasses import replace

import pytest

from pyapp.recipe import from_engine, module_text, template_path
from pyapp.report import Actual, EngineEntry, Requested

VERSIONS = {"onnxruntime_web": "1.30.0"}
ENTRY = EngineEntry(
    name="webgpu-fast",
    requested=Requested(provider="webgpu", build="auto", runner="fast", threads=1),
    actual=Actual(provider="webgpu", build="jspi", runner="fast: capture + nudge", threads=1, nodes={}, adapter=None),
    create_ms=1.0,
    first_run_ms=1.0,
    error=None,
)


def ran(name="webgpu-fast", **actual):
    return from_engine(replace(ENTRY, name=name, actual=replace(ENTRY.actual, **actual)), VERSIONS)


@pytest.mark.parametrize(
    ("name", "actual", "path", "capture"),
    [
        ("wasm-4", {"provider": "wasm", "build": "wasm", "runner": "stock", "threads": 4}, "recipes/stock.js", False),
        ("webgpu-stock", {"runner": "stock"}, "recipes/stock.js", False),
        ("webgpu-fast", {}, "recipes/gpu-fast.js", True),
        ("webgpu-fast", {"runner": "fast: nudge"}, "recipes/gpu-fast.js", False),
        ("webgpu-fast", {"runner": "fast: stock"}, "recipes/stock.js", False),
    ],
)
def test_what_really_ran_is_what_is_recommended(name, actual, path, capture):
    recipe = ran(name, **actual)
    assert template_path(recipe) == path
    assert recipe.capture is capture
    assert recipe.build == actual.get("build", "jspi")
    assert recipe.onnxruntime_web == "1.30.0"


def test_a_name_says_the_precision():
    assert ran("webgpu-fast-float16").precision == "float16"
    assert ran().precision == "float32"


def test_an_engine_that_did_not_run_has_no_recipe():
    with pytest.raises(ValueError, match=r"webgpu-fast did not run.*choose one that did"):
        from_engine(replace(ENTRY, actual=None), VERSIONS)


def test_a_module_is_the_recipe_and_the_template():
    recipe = ran()
    first, rest = module_text(recipe, "export const recipe = RECIPE;\n").split("\n", 1)
    assert rest == "export const recipe = RECIPE;\n"
    assert json.loads(first.removeprefix("const RECIPE = ").removesuffix(";"))["engine"] == "webgpu-fast"


def test_data_cannot_leave_its_place():
    hostile = "<!--<script></script><script>\u2028alert(1)"
    text = module_text(replace(ran(), onnxruntime_web=hostile), "template")
    assert "<" not in text
    assert "\u2028" not in text
    data = text.splitlines()[0].removeprefix("const RECIPE = ").removesuffix(";")
    assert json.loads(data)["onnxruntime_web"] == hostile
