"""What is asked after a check: why, from which batch on, and what is the fastest right way."""

import asyncio
import json

import numpy as np

from pyapp.engine import EngineError
from pyapp.foreign import read_foreign
from pyapp.report import Report

COPIES = ["upload", "compute", "readback"]
ON_GPU = ["upload", "dispatch", "compute", "wait", "readback"]


async def ask(page, question, **settings):
    answer = json.loads(await page.ask(question, json.dumps(settings)))
    return answer.get("error") or read_foreign(json.dumps(answer["report"]))


async def test_every_kind_of_engine_tells_its_stages(opened, states):
    for name, expected in {"wasm-1": COPIES, "wasm-2": COPIES, "webgpu-stock": ON_GPU, "webgpu-fast": ON_GPU}.items():
        async with opened(name) as engine:
            found = await engine.stages(states.inputs(0), 4)
            again = (await engine.run(states.inputs(0)))["q_values"]
        assert list(found.stages_ms) == expected, name
        for stage, ms in found.stages_ms.items():
            assert ms.shape == (4,), (name, stage)
            assert np.isfinite(ms).all(), (name, stage, ms)
            assert (ms >= 0).all(), (name, stage, ms)
        assert found.stages_ms["compute"].min() > 0, name
        assert (found.floor_ms is None) == name.startswith("wasm"), name
        assert again.shape == (1, 4), "the engine itself is as it was"


async def test_stages_of_an_input_that_does_not_fit_are_an_error(opened, states):
    async with opened("wasm-1") as engine:
        bad = {"observation": states.inputs(0)["observation"][:, :, :80]}
        try:
            await engine.stages(bad, 2)
        except EngineError:
            return
    raise AssertionError("a shape that the model does not take was explained")


async def test_further_questions_add_to_the_report_of_a_check(page):
    checked = await ask(page, "check", engines=["wasm-1"], runs=3, warmup=1)
    explained = await ask(page, "explain", engines=["wasm-1", "wasm-2"], runs=4)
    assert isinstance(explained, Report), explained
    assert explained.race == checked.race, "what was known stays"
    assert [entry.name for entry in explained.engines] == ["wasm-1", "wasm-2"]
    assert [entry.engine for entry in explained.stages] == ["wasm-1", "wasm-2"]
    swept = await ask(page, "sweep", engines=["wasm-1"], batches=[1, 2], widths=[1, 2], budget_s=60, precision=False)
    assert {(entry.width, entry.batch, entry.status, entry.passed) for entry in swept.sweep} == {
        (width, batch, "measured", True) for width in (1, 2) for batch in (1, 2)
    }
    assert swept.stages == explained.stages
    anew = await ask(page, "check", engines=["wasm-1"], runs=3, warmup=1)
    assert not anew.stages, "a check begins a report anew"


async def test_variants_in_fewer_bits_are_compared(page):
    swept = await ask(page, "sweep", engines=["wasm-1", "webgpu-fast"], batches=[1], widths=[1], budget_s=120)
    found = {entry.engine: entry for entry in swept.precision}
    assert set(found) == {"wasm-1-int8", "webgpu-fast-float16"}
    int8 = found["wasm-1-int8"]
    assert int8.cases == 60
    assert int8.agree >= 50, int8
    assert int8.ratio > 0, int8
    halves = found["webgpu-fast-float16"]
    assert halves.reason, "a software adapter's time is never compared, and some have no 16-bit floats"
    assert halves.agree == halves.cases, halves


async def test_a_recipe_is_found_and_written(page):
    tuned = await ask(page, "tune", engines=["wasm-1", "wasm-2", "webgpu-fast"], batch=4, budget_s=90)
    assert {choice.purpose for choice in tuned.tune.recipe} == {"single", "tail", "batch"}, tuned.tune
    judged = {candidate.engine: candidate for candidate in tuned.tune.candidates}
    assert judged["wasm-1"].agree == judged["wasm-1"].cases == 660
    assert judged["webgpu-fast"].status == "dropped"
    assert "software" in judged["webgpu-fast"].reason
    best = tuned.tune.recipe[0].engine
    written = json.loads(await page.recipe(tuned.to_json(), best))
    assert json.loads(written["json"])["engine"] == best
    assert "openModel" in written["module"]
    unknown = json.loads(await page.recipe(tuned.to_json(), "wasm-64"))
    assert "wasm-64" in unknown["error"]["message"]


async def test_a_search_that_was_cancelled_is_gone_on_with(page):
    settings = {"engines": ["wasm-1", "wasm-2"], "batch": 4, "budget_s": 90}
    asked = page.ask("tune", json.dumps(settings))
    while not (page._search and page._search._candidates and page._search._candidates[0].judged):
        await asyncio.sleep(0.05)
    page.cancel()
    assert json.loads(await asked)["error"]["name"] == "Cancelled"
    first = page._search
    assert first is not None
    tuned = await ask(page, "tune", **settings)
    assert tuned.tune.recipe
    assert page._search is None, "it is over"
    assert first._candidates[0].status == "raced", "the same search went on"


async def test_one_question_at_a_time(page):
    running = page.ask("explain", json.dumps({"engines": ["wasm-1"], "runs": 1_000}))
    refused = await ask(page, "tune")
    assert refused["name"] == "Busy"
    page.cancel()
    assert json.loads(await running)["error"]["name"] == "Cancelled"


async def test_settings_that_make_no_sense_are_named(page):
    for question, settings, fault in (
        ("explain", {"runs": 1}, "runs is 1"),
        ("sweep", {"batches": [4, 2]}, "batches are [4, 2]"),
        ("sweep", {"budget_s": "long"}, "'long'"),
        ("tune", {"engines": ["cuda"]}, "unknown engine 'cuda'"),
    ):
        refused = await ask(page, question, **settings)
        assert refused["name"] == "BadSettings", refused
        assert fault in refused["message"], refused
