# An engine in a configuration of your own, and what it turned out to be.
from dataclasses import replace

from pyapp.engine import EngineSpec

spec = replace(EngineSpec.parse("wasm-1"), name="wasm-spinning", threads=2, spinning=True)
engine = await page.open_engines(spec, model)
try:
    print(engine.facts)
    print(f"created in {engine.create_ms:.0f} ms")
    for node in await engine.profile(states.inputs(0)):
        print(f"{node.op:24} {node.provider:24} {node.us / 1000:7.3f} ms")
finally:
    await engine.close()
