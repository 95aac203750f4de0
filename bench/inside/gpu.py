"""Runs in the page's Python: every way of running the model on the GPU, and WASM, in one race."""

from dataclasses import asdict, replace

import numpy as np

from pyapp.engine import EngineError, EngineSpec
from pyapp.onnxfile import parse_model
from pyapp.race import RaceSettings, race
from pyapp.threads import best_threads

ANSWERED = 10
"""States whose scores are compared with Python's."""

SOFTWARE_RUNS = 10
"""On a software adapter a run takes half a second, and its time says nothing."""


class ByteEngine:
    """An engine of `with_byte_input`'s model, asked as the others are."""

    def __init__(self, engine):
        self._engine = engine

    def __getattr__(self, name):
        return getattr(self._engine, name)

    async def run(self, inputs, **limit):
        """Run once."""
        return await self._engine.run(as_bytes(inputs), **limit)

    async def time(self, inputs, runs, **limit):
        """Time runs; making bytes of pixels is not among them."""
        return await self._engine.time(as_bytes(inputs), runs, **limit)


def as_bytes(inputs):
    """Return the inputs of `with_byte_input`'s model; pixels are whole numbers."""
    return {"pixels": inputs["observation"].astype(np.uint8)}


def with_byte_input(model):
    """Return an ONNX file whose input is `pixels`, uint8, cast to the float32 `observation` that it had before.

    `onnx` is not here, and only two entries change, so the file is edited as what it is: fields, one after the other.
    """
    to_float = string(1, "to") + b"\x18\x01\xa0\x01\x02"
    cast = string(1, "pixels") + string(2, "observation") + string(4, "Cast") + block(5, to_float)

    def edited(graph):
        yield block(NODE, cast)  # nodes stand in the order in which they run
        for number, field, content in fields(graph):
            yield block(INPUT, byte_input(content)) if number == INPUT else field

    return b"".join(
        block(GRAPH, b"".join(edited(content))) if number == GRAPH else field for number, field, content in fields(model)
    )


GRAPH, NODE, INPUT = 7, 1, 11


def with_fused_convolutions(content):
    """Return the model with every Conv and its Relu as one node, `FusedConv` of onnxruntime's own operators."""
    model = parse_model(content)
    relus = {node.input[0]: node for node in model.graph.node if node.op_type == "Relu"}
    for node in [node for node in model.graph.node if node.op_type == "Conv" and node.output[0] in relus]:
        relu = relus[node.output[0]]
        node.op_type, node.domain, node.output[0] = "FusedConv", "com.microsoft", relu.output[0]
        node.attribute.add(name="activation", type=3, s=b"Relu")  # 3: a string
        model.graph.node.remove(relu)
    model.opset_import.add(domain="com.microsoft", version=1)
    return model.SerializeToString()


MODELS = {"model": bytes, "bytes": with_byte_input, "fused": with_fused_convolutions}


def byte_input(value_info):
    """Return a `ValueInfoProto` with another name and the element type uint8."""
    # Field 2 is the type; in that, 1 is a tensor's; in that, 1 is its elements' and 2 its shape.
    [type_] = [content for number, _, content in fields(value_info) if number == 2]
    [tensor] = [content for number, _, content in fields(type_) if number == 1]
    [shape] = [field for number, field, _ in fields(tensor) if number == 2]
    return string(1, "pixels") + block(2, block(1, b"\x08\x02" + shape))


def halves_model():
    """Return an ONNX file that doubles `x`, float16 [N, 3], to `y`: its kernel needs a GPU that computes in halves."""
    half = b"\x08\x0a"  # field 1 or, in a tensor, 2: element type 10
    shape = block(2, block(1, string(2, "N")) + block(1, b"\x08\x03"))
    value_type = block(2, block(1, half + shape))
    two = b"\x08\x01" + b"\x10\x0a" + string(8, "two") + block(9, np.float16(2).tobytes())
    node = string(1, "x") + string(1, "two") + string(2, "y") + string(4, "Mul")
    values = block(INPUT, string(1, "x") + value_type) + block(12, string(1, "y") + value_type)
    graph = block(NODE, node) + string(2, "halves") + block(5, two) + values
    return b"\x08\x08" + block(GRAPH, graph) + block(8, b"\x10\x11")


async def halves():
    """Double some halves on the fast runner; returns how that went, for a GPU may not be able to."""
    spec = replace(EngineSpec.parse("webgpu-fast"), name="webgpu-fast-halves")
    engine = await page.open_engines(spec, halves_model())  # noqa: F821 - the console's
    found = {"runner": engine.facts.runner, "fallbacks": engine.facts.fallbacks, "error": None, "failure": None}
    try:
        rng = np.random.default_rng(0)
        errors = []
        for size in (1, 3, 1):
            x = rng.random((size, 3)).astype(np.float16)
            y = (await engine.run({"x": x}))["y"]
            errors.append(float(np.abs(y.astype(np.float64) - 2 * x.astype(np.float64)).max()))
        found["error"] = max(errors)
    except EngineError as error:
        found["failure"] = error.message
    finally:
        await engine.close()
    return found


def fields(message):
    """Take a protobuf message apart: number, whole field, content (None unless it has a length)."""
    at = 0
    while at < len(message):
        start = at
        tag, at = varint(message, at)
        content = None
        if tag & 7 == 0:
            _, at = varint(message, at)
        elif tag & 7 == 2:
            size, at = varint(message, at)
            content = message[at : at + size]
            at += size
        else:
            at += {1: 8, 5: 4}[tag & 7]
        yield tag >> 3, message[start:at], content


def varint(message, at):
    """Read a number; returns it and where it ends."""
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def block(number, content):
    """Write a field that has a length."""
    size, head = len(content), bytearray([number << 3 | 2])
    while size > 127:
        head.append(size & 127 | 128)
        size >>= 7
    return bytes([*head, size]) + content


def string(number, text):
    """Write a text field."""
    return block(number, text.encode())


async def open_all(wanted, threads):
    """Open the engines; `wanted` holds names, runners and models."""
    engines = []
    for name, runner, kind in wanted:
        if name == "wasm-N":
            spec = EngineSpec.parse(f"wasm-{threads}")
        elif name.startswith("wasm-"):
            spec = EngineSpec.parse(name)
        else:
            spec = replace(EngineSpec.parse("webgpu-stock"), name=name, runner=runner)
        engine = await page.open_engines(spec, MODELS[kind](model))  # noqa: F821 - the console's
        engines.append(ByteEngine(engine) if kind == "bytes" else engine)
    return engines


async def main(wanted, threads, runs, warmup, seed):
    """Race the engines; returns what the benchmark prints and stores. `threads` is 0 for the best count here."""
    inputs = states.inputs(0)  # noqa: F821 - the console's
    environment = page.environment()  # noqa: F821
    if not threads:
        medians = await best_threads(page.open_engines, model, inputs, environment["cores"])  # noqa: F821
        threads = next(iter(medians), 1)
    engines = await open_all(wanted, threads)
    adapter = next(engine.facts.adapter for engine in engines if engine.facts.adapter)
    if adapter.software:
        runs, warmup = min(runs, SOFTWARE_RUNS), min(warmup, 1)
    try:
        errors = {}
        for engine in engines:
            scores = [(await engine.run(states.inputs(case)))["q_values"][0] for case in range(ANSWERED)]  # noqa: F821
            errors[engine.spec.name] = float(np.abs(np.array(scores) - states.q_values[:ANSWERED]).max())  # noqa: F821
        lanes = await race(engines, inputs, RaceSettings(runs=runs, warmup=warmup, seed=seed))
    finally:
        for engine in engines:
            await engine.close()
    for lane in lanes:
        if lane.error:
            raise lane.error
    return {
        "threads": threads,
        "user_agent": environment["user_agent"],
        "versions": environment["versions"],
        "adapter": asdict(adapter),
        "halves": await halves(),
        "hidden": page.hidden_count() > 0,  # noqa: F821
        "engines": [
            {
                "name": lane.engine.spec.name,
                "build": lane.engine.facts.build,
                "runner": lane.engine.facts.runner,
                "fallbacks": lane.engine.facts.fallbacks,
                "create_ms": round(lane.engine.create_ms, 3),
                "max_abs_diff": errors[lane.engine.spec.name],
                "bad": lane.bad,
                "rounds_ms": [[round(float(ms), 4) for ms in samples] for samples in lane.rounds],
            }
            for lane in lanes
        ],
    }
