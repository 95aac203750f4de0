"""The agent's board in the page: what its controls do, and what it tells the page while it plays."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from pyapp.breakout.agent import Agent, FunctionPolicy, Policy
from pyapp.breakout.loop import Loop, Runner, described
from pyapp.browser.atari import WasmEmulator, open_breakout
from pyapp.browser.bridge import to_plain
from pyapp.console import user_traceback
from pyapp.engine import EngineError, EngineSpec
from pyapp.errors import AppError
from pyapp.sections import loop_entries
from pyapp.strict import structure

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyodide.ffi import JsProxy

    from pyapp.breakout.environment import Breakout
    from pyapp.browser.bridge import JsBridge, JsGame
    from pyapp.engine import Engine, OpenEngine
    from pyapp.report import LoopEntry

TOLD_S = 1 / 20
"""The page hears of decisions that often, at most; of a change of state at once."""

LOOP_TOLD_S = 0.5
"""The page hears of the loop's times that often."""


class JsBoard(Protocol):
    """The board's half in JavaScript, `AgentBoard` of ``web/play/agent-board.js``."""

    wanted: bool
    shown: int
    missed: int
    gap: float

    def show(self, game: JsGame, played: int, /) -> float:
        """Queue the frames of the game's last play; return the milliseconds that this took."""

    def see(self, stack: JsProxy, /) -> float:
        """Draw what the agent sees, a ``Uint8Array`` of 28,224; return the milliseconds that this took."""

    def wait(self) -> Awaitable[None] | None:
        """Return a promise that is kept when the next decision is due, or undefined."""

    def draw_ms(self) -> float:
        """Return the milliseconds that putting frames on the canvas took since the last call."""

    def pace(self, speed: float, /) -> None:
        """Show the game at 1 or 2 times its speed; 0: as fast as it comes."""

    def hold(self, on: bool, /) -> None:
        """Stop the clock of the frames' deadlines, or start it again."""

    def clear(self) -> None:
        """Forget the frames that wait to be shown."""

    def reset_counts(self) -> None:
        """Begin counting shown and missed frames anew."""


class PageBoard:
    """The page's board as the loop knows it: a `Board`."""

    def __init__(self, board: JsBoard) -> None:
        self.js = board
        self._seeing_ms = 0.0

    def show(self, environment: Breakout, frames: int) -> float:
        """See `Board.show`."""
        emulator = environment.emulator
        if not isinstance(emulator, WasmEmulator):
            raise TypeError(f"only wasm's games can be drawn, not those of {emulator.body!r}")
        queued_ms = self.js.show(emulator.game, frames)
        seeing_ms, self._seeing_ms = self._seeing_ms, 0.0
        return float(queued_ms) + float(self.js.draw_ms()) + seeing_ms

    def see(self, observation: NDArray[np.uint8]) -> None:
        """See `Board.see`."""
        if self.js.wanted:
            self._seeing_ms = float(self.js.see(to_plain(observation.ravel())))

    def wait(self) -> Awaitable[None] | None:
        """See `Board.wait`."""
        return self.js.wait()


@dataclass(frozen=True, kw_only=True)
class PlaySettings:
    """What the agent's board is asked to do.

    Attributes
    ----------
    engine : str
        Who plays: ``wasm-1``, ``webgpu-stock`` …
    seed : int or None
        Of the game; None: any.
    sticky : float
        Chance that the emulator repeats an action, in 0..1.
    epsilon : float
        Chance of a random action, in 0..1.
    speed : float
        1 or 2 times the game's own, 0: as fast as possible.
    paused : bool
        Whether to wait for `AgentSide.resume`.
    """

    engine: str = "wasm-1"
    seed: int | None = None
    sticky: float = 0.0
    epsilon: float = 0.0
    speed: float = 1
    paused: bool = False

    def __post_init__(self) -> None:
        """Raise ``ValueError`` where the board could not do that; the environment checks the rest."""
        EngineSpec.parse(self.engine)
        check_speed(self.speed)


class AgentSide:
    """The agent's board: one game at a time, on one engine at a time."""

    def __init__(self, bridge: JsBridge, engines: OpenEngine, model: Callable[[], Awaitable[bytes]]) -> None:
        self._bridge = bridge
        self._engines = engines
        self._model = model
        self._board: PageBoard | None = None
        self._runner: Runner | None = None
        self._engine: Engine | None = None
        self._settings = PlaySettings()
        self._player: str | None = None
        self._told = 0.0
        self._loop_told = 0.0
        self._seconds = 0.0
        self._since: float | None = None
        self._busy = asyncio.Lock()

    def attach(self, board: JsBoard) -> None:
        """Take the page's board; a later one takes its place."""
        self._board = PageBoard(board)

    def start(self, settings: str) -> asyncio.Future[str]:
        """Open the game and the engine, and play.

        Parameters
        ----------
        settings
            `PlaySettings` as JSON.

        Returns
        -------
        future of str
            JSON: ``{"ok": true}`` or ``{"error": {"name", "message", "remedy"}}``.
        """
        return asyncio.ensure_future(self._answered(self._start(settings)))

    def engine(self, name: str) -> asyncio.Future[str]:
        """Let another engine play on from the same state; answers as `start` does. On an error the present one stays."""
        return asyncio.ensure_future(self._answered(self._exchange(name)))

    def stop(self) -> asyncio.Future[str]:
        """End the game and its engine; answers as `start` does."""
        return asyncio.ensure_future(self._answered(self._stop()))

    def restart(self, seed: int | None) -> asyncio.Future[str]:
        """Start another game; answers as `start` does."""
        return asyncio.ensure_future(self._answered(self._restart(seed)))

    def step(self) -> asyncio.Future[str]:
        """Make one decision, if the game is paused; answers as `start` does."""
        return asyncio.ensure_future(self._answered(self.runner.step()))

    def pause(self) -> None:
        """Hold the game; without one, nothing happens."""
        if self._runner:
            self._runner.pause()

    def resume(self) -> None:
        """Go on; without a game, nothing happens."""
        if self._runner:
            self._runner.resume()

    def speed(self, speed: float) -> None:
        """Play at 1 or 2 times the game's speed; 0: as fast as possible.

        Raises
        ------
        ValueError
            Any other number.
        """
        self.board.js.pace(check_speed(speed))
        self.board.js.reset_counts()

    def look(self) -> None:
        """Show what the agent sees now: its next decision may be a long time off. Without a game, nothing happens."""
        if self._runner:
            self.board.js.see(to_plain(self._runner.loop.environment.observation.ravel()))

    def count_anew(self) -> None:
        """Forget the times and the frames that were counted so far."""
        self.board.js.reset_counts()
        self.runner.loop.times.clear()
        self.runner.loop.late = 0

    def loop_section(self) -> str:
        """Return the report's loop section as JSON."""
        return json.dumps([asdict(entry) for entry in self.loop_entries()], allow_nan=False)

    def loop_entries(self) -> list[LoopEntry]:
        """Return the report's loop section, empty where nothing was played."""
        if self._runner is None:
            return []
        board = self.board.js
        loop = self._runner.loop
        return loop_entries(
            self._player or self._settings.engine,
            loop.times.summary(),
            missed_frames=int(board.missed),
            frames=int(board.shown),
            late=loop.late,
            software=self._software,
        )

    @property
    def _software(self) -> bool:
        return self._engine is not None and self._engine.facts.software

    async def play(self, policy: object) -> None:
        """Let a policy play on from the same state.

        Parameters
        ----------
        policy
            An object with `pyapp.breakout.agent.Policy.decide`; a function, as `pyapp.breakout.agent.FunctionPolicy` takes
            it; an object that can be called like one; or a class of either, which is made without arguments.

        Raises
        ------
        AppError
            ``NoGame``: none has been started.
        TypeError
            It is none of these.
        """
        made = policy() if isinstance(policy, type) else policy
        runner = self.runner
        if not hasattr(made, "decide"):
            if not callable(made):
                raise TypeError(f"a policy is a function, or has a method decide; {made!r:.80} is neither")
            made = FunctionPolicy(made, lambda: runner.loop.environment.emulator.ram().copy(), _print_error)
        self._player = getattr(policy, "__name__", type(policy).__name__)
        await runner.exchange(cast("Policy", made))
        self._tell(runner.state)

    @property
    def runner(self) -> Runner:
        """Who runs the game.

        Raises
        ------
        AppError
            ``NoGame``: none has been started.
        """
        if self._runner is None:
            raise AppError("NoGame", "no game has been started", "Press Start.")
        return self._runner

    @property
    def board(self) -> PageBoard:
        """Where it is shown.

        Raises
        ------
        AppError
            ``NoBoard``: the page has given none yet.
        """
        if self._board is None:
            raise AppError("NoBoard", "the page has given no board yet", "Press Start.")
        return self._board

    async def _start(self, settings: str) -> None:
        wanted = structure(json.loads(settings), PlaySettings, _bad_settings)
        async with self._busy:
            await self._end()
            self._settings, self._player = wanted, None
            self._tell("opening")
            board = self.board
            engine = await self._engines(EngineSpec.parse(wanted.engine), await self._model())
            try:
                agent = Agent(engine, epsilon=wanted.epsilon, seed=wanted.seed)
                environment = await open_breakout(self._bridge, repeat_action_probability=wanted.sticky)
            except BaseException:
                await engine.close()
                raise
            self._engine = engine
            board.js.clear()
            board.js.pace(wanted.speed)
            board.js.reset_counts()
            loop = Loop(environment, agent, board, hidden_count=self._bridge.hidden_count)
            await loop.restart(wanted.seed)
            self._seconds = 0.0
            self._runner = Runner(loop, board, self._changed)
            if not wanted.paused:
                self._runner.resume()
            self._changed(at_once=True)

    async def _exchange(self, name: str) -> None:
        spec = EngineSpec.parse(name)
        async with self._busy:
            runner = self.runner
            engine = await self._engines(spec, await self._model())
            before, self._engine = self._engine, engine
            agent = Agent(engine, epsilon=self._settings.epsilon, seed=self._settings.seed)
            await runner.exchange(agent)
            self._settings, self._player = replace(self._settings, engine=name), None
            self.board.js.reset_counts()
            if before:
                await before.close()
            self._changed(at_once=True)

    async def _restart(self, seed: int | None) -> None:
        async with self._busy:
            runner = self.runner
            self.board.js.clear()
            self._seconds, self._since = 0.0, time.perf_counter() if runner.state == "playing" else None
            await runner.restart(seed)
            self._changed(at_once=True)

    async def _stop(self) -> None:
        async with self._busy:
            await self._end()
            self._tell("stopped")

    async def _end(self) -> None:
        runner, self._runner = self._runner, None
        engine, self._engine = self._engine, None
        if runner:
            await runner.stop()
            runner.loop.environment.close()
        if engine:
            await engine.close()

    async def _answered(self, work: Awaitable[None]) -> str:
        try:
            await work
        except (EngineError, AppError) as error:
            return json.dumps({"error": described(error)})
        except ValueError as error:
            return json.dumps(
                {"error": {"name": "BadSettings", "message": str(error), "remedy": "Correct it and start again."}}
            )
        return '{"ok": true}'

    def _changed(self, *, at_once: bool = False) -> None:
        """Tell the page what is new, but not more often than it can be read, unless it waits for it."""
        runner = self._runner
        if runner is None:
            return
        now = time.perf_counter()
        playing = runner.state == "playing"
        if playing and self._since is None:
            self._since = now
            self.board.js.hold(False)
        elif not playing and self._since is not None:
            self._seconds += now - self._since
            self._since = None
            self.board.js.hold(True)
        if at_once or not playing or now - self._told >= TOLD_S:
            self._told = now
            self._tell(runner.state)
        if now - self._loop_told >= LOOP_TOLD_S:
            self._loop_told = now
            self._tell_loop(runner.loop)

    def _tell(self, state: str) -> None:
        told: dict[str, Any] = {"state": state, "engine": self._settings.engine, "player": self._player, "error": None}
        if runner := self._runner:
            loop = runner.loop
            last = loop.last
            told |= {
                "action": last.action if last else None,
                "q_values": None if last is None or last.q_values is None else [float(q) for q in last.q_values],
                "score": loop.score,
                "lives": loop.info["lives"],
                "decisions": loop.decisions,
                "frames": loop.frames,
                "games": loop.games,
                "seconds": self._seconds + (time.perf_counter() - self._since if self._since else 0.0),
                "error": described(runner.error) if runner.error else None,
            }
        self._bridge.emit("agent", json.dumps(told))

    def _tell_loop(self, loop: Loop) -> None:
        board = self.board.js
        stages = [
            {"stage": s.stage, "p50_ms": round(s.p50_ms, 4), "p95_ms": round(s.p95_ms, 4), "n": s.n}
            for s in loop.times.summary()
            if s.n
        ]
        told = {
            "engine": self._player or self._settings.engine,
            "stages": stages,
            "frames": int(board.shown),
            "missed_frames": int(board.missed),
            "worst_gap_ms": float(board.gap),
            "late_decisions": loop.late,
            "software": self._software,
        }
        self._bridge.emit("loop", json.dumps(told))


def check_speed(speed: float) -> float:
    """Return the speed if the board knows it.

    Raises
    ------
    ValueError
        It is none of 1, 2 and 0.
    """
    if isinstance(speed, bool) or speed not in (0, 1, 2):
        raise ValueError(f"speed must be 1, 2 or 0 (as fast as possible), got {speed!r}")
    return speed


def _bad_settings(faults: list[str]) -> ValueError:
    return ValueError("; ".join(faults))


def _print_error(error: BaseException) -> None:
    """Show where a policy went wrong: the board has room for its last line only."""
    print(user_traceback(error), file=sys.stderr)
