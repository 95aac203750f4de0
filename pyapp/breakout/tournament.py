"""Many games for several engines: the same starts and the same random numbers for each, at full speed."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from pyapp.breakout.agent import ANSWER_LIMIT_S, Agent
from pyapp.breakout.games import Departure, Game, Start
from pyapp.engine import EngineError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from pyapp.breakout.environment import Breakout
    from pyapp.engine import Engine

YIELD_EVERY = 32
"""Decisions between two looks at what else there is to do: an engine may answer without ever waiting."""

MANY = 8
"""Games side by side, where that is faster."""

TRIALS = 5
WORTH = 0.8
"""A batch must cost at most this part of its states one by one, or it is not worth another rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TournamentSettings:
    """What is played.

    Attributes
    ----------
    starts
        One game each, for every engine.
    epsilon
        Chance of a random action, in 0..1; its random numbers hang on a game's seed alone.
    lanes
        Games that are played side by side, their states in one batch; 0: one, or `MANY` where an engine is measured to be
        faster that way. A batch may be rounded differently from single states.

    Raises
    ------
    ValueError
        There is no start, two are the same, or a number is out of its range.
    """

    starts: tuple[Start, ...] = tuple(Start(seed=seed) for seed in range(30))
    epsilon: float = 0.01
    lanes: int = 1

    def __post_init__(self) -> None:
        if not self.starts:
            raise ValueError("there are no games to play; give at least one start")
        if len(set(self.starts)) < len(self.starts):
            raise ValueError("two games have the same start; give each its own seed or opening")
        if isinstance(self.epsilon, bool) or not 0 <= self.epsilon <= 1:
            raise ValueError(f"epsilon must be in 0..1, got {self.epsilon!r}")
        if isinstance(self.lanes, bool) or not isinstance(self.lanes, int) or self.lanes < 0:
            raise ValueError(f"lanes must be at least 1, or 0 for as many as are fast, got {self.lanes!r}")


@dataclass(frozen=True, slots=True)
class Finished:
    """A game, who played it, and how: `seconds` of play (a share of them, where games ran side by side)."""

    engine: str
    game: Game
    seconds: float
    departure: Departure | None = None


@dataclass(frozen=True, slots=True)
class Playing:
    """A game that is being played, and how far it is."""

    engine: str
    start: Start
    decisions: int
    score: float


@dataclass(slots=True)
class _Lane:
    """One game that is being played."""

    start: Start
    environment: Breakout
    agent: Agent
    expected: Game | None
    actions: list[str] = field(default_factory=list)
    score: float = 0.0
    seconds: float = 0.0
    departure: Departure | None = None

    def begin(self) -> None:
        """Start the game and play its opening."""
        self.environment.reset(self.start.seed)
        for action in self.start.actions():
            self.play(action)

    def game(self, truncated: bool, epsilon: float) -> Game:
        """Return what was played."""
        actions = "".join(self.actions)
        return Game(start=self.start, score=self.score, truncated=truncated, actions=actions, epsilon=epsilon)

    def play(self, action: int) -> tuple[bool, bool]:
        """Play one action; return whether the game is over, and whether it was cut off."""
        self.actions.append(str(action))
        _, reward, terminated, truncated, _ = self.environment.step(action)
        self.score += reward
        return terminated or truncated, truncated


class Tournament:
    """Plays every start with every engine; can be paused, cancelled, and taken up again.

    Parameters
    ----------
    engines
        Who plays; the caller closes them.
    open_environment
        Makes one environment, with sticky actions and frame cap as wanted; the tournament closes it.
    settings
        What is played.
    reference
        Games that every engine must play too: each is compared where its start and epsilon are those played.
    referee
        Whose scores stand for the reference's where a game departs. Without one, or where it fails, the engine's own, which
        explain nothing.
    finished
        Games of an earlier, interrupted tournament with the same settings: they are not played again.
    on_change
        Called after each game.
    on_progress
        Called every few decisions; `playing` says how far the games are.
    """

    def __init__(
        self,
        engines: Sequence[Engine],
        open_environment: Callable[[], Awaitable[Breakout]],
        settings: TournamentSettings,
        *,
        reference: Iterable[Game] = (),
        referee: Engine | None = None,
        finished: Iterable[Finished] = (),
        on_change: Callable[[Tournament], None] = lambda tournament: None,
        on_progress: Callable[[Tournament], None] = lambda tournament: None,
    ) -> None:
        names = [engine.spec.name for engine in engines]
        if len(set(names)) < len(names) or not names:
            raise ValueError(f"a tournament needs engines with names of their own, got {', '.join(names) or 'none'}")
        self._engines = list(engines)
        self._open = open_environment
        self._settings = settings
        self._reference = {game.start: game for game in reference if game.epsilon == settings.epsilon}
        self._referee = referee
        self._found = {(one.engine, one.game.start): one for one in finished if one.engine in names}
        self._on_change = on_change
        self._on_progress = on_progress
        self._lanes: dict[str, int] = {}
        self._playing: tuple[str, Sequence[_Lane]] = ("", ())
        self._running = asyncio.Event()
        self._running.set()
        self._cancelled = False
        self.failures: dict[str, EngineError] = {}
        """Why an engine plays no more, by its name; the others go on."""

    @property
    def total(self) -> int:
        """How many games there are to play, finished ones included."""
        return len(self._engines) * len(self._settings.starts)

    @property
    def finished(self) -> list[Finished]:
        """Whole games, by start and then by engine, whatever the order in which they ended."""
        order = product(self._settings.starts, (engine.spec.name for engine in self._engines))
        return [self._found[name, start] for start, name in order if (name, start) in self._found]

    def pause(self) -> None:
        """Hold all games after the decision that is being made."""
        self._running.clear()

    def resume(self) -> None:
        """Go on after `pause`."""
        self._running.set()

    def cancel(self) -> None:
        """End after the decision that is being made. Finished games are kept, unfinished ones are not."""
        self._cancelled = True
        self._running.set()

    @property
    def playing(self) -> list[Playing]:
        """The games that are being played."""
        engine, lanes = self._playing
        return [Playing(engine, lane.start, len(lane.actions), lane.score) for lane in lanes]

    def lanes(self, engine: str) -> int:
        """Return how many games an engine plays side by side; 1 as long as it has not played."""
        return self._lanes.get(engine, 1)

    async def play(self) -> list[Finished]:
        """Play what has not been played, and return all finished games.

        Engines take turns after every few games, so that what a cancelled tournament has can be compared.
        """
        for engine in self._engines:
            await self._guarded(engine, self._choose_lanes(engine))
        starts, turn = self._settings.starts, max(self._lanes.values(), default=1)
        for at in range(0, len(starts), turn):
            for engine in self._engines:
                width = self.lanes(engine.spec.name)
                for first in range(at, min(at + turn, len(starts)), width):
                    if not self._cancelled and engine.spec.name not in self.failures:
                        await self._guarded(engine, self._play(engine, starts[first : min(first + width, at + turn)]))
        self._playing = ("", ())
        return self.finished

    async def _guarded(self, engine: Engine, work: Awaitable[None]) -> None:
        """Let an engine that fails play no more; the others go on."""
        try:
            await work
        except EngineError as error:
            self.failures[engine.spec.name] = error

    async def _choose_lanes(self, engine: Engine) -> None:
        self._lanes[engine.spec.name] = self._settings.lanes or await fast_lanes(engine, len(self._settings.starts))

    async def _play(self, engine: Engine, starts: Sequence[Start]) -> None:
        lanes: list[_Lane] = []
        try:
            for start in starts:
                if (engine.spec.name, start) not in self._found:
                    lanes.append(await self._lane(engine, start))
                    lanes[-1].begin()
            playing, decisions, width = list(lanes), 0, len(lanes)
            while playing:
                self._playing = (engine.spec.name, playing)
                if decisions % YIELD_EVERY == 0:
                    self._on_progress(self)
                    await asyncio.sleep(0)
                await self._running.wait()
                if self._cancelled:
                    return
                while len(playing) <= width // 2:
                    width //= 2
                playing = await self._decide(engine, playing, width)
                decisions += 1
        finally:
            for lane in lanes:
                lane.environment.close()

    async def _lane(self, engine: Engine, start: Start) -> _Lane:
        agent = Agent(engine, epsilon=self._settings.epsilon, seed=start.seed)
        return _Lane(start, await self._open(), agent, self._reference.get(start))

    async def _decide(self, engine: Engine, playing: list[_Lane], width: int) -> list[_Lane]:
        """Make one decision in each game; return those that go on.

        The batch is padded to `width` states: for every size of its own, an engine may have to prepare anew.
        """
        begun = time.perf_counter()
        batch = np.zeros((width, 4, 84, 84), np.float32)
        for state, lane in zip(batch, playing, strict=False):
            state[...] = lane.environment.observation
        # Not `run`, which knows no fast lane.
        answer, _ = await engine.run_timed({"observation": batch}, limit_s=ANSWER_LIMIT_S)
        scores = answer["q_values"][: len(playing)]
        ended: list[tuple[_Lane, bool]] = []
        left: list[_Lane] = []
        for lane, q_values in zip(playing, scores, strict=True):
            over, truncated = lane.play(lane.agent.choose(q_values))
            if over:
                ended.append((lane, truncated))
            else:
                left.append(lane)
        share = (time.perf_counter() - begun) / len(playing)
        for lane, state, q_values in zip(playing, batch, scores, strict=False):
            lane.seconds += share
            await self._compare(lane, state, q_values)  # not in the time that is taken
        for lane, truncated in ended:
            game = lane.game(truncated, float(self._settings.epsilon))
            if lane.expected and not lane.departure and game != lane.expected:
                raise _other_game(engine.spec.name, game, lane.expected)
            self._found[engine.spec.name, lane.start] = Finished(engine.spec.name, game, lane.seconds, lane.departure)
            self._on_change(self)
        return left

    async def _compare(self, lane: _Lane, state: NDArray[np.float32], q_values: NDArray[np.float32]) -> None:
        """Keep the first decision that is not the reference's; called after each, with what it was made from."""
        decision = len(lane.actions) - 1
        if lane.expected is None or lane.departure or decision >= lane.expected.decisions:
            return
        action, expected = int(lane.actions[decision]), int(lane.expected.actions[decision])
        if action == expected:
            return
        reference = q_values
        if self._referee:
            with contextlib.suppress(EngineError):  # the referee's fault is not the engine's
                [reference] = (await self._referee.run({"observation": state[np.newaxis]}, limit_s=ANSWER_LIMIT_S))["q_values"]
        seen = state.astype(np.uint8)
        lane.departure = Departure(lane.start, decision, action, expected, seen, q_values.copy(), reference.copy())


async def fast_lanes(engine: Engine, games: int) -> int:
    """Measure how many of so many games are best played side by side: 1, or `MANY`.

    Raises
    ------
    EngineError
        The engine does not run.
    """
    if games < MANY:
        return 1
    seconds = {}
    for width in (1, MANY):
        state = {"observation": np.zeros((width, 4, 84, 84), np.float32)}
        await engine.run_timed(state)
        begun = time.perf_counter()
        for _ in range(TRIALS):
            await engine.run_timed(state, limit_s=ANSWER_LIMIT_S)
        seconds[width] = time.perf_counter() - begun
    return MANY if seconds[MANY] < WORTH * MANY * seconds[1] else 1


def _other_game(engine: str, game: Game, expected: Game) -> EngineError:
    found, wanted = (f"{one.score:.0f} points in {one.decisions} decisions" for one in (game, expected))
    what = f"{engine} decided as Python does in the game with seed {game.start.seed}, but it ended with {found}, not {wanted}"
    return EngineError("OtherGame", what, "The emulator plays another game: build the site anew, then report it.")
