"""The agent's loop: infer, decide, let the emulator play, look, draw; each stage timed while it runs."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from pyapp.errors import AppError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from numpy.typing import NDArray

    from pyapp.breakout.agent import Decision, Policy
    from pyapp.breakout.environment import Breakout, Info

STAGES: Final = ("capture", "preprocess", "hand-over", "compute", "decide", "draw", "decision")
"""Parts of one decision, and the whole of it: from the observation to the frames handed to the screen, without waiting.

*capture* is the emulator's frames with their max-pool, *preprocess* resize and stack, *compute* the engine's own time,
*hand-over* what else passes until its scores are here, *decide* the choice of an action, *draw* the frames' way to the canvas.
"""

DEADLINE_MS: Final = 4 * 1000 / 60
"""A decision that takes longer than its four frames are shown is late."""

KEPT: Final = 16_384
"""Decisions whose times are kept, the newest ones: 18 minutes at normal speed, and no more memory however long a game is."""


class Board(Protocol):
    """Where a game is shown."""

    def show(self, environment: Breakout, frames: int) -> float:
        """Queue the frames of the last step; return the milliseconds that drawing took since the last call."""

    def see(self, observation: NDArray[np.uint8]) -> None:
        """Show what the agent sees, where somebody wants to see it."""

    def wait(self) -> Awaitable[None] | None:
        """Return what to await before the next decision; None where there is no need to wait."""


@dataclass(frozen=True, slots=True)
class StageSummary:
    """The times of one stage, in milliseconds: numpy's linear percentiles of `n` decisions, NaN without any."""

    stage: str
    p50_ms: float
    p95_ms: float
    n: int


class StageTimes:
    """The stages' times of the newest `KEPT` decisions."""

    def __init__(self) -> None:
        # No array: storing a row in one takes twenty times as long, and is done for every decision.
        self._rows: deque[tuple[float, ...]] = deque(maxlen=KEPT)

    def add(self, row: tuple[float, ...]) -> None:
        """Add one decision's times, in the order of `STAGES`, in milliseconds."""
        self._rows.append(row)

    def clear(self) -> None:
        """Forget all."""
        self._rows.clear()

    @property
    def kept(self) -> NDArray[np.float64]:
        """The times, float64 [n,7], milliseconds, oldest first."""
        return np.array(self._rows, np.float64).reshape(-1, len(STAGES))

    def summary(self) -> list[StageSummary]:
        """Return P50 and P95 of every stage."""
        kept = self.kept
        if not len(kept):
            return [StageSummary(stage, float("nan"), float("nan"), 0) for stage in STAGES]
        p50, p95 = np.percentile(kept, [50, 95], axis=0)
        return [StageSummary(stage, float(a), float(b), len(kept)) for stage, a, b in zip(STAGES, p50, p95, strict=True)]


class Loop:
    """A policy playing on a board, decision by decision.

    Attributes
    ----------
    policy : Policy
        Who plays; may be replaced between two decisions (`exchange`).
    times : StageTimes
        What the decisions took.
    late : int
        Decisions that took longer than `DEADLINE_MS`.
    score, decisions, frames, games
        Of the running game, and how many games have ended.

    Parameters
    ----------
    environment
        The game; the caller closes it.
    policy
        Who plays first.
    board
        Where it is shown.
    hidden_count
        How often the tab has been hidden: a decision during which that changed is not counted.
    measure
        Whether to time the stages.
    """

    def __init__(
        self,
        environment: Breakout,
        policy: Policy,
        board: Board,
        *,
        hidden_count: Callable[[], int] = lambda: 0,
        measure: bool = True,
    ) -> None:
        self.environment = environment
        self.policy = policy
        self.times = StageTimes()
        self.measure = measure
        self.late = 0
        self.games = 0
        self.last: Decision | None = None
        self.score = 0.0
        self.decisions = 0
        self.frames = 0
        self._board = board
        self._hidden_count = hidden_count
        self._hides = hidden_count()
        self._lock = asyncio.Lock()
        self._info: Info = environment.info()

    @property
    def info(self) -> Info:
        """What the environment last said beside the observation."""
        return self._info

    async def restart(self, seed: int | None) -> None:
        """Start another game; see `Breakout.reset`."""
        async with self._lock:
            observation, self._info = self.environment.reset(seed)
            self.score, self.decisions, self.frames, self.last = 0.0, 0, 0, None
            self._board.see(observation)

    async def exchange(self, policy: Policy) -> Policy:
        """Let somebody else play from the next decision on; return who played before, and is through."""
        async with self._lock:
            before, self.policy = self.policy, policy
            self.times.clear()
            self.late = 0
            return before

    async def step(self) -> bool:
        """Make one decision and play it; return whether the game goes on.

        Raises
        ------
        Exception
            Whatever the policy raises. The game is as it was before.
        RuntimeError
            No game is running.
        """
        async with self._lock:
            return await (self._measured() if self.measure else self._unmeasured())

    async def _measured(self) -> bool:
        environment, clock = self.environment, time.perf_counter
        started = clock()
        decision = await self.policy.decide(environment.observation, self._info)
        decided = clock()
        reward, terminated, truncated = environment.advance(decision.action)
        captured = clock()
        observation = environment.observe()
        observed = clock()
        self._note(decision, reward)
        self._board.see(observation)
        draw_ms = self._board.show(environment, environment.played)
        ended = clock()
        hides, self._hides = self._hides, self._hidden_count()
        if self._hides == hides:
            whole = (ended - started) * 1000
            self.late += whole > DEADLINE_MS
            self.times.add(
                (
                    (captured - decided) * 1000,
                    (observed - captured) * 1000,
                    decision.infer_ms - decision.compute_ms,
                    decision.compute_ms,
                    (decided - started) * 1000 - decision.infer_ms,
                    draw_ms,
                    whole,
                )
            )
        return self._goes_on(ended=terminated or truncated)

    async def _unmeasured(self) -> bool:
        """Do what `_measured` does without a clock: what measuring costs is the difference (``bench/loop.py``)."""
        environment = self.environment
        decision = await self.policy.decide(environment.observation, self._info)
        reward, terminated, truncated = environment.advance(decision.action)
        observation = environment.observe()
        self._note(decision, reward)
        self._board.see(observation)
        self._board.show(environment, environment.played)
        return self._goes_on(ended=terminated or truncated)

    def _note(self, decision: Decision, reward: float) -> None:
        self.last = decision
        self.score += reward
        self.decisions += 1
        self.frames += self.environment.played
        self._info = self.environment.info()

    def _goes_on(self, *, ended: bool) -> bool:
        self.games += ended
        return not ended


class Runner:
    """Runs a loop until somebody holds it: pause, step, restart, another policy, in any order.

    Attributes
    ----------
    state : str
        ``playing``, ``paused``, ``over`` (the game has ended), ``failed`` (the policy raised `error`), ``stopped``.
    error : AppError or None
        Why it failed.

    Parameters
    ----------
    loop
        What to run.
    board
        Whose pace to keep.
    changed
        Called after every decision, and when the state changes.
    """

    def __init__(self, loop: Loop, board: Board, changed: Callable[[], None]) -> None:
        self.loop = loop
        self.state = "paused"
        self.error: BaseException | None = None
        self._board = board
        self._changed = changed
        self._go = asyncio.Event()
        self._task = asyncio.ensure_future(self._run())

    def pause(self) -> None:
        """Hold the game before its next decision."""
        if self.state == "playing":
            self._enter("paused")

    def resume(self) -> None:
        """Go on; where the game is over or has failed, nothing happens."""
        if self.state == "paused":
            self._enter("playing")

    async def step(self) -> None:
        """Make one decision, if the game is paused."""
        if self.state == "paused":
            await self._step()

    async def restart(self, seed: int | None) -> None:
        """Start another game, and play on unless the game was paused or its policy is lost."""
        await self.loop.restart(seed)
        self._enter("playing" if self.state == "over" else self.state)

    async def exchange(self, policy: Policy) -> Policy:
        """Let somebody else play on from the same state; return who played before."""
        before = await self.loop.exchange(policy)
        self.error = None
        if self.state == "failed":
            self._enter("playing" if self.loop.environment.playing else "over")
        return before

    async def stop(self) -> None:
        """End it for good."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._enter("stopped")

    async def _run(self) -> None:
        while True:
            await self._go.wait()
            await self._step()
            if (waiting := self._board.wait()) is not None:
                await waiting

    async def _step(self) -> None:
        try:
            goes_on = await self.loop.step()
        except Exception as error:  # a policy is somebody else's code: whatever it raises ends its game, and nothing else
            self.error = error
            self._enter("failed")
            return
        if goes_on:
            self._changed()
        else:
            self._enter("over")

    def _enter(self, state: str) -> None:
        self.state = state
        if state == "playing":
            self._go.set()
        else:
            self._go.clear()
        self._changed()


def described(error: BaseException) -> dict[str, str]:
    """Return an error as the page shows it: name, message, remedy."""
    if isinstance(error, AppError):
        return {"name": error.kind, "message": error.message, "remedy": error.remedy}
    return {"name": type(error).__name__, "message": str(error), "remedy": ""}
