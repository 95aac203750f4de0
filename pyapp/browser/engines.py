"""Engines in a browser: each one is a worker with a realm of onnxruntime-web of its own."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyodide.ffi import JsException

from pyapp.browser.bridge import JsBridge, JsEngine, JsLane, from_js_error, to_plain
from pyapp.engine import (
    AdapterFacts,
    EngineError,
    EngineFacts,
    EngineSpec,
    NodeProfile,
    Running,
    StageTimes,
    Tensors,
    TimedBlock,
)

OPEN_LIMIT_S = 180.0
"""Opening loads up to 16 MB over the visitor's network."""

SILENCE_S = 2.0
"""The page's watchdog hears from a worker when it begins; one that died before says nothing, and is given up so much later."""


class BrowserEngine:
    """An `Engine` in a worker; made by `BrowserEngines`."""

    def __init__(
        self, opener: BrowserEngines, spec: EngineSpec, model: bytes, worker: JsEngine, opened: dict[str, Any]
    ) -> None:
        self._opener = opener
        self._model = model
        self._worker = worker
        self._lane: FastLane | None = None
        self._laneless = False
        self.spec = spec
        self.create_ms = float(opened["create_ms"])
        self.facts = EngineFacts(
            provider=opened["provider"],
            build=opened["build"],
            runner=opened["runner"],
            threads=opened["threads"],
            adapter=AdapterFacts(**opened["adapter"]) if opened["adapter"] else None,
            clock_step_ms=float(opened["clock_step_ms"]),
            fallbacks=list(opened["fallbacks"]),
        )

    async def run(self, inputs: Tensors, *, limit_s: float = 60.0) -> dict[str, NDArray[Any]]:
        """Run the model once; see `Engine.run`."""
        return (await self._ask(inputs, limit_s))[0]

    async def run_timed(self, inputs: Tensors, *, limit_s: float = 60.0) -> tuple[dict[str, NDArray[Any]], float]:
        """Run the model once, timed in the worker; see `Engine.run_timed`.

        From the second run of the same shape on it goes by the fast lane, where there is one.
        """
        if (begun := self.begin(inputs, limit_s=limit_s)) is not None:
            return await begun
        return await self._by_message(inputs, limit_s)

    def begin(self, inputs: Tensors, *, limit_s: float = 60.0) -> Running | None:
        """Begin a run; see `Engine.begin`."""
        if self._lane is None or not self._lane.fits(inputs):
            return None
        self._lane.ask(inputs)
        return self._finish(self._lane, inputs, limit_s)

    async def _finish(self, lane: FastLane, inputs: Tensors, limit_s: float) -> tuple[dict[str, NDArray[Any]], float]:
        return await lane.answer(limit_s) or await self._by_message(inputs, limit_s)

    async def _by_message(self, inputs: Tensors, limit_s: float) -> tuple[dict[str, NDArray[Any]], float]:
        # On the fast lane an engine that throws cannot say why; asked by message, it does.
        try:
            async with asyncio.timeout(limit_s + SILENCE_S):
                outputs, compute_ms = await self._ask(inputs, limit_s)
                if self._lane is None and not self._laneless:
                    self._lane = await open_lane(self._worker, self.spec.name, inputs, outputs)
                    self._laneless = self._lane is None
        except TimeoutError:
            self._worker.end()
            raise unanswered(self.spec.name, limit_s) from None
        return outputs, compute_ms

    async def _ask(self, inputs: Tensors, limit_s: float) -> tuple[dict[str, NDArray[Any]], float]:
        answer = await _call(self._worker, "run", limit_s, to_wire(inputs))
        return from_wire(answer["outputs"]), float(answer["compute_ms"])

    async def time(self, inputs: Tensors, runs: int, *, limit_s: float = 60.0) -> TimedBlock:
        """Time `runs` runs; see `Engine.time`."""
        timed = await _call(self._worker, "time", limit_s * runs, to_wire(inputs), runs)
        return TimedBlock(samples_ms=np.array(timed["samples"], dtype=np.float64), bad=timed["bad"])

    async def profile(self, inputs: Tensors) -> list[NodeProfile]:
        """Run once in a worker of its own, since profiling slows a session down; see `Engine.profile`."""
        nodes = await self._ask_another("profile", to_wire(inputs))
        return [NodeProfile(**node) for node in nodes]

    async def stages(self, inputs: Tensors, runs: int) -> StageTimes:
        """Measure stages in a worker of its own, since watching slows a run down; see `Engine.stages`."""
        found = await self._ask_another("stages", to_wire(inputs), runs)
        stages_ms = {stage: np.array(ms, dtype=np.float64) for stage, ms in found["stages"].items()}
        floor_ms = None if found["floor_ms"] is None else np.array(found["floor_ms"], dtype=np.float64)
        return StageTimes(stages_ms, found["compute_from"], floor_ms)

    async def _ask_another(self, verb: str, *args: object) -> Any:  # noqa: ANN401 - what a verb returns is its own
        """Open a worker like this one for the sake of one verb, which is its purpose's name too."""
        # Where the fast runner had to give way, the answer would be about what did not run.
        runner = "stock" if self.facts.runner.endswith("stock") else self.spec.runner
        worker, _ = await self._opener.start(replace(self.spec, runner=runner), self._model, purpose=verb)
        try:
            return await _call(worker, verb, OPEN_LIMIT_S, *args)
        finally:
            worker.end()

    async def replace(self, model: bytes) -> None:
        """Open another model in the same realm; only for the stock runner.

        A realm keeps memory of every model that it had: this is for thousands of small ones.

        Raises
        ------
        EngineError
            Whatever onnxruntime-web says about the model; the former one stays open then.
        """
        await _call(self._worker, "replace", OPEN_LIMIT_S, memoryview(model))
        self._model, self._lane, self._laneless = model, None, True

    async def close(self) -> None:
        """End the worker."""
        self._worker.end()


def unanswered(engine: str, limit_s: float) -> EngineError:
    """Return the error of an engine that has let its time pass."""
    what = f"engine {engine} did not answer within {limit_s:.1f} s and was ended"
    return EngineError("EngineTimeout", what, "Choose another engine.")


class FastLane:
    """A fast lane to an engine, for one float32 input and one output of fixed shapes; made by `open_lane`."""

    def __init__(self, lane: JsLane, engine: JsEngine, about: _Shapes) -> None:
        self._lane = lane
        self._engine = engine
        self._about = about
        self._input, self._output = lane.input, lane.output

    def fits(self, inputs: Tensors) -> bool:
        """Tell whether these inputs can go this way, now."""
        array = inputs.get(self._about.input)
        if array is None or len(inputs) != 1 or array.shape != self._about.dims or array.dtype != np.float32:
            return False
        return not self._lane.busy

    def ask(self, inputs: Tensors) -> None:
        """Have the model run once."""
        # assign and assign_to want plain bytes on both sides.
        self._input.assign(np.ascontiguousarray(inputs[self._about.input]).view(np.uint8).ravel())
        self._lane.ask()

    async def answer(self, limit_s: float) -> tuple[dict[str, NDArray[Any]], float] | None:
        """Return the answer to what was asked; None where the model threw."""
        try:
            answered = self._lane.answer(limit_s * 1000)
            if not isinstance(answered, bool):
                answered = await answered
        except JsException as error:
            raise from_js_error(error, EngineError) from None
        if not answered:
            self._engine.end()
            raise unanswered(self._about.engine, limit_s)
        if self._lane.failed:
            return None
        output = np.empty(self._about.output_dims, self._about.output_dtype)
        self._output.assign_to(output.view(np.uint8).ravel())
        return {self._about.output: output}, float(self._lane.compute_ms)


@dataclass(frozen=True, slots=True)
class _Shapes:
    """What goes by a fast lane."""

    engine: str
    input: str
    dims: tuple[int, ...]
    output: str
    output_dims: tuple[int, ...]
    output_dtype: np.dtype[Any]


async def open_lane(worker: JsEngine, engine: str, inputs: Tensors, outputs: Tensors) -> FastLane | None:
    """Open a fast lane for more runs like this one; None where its tensors or the browser do not allow it."""
    if len(inputs) != 1 or len(outputs) != 1:
        return None
    ((input_name, question),) = inputs.items()
    ((output_name, answer),) = outputs.items()
    if question.dtype != np.float32:
        return None
    lane = await worker.lane(input_name, to_plain(list(question.shape)), answer.nbytes)
    shapes = _Shapes(engine, input_name, question.shape, output_name, answer.shape, answer.dtype)
    return FastLane(lane, worker, shapes) if lane else None


class BrowserEngines:
    """Opens engines: an `OpenEngine`."""

    def __init__(self, bridge: JsBridge) -> None:
        self._bridge = bridge
        self._known: tuple[bytes, dict[str, Any]] = (b"", {})

    def learn(self, model: bytes, *, sizes: dict[str, int], zeros: bool) -> None:
        """Learn about a model what its file does not say.

        Parameters
        ----------
        model : bytes
            This very object.
        sizes : dict of str to int
            Sizes of its free dimensions, for runners that need fixed ones; without them these are 1.
        zeros : bool
            Whether zeros everywhere are an answer of it, and not that of a lost device.
        """
        self._known = model, {"sizes": sizes, "zeros": zeros}

    async def __call__(self, spec: EngineSpec, model: bytes) -> BrowserEngine:
        """Open `model` in the configuration `spec`.

        Raises
        ------
        EngineError
            ``WebGpuUnavailable``, ``EngineTimeout``, or whatever onnxruntime-web says about the model.
        """
        try:
            worker, opened = await self.start(spec, model)
        except EngineError as error:
            if spec.runner == "stock" or error.kind == "WebGpuUnavailable":
                raise
            # A capture can spoil its realm so thoroughly that no other way runs there. Another realm knows nothing of it.
            worker, opened = await self.start(replace(spec, runner="stock"), model)
            opened |= {"runner": "fast: stock", "fallbacks": [*opened["fallbacks"], f"{spec.runner}: {error.message}"]}
        return BrowserEngine(self, spec, model, worker, opened)

    async def start(self, spec: EngineSpec, model: bytes, *, purpose: str = "run") -> tuple[JsEngine, dict[str, Any]]:
        """Start a worker and open the model in it, to ``run``, ``profile`` or measure ``stages``; returns it and its facts."""
        worker = await self._started(spec.name)
        try:
            options = {"purpose": purpose}
            known, about = self._known
            wanted = asdict(spec) | (about if model is known else {})
            return worker, await _call(worker, "open", OPEN_LIMIT_S, wanted, memoryview(model), options)
        except BaseException:
            worker.end()
            raise

    async def _started(self, name: str) -> JsEngine:
        """Start a worker; one that comes only after this was cancelled is ended, for nobody else holds it."""
        starting = asyncio.ensure_future(self._bridge.start_engine(name))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(lambda started: started.result().end())
            raise


async def _call(worker: JsEngine, verb: str, limit_s: float, *args: object) -> Any:  # noqa: ANN401 - what a verb returns is its own
    try:
        result = await worker.call(verb, limit_s * 1000, to_plain(args))
    except JsException as error:
        raise from_js_error(error, EngineError) from None
    return result.to_py()


def to_wire(tensors: Tensors) -> dict[str, Any]:
    """Describe tensors as `WireTensors` of `web/types.d.ts`."""
    return {
        name: {"type": array.dtype.name, "dims": list(array.shape), "data": _bits(np.ascontiguousarray(array).ravel())}
        for name, array in tensors.items()
    }


BITS: dict[str, tuple[np.dtype[Any], np.dtype[Any]]] = {
    name: (np.dtype(name), np.dtype(bits)) for name, bits in (("float16", np.uint16), ("bool", np.uint8))
}
"""Types that typed arrays in Pyodide do not have; they cross as numbers of the same size."""


def _bits(array: NDArray[Any]) -> NDArray[Any]:
    return array.view(BITS[array.dtype.name][1]) if array.dtype.name in BITS else array


def from_wire(outputs: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """Copy `WireTensors` into arrays of their own."""
    return {name: _meant(tensor["type"], np.array(tensor["data"])).reshape(tensor["dims"]) for name, tensor in outputs.items()}


def _meant(kind: str, array: NDArray[Any]) -> NDArray[Any]:
    return array.view(BITS[kind][0]) if kind in BITS else array
