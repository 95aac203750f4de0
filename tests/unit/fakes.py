"""Engines, hosts and listeners that do what a test says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np

from pyapp.cases import Suite
from pyapp.engine import EngineError, EngineFacts, EngineSpec, NodeProfile, StageTimes, TimedBlock
from pyapp.report import Section

ENVIRONMENT = {
    "user_agent": "a test",
    "platform": "none",
    "cores": 4,
    "memory_gib": None,
    "cross_origin_isolated": True,
    "secure_context": True,
    "webgpu": False,
    "jspi": False,
    "versions": {"pyapp": "0"},
}


def linear_scores(observation: np.ndarray) -> np.ndarray:
    """Scores that a suite and an engine can both work out exactly."""
    corners = observation[:, :, 0, 0].astype(np.float32)
    return corners @ np.diag([1, 2, 3, 4]).astype(np.float32)


def make_suite(name: str = "states", count: int = 6, seed: int = 0) -> Suite:
    rng = np.random.default_rng(seed)
    observation = np.zeros((count, 4, 84, 84), dtype=np.uint8)
    observation[:, :, 0, 0] = rng.integers(1, 200, size=(count, 4))
    scores = linear_scores(observation)
    return Suite(name, observation, scores, scores.argmax(axis=1))


class FakeEngine:
    """An engine that answers and takes as long as it is told; it counts how often it was asked."""

    def __init__(
        self,
        spec: EngineSpec,
        *,
        scores: Callable[[np.ndarray], np.ndarray] = linear_scores,
        ms: Callable[[int], float] = lambda run: 1.0 + run * 0.001,
        facts: EngineFacts | None = None,
        bad: int = 0,
        fail_after: int | None = None,
        on_time: Callable[[str, int], None] = lambda name, runs: None,
        stages: dict[str, float] | EngineError | None = None,
    ) -> None:
        self.spec = spec
        self.facts = facts or EngineFacts(spec.provider, "fake", spec.runner, spec.threads, clock_step_ms=0.0005)
        self.create_ms = 12.0
        self.closed = 0
        self.runs = 0
        self.asked = 0
        self._scores, self._ms, self._bad, self._fail_after, self._on_time = scores, ms, bad, fail_after, on_time
        self._stages = stages or {"compute": 1.0}

    async def run(self, inputs: dict[str, np.ndarray], *, limit_s: float = 60.0) -> dict[str, np.ndarray]:
        return (await self.run_timed(inputs))[0]

    def begin(self, inputs: dict[str, np.ndarray], *, limit_s: float = 60.0) -> Any:
        return None

    async def run_timed(self, inputs: dict[str, np.ndarray], *, limit_s: float = 60.0) -> tuple[dict[str, np.ndarray], float]:
        self.asked += 1
        await asyncio.sleep(0)
        return {"q_values": self._scores(inputs["observation"])}, self._ms(0)

    async def time(self, inputs: dict[str, np.ndarray], runs: int, *, limit_s: float = 60.0) -> TimedBlock:
        await asyncio.sleep(0)
        if self._fail_after is not None and self.runs + runs > self._fail_after:
            raise EngineError("EngineTimeout", f"{self.spec.name} hung", "Leave it out.")
        self._on_time(self.spec.name, runs)
        samples = np.array([self._ms(self.runs + index) for index in range(runs)])
        self.runs += runs
        return TimedBlock(samples, self._bad)

    async def profile(self, inputs: dict[str, np.ndarray]) -> list[NodeProfile]:
        return [NodeProfile("conv", "Conv", "CPUExecutionProvider", 5.0)]

    async def stages(self, inputs: dict[str, np.ndarray], runs: int) -> StageTimes:
        if isinstance(self._stages, EngineError):
            raise self._stages
        times = {name: np.full(runs, ms) for name, ms in self._stages.items()}
        return StageTimes(times, "a test", np.full(runs, 0.1) if self.spec.provider == "webgpu" else None)

    async def close(self) -> None:
        self.closed += 1


class FakeHost:
    """A page that is never hidden, unless told otherwise."""

    def __init__(self, **environment: Any) -> None:
        self._environment = ENVIRONMENT | environment
        self.hides = 0

    def environment(self) -> dict[str, Any]:
        return dict(self._environment)

    def hidden_count(self) -> int:
        return self.hides

    def hidden(self) -> bool:
        return False


class Recorder:
    """A listener that keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, int, int]] = []
        self.sections: list[tuple[str, Section]] = []

    def progress(self, stage: str, done: int, total: int) -> None:
        self.heard.append((stage, done, total))

    def section(self, name: str, section: Section) -> None:
        self.sections.append((name, section))


class FakeBreakout:
    """A game of 7 + seed decisions; what is seen hangs on every action so far, and an action is worth its number."""

    open_now = 0

    @classmethod
    async def opened(cls, cap: int = 100) -> Any:
        return cls(cap)

    def __init__(self, cap: int) -> None:
        FakeBreakout.open_now += 1
        self.cap = cap

    def reset(self, seed: int) -> None:
        self.random, self.left, self.steps = np.random.default_rng(seed), 7 + seed, 0
        self._look(0)

    def _look(self, action: int) -> None:
        self.observation = np.zeros((4, 84, 84), np.uint8)
        self.observation[:, 0, 0] = self.random.integers(1, 200, size=4) + action

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.left -= 1
        self.steps += 1
        self._look(action)
        over = self.left == 0
        return self.observation, float(action), over, not over and self.steps >= self.cap, {}

    def close(self) -> None:
        FakeBreakout.open_now -= 1
