import asyncio

import pytest
from fakes import FakeEngine, FakeHost, Recorder, make_suite

from pyapp.engine import AdapterFacts, EngineError, EngineFacts
from pyapp.stages import Explain, ExplainSettings
from pyapp.summary import summarize
from pyapp.tables import report_markdown

STAGES = {"upload": 0.2, "dispatch": 0.4, "compute": 0.3, "wait": 3.1, "readback": 0.1}


def adapter(*, software):
    return EngineFacts("webgpu", "fake", "stock", 1, adapter=AdapterFacts("v", "a", "d", "", software), clock_step_ms=0.005)


def explain(engines, *, host=None, **settings):
    recorder = Recorder()
    opened = []

    async def open_engine(spec, model):
        options = engines[spec.name]
        if isinstance(options, EngineError):
            raise options
        opened.append(FakeEngine(spec, **options))
        return opened[-1]

    wanted = ExplainSettings(**({"engines": list(engines), "runs": 20} | settings))
    question = Explain(wanted, b"model", make_suite(), open_engine, host or FakeHost(), recorder)
    report = asyncio.run(question.run())
    assert all(engine.closed for engine in opened), "engines are closed"
    return report, recorder


def test_stages_that_add_up_to_the_total_are_valid_and_said_in_one_sentence():
    report, recorder = explain({"webgpu-stock": {"ms": lambda run: 4.1, "stages": STAGES, "facts": adapter(software=False)}})
    [entry] = report.stages
    assert entry.valid
    assert [stage.stage for stage in entry.stages] == list(STAGES)
    assert entry.sum_ms == pytest.approx(4.1)
    assert entry.total_ms == pytest.approx(4.1)
    assert (entry.floor_ms, entry.compute_from, entry.total_n) == (0.1, "a test", 20)
    assert ("stages", entry) in recorder.sections
    [sentence] = [sentence for sentence in summarize(report) if sentence.topic == "stages"]
    assert "of 4.1 ms, 0.3 ms is arithmetic; 3.1 ms is waiting to be told" in sentence.text
    assert "0.1 ms here" in sentence.text
    assert "| webgpu-stock" in report_markdown(report)


@pytest.mark.parametrize(("total", "fits"), [(4.1, True), (4.4, True), (4.7, False), (3.8, True), (3.6, False)])
def test_stages_that_do_not_add_up_are_not_believed(total, fits):
    report, _ = explain({"webgpu-stock": {"ms": lambda run: total, "stages": STAGES, "facts": adapter(software=False)}})
    [entry] = report.stages
    assert entry.valid is fits
    assert any("add up to 4.1 ms" in warning for warning in entry.warnings) is not fits


def test_the_time_of_a_software_adapter_is_shown_and_said_to_mean_nothing():
    report, _ = explain({"webgpu-stock": {"ms": lambda run: 4.1, "stages": STAGES, "facts": adapter(software=True)}})
    [entry] = report.stages
    assert not entry.valid
    assert any("software adapter" in warning for warning in entry.warnings)
    assert entry.stages[0].n < 20, "it takes less of the visitor's time"


def test_an_engine_that_fails_is_stated_and_the_others_are_explained():
    engines = {
        "webgpu-stock": EngineError("WebGpuUnavailable", "no adapter", "Use WASM."),
        "webgpu-fast": {"stages": EngineError("NoStages", "nothing on the GPU", "")},
        "wasm-1": {},
    }
    report, _ = explain(engines)
    assert [entry.engine for entry in report.stages] == ["wasm-1"]
    failed = {entry.name: entry.error.name for entry in report.engines if entry.error}
    assert failed == {"webgpu-stock": "WebGpuUnavailable", "webgpu-fast": "NoStages"}


def test_a_page_that_was_hidden_makes_the_stages_invalid():
    host = FakeHost()
    host.hidden = lambda: True
    report, _ = explain({"wasm-1": {}}, host=host)
    assert any("hidden" in warning for warning in report.stages[0].warnings)


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ({"runs": 1}, "runs is 1"),
        ({"engines": ["cuda"]}, "unknown engine 'cuda'"),
        ({"runs": "many"}, "'many'"),
        ({"speed": 1}, "speed"),
    ],
)
def test_bad_settings_are_named(data, fault):
    with pytest.raises(ValueError, match=fault):
        ExplainSettings.from_data(data)
