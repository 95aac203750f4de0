"""Who plays: a policy looks at the game and says what to do. The agent is the one that asks a model."""

from __future__ import annotations

import inspect
import time
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from pyapp.breakout.actions import ACTIONS
from pyapp.engine import EngineError
from pyapp.errors import AppError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from pyapp.breakout.environment import Info
    from pyapp.engine import Engine

ANSWER_LIMIT_S = 20.0
"""An engine that takes longer for one decision is taken for lost; the first one on a software GPU compiles for seconds."""


class Decision(NamedTuple):
    """What a policy wants done, and what it took to find out."""

    action: int
    """Index into `ACTIONS`."""
    q_values: NDArray[np.float32] | None = None
    """The model's scores, float32 [4]; None for a policy without any."""
    infer_ms: float = 0.0
    """From handing the observation to an engine until its scores are here."""
    compute_ms: float = 0.0
    """The part of `infer_ms` that the engine itself took."""


class Policy(Protocol):
    """Whoever plays: an object with one method."""

    async def decide(self, observation: NDArray[np.uint8], info: Info) -> Decision:
        """Choose an action.

        Parameters
        ----------
        observation
            uint8 [4,84,84], oldest frame first.
        info
            Lives, frame numbers, and the console's memory where the environment gives it.
        """


class Agent:
    """The model's policy: the action with the greatest Q-value, the first one where two are equal.

    Parameters
    ----------
    engine
        What runs the model; the caller closes it.
    epsilon
        Chance of a random action instead, in 0..1. Without any, the agent can play in a loop for ever.
    seed
        Of that chance: every engine draws the same numbers. None: from the system.

    Raises
    ------
    ValueError
        `epsilon` is out of its range.
    """

    def __init__(self, engine: Engine, *, epsilon: float = 0.0, seed: int | None = None) -> None:
        if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not 0 <= epsilon <= 1:
            raise ValueError(f"epsilon must be in 0..1, got {epsilon!r}")
        self.engine = engine
        self._epsilon = epsilon
        self._random = np.random.Generator(np.random.PCG64(seed))

    async def decide(self, observation: NDArray[np.uint8], info: Info) -> Decision:
        """Ask the model; see `Policy.decide`.

        Raises
        ------
        EngineError
            The engine is gone, or ``BadScores``: what it gave is no answer.
        """
        start = time.perf_counter()
        outputs, compute_ms = await self.engine.run_timed(
            {"observation": observation[np.newaxis].astype(np.float32)}, limit_s=ANSWER_LIMIT_S
        )
        infer_ms = (time.perf_counter() - start) * 1000
        q_values = outputs["q_values"][0]
        action = self.choose(q_values)
        return Decision(action, q_values, infer_ms, compute_ms)

    def choose(self, q_values: NDArray[np.float32]) -> int:
        """Return the action that these scores, float32 [4], come to; draws once where there is an epsilon.

        Raises
        ------
        EngineError
            ``BadScores``: not finite, or all zero.
        """
        if not np.isfinite(q_values).all() or not q_values.any():
            what = f"engine {self.engine.spec.name} gave the scores {q_values.tolist()}, which are no answer"
            raise EngineError("BadScores", what, "Choose another engine; a lost GPU device gives zeros.")
        action = int(q_values.argmax())
        if self._epsilon:
            chance, choice = self._random.random(2)
            action = int(choice * len(ACTIONS)) if chance < self._epsilon else action
        return action


class FunctionPolicy:
    """A plain function that plays.

    Parameters
    ----------
    function
        ``function(observation, ram, info)`` returns an action as a number (an index into `ACTIONS`) or a name. It gets the
        observation, uint8 [4,84,84], the console's memory, uint8 [128], and the environment's info; it may be asynchronous.
    ram
        Returns the console's memory.
    on_error
        Hears of what the function raises, before the game does.
    """

    def __init__(
        self,
        function: Callable[[NDArray[np.uint8], NDArray[np.uint8], Info], Any],
        ram: Callable[[], NDArray[np.uint8]],
        on_error: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        self._function = function
        self._ram = ram
        self._on_error = on_error

    async def decide(self, observation: NDArray[np.uint8], info: Info) -> Decision:
        """Call the function; see `Policy.decide`.

        Raises
        ------
        AppError
            ``PolicyFailed``, with what the function raised; ``BadAction``, with what it returned.
        """
        try:
            found = self._function(observation, self._ram(), info)
            if inspect.isawaitable(found):
                found = await found
        except Exception as error:
            self._on_error(error)
            what = f"the policy raised {type(error).__name__}: {error}"
            raise AppError("PolicyFailed", what, "Its traceback is in the console. Mend it, and let it play again.") from error
        return Decision(action_of(found))


def action_of(found: object) -> int:
    """Return an action's index in `ACTIONS`.

    Raises
    ------
    AppError
        ``BadAction``: it is neither an index nor a name.
    """
    if isinstance(found, str) and found in ACTIONS:
        return ACTIONS.index(found)
    if isinstance(found, int | np.integer) and not isinstance(found, bool) and 0 <= int(found) < len(ACTIONS):
        return int(found)
    what = f"the policy returned {found!r:.80}, which is no action"
    raise AppError("BadAction", what, f"Return 0 to {len(ACTIONS) - 1}, or one of {', '.join(ACTIONS)}.")


class RandomPolicy:
    """Any action, each as likely: what an agent has to beat."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = np.random.Generator(np.random.PCG64(seed))

    async def decide(self, observation: NDArray[np.uint8], info: Info) -> Decision:
        """Draw an action; see `Policy.decide`."""
        return Decision(int(self._random.integers(len(ACTIONS))))
