"""What ran is read from the runtime, not copied from what was asked for."""

from collections import Counter

CPU = "CPUExecutionProvider"
GPU = "WebGpuExecutionProvider"
KEPT = {"Conv", "Gemm"}  # whatever a runtime fuses or reorders, these are left


async def test_wasm_has_the_threads_that_were_asked_for(opened):
    for threads in (1, 2):
        async with opened(f"wasm-{threads}") as engine:
            facts = engine.facts
        assert (facts.provider, facts.build, facts.runner) == ("wasm", "wasm", "stock"), facts
        assert facts.threads == threads, facts
        assert facts.adapter is None, facts
        assert engine.create_ms > 0, engine.create_ms


async def test_wasm_runs_every_node_on_the_cpu(opened, states):
    async with opened("wasm-1") as engine:
        nodes = await engine.profile(states.inputs(0))
    assert Counter(node.provider for node in nodes).keys() == {CPU}, nodes
    operators = {node.op.removeprefix("Fused") for node in nodes}
    assert operators.issuperset(KEPT), operators
    assert sum(node.us for node in nodes) > 0, nodes


async def test_webgpu_runs_every_node_on_the_gpu_and_says_which(opened, states):
    async with opened("webgpu-stock") as engine:
        facts = engine.facts
        nodes = await engine.profile(states.inputs(0))
    assert (facts.provider, facts.build, facts.runner) == ("webgpu", "jspi", "stock"), facts
    assert facts.adapter, facts
    assert facts.adapter.software, f"Chromium was started with a software GPU, but it says {facts.adapter}"
    assert "swiftshader" in f"{facts.adapter.architecture} {facts.adapter.description}".lower(), facts.adapter
    assert Counter(node.provider for node in nodes).keys() == {GPU}, nodes
    assert any("Conv" in node.op for node in nodes), nodes


async def test_the_clock_of_an_isolated_page_steps_by_5_us(opened):
    async with opened("wasm-1") as engine:
        step = engine.facts.clock_step_ms
    assert abs(step - 0.005) < 0.001, f"{step} ms"
