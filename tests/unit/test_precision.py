import asyncio
from dataclasses import replace

import pytest
from fakes import FakeEngine, FakeHost, linear_scores, make_suite

from pyapp.engine import AdapterFacts, EngineError, EngineFacts, EngineSpec
from pyapp.precision import compare_variant, variant_of
from pyapp.summary import summarize
from pyapp.variants import VariantEngines
from tests.unit.test_report_csv import REPORT

SUITE = make_suite()


def compare(name, **engines):
    opened = []

    async def open_engine(spec, model):
        options = engines[spec.name.replace("-", "_")]
        if isinstance(options, EngineError):
            raise options
        opened.append(FakeEngine(spec, **options))
        return opened[-1]

    entry = asyncio.run(compare_variant(name, b"model", SUITE, open_engine, FakeHost(), seed=0))
    assert all(engine.closed for engine in opened)
    return entry


def told(entry):
    report = replace(REPORT, precision=[entry])
    [sentence] = [sentence for sentence in summarize(report) if sentence.topic == "precision"]
    return sentence


def test_a_faster_variant_with_the_same_actions_is_good():
    entry = compare(
        "wasm-1", wasm_1={"ms": lambda run: 2.0 + run % 3 / 100}, wasm_1_int8={"ms": lambda run: 1.0 + run % 3 / 100}
    )
    assert entry.valid
    assert (entry.agree, entry.cases, entry.changes_action) == (6, 6, False)
    assert entry.low <= entry.ratio <= entry.high < 1
    assert entry.ratio == pytest.approx(0.5, abs=0.01)
    assert told(entry).tone == "good"


def test_a_faster_variant_that_changes_an_action_is_marked_so():
    def turned(observation):
        scores = linear_scores(observation)
        return scores[:, ::-1] if observation[0, 0, 0, 0] == SUITE.observation[2, 0, 0, 0] else scores

    entry = compare("wasm-1", wasm_1={"ms": lambda run: 2.0}, wasm_1_int8={"ms": lambda run: 1.0, "scores": turned})
    assert entry.changes_action
    assert not entry.valid
    assert entry.agree < entry.cases
    assert told(entry).tone == "bad"
    assert "changes an action" in told(entry).text


def test_a_software_adapter_is_asked_and_not_timed():
    facts = EngineFacts("webgpu", "fake", "fast: nudge", 1, adapter=AdapterFacts("", "swiftshader", "", "", software=True))
    entry = compare("webgpu-fast", webgpu_fast={"facts": facts}, webgpu_fast_float16={"facts": facts})
    assert (entry.agree, entry.cases) == (6, 6)
    assert entry.ratio is None
    assert "software adapter" in entry.reason


def test_a_variant_that_cannot_run_has_a_reason_with_a_remedy():
    missing = EngineError("NoFloat16", "no shader-f16", "Use float32.")
    entry = compare("webgpu-stock", webgpu_stock={}, webgpu_stock_float16=missing)
    assert entry.reason == "no shader-f16. Use float32."
    assert told(entry).tone == "none"


def test_each_provider_has_its_variant():
    assert variant_of("wasm-4") == "wasm-4-int8"
    assert variant_of("webgpu-fast") == "webgpu-fast-float16"
    for name in ("wasm-4-int8", "webgpu-fast-float16", "webgpu-stock-asyncify-float16"):
        assert EngineSpec.parse(name).precision == name.rsplit("-", 1)[1]
    for name in ("wasm-1-float16", "webgpu-fast-int8", "wasm-N-int8"):
        with pytest.raises(ValueError, match="unknown engine"):
            EngineSpec.parse(name)


def test_a_variant_is_fetched_once_and_only_for_its_own_model():
    opened, fetched = [], []

    async def open_engine(spec, model):
        opened.append((spec.name, model))
        return FakeEngine(spec)

    async def fetch(path):
        fetched.append(path)
        return b"eight bits"

    async def use():
        engines = VariantEngines(open_engine, fetch)
        engines.model = b"model"
        for name in ("wasm-1", "wasm-1-int8", "wasm-2-int8"):
            await engines(EngineSpec.parse(name), b"model")
        with pytest.raises(EngineError, match="no int8 variant of this model") as caught:
            await engines(EngineSpec.parse("wasm-1-int8"), b"another model")
        assert caught.value.remedy

    asyncio.run(use())
    assert opened == [("wasm-1", b"model"), ("wasm-1-int8", b"eight bits"), ("wasm-2-int8", b"eight bits")]
    assert fetched == ["variants/breakout_dqn.int8.onnx"]
