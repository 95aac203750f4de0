"""What an engine is: what was requested (`EngineSpec`), what it turned out to be (`EngineFacts`), what it can do (`Engine`)."""

from __future__ import annotations

import re
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pyapp.errors import AppError

Tensors = Mapping[str, NDArray[Any]]

NAME_PATTERN = re.compile(
    r"wasm-(?:(?P<threads>[1-9]\d{0,2})(?:-(?P<wasm_precision>int8))?|N)"
    r"|webgpu-(?P<runner>stock|fast(?:-nocapture)?)(?:-(?P<build>jspi|asyncify))?(?:-(?P<webgpu_precision>float16))?"
)
KNOWN_NAMES = (
    "wasm-1, wasm-2 (any thread count), wasm-N (the machine's best), webgpu-stock, webgpu-fast, webgpu-fast-nocapture; "
    "webgpu ones may add a build (-jspi, -asyncify), and a precision may follow (-int8 on wasm, -float16 on webgpu)"
)
FLOAT32 = "float32"


class EngineError(AppError):
    """An engine could not do what it was asked: ``EngineTimeout``, ``WebGpuUnavailable``, ``BadScores`` and others."""


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """What is requested of an engine. Its name says its configuration.

    Attributes
    ----------
    name : str
        ``wasm-1``, ``wasm-4``, ``webgpu-stock`` …
    provider : str
        Execution provider: ``wasm``, ``webgpu``, or ``cpu`` for onnxruntime on CPython.
    build : str
        Build of onnxruntime-web: ``wasm``, ``jspi``, ``asyncify``, or ``auto`` to let the browser's abilities decide.
    runner : str
        How one inference is run: ``stock`` is ``session.run`` with tensors on the CPU, ``fast`` keeps tensors on the GPU
        (``web/runners/gpu-fast.js``, which knows variants for benchmarks too).
    threads : int
        Threads asked for.
    spinning : bool
        Whether threads that wait for work keep a processor busy meanwhile, which disturbs the engine that runs next
        (``bench/spinning.py``).
    precision : str
        Which variant of the model it is meant for: ``float32``, ``float16`` or ``int8``. Whoever opens the engine gives it the
        model, and a GPU without 16-bit floats refuses ``float16``.
    strict : bool
        Whether to refuse a model of which a WebGPU engine would run a node on the CPU.
    """

    name: str
    provider: str
    build: str = "auto"
    runner: str = "stock"
    threads: int = 1
    spinning: bool = False
    precision: str = FLOAT32
    strict: bool = False

    @classmethod
    def parse(cls, name: str) -> EngineSpec:
        """Read an engine's name.

        Parameters
        ----------
        name : str
            For example ``wasm-4``. ``wasm-N`` stands for a measurement (`pyapp.threads.best_threads`), not for one engine.

        Raises
        ------
        ValueError
            If the name is not known; the message lists those that are.
        """
        match = NAME_PATTERN.fullmatch(name)
        if match is None:
            raise ValueError(f"unknown engine {name!r}; known are {KNOWN_NAMES}")
        precision = match["webgpu_precision"] or match["wasm_precision"] or FLOAT32
        if match["runner"]:
            return cls(name, "webgpu", build=match["build"] or "auto", runner=match["runner"], precision=precision)
        if match["threads"] is None:
            raise ValueError("wasm-N has no thread count until the machine's best one has been measured")
        return cls(name, "wasm", threads=int(match["threads"]), precision=precision)


@dataclass(frozen=True, slots=True)
class AdapterFacts:
    """The graphics adapter that a WebGPU engine runs on, as the browser describes it.

    `software` is true where the CPU imitates a GPU: its answers count, its speed says nothing about GPUs.
    """

    vendor: str
    architecture: str
    device: str
    description: str
    software: bool


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What an engine turned out to be.

    Attributes
    ----------
    provider, build, runner : str
        As in `EngineSpec`, but what really ran.
    threads : int
        Threads that the runtime says it has, which may be fewer than asked for.
    nodes : dict of str to int
        Nodes of the optimised graph per execution provider, counted in a profile; empty where there is none.
    adapter : AdapterFacts or None
        None for an engine without a GPU.
    clock_step_ms : float
        Step of the clock that times the engine, in milliseconds.
    fallbacks : list of str
        Why better ways of running the model were left, best first; the way that was taken is the end of `runner`.
    """

    provider: str
    build: str
    runner: str
    threads: int
    nodes: dict[str, int] = field(default_factory=dict)
    adapter: AdapterFacts | None = None
    clock_step_ms: float = 0.0
    fallbacks: list[str] = field(default_factory=list)

    @property
    def software(self) -> bool:
        """Whether the CPU imitates the GPU: then the engine's answers count, and its time is never compared."""
        return self.adapter is not None and self.adapter.software

    @property
    def fallback_nodes(self) -> int:
        """Nodes that ran on the CPU although a GPU was asked for."""
        if self.provider != "webgpu":
            return 0
        return sum(count for provider, count in self.nodes.items() if "WebGpu" not in provider)


@dataclass(frozen=True, slots=True)
class NodeProfile:
    """One node as the profile saw it run: its name, operator, execution provider and time in microseconds.

    `shape` says what it gave, as in ``float[1,32,20,20]``; several outputs are apart by a space.
    """

    name: str
    op: str
    provider: str
    us: float
    shape: str = ""


@dataclass(frozen=True, slots=True)
class TimedBlock:
    """A block of timed runs.

    Attributes
    ----------
    samples_ms : float64 [n]
        Milliseconds from the call until every output can be read, in run order.
    bad : int
        Runs whose outputs were non-finite or all zero.
    """

    samples_ms: NDArray[np.float64]
    bad: int


@dataclass(frozen=True, slots=True)
class StageTimes:
    """Where the time of runs went.

    Attributes
    ----------
    stages_ms : dict of str to float64 [n]
        Milliseconds of each run's stages, in the order in which a run goes through them. On a GPU: ``upload``, ``dispatch``,
        ``compute``, ``wait`` and ``readback``; on a CPU: ``upload`` and ``readback``, which are copies, and ``compute``.
    compute_from : str
        How the ``compute`` stage was measured.
    floor_ms : float64 [n] or None
        Milliseconds of an empty dispatch and its readback on the same device; None without a GPU.
    """

    stages_ms: dict[str, NDArray[np.float64]]
    compute_from: str
    floor_ms: NDArray[np.float64] | None


type Running = Coroutine[Any, Any, tuple[dict[str, NDArray[Any]], float]]
"""A run that is awaited for its outputs by name, and the milliseconds that it took."""


class Engine(Protocol):
    """A model in one configuration, ready to run.

    An engine works through its calls one at a time. Any call may raise `EngineError`; after ``EngineTimeout``,
    ``EngineCrashed`` or ``EngineEnded`` the engine is gone and a new one has to be opened.
    """

    @property
    def spec(self) -> EngineSpec:
        """What was requested."""

    @property
    def facts(self) -> EngineFacts:
        """What it turned out to be."""

    @property
    def create_ms(self) -> float:
        """Time to create the session, in milliseconds; downloads excluded."""

    async def run(self, inputs: Tensors, *, limit_s: float = 60.0) -> dict[str, NDArray[Any]]:
        """Run the model once and return its outputs by name; after `limit_s` seconds the engine may be ended."""

    async def run_timed(self, inputs: Tensors, *, limit_s: float = 60.0) -> tuple[dict[str, NDArray[Any]], float]:
        """Do what `run` does; return the outputs, and the milliseconds of what `time` would have timed."""

    def begin(self, inputs: Tensors, *, limit_s: float = 60.0) -> Running | None:
        """Begin what `run_timed` does, and return what to await for the answer, before anything else is asked.

        The caller can work meanwhile. None, and nothing has begun, where the engine works only while it is waited for.
        """

    async def time(self, inputs: Tensors, runs: int, *, limit_s: float = 60.0) -> TimedBlock:
        """Time `runs` runs where the work is done; `limit_s` bounds one run, in seconds."""

    async def profile(self, inputs: Tensors) -> list[NodeProfile]:
        """Run the model once in a session of its own that records which provider ran which node."""

    async def stages(self, inputs: Tensors, runs: int) -> StageTimes:
        """Measure where the time of a run goes, `runs` times, in a session of its own; see `pyapp.stages`."""

    async def close(self) -> None:
        """End the engine and free what it holds. Closing twice is harmless."""


class OpenEngine(Protocol):
    """Opens engines on whatever this program runs on: a browser's workers, CPython, or a test's fakes."""

    async def __call__(self, spec: EngineSpec, model: bytes) -> Engine:
        """Open `model` (an ONNX file) in the configuration `spec`.

        Raises
        ------
        EngineError
            If the engine cannot be had here; the message says why.
        """
