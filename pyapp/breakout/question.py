"""Do all engines score the same in whole games? The tournament, as a question of the page."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from pyapp import report as r
from pyapp.breakout.games import MAX_OPENING, ReferenceGames, Start
from pyapp.breakout.scores import played_game, tournament_entry
from pyapp.breakout.tournament import MANY, Tournament, TournamentSettings
from pyapp.engine import EngineError, EngineSpec
from pyapp.host import DEFAULT_ENGINES, Hidden, Settings, require_engines, require_seed, require_within
from pyapp.opening import introduced, resolved, unnamed
from pyapp.sections import environment_entry, failed_entry, failure

if TYPE_CHECKING:
    from pyapp.breakout.environment import Breakout
    from pyapp.breakout.games import Game
    from pyapp.breakout.tournament import Finished
    from pyapp.cases import Suite
    from pyapp.engine import Engine, OpenEngine
    from pyapp.host import Host, Listener

GAMES = 30
MAX_GAMES = 1_000
GREEDY_OPENING = 20
"""Random decisions before a game in which the agent makes none: else only four games would differ."""

REFERENCE_PATH = "fixtures/games.json"
REFEREE = "wasm-1"
TOLD_S = 0.5
"""The listener hears of the games that often, at most."""

SHARE_OF_TELLING = 0.1
"""Of the time, where to sum up takes long: of a thousand games it does."""


@dataclass(frozen=True, kw_only=True)
class GamesSettings(Settings):
    """What to play.

    Attributes
    ----------
    engines : list of str
        Who plays.
    games, seed : int
        How many games, and the first one's seed; each later one's is one more.
    seeds : list of int
        If there are any, exactly these games are played instead.
    epsilon : float
        Chance of a random action, in 0..1; its random numbers are the same for every engine.
    opening : int or None
        Random decisions before the agent's first; None: `GREEDY_OPENING` where epsilon is 0, else none.
    lanes : int
        Games side by side; 0: as `pyapp.breakout.tournament.fast_lanes` measures.
    """

    engines: list[str] = field(default_factory=lambda: list(DEFAULT_ENGINES))
    games: int = GAMES
    seed: int = 0
    seeds: list[int] = field(default_factory=list)
    epsilon: float = 0.01
    opening: int | None = None
    lanes: int = 0

    def __post_init__(self) -> None:
        """Refuse settings that cannot be played; raises ValueError that names the value and what is allowed."""
        require_engines(self.engines)
        require_within("games", len(self.seeds) or self.games, 1, MAX_GAMES)
        require_within("epsilon", self.epsilon, 0, 1)
        require_within("lanes", self.lanes, 0, MANY)
        if self.opening is not None:
            require_within("opening", self.opening, 0, MAX_OPENING)
        for seed in (self.seed, self.seed + self.games - 1, *self.seeds):
            require_seed(seed)
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"a seed is named twice in {self.seeds}; name each once")

    def starts(self) -> tuple[Start, ...]:
        """Return how the games begin."""
        opening = (0 if self.epsilon else GREEDY_OPENING) if self.opening is None else self.opening
        seeds = self.seeds or range(self.seed, self.seed + self.games)
        return tuple(Start(seed=seed, opening=opening) for seed in seeds)


class OpenBreakout(Protocol):
    """Makes an environment without sticky actions."""

    async def __call__(self, *, max_frames: int) -> Breakout:
        """Open a game that is cut off after so many frames."""


@dataclass
class Games:
    """A tournament; `run` may be called again after it was cancelled, and goes on from where it was.

    Parameters
    ----------
    settings : GamesSettings
        What to play.
    model : bytes
        An ONNX file.
    suite : Suite
        Its first case is what an engine is tried with.
    fetch : callable
        Returns a file of the site, here `REFERENCE_PATH`: what Python played. It counts where it is of the same model.
    open_engine : OpenEngine
        Opens engines; all of them are open while games are played.
    open_environment : callable
        Makes an environment; it is given `max_frames`.
    host : Host
        Where it runs.
    listener : Listener
        Hears of progress, of ``engines`` sections, and of ``tournament`` sections that grow.
    """

    settings: GamesSettings
    model: bytes
    suite: Suite
    fetch: Callable[[str], Awaitable[bytes]]
    open_engine: OpenEngine
    open_environment: OpenBreakout
    host: Host
    listener: Listener
    _entries: dict[str, r.EngineEntry] = field(default_factory=dict)
    _failures: dict[str, EngineError] = field(default_factory=dict)
    _reference: dict[Start, Game] = field(default_factory=dict)
    _finished: list[Finished] = field(default_factory=list)
    _tournament: Tournament | None = None
    _next: float = 0.0
    _lanes: dict[str, int] = field(default_factory=dict)
    _resolved: dict[str, tuple[EngineSpec, dict[int, float] | None]] = field(default_factory=dict)
    _held: bool = False

    @property
    def complete(self) -> bool:
        """Whether there is nothing left to go on with."""
        playing = len(self._entries) - len(self._failures)
        return len(self._finished) >= playing * len(self.settings.starts())

    def pause(self, on: bool) -> None:
        """Hold all games after the decision that is being made, or before the first one; or let them go on."""
        self._held = on
        if self._tournament:
            (self._tournament.pause if on else self._tournament.resume)()

    def cancel(self) -> bool:
        """End after the decision that is being made, and keep what is finished; return whether games were being played."""
        if self._tournament is None:
            return False
        self._tournament.cancel()
        return True

    async def run(self) -> r.Report:
        """Play, and return a report with `engines` and `tournament`; an engine that fails is a result, not an exception.

        Raises
        ------
        asyncio.CancelledError
            It was cancelled before any game was finished.
        """
        hidden = Hidden(self.host)
        self._failures = {}
        engines: dict[str, Engine] = {}
        try:
            await self._open(engines)
            if engines:
                await self._play(engines)
            steps_ms = [engine.facts.clock_step_ms for engine in engines.values()]
        finally:
            self._tournament, self._held = None, False
            for engine in engines.values():
                await engine.close()
        total = len(self._entries) * len(self.settings.starts())
        self.listener.progress("played", len(self._finished), total)
        hints = ["the tab was hidden meanwhile, so it may have played slower; keep it in front"] if hidden.was else []
        entries = [self._entry(name, hints) for name in self._entries]
        for entry in entries:
            self.listener.section("tournament", entry)
        return r.Report(
            schema=r.SCHEMA,
            settings=r.Settings(engines=self.settings.engines, runs=0, warmup=0, seed=self.settings.seed),
            environment=environment_entry(self.host.environment(), steps_ms, self.model),
            engines=list(self._entries.values()),
            suites=[],
            parity=[],
            race=[],
            ratios=[],
            tournament=entries,
        )

    async def _open(self, engines: dict[str, Engine]) -> None:
        inputs = self.suite.inputs(0)
        for index, name in enumerate(self.settings.engines):
            self.listener.progress(f"opening {name}", index, len(self.settings.engines))
            spec = unnamed(name)
            try:
                # What goes on has to be the same engine, and another measurement may find another thread count.
                if name not in self._resolved:
                    self._resolved[name] = await resolved(name, self.open_engine, self.model, inputs, self.host)
                spec, thread_sweep = self._resolved[name]
                if spec.name in engines:
                    continue
                engine = await self.open_engine(spec, self.model)
                try:
                    entry = await introduced(engine, inputs, thread_sweep)
                except BaseException:
                    await engine.close()
                    raise
                engines[spec.name] = engine
            except EngineError as error:
                entry = failed_entry(spec, error)
                self._failures[spec.name] = error
            self._entries[entry.name] = entry
            self.listener.section("engines", entry)

    async def _referee(self, engines: dict[str, Engine]) -> Engine | None:
        """Return whose scores stand for Python's: WASM's, which all parity is measured to agree with."""
        if REFEREE in engines or not self._reference:
            return engines.get(REFEREE)
        try:
            engine = await self.open_engine(EngineSpec.parse(REFEREE), self.model)
        except EngineError:
            return None
        engines[REFEREE] = engine  # so that it is closed with the others
        return engine

    async def _play(self, engines: dict[str, Engine]) -> None:
        found = ReferenceGames.from_json(await self.fetch(REFERENCE_PATH))
        max_frames = found.max_frames
        if found.model_sha256 == hashlib.sha256(self.model).hexdigest():
            self._reference = found.at(self.settings.epsilon)
        playing = list(engines.values())
        referee = await self._referee(engines)
        settings = TournamentSettings(starts=self.settings.starts(), epsilon=self.settings.epsilon, lanes=self.settings.lanes)
        self._tournament = tournament = Tournament(
            playing,
            lambda: self.open_environment(max_frames=max_frames),
            settings,
            reference=self._reference.values(),
            referee=referee,
            finished=self._finished,
            on_change=self._hear_of_a_game,
            on_progress=self._hear_of_progress,
        )
        if self._held:
            tournament.pause()
        try:
            self._finished = await tournament.play()
        finally:
            self._finished = tournament.finished
            self._lanes = {engine.spec.name: tournament.lanes(engine.spec.name) for engine in playing}
        self._failures |= tournament.failures
        if not self._finished and not self._failures:
            raise asyncio.CancelledError

    def _hear_of_progress(self, tournament: Tournament) -> None:
        playing = tournament.playing
        if not playing:
            return
        first = playing[0]
        games = f"the game with seed {first.start.seed}" if len(playing) == 1 else f"{len(playing)} games"
        score = sum(one.score for one in playing) / len(playing)
        stage = f"{first.engine} plays {games}: {score:.0f} points after {first.decisions} decisions"
        self.listener.progress(stage, len(tournament.finished), tournament.total)

    def _hear_of_a_game(self, tournament: Tournament) -> None:
        self._finished = tournament.finished
        begun = time.monotonic()
        if begun < self._next:
            return
        for name in dict.fromkeys(one.engine for one in self._finished):
            self.listener.section("tournament", self._entry(name))
        ended = time.monotonic()
        self._next = ended + max(TOLD_S, (ended - begun) / SHARE_OF_TELLING)

    def _entry(self, engine: str, warnings: list[str] | None = None) -> r.TournamentEntry:
        played = [played_game(one, self._reference) for one in self._finished if one.engine == engine]
        error = self._failures.get(engine)
        told = list(warnings or [])
        wanted = len(self.settings.starts())
        if warnings is not None and not error and len(played) < wanted:
            told.append(f"only {len(played)} of {wanted} games were played")
        return tournament_entry(
            engine,
            played,
            epsilon=self.settings.epsilon,
            lanes=self._tournament.lanes(engine) if self._tournament else self._lanes.get(engine, 1),
            error=failure(error) if error else None,
            warnings=told,
        )
