"""Many games of Breakout side by side, as the agent learns from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from ale_py.vector_env import AtariVectorEnv
from numpy.typing import NDArray


@dataclass(frozen=True)
class Step:
    """What one step of all environments brought; arrays have one entry for each.

    Attributes
    ----------
    observation
        uint8 [N,4,84,84], after the step.
    reward
        float32 [N], points, not clipped.
    ends
        bool [N]: a life was lost or the game is over. No reward that comes later is the action's doing.
    over
        bool [N]: the game is over.
    void
        bool [N]: the step only began the next game, and the action was ignored; nothing can be learnt from it.
    """

    observation: NDArray[np.uint8]
    reward: NDArray[np.float32]
    ends: NDArray[np.bool_]
    over: NDArray[np.bool_]
    void: NDArray[np.bool_]


class Environments:
    """`AtariVectorEnv` with the rules of `pyapp.breakout.Breakout`'s defaults, which gives the same observations.

    Parameters
    ----------
    count, threads
        Games, and threads that play them.
    seed
        Of the games; the i-th one's idle frames hang on it.
    """

    def __init__(self, count: int, threads: int, seed: int) -> None:
        self._games = AtariVectorEnv(
            "breakout",
            num_envs=count,
            num_threads=threads,
            episodic_life=False,
            reward_clipping=False,
            use_fire_reset=True,
            noop_max=30,
            repeat_action_probability=0.0,
        )
        observation, info = self._games.reset(seed=seed)
        self.observation: NDArray[np.uint8] = np.asarray(observation)
        self._lives = np.asarray(info["lives"]).copy()
        self._was_over = np.zeros(count, bool)

    def send(self, actions: NDArray[np.int64]) -> None:
        """Begin a step; other work can be done until `receive`."""
        self._games.send(actions)

    def receive(self) -> Step:
        """End the step."""
        observation, reward, terminated, truncated, info = self._games.recv()
        lives = np.asarray(info["lives"])
        over = np.asarray(terminated) | np.asarray(truncated)
        void = self._was_over
        step = Step(
            observation=np.asarray(observation),
            reward=np.asarray(reward, np.float32),
            ends=(over | (lives < self._lives)) & ~void,
            over=over.copy(),
            void=void,
        )
        self._was_over, self._lives, self.observation = over.copy(), lives.copy(), step.observation
        return step

    def close(self) -> None:
        """Free the games."""
        self._games.close()
