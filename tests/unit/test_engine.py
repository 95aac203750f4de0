import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyapp.engine import EngineFacts, EngineSpec
from pyapp.threads import thread_candidates


@pytest.mark.parametrize(
    ("name", "provider", "threads", "runner"),
    [
        ("wasm-1", "wasm", 1, "stock"),
        ("wasm-16", "wasm", 16, "stock"),
        ("webgpu-stock", "webgpu", 1, "stock"),
        ("webgpu-fast", "webgpu", 1, "fast"),
    ],
)
def test_a_name_says_the_configuration(name, provider, threads, runner):
    spec = EngineSpec.parse(name)
    assert (spec.name, spec.provider, spec.threads, spec.runner) == (name, provider, threads, runner)


@pytest.mark.parametrize(
    "name", ["", "wasm", "wasm-0", "wasm-01", "wasm-1000", "WASM-1", "webgpu-slow", "webgpu-fast-plain", "wasm-1 ", "cuda"]
)
def test_an_unknown_name_is_refused_with_those_that_are_known(name):
    with pytest.raises(ValueError, match=r"unknown engine .*wasm-1"):
        EngineSpec.parse(name)


def test_wasm_n_is_no_configuration():
    with pytest.raises(ValueError, match="measured"):
        EngineSpec.parse("wasm-N")


def test_only_a_gpu_engine_can_fall_back():
    nodes = {"WebGpuExecutionProvider": 7, "CPUExecutionProvider": 2}
    assert EngineFacts("webgpu", "jspi", "stock", 1, nodes).fallback_nodes == 2
    assert EngineFacts("wasm", "wasm", "stock", 1, {"CPUExecutionProvider": 6}).fallback_nodes == 0


@given(st.integers(1, 256))
def test_thread_candidates_fit_the_machine(cores):
    candidates = thread_candidates(cores)
    assert candidates == sorted(set(candidates))
    assert all(2 <= count <= min(cores, 64) for count in candidates)
    assert bool(candidates) == (cores > 1)
    if 2 <= cores <= 64:
        assert cores in candidates
