"""Whole games: what was played, and the reference's games that every engine must play too."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pyapp.breakout.actions import ACTIONS
from pyapp.errors import AppError

if TYPE_CHECKING:
    from numpy.typing import NDArray

SCHEMA: Final = "pyapp-games/1"
BLOCK: Final = 100
"""Decisions under one hash."""

MAX_OPENING: Final = 50
"""3.3 seconds of play: nobody loses five lives in them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How a game begins: the environment's `seed`, and an `opening` of so many random decisions before the agent's first.

    Without sticky actions and epsilon a seed decides no more than how many frames pass before the agent acts, and of those
    only the remainder by the frame skip makes another game. So the opening is what makes games differ.
    """

    seed: int
    opening: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.opening, bool) or not isinstance(self.opening, int) or not 0 <= self.opening <= MAX_OPENING:
            raise ValueError(f"opening must be in 0..{MAX_OPENING}, or a game could end in it, got {self.opening!r}")

    def actions(self) -> list[int]:
        """Return the opening's actions: drawn from the seed alone, the same for every engine."""
        random = np.random.Generator(np.random.PCG64([self.seed, 1]))
        return [int(action) for action in random.integers(len(ACTIONS), size=self.opening)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Game:
    """One whole game.

    Attributes
    ----------
    start
        How it began.
    score
        Points, not clipped.
    truncated
        Whether it was cut off at the environment's frame cap.
    actions
        Every decision, the opening's too, in order: a digit each, an index into `ACTIONS`.
    epsilon
        Chance of a random action with which it was played.
    """

    start: Start
    score: float
    truncated: bool
    actions: str
    epsilon: float = 0.0

    @property
    def decisions(self) -> int:
        """How many decisions it took."""
        return len(self.actions)

    @property
    def hashes(self) -> list[str]:
        """The first 16 hexadecimal digits of the SHA-256 of every `BLOCK` decisions; the last block may be shorter."""
        blocks = (self.actions[at : at + BLOCK] for at in range(0, len(self.actions), BLOCK))
        return [hashlib.sha256(block.encode("ascii")).hexdigest()[:16] for block in blocks]


@dataclass(frozen=True, slots=True)
class Departure:
    """The first decision of a game that is not the reference's.

    Attributes
    ----------
    start
        Of the game.
    decision
        Its number, from 0, the opening's counted.
    action, expected
        What the engine chose, and what the reference did.
    observation
        The state, uint8 [4,84,84].
    q_values, reference_q_values
        float32 [4] each: the engine's, and the referee's for the same state.
    """

    start: Start
    decision: int
    action: int
    expected: int
    observation: NDArray[np.uint8]
    q_values: NDArray[np.float32]
    reference_q_values: NDArray[np.float32]

    @property
    def margin(self) -> float:
        """By how much the referee prefers the expected action to the chosen one."""
        return float(self.reference_q_values[self.expected] - self.reference_q_values[self.action])

    @property
    def error(self) -> float:
        """The largest difference of a score to the referee's."""
        return float(np.abs(self.q_values.astype(np.float64) - self.reference_q_values).max())

    @property
    def explained(self) -> bool:
        """Whether the difference of the scores explains the other action: the margin is at most twice the error."""
        return 0 <= self.margin <= 2 * self.error


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceGames:
    """The games that onnxruntime's CPU provider plays on ale_py, without sticky actions."""

    max_frames: int
    model_sha256: str
    games: tuple[Game, ...]

    def at(self, epsilon: float) -> dict[Start, Game]:
        """Return the games that were played with this chance of a random action, by their starts."""
        return {game.start: game for game in self.games if game.epsilon == epsilon}

    def to_json(self) -> str:
        """Return them as the text of ``fixtures/games.json``."""
        games = [
            {
                "seed": game.start.seed,
                "opening": game.start.opening,
                "epsilon": game.epsilon,
                "score": game.score,
                "truncated": game.truncated,
                "decisions": game.decisions,
                "hashes": game.hashes,
                "actions": game.actions,
            }
            for game in self.games
        ]
        head = {"schema": SCHEMA, "max_frames": self.max_frames, "model_sha256": self.model_sha256}
        return json.dumps({**head, "games": games}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> ReferenceGames:
        """Read what `to_json` writes.

        Raises
        ------
        AppError
            ``BadGames``: it is something else, or a game's actions are not those of its hashes.
        """
        try:
            found = json.loads(text)
        except ValueError as error:
            raise _bad(f"no JSON ({error})") from error
        if not isinstance(found, dict) or found.get("schema") != SCHEMA:
            schema = found.get("schema") if isinstance(found, dict) else None
            raise _bad(f"their schema is {schema!r}, not {SCHEMA!r}")
        try:
            games = tuple(_game(entry) for entry in found["games"])
            return cls(max_frames=int(found["max_frames"]), model_sha256=str(found["model_sha256"]), games=games)
        except (KeyError, TypeError, ValueError) as error:
            raise _bad(f"an entry is missing or of another type ({error!r})") from error


def _game(entry: dict[str, Any]) -> Game:
    start = Start(seed=int(entry["seed"]), opening=int(entry["opening"]))
    actions = str(entry["actions"])
    if odd := set(actions) - set("".join(str(index) for index in range(len(ACTIONS)))):
        raise _bad(f"the game with seed {start.seed} has the actions {', '.join(sorted(odd))}")
    score, truncated, epsilon = float(entry["score"]), bool(entry["truncated"]), float(entry["epsilon"])
    game = Game(start=start, score=score, truncated=truncated, actions=actions, epsilon=epsilon)
    if game.hashes != entry["hashes"] or game.decisions != entry["decisions"]:
        raise _bad(f"the actions of the game with seed {start.seed} are not those of its hashes")
    return game


def _bad(why: str) -> AppError:
    return AppError("BadGames", f"the reference games cannot be read: {why}", "Make them anew with `make fixtures`.")
