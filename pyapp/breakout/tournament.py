"""Many games for several engines: the same starts and the same random numbers for each, at full speed."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from pyapp.breakout.agent import ANSWER_LIMIT_S, Agent
from pyapp.breakout.games import Departure, Game, Start
from pyapp.engine import EngineError
from pyapp.stats import mean_interval
from pyapp.verdict import EngineGames

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from pyapp.breakout.environment import Breakout
    from pyapp.engine import Engine

YIELD_EVERY = 32
"""Decisions between two looks at what else there is to do: an engine may answer without ever waiting."""


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
        Games that are played side by side, their states in one batch; at least 1. More than one is faster where a batch
        costs less than its states one by one, but a batch may be rounded differently from single states.

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
        if isinstance(self.lanes, bool) or not isinstance(self.lanes, int) or self.lanes < 1:
            raise ValueError(f"lanes must be at least 1, got {self.lanes!r}")


@dataclass(frozen=True, slots=True)
class Finished:
    """A game, who played it, and how: `seconds` of play (a share of them, where games ran side by side)."""

    engine: str
    game: Game
    seconds: float
    departure: Departure | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """An engine's games so far.

    `low` and `high` bound the 95 % bootstrap interval of the mean score. Truncated games are counted, and their scores so
    far are part of the statistics. Speeds are over the seconds of play.
    """

    engine: str
    games: int
    truncated: int
    mean: float
    low: float
    high: float
    median: float
    min: float
    max: float
    mean_decisions: float
    decisions_per_s: float
    games_per_min: float
    departures: int
    unexplained: int


@dataclass(slots=True)
class _Lane:
    """One game that is being played."""

    start: Start
    environment: Breakout
    agent: Agent
    expected: str | None
    actions: list[str] = field(default_factory=list)
    score: float = 0.0
    seconds: float = 0.0
    departure: Departure | None = None

    def begin(self) -> None:
        """Start the game and play its opening."""
        self.environment.reset(self.start.seed)
        for action in self.start.actions():
            self.play(action)

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
        Games that every engine must play too, with epsilon 0: each is compared where its start is among those played.
    referee
        Whose scores stand for the reference's where a game departs. Without one, the engine's own.
    finished
        Games of an earlier, interrupted tournament with the same settings: they are not played again.
    on_change
        Called after each game.
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
    ) -> None:
        names = [engine.spec.name for engine in engines]
        if len(set(names)) < len(names) or not names:
            raise ValueError(f"a tournament needs engines with names of their own, got {', '.join(names) or 'none'}")
        self._engines = list(engines)
        self._open = open_environment
        self._settings = settings
        self._reference: Mapping[Start, Game] = {game.start: game for game in reference} if settings.epsilon == 0 else {}
        self._referee = referee
        self._found = {(one.engine, one.game.start): one for one in finished if one.engine in names}
        self._on_change = on_change
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

    async def play(self) -> list[Finished]:
        """Play what has not been played, and return all finished games.

        Engines take turns after every `lanes` games, so that what a cancelled tournament has can be compared.
        """
        starts, lanes = self._settings.starts, self._settings.lanes
        for at in range(0, len(starts), lanes):
            for engine in self._engines:
                if engine.spec.name not in self.failures and not self._cancelled:
                    await self._play(engine, starts[at : at + lanes])
        return self.finished

    def standings(self) -> list[Standing]:
        """Sum up the games of every engine that has finished one."""
        by_engine = {
            engine.spec.name: [one for one in self.finished if one.engine == engine.spec.name] for engine in self._engines
        }
        return [standing(games) for games in by_engine.values() if games]

    async def _play(self, engine: Engine, starts: Sequence[Start]) -> None:
        lanes: list[_Lane] = []
        try:
            for start in starts:
                if (engine.spec.name, start) not in self._found:
                    lanes.append(await self._lane(engine, start))
                    lanes[-1].begin()
            playing, decisions = list(lanes), 0
            while playing:
                if decisions % YIELD_EVERY == 0:
                    await asyncio.sleep(0)
                await self._running.wait()
                if self._cancelled:
                    return
                playing = await self._decide(engine, playing)
                decisions += 1
        except EngineError as error:
            self.failures[engine.spec.name] = error
        finally:
            for lane in lanes:
                lane.environment.close()

    async def _lane(self, engine: Engine, start: Start) -> _Lane:
        reference = self._reference.get(start)
        agent = Agent(engine, epsilon=self._settings.epsilon, seed=start.seed)
        return _Lane(start, await self._open(), agent, reference.actions if reference else None)

    async def _decide(self, engine: Engine, playing: list[_Lane]) -> list[_Lane]:
        """Make one decision in each game; return those that go on."""
        begun = time.perf_counter()
        observations = np.stack([lane.environment.observation for lane in playing])
        scores = (await engine.run({"observation": observations.astype(np.float32)}, limit_s=ANSWER_LIMIT_S))["q_values"]
        ended: list[tuple[_Lane, bool]] = []
        left: list[_Lane] = []
        for lane, q_values in zip(playing, scores, strict=True):
            over, truncated = lane.play(lane.agent.choose(q_values))
            if over:
                ended.append((lane, truncated))
            else:
                left.append(lane)
        share = (time.perf_counter() - begun) / len(playing)
        for lane, observation, q_values in zip(playing, observations, scores, strict=True):
            lane.seconds += share
            await self._compare(lane, observation, q_values)  # not in the time that is taken
        for lane, truncated in ended:
            game = Game(start=lane.start, score=lane.score, truncated=truncated, actions="".join(lane.actions))
            self._found[engine.spec.name, lane.start] = Finished(engine.spec.name, game, lane.seconds, lane.departure)
            self._on_change(self)
        return left

    async def _compare(self, lane: _Lane, observation: NDArray[np.uint8], q_values: NDArray[np.float32]) -> None:
        """Keep the first decision that is not the reference's; called after each, with what it was made from."""
        decision = len(lane.actions) - 1
        if lane.expected is None or lane.departure or decision >= len(lane.expected):
            return
        action, expected = int(lane.actions[decision]), int(lane.expected[decision])
        if action == expected:
            return
        asked = self._referee or lane.agent.engine
        inputs = {"observation": observation[np.newaxis].astype(np.float32)}
        [reference] = (await asked.run(inputs, limit_s=ANSWER_LIMIT_S))["q_values"]
        lane.departure = Departure(lane.start, decision, action, expected, observation.copy(), q_values.copy(), reference)


def standing(finished: Sequence[Finished], *, seed: int = 0) -> Standing:
    """Sum up the games of one engine; `seed` is the bootstrap's.

    Raises
    ------
    ValueError
        There are none.
    """
    scores = [one.game.score for one in finished]
    mean = mean_interval(scores, seed=seed)
    decisions = sum(one.game.decisions for one in finished)
    seconds = sum(one.seconds for one in finished)
    departures = [one.departure for one in finished if one.departure]
    return Standing(
        engine=finished[0].engine,
        games=len(finished),
        truncated=sum(one.game.truncated for one in finished),
        mean=mean.value,
        low=mean.low,
        high=mean.high,
        median=float(np.median(scores)),
        min=min(scores),
        max=max(scores),
        mean_decisions=decisions / len(finished),
        decisions_per_s=decisions / seconds if seconds else float("nan"),
        games_per_min=60 * len(finished) / seconds if seconds else float("nan"),
        departures=len(departures),
        unexplained=sum(not departure.explained for departure in departures),
    )


def engine_games(finished: Sequence[Finished], reference: Iterable[Game], *, seed: int = 0) -> EngineGames:
    """Return what `pyapp.verdict.verdict` wants to know of one engine's games, compared start by start with the reference's."""
    found = standing(finished, seed=seed)
    expected = {game.start: game.score for game in reference}
    pairs = [(one.game.score, expected[one.game.start]) for one in finished if one.game.start in expected]
    difference = mean_interval([score - other for score, other in pairs], seed=seed) if pairs else None
    return EngineGames(
        engine=found.engine,
        games=found.games,
        mean=found.mean,
        low=found.low,
        high=found.high,
        departures=found.departures,
        unexplained=found.unexplained,
        reference_mean=float(np.mean([other for _, other in pairs])) if pairs else None,
        difference_low=difference.low if difference else None,
        difference_high=difference.high if difference else None,
    )
