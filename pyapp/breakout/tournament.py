"""Many games for several engines: the same starts and the same random numbers for each, at full speed."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from dataclasses import dataclass, field
from itertools import batched, product
from typing import TYPE_CHECKING

import numpy as np

from pyapp.breakout.agent import ANSWER_LIMIT_S, Agent
from pyapp.breakout.games import Departure, Game, Start
from pyapp.engine import EngineError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from pyapp.breakout.environment import Breakout
    from pyapp.engine import Engine, Running

YIELD_EVERY = 32
"""Decisions between two looks at what else there is to do: an engine may answer without ever waiting."""

BY_TURNS = 2
"""Games that are open at once where each asks for itself."""

MANY = 8
"""Games side by side in one batch, where that is faster."""

TRIALS = 5
WORTH = 0.8
"""In a batch a decision must take at most this part of the time, or it is not worth another rounding."""


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
        Games whose states share a batch; 0: one, or `MANY` where an engine plays faster that way, as `fast_lanes` measures.
        A batch may be rounded differently from single states.

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
    over: bool = False
    truncated: bool = False
    departure: Departure | None = None

    def begin(self) -> None:
        """Start the game and play its opening."""
        self.environment.reset(self.start.seed)
        for action in self.start.actions():
            self.play(action)

    def game(self, epsilon: float) -> Game:
        """Return what was played."""
        actions = "".join(self.actions)
        return Game(start=self.start, score=self.score, truncated=self.truncated, actions=actions, epsilon=epsilon)

    def play(self, action: int) -> None:
        """Play one action."""
        self.actions.append(str(action))
        _, reward, terminated, self.truncated, _ = self.environment.step(action)
        self.score += reward
        self.over = terminated or self.truncated


class _Group:
    """Games whose states are one batch."""

    def __init__(self, lanes: Sequence[_Lane]) -> None:
        self.lanes = list(lanes)
        self.actions: list[int] = []
        self.states: NDArray[np.float32] = np.empty((0, 4, 84, 84), np.float32)
        self._width = len(lanes)

    def ask(self, engine: Engine) -> Running:
        """Ask for the next decision of each; what is returned must be awaited before another group asks.

        The batch keeps its size while games end, halving: for every size of its own, an engine may have to prepare anew.
        """
        while len(self.lanes) <= self._width // 2:
            self._width //= 2
        self.states = np.zeros((self._width, 4, 84, 84), np.float32)
        for state, lane in zip(self.states, self.lanes, strict=False):
            state[...] = lane.environment.observation
        inputs = {"observation": self.states}
        # Not `run`, which knows no fast lane.
        return engine.begin(inputs, limit_s=ANSWER_LIMIT_S) or engine.run_timed(inputs, limit_s=ANSWER_LIMIT_S)

    def choose(self, scores: NDArray[np.float32]) -> None:
        """Turn scores, float32 [lanes,4], into actions."""
        self.actions = [lane.agent.choose(q_values) for lane, q_values in zip(self.lanes, scores, strict=True)]

    def move(self, spent: float) -> None:
        """Play the actions; share out the time until now, and the seconds `spent` before."""
        for lane, action in zip(self.lanes, self.actions, strict=True):
            lane.play(action)
        share = (time.perf_counter() + spent) / len(self.lanes)
        for lane in self.lanes:
            lane.seconds += share

    def left(self) -> list[_Group]:
        """Let games go that are over, and return this group if any are left."""
        self.lanes = [lane for lane in self.lanes if not lane.over]
        return [self] if self.lanes else []


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
        starts, turn = self._settings.starts, max(BY_TURNS, *self._lanes.values())
        for at in range(0, len(starts), turn):
            for engine in self._engines:
                width = max(BY_TURNS, self.lanes(engine.spec.name))
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
        lanes = self._settings.lanes
        if not lanes:
            environment = await self._open()
            try:
                environment.reset(self._settings.starts[0].seed)
                lanes = await fast_lanes(engine, environment, len(self._settings.starts))
            finally:
                environment.close()
        self._lanes[engine.spec.name] = lanes

    async def _play(self, engine: Engine, starts: Sequence[Start]) -> None:
        """Play games that share a batch or, where they do not, two by turns: the engine works for one while the other moves."""
        lanes: list[_Lane] = []
        asked: tuple[_Group, Running] | None = None
        try:
            for start in starts:
                if (engine.spec.name, start) not in self._found:
                    lanes.append(await self._lane(engine, start))
                    lanes[-1].begin()
            rounds, width = 0, self.lanes(engine.spec.name)
            waiting = deque(_Group(batch) for batch in batched(lanes, width))
            while waiting or asked:
                self._playing = (engine.spec.name, [lane for lane in lanes if not lane.over])
                if rounds % YIELD_EVERY == 0:
                    self._on_progress(self)
                    await asyncio.sleep(0)
                await self._running.wait()
                if self._cancelled:
                    return
                rounds += 1
                begun = time.perf_counter()
                group, scores = (asked[0], await _scores(asked)) if asked else (None, None)
                answered = time.perf_counter()
                if group and scores is not None:
                    group.choose(scores)
                    await self._compare(group, scores)  # not in the time that is taken
                chosen = time.perf_counter()
                asked = None
                if waiting:
                    following = waiting.popleft()
                    asked = (following, following.ask(engine))
                if group:
                    group.move(answered - begun - chosen)
                    self._end([lane for lane in group.lanes if lane.over], engine.spec.name)
                    waiting.extend(group.left())
        finally:
            if asked:
                asked[1].close()
            for lane in lanes:
                lane.environment.close()

    def _end(self, ended: Sequence[_Lane], engine: str) -> None:
        for lane in ended:
            game = lane.game(float(self._settings.epsilon))
            if lane.expected and not lane.departure and game != lane.expected:
                raise _other_game(engine, game, lane.expected)
            self._found[engine, lane.start] = Finished(engine, game, lane.seconds, lane.departure)
            self._on_change(self)

    async def _lane(self, engine: Engine, start: Start) -> _Lane:
        agent = Agent(engine, epsilon=self._settings.epsilon, seed=start.seed)
        return _Lane(start, await self._open(), agent, self._reference.get(start))

    async def _compare(self, group: _Group, scores: NDArray[np.float32]) -> None:
        """Keep the first decision of each game that is not the reference's; called after each, before it is played."""
        for lane, action, state, q_values in zip(group.lanes, group.actions, group.states, scores, strict=False):
            decision = len(lane.actions)
            if lane.expected is None or lane.departure or decision >= lane.expected.decisions:
                continue
            expected = int(lane.expected.actions[decision])
            if action == expected:
                continue
            reference = q_values
            if self._referee:
                with contextlib.suppress(EngineError):  # the referee's fault is not the engine's
                    inputs = {"observation": state[np.newaxis]}
                    [reference] = (await self._referee.run(inputs, limit_s=ANSWER_LIMIT_S))["q_values"]
            seen = state.astype(np.uint8)
            lane.departure = Departure(lane.start, decision, action, expected, seen, q_values.copy(), reference.copy())


async def _scores(asked: tuple[_Group, Running]) -> NDArray[np.float32]:
    group, running = asked
    outputs, _ = await running
    scores: NDArray[np.float32] = outputs["q_values"][: len(group.lanes)]
    return scores


async def fast_lanes(engine: Engine, environment: Breakout, games: int, clock: Callable[[], float] = time.perf_counter) -> int:
    """Measure whether an engine plays faster with one state at a time or with `MANY` in a batch.

    Parameters
    ----------
    engine
        Who is to play.
    environment
        A game that was just begun.
    games
        How many there are to play.
    clock
        Seconds, from anywhere on.

    Returns
    -------
    int
        1 or `MANY`. A batch saves runs, but by turns the environment moves while an engine works that can be left alone.

    Raises
    ------
    EngineError
        The engine does not run.
    """
    if games < MANY:
        return 1
    begun = clock()
    for _ in range(TRIALS):
        environment.step(0)
    step_s = (clock() - begun) / TRIALS
    run_s = {}
    alone = False
    for width in (1, MANY):
        state = {"observation": np.zeros((width, 4, 84, 84), np.float32)}
        await engine.run_timed(state, limit_s=ANSWER_LIMIT_S)
        begun = clock()
        for _ in range(TRIALS):
            running = engine.begin(state, limit_s=ANSWER_LIMIT_S)
            alone |= running is not None
            await (running or engine.run_timed(state, limit_s=ANSWER_LIMIT_S))
        run_s[width] = (clock() - begun) / TRIALS
    by_turns_s = max(run_s[1], step_s) if alone else run_s[1] + step_s
    return MANY if run_s[MANY] / MANY + step_s < WORTH * by_turns_s else 1


def _other_game(engine: str, game: Game, expected: Game) -> EngineError:
    found, wanted = (f"{one.score:.0f} points in {one.decisions} decisions" for one in (game, expected))
    what = f"{engine} decided as Python does in the game with seed {game.start.seed}, but it ended with {found}, not {wanted}"
    return EngineError("OtherGame", what, "The emulator plays another game: build the site anew, then report it.")
