"""Runs in the page's Python: node tests of ONNX, one after the other, in one worker for each engine."""

import asyncio
import io
import math
import re
import time
from base64 import b64decode

import numpy as np
from pyodide.ffi import JsException

from pyapp.agreement import WRONG_SHAPE, WRONG_TYPE, Tolerance, difference
from pyapp.browser.bridge import from_js_error, to_plain
from pyapp.browser.engines import BrowserEngine, to_wire
from pyapp.engine import EngineError, EngineSpec

LIMIT_S = 60.0
"""For opening a model and for a run; on a busy machine a software adapter takes seconds to compile a shader."""

MODELS_OF_A_REALM = 200
"""A realm keeps memory of every model that it had, and begins anew after so many."""

LOST = ("EngineTimeout", "EngineCrashed", "EngineEnded")
"""Errors after which a worker is no more."""

REFUSED = re.compile(
    r"ERROR_CODE: 9\b|not (?:yet )?(?:implemented|supported)|does not support|[Uu]nsupported|is under development"
    r"|is not defined for empty set|not a registered function/op|No Op registered|Unrecognized attribute|Failed to find kernel"
    r"|!node_provider_type\.empty"
)
"""What onnxruntime-web says of what it does not have (9 is its NOT_IMPLEMENTED); anything else is a fault."""

PLAIN = (
    (r"\(?[^\s(]*/onnxruntime/(core|contrib_ops)/", r"onnxruntime/\1/"),
    (r"^Can't create a session\. ERROR_CODE: \d+, ERROR_MESSAGE: (?:Exception during initialization: )?", "opening: "),
    (r"^failed to call OrtRun\(\)\. ERROR_CODE: \d+, ERROR_MESSAGE: ", "running: "),
    (r"Non-zero status code returned while running (\S+) node\. Name:'[^']*' Status Message:", r"\1:"),
    (r"\S+ .*?!node_provider_type\.empty\(\) was false\. Provider type for (\S+)(?: node .*?)? is not.*", r"no kernel: \1"),
    (r"(?:Could not find an implementation|Failed to find kernel) for (\w+)\((\d+)\).*", r"no kernel: \1"),
    (r"(?:Fatal error: )?(\S+?)\(-1\) is not a registered function/op", r"not known: \1"),
    (r"This is an invalid model\. In Node, .* , Error ", ""),
    (r"\S+ void \S*ValidateOpsetForDomain.*?(Opset \d+ is under development).*", r"\1"),
    (r"(\.(?:cc|h):\d+) [^()]*\([^()]*\)(?: const)?(?: \[[^]]*\])?", r"\1"),
    (r"(\.(?:cc|h):\d+)\([^()]*\)(?: const)?(?: \[[^]]*\])?", r"\1"),
    (
        r"shader_helper\.cc:\d+ .* Program (\S+) requires f16 but the device does not support it\.",
        "the device does not support f16",
    ),
    (r"\b\d{7,}\b", "N"),
)
"""What stands in for parts of onnxruntime-web's messages: its own sources' folders and signatures, above all."""

HOSTS = globals().get("HOSTS", {})
"""By engine; a batch goes on with the workers of the former one."""


class Host:
    """An engine's worker, in which model after model is opened; a fresh one is taken where it breaks."""

    def __init__(self, name, canary):
        self.spec = EngineSpec.parse(name)
        self._canary = canary
        self._engine = None
        self._models = 0
        self.opened = 0

    async def judge(self, case):
        """Run a test; once more, in a fresh worker, where it breaks this one."""
        found = await self._attempt(case)
        if found["status"] == "pass" or await self._healthy():
            return found
        await self.end()
        again = await self._attempt(case)
        if again["status"] != "pass" and not await self._healthy():
            await self.end()
            again["breaks"] = True
        return again | {"tries": 2}

    async def end(self):
        """End the worker; the next test begins in a fresh one."""
        if self._engine:
            await self._engine.close()
        self._engine = None

    async def _attempt(self, case):
        await self._ready()
        found = {}
        begun = time.perf_counter()
        try:
            async with asyncio.timeout(LIMIT_S):
                await self._engine.replace(case.model)
            opened = time.perf_counter()
            found["open_ms"] = round((opened - begun) * 1000, 1)
            outputs, _ = await self._engine.run_timed(case.inputs, limit_s=LIMIT_S)
            found["run_ms"] = round((time.perf_counter() - opened) * 1000, 1)
        except EngineError as error:
            return found | refusal(error)
        except TimeoutError:
            return found | {"status": "error", "why": f"the model was not opened within {LIMIT_S:.0f} s"}
        found |= case.judge(outputs)
        if self.spec.provider == "webgpu":
            found |= await self._placed(case)
        return found

    async def _ready(self):
        if self._engine is None or self._models == MODELS_OF_A_REALM:
            await self.end()
            purpose = "profile" if self.spec.provider == "webgpu" else "run"
            model = self._canary.model
            worker, facts = await page.open_engines.start(self.spec, model, purpose=purpose)  # noqa: F821 - the console's
            self._worker, self._engine = worker, BrowserEngine(page.open_engines, self.spec, model, worker, facts)  # noqa: F821
            self._models = 0
            self.opened += 1
        self._models += 1

    async def _placed(self, case):
        """Run it again, watched; which providers ran which operators."""
        try:
            nodes = await self._worker.call("profile", LIMIT_S * 1000, to_plain((to_wire(case.inputs),)))
        except JsException as error:
            return {"nodes": None, "unplaced": from_js_error(error, EngineError).message}
        providers = {"WebGpuExecutionProvider": "gpu", "CPUExecutionProvider": "cpu"}
        placed = ((node["op"], node["provider"]) for node in nodes.to_py())
        return {"nodes": sorted({f"{op}:{providers.get(provider, provider)}" for op, provider in placed})}

    async def _healthy(self):
        """Whether a test that works still does."""
        return (await self._attempt(self._canary))["status"] == "pass"


class Case:
    """A node test, as the driver hands it over."""

    def __init__(self, given):
        self.name = given["name"]
        self.model = b64decode(given["model"])
        with np.load(io.BytesIO(b64decode(given["arrays"]))) as arrays:
            self.inputs = {name: arrays[f"i{index}"] for index, name in enumerate(given["inputs"])}
            self.expected = {name: arrays[f"o{index}"] for index, name in enumerate(given["outputs"])}
        self._tolerance = Tolerance(given["rtol"], given["atol"])
        self._random = given["random"]

    def judge(self, outputs):
        """Compare a run's outputs with those that ONNX has for the test; the worst that differs is what is said."""
        wrong = [fault for name in self.expected if (fault := self._fault(name, outputs.get(name)))]
        if not wrong:
            return {"status": "pass"}
        return {"status": "fail"} | max(wrong, key=lambda fault: ("failure" in fault, fault.get("max_abs") or 0))

    def _fault(self, name, found):
        expected = self.expected[name]
        if self._random:
            return None if found is not None and found.shape == expected.shape else {"output": name, "failure": WRONG_SHAPE}
        one = difference(found, expected, self._tolerance, equal_nan=True)
        if one.failure:
            about = {WRONG_TYPE: lambda array: array.dtype.name, WRONG_SHAPE: lambda array: list(array.shape)}.get(one.failure)
            said = f"{one.failure}: {about(found)}, not {about(expected)}" if about else one.failure
            return {"output": name, "failure": said}
        if one.close:
            return None
        # Within what the page's own reports accept by default.
        near = difference(found, expected, Tolerance(), equal_nan=True).close
        return {"output": name, "max_abs": finite(one.max_abs), "max_rel": finite(one.max_rel), "near": near}


def finite(number):
    """Return a number as JSON has it, with few digits."""
    return float(f"{number:.3g}") if math.isfinite(number) else None


def refusal(error):
    """Say what an engine's error is: a worker that is lost, an operator that is not there, or a fault."""
    why = plain(error.message) or error.kind
    if error.kind in LOST:
        return {"status": "error", "why": why}
    return {"status": "unsupported", "why": why} if REFUSED.search(error.message) else {"status": "fail", "failure": why}


def plain(message):
    """Return the part of onnxruntime-web's message that says something."""
    text = " ".join(message.split())
    for pattern, instead in PLAIN:
        text = re.sub(pattern, instead, text)
    return text[:250]


async def main(cases, engines, canary, fresh=False):
    """Run a batch; `fresh` does so in fresh workers."""
    found = {}
    for name in engines:
        host = HOSTS.setdefault(name, Host(name, Case(canary)))
        if fresh:
            await host.end()
        for given in cases:
            found.setdefault(given["name"], {})[name] = await host.judge(Case(given))
    return found


async def end():
    """End all workers."""
    for host in HOSTS.values():
        await host.end()
    return {name: host.opened for name, host in HOSTS.items()}
