"""An engine on CPython: onnxruntime's CPU provider, behind the same protocol as a browser's engines."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from pyapp.engine import EngineError, EngineFacts, EngineSpec, NodeProfile, StageTimes, Tensors, TimedBlock


class NativeEngine:
    """An `Engine` of onnxruntime; made by `open_engine`. Runs block the event loop: there is nothing else to do meanwhile."""

    def __init__(self, spec: EngineSpec, model: bytes) -> None:
        start = time.perf_counter()
        self._session: ort.InferenceSession | None = _session(spec, model)
        self.create_ms = (time.perf_counter() - start) * 1000
        self.spec = spec
        self.facts = EngineFacts(
            provider="cpu",
            build=f"onnxruntime {ort.__version__}",
            runner="stock",
            threads=spec.threads,
            clock_step_ms=time.get_clock_info("perf_counter").resolution * 1000,
        )
        self._model = model

    async def run(self, inputs: Tensors, *, limit_s: float = 60.0) -> dict[str, NDArray[Any]]:
        """Run the model once; see `Engine.run`. `limit_s` is not watched over here."""
        return (await self.run_timed(inputs, limit_s=limit_s))[0]

    def begin(self, inputs: Tensors, *, limit_s: float = 60.0) -> None:
        """Begin nothing: onnxruntime works while it is waited for; see `Engine.begin`."""

    async def run_timed(self, inputs: Tensors, *, limit_s: float = 60.0) -> tuple[dict[str, NDArray[Any]], float]:
        """Run the model once, timed; see `Engine.run_timed`."""
        session = self._opened()
        names = [output.name for output in session.get_outputs()]
        start = time.perf_counter()
        outputs = _guarded(lambda: session.run(names, dict(inputs)))
        compute_ms = (time.perf_counter() - start) * 1000
        return dict(zip(names, outputs, strict=True)), compute_ms

    async def time(self, inputs: Tensors, runs: int, *, limit_s: float = 60.0) -> TimedBlock:
        """Time `runs` runs; see `Engine.time`."""
        session = self._opened()
        feeds = dict(inputs)
        samples = np.empty(runs)
        bad = 0
        for index in range(runs):
            start = time.perf_counter()
            outputs = _guarded(lambda: session.run(None, feeds))
            samples[index] = (time.perf_counter() - start) * 1000
            bad += not all(np.isfinite(output).all() and output.any() for output in outputs)
        await asyncio.sleep(0)
        return TimedBlock(samples, bad)

    async def profile(self, inputs: Tensors) -> list[NodeProfile]:
        """Run once in a session that records which provider ran which node; see `Engine.profile`."""
        return [
            NodeProfile(
                event["name"].removesuffix("_kernel_time"),
                event["args"]["op_name"],
                event["args"]["provider"],
                event["dur"],
                _shape(event["args"].get("output_type_shape", [])),
            )
            for event in self._traced(inputs, 1)
            if event.get("cat") == "Node" and "provider" in event.get("args", {})
        ]

    async def stages(self, inputs: Tensors, runs: int) -> StageTimes:
        """Read from onnxruntime's profile what its runs took; here nothing is copied, see `Engine.stages`."""
        durations = [event["dur"] / 1000 for event in self._traced(inputs, runs) if event.get("name") == "model_run"]
        return StageTimes({"compute": np.array(durations, dtype=np.float64)}, "onnxruntime's profile", None)

    def _traced(self, inputs: Tensors, runs: int) -> list[dict[str, Any]]:
        """Return the events of a profile of some runs."""
        with tempfile.TemporaryDirectory() as folder:
            session = _session(self.spec, self._model, profile_prefix=str(Path(folder) / "profile"))
            for _ in range(runs):
                session.run(None, dict(inputs))
            events: list[dict[str, Any]] = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
        return events

    async def close(self) -> None:
        """Free the session."""
        self._session = None

    def _opened(self) -> ort.InferenceSession:
        if self._session is None:
            raise EngineError("EngineEnded", "the engine has been closed", "Open it again.")
        return self._session


async def open_engine(spec: EngineSpec, model: bytes) -> NativeEngine:
    """Open `model` with onnxruntime's CPU provider and `spec.threads` threads: an `OpenEngine`.

    Raises
    ------
    EngineError
        ``InvalidModel``, with what onnxruntime says about it.
    """
    return _guarded(lambda: NativeEngine(spec, model), kind="InvalidModel")


def _session(spec: EngineSpec, model: bytes, *, profile_prefix: str = "") -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = spec.threads
    options.log_severity_level = 4
    if profile_prefix:
        options.enable_profiling = True
        options.profile_file_prefix = profile_prefix
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _guarded[T](work: Callable[[], T], *, kind: str = "RunFailed") -> T:
    # onnxruntime has no common base class for what it raises.
    try:
        return work()
    except Exception as error:
        raise EngineError(kind, str(error).splitlines()[0], "Look at the model and its inputs.") from error


def _shape(outputs: list[dict[str, list[int]]]) -> str:
    # As `shapeOf` of ``web/profile.js`` does.
    return " ".join(f"{kind}[{','.join(map(str, dims))}]" for output in outputs for kind, dims in output.items())
