"""Who plays: a policy looks at the game and says what to do. The agent is the one that asks a model."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from pyapp.breakout.actions import ACTIONS
from pyapp.engine import EngineError

if TYPE_CHECKING:
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
        if not np.isfinite(q_values).all() or not q_values.any():
            what = f"engine {self.engine.spec.name} gave the scores {q_values.tolist()}, which are no answer"
            raise EngineError("BadScores", what, "Choose another engine; a lost GPU device gives zeros.")
        action = int(q_values.argmax())
        if self._epsilon:
            chance, choice = self._random.random(2)
            action = int(choice * len(ACTIONS)) if chance < self._epsilon else action
        return Decision(action, q_values, infer_ms, compute_ms)


class RandomPolicy:
    """Any action, each as likely: what an agent has to beat."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = np.random.Generator(np.random.PCG64(seed))

    async def decide(self, observation: NDArray[np.uint8], info: Info) -> Decision:
        """Draw an action; see `Policy.decide`."""
        return Decision(int(self._random.integers(len(ACTIONS))))
