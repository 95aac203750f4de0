import asyncio
from dataclasses import replace

import numpy as np
import pytest

from pyapp.check import Check, CheckSettings
from pyapp.defaults import webgpu_engine
from pyapp.engine import EngineError
from tests.unit.fakes import FakeHost, Recorder, make_suite
from tests.unit.test_check import BOTH_GPUS, Opener

SUITES = [make_suite("states", 6), make_suite("stress", 70, seed=1)]


def report_of(options=None, errors=None, engines=("wasm-1", "webgpu-stock", "webgpu-fast")):
    settings = CheckSettings(engines=list(engines), runs=4, warmup=1)
    check = Check(settings, b"model", SUITES, Opener(BOTH_GPUS | (options or {}), errors), FakeHost(), Recorder())
    return asyncio.run(check.run())


def test_the_fast_engine_is_the_default_once_it_has_given_pythons_answers_to_every_suite():
    assert webgpu_engine(report_of()) == "webgpu-fast"


@pytest.mark.parametrize(
    "report",
    [
        None,
        report_of(engines=["wasm-1", "webgpu-stock"]),
        report_of(errors={"webgpu-fast": EngineError("DeviceLost", "the GPU device was lost", "Try again.")}),
        report_of({"webgpu-fast": {"scores": lambda observation: np.ones((1, 4), np.float32)}}),
    ],
    ids=["no report", "not asked for", "not opened", "other answers"],
)
def test_without_that_proof_it_is_the_stock_one(report):
    assert webgpu_engine(report) == "webgpu-stock"


def test_one_suite_is_not_every_suite():
    report = report_of()
    kept = [entry for entry in report.parity if (entry.engine, entry.suite) != ("webgpu-fast", "stress")]
    assert webgpu_engine(replace(report, parity=kept)) == "webgpu-stock"
    failed = [replace(entry, passed=False) if entry.suite == "stress" else entry for entry in report.parity]
    assert webgpu_engine(replace(report, parity=failed)) == "webgpu-stock"


def test_a_report_of_nothing_proves_nothing():
    assert webgpu_engine(replace(report_of(), suites=[], parity=[])) == "webgpu-stock"


def test_an_engine_that_failed_later_is_not_the_default():
    report = report_of()
    failure = report_of(errors={"webgpu-fast": EngineError("DeviceLost", "lost", "")}).engines[2].error
    engines = [replace(entry, error=failure) if entry.name == "webgpu-fast" else entry for entry in report.engines]
    assert webgpu_engine(replace(report, engines=engines)) == "webgpu-stock"
