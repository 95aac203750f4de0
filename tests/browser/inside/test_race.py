"""A race between real engines, and the report of a check made here."""

import json

import numpy as np

from pyapp.check import Check, CheckSettings
from pyapp.race import ROUNDS, RaceSettings, race
from pyapp.report import ReportError, parse_report


class Noted:
    """An engine that notes its turns."""

    def __init__(self, engine, turns):
        self._engine = engine
        self._turns = turns

    def __getattr__(self, name):
        return getattr(self._engine, name)

    async def time(self, inputs, runs, **limit):
        self._turns.append((self.spec.name, runs))
        return await self._engine.time(inputs, runs, **limit)


class Nobody:
    """A listener that does not listen."""

    def progress(self, *_):
        pass

    def section(self, *_):
        pass


async def test_engines_take_turns_in_the_order_of_the_seed(opened, states):
    turns = []
    async with opened("wasm-1") as one, opened("wasm-2") as two:
        engines = [Noted(one, turns), Noted(two, turns)]
        lanes = await race(engines, states.inputs(0), RaceSettings(runs=ROUNDS, warmup=1, seed=3))
    rng = np.random.default_rng(3)
    expected = [f"wasm-{index + 1}" for _ in range(ROUNDS) for index in rng.permutation(2)]
    assert [name for name, _ in turns[2:]] == expected, turns  # the first two are the warm-up
    for lane in lanes:
        assert lane.error is None, lane.error
        assert len(lane.samples_ms) == ROUNDS, lane.samples_ms
        assert (lane.samples_ms > 0).all(), lane.samples_ms
        assert lane.bad == 0, lane.bad
        assert sum(runs for name, runs in turns if name == lane.engine.spec.name) == 1 + ROUNDS + lane.lead_in, lane


async def test_an_engine_that_ends_leaves_the_race_to_the_other(opened, states):
    async with opened("wasm-1") as one, opened("wasm-2") as two:
        await two.close()
        lanes = await race([one, two], states.inputs(0), RaceSettings(runs=12, warmup=2))
    assert len(lanes[0].samples_ms) == 12, lanes[0]
    assert len(lanes[0].warmup_ms) == 2, lanes[0]
    assert lanes[1].error.kind == "EngineEnded", lanes[1]


async def small_report(page, states):
    settings = CheckSettings(engines=["wasm-1", "wasm-2"], runs=4, warmup=1)
    return await Check(settings, page.model, [states.first(3)], page.open_engines, page, Nobody()).run()


async def test_a_report_survives_its_json(page, states):
    report = await small_report(page, states)
    assert parse_report(report.to_json()) == report
    assert parse_report(report.to_json(indent=1)) == report
    assert [entry.runs for entry in report.race] == [4, 4], report.race
    assert report.environment.cross_origin_isolated, report.environment
    assert report.environment.versions.keys() == {"pyapp", "python", "numpy", "pyodide", "onnxruntime_web"}, report.environment


async def test_a_fault_in_a_report_is_named_with_its_place(page, states):
    whole = (await small_report(page, states)).to_json()

    def fault_of(change):
        data = json.loads(whole)
        change(data)
        try:
            parse_report(json.dumps(data))
        except ReportError as error:
            return "; ".join(error.faults)
        raise AssertionError("the report was accepted")

    text = fault_of(lambda data: data["race"][0].update(p50_ms="fast"))
    assert "$.race[0].p50_ms" in text, text
    assert "fast" in text, text
    text = fault_of(lambda data: data["engines"][1]["actual"].pop("threads"))
    assert "$.engines[1].actual" in text, text
    assert "threads" in text, text
    text = fault_of(lambda data: data["parity"][0].update(mood="good"))
    assert "mood" in text, text
