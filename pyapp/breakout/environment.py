"""Breakout as the agent meets it, in Gymnasium's terms: written once, over whichever emulator there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NotRequired, Protocol, TypedDict

import numpy as np

from pyapp.breakout import snapshot
from pyapp.breakout.actions import ACTIONS, ALE_ACTIONS
from pyapp.breakout.preprocess import SCREEN_SHAPE, FrameStack

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from numpy.typing import NDArray

    from pyapp.breakout.emulator import Emulator

_NOOP: Final = 0
_FIRE: Final = 1
_MAX_SEED: Final = 2**31 - 1  # the emulator keeps its seed in a C int


class Info(TypedDict):
    """What the environment says beside the observation."""

    lives: int
    """Lives left, 5 at the start."""
    frame_number: int
    """Emulator frames since the cartridge was loaded, which a seeded reset does."""
    episode_frame_number: int
    """Emulator frames since the game's start, those of the reset included."""
    ram: NotRequired[NDArray[np.uint8]]
    """The console's memory, uint8 [128], a copy; only where it was asked for."""


class Options(TypedDict, total=False):
    """The arguments of `Breakout`, which documents them."""

    frame_skip: int
    repeat_action_probability: float
    noop_max: int
    fire_on_reset: bool
    max_frames: int
    ram: bool


class Environment(Protocol):
    """A game that an agent can play: Gymnasium's `Env`, as far as one game needs it."""

    @property
    def action_meanings(self) -> tuple[str, ...]:
        """What each action does, in the order of their numbers."""

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[NDArray[np.uint8], Info]:
        """Start a game; return the first observation, and what else there is to know."""

    def step(self, action: int) -> tuple[NDArray[np.uint8], float, bool, bool, Info]:
        """Play one action; return observation, reward, terminated, truncated and info."""

    def close(self) -> None:
        """Free what it holds. Closing twice is harmless."""


class Breakout:
    """Breakout with the preprocessing that the model was trained with: an `Environment`.

    Gives, bit for bit, the observations, rewards and ends of ``ale_py.vector_env.AtariVectorEnv`` 0.12.1 with
    ``reward_clipping=False``, except for how many no-ops a seed stands for and for the last observation of a truncated
    game. A lost life does not end the game.

    Parameters
    ----------
    emulator
        What plays; the environment owns it from now on.
    frame_skip
        Emulator frames per step, each with the same action; at least 1. Trained with 4.
    repeat_action_probability
        Chance, per frame, that the emulator repeats the previous action instead ("sticky actions"), in 0..1.
        Trained with 0.
    noop_max
        A reset draws how many frames pass before the agent acts, uniformly from 0 … `noop_max` - 1; FIRE, when
        pressed, is one of them. 0: no draw. Trained with 30.
    fire_on_reset
        Press FIRE at reset, so that the ball is in play. Trained with it.
    max_frames
        The game is truncated after this many emulator frames, not counting the reset's; at least 1. Trained
        with 108,000, which is half an hour of play.
    ram
        Whether `Info` holds the console's memory.

    Raises
    ------
    ValueError
        An argument is out of its range; the message quotes it.

    Notes
    -----
    ``AtariVectorEnv`` 0.12.1 presses FIRE *before* the no-ops, so that the ball flies while the agent waits, and
    counts it among them: 0 … `noop_max` - 2 no-ops follow. Other environments idle first and then press FIRE.
    """

    def __init__(
        self,
        emulator: Emulator,
        *,
        frame_skip: int = 4,
        repeat_action_probability: float = 0.0,
        noop_max: int = 30,
        fire_on_reset: bool = True,
        max_frames: int = 108_000,
        ram: bool = False,
    ) -> None:
        _check_at_least("frame_skip", frame_skip, 1)
        _check_at_least("noop_max", noop_max, 0)
        _check_at_least("max_frames", max_frames, 1)
        if not _is_share(repeat_action_probability):
            raise ValueError(f"repeat_action_probability must be in 0..1, got {repeat_action_probability!r}")
        self._emulator = emulator
        self._frame_skip = int(frame_skip)
        self._sticky = float(repeat_action_probability)
        self._noop_max = int(noop_max)
        self._fire_on_reset = fire_on_reset
        self._max_frames = int(max_frames)
        self._ram = ram
        self._random = np.random.Generator(np.random.PCG64())
        self._stack = FrameStack()
        self._frames = 0
        self._played = 0
        self._playing = False
        self._load(None)

    @property
    def action_meanings(self) -> tuple[str, ...]:
        """`pyapp.breakout.ACTIONS`."""
        return ACTIONS

    @property
    def observation(self) -> NDArray[np.uint8]:
        """What the agent sees now: uint8 [4,84,84], oldest frame first, read-only."""
        return self._stack.observation

    @property
    def playing(self) -> bool:
        """Whether a game is running: `step` can be called."""
        return self._playing

    @property
    def played(self) -> int:
        """Emulator frames of the last step: `frame_skip`, or fewer where the game ended."""
        return self._played

    @property
    def emulator(self) -> Emulator:
        """What plays."""
        return self._emulator

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[NDArray[np.uint8], Info]:
        """Start a new game.

        Parameters
        ----------
        seed
            Seeds the emulator and the number of no-ops, 0 … 2**31 - 1. None: go on with the generators as
            they are (their first state is random).
        options
            ``{"idle": n}`` lets n frames pass before the agent acts, FIRE included, instead of drawing them.

        Returns
        -------
        observation
            uint8 [4,84,84], oldest frame first; the first three are black.
        info
            Lives and frame numbers.

        Raises
        ------
        ValueError
            `seed` is out of range, or an option is not known.
        """
        idle = _idle_of(options)
        if seed is not None:
            if not _is_integer(seed) or not 0 <= seed <= _MAX_SEED:
                raise ValueError(f"seed must be an integer in 0..{_MAX_SEED} or None, got {seed!r}")
            self._load(int(seed))
        self._emulator.reset()
        drawn = int(self._random.integers(self._noop_max)) if self._noop_max else 0
        self._idle(drawn if idle is None else idle)
        self._emulator.look()
        self._frames = 0
        self._playing = True
        return self._stack.reset(self._emulator.small()), self.info()

    def step(self, action: int) -> tuple[NDArray[np.uint8], float, bool, bool, Info]:
        """Play one action for `frame_skip` frames, or fewer when the game ends.

        Parameters
        ----------
        action
            Index into `pyapp.breakout.ACTIONS`, as the model's outputs are ordered.

        Returns
        -------
        observation
            uint8 [4,84,84], oldest frame first.
        reward
            Points won, not clipped.
        terminated
            The last life is lost.
        truncated
            `max_frames` have been played, and the game is not over.
        info
            Lives and frame numbers.

        Raises
        ------
        ValueError
            `action` is none of the four.
        RuntimeError
            The game is over, or was never started.
        """
        reward, terminated, truncated = self.advance(action)
        return self.observe(), reward, terminated, truncated, self.info()

    def advance(self, action: int) -> tuple[float, bool, bool]:
        """Do the first half of `step`, which is the emulator's; `observe` must follow.

        Returns
        -------
        reward, terminated, truncated
            As of `step`, which says what is raised, too.
        """
        if not _is_integer(action) or not 0 <= action < len(ACTIONS):
            raise ValueError(f"action must be 0..{len(ACTIONS) - 1} ({', '.join(ACTIONS)}), got {action!r}")
        if not self._playing:
            raise RuntimeError("no game is running: call reset() first")
        played = self._emulator.play(ALE_ACTIONS[action], min(self._frame_skip, self._max_frames - self._frames))
        self._played = played.frames
        self._frames += played.frames
        terminated = self._emulator.over
        truncated = not terminated and self._frames >= self._max_frames
        self._playing = not (terminated or truncated)
        return played.reward, terminated, truncated

    def observe(self) -> NDArray[np.uint8]:
        """Do the second half of `step`: resize what the emulator showed, and put it on the stack; return the observation."""
        return self._stack.push(self._emulator.small())

    def info(self) -> Info:
        """Say what `step` says beside the observation."""
        info = Info(
            lives=self._emulator.lives,
            frame_number=self._emulator.frame_number,
            episode_frame_number=self._emulator.episode_frame_number,
        )
        if self._ram:
            info["ram"] = self._emulator.ram().copy()
        return info

    def screen(self) -> NDArray[np.uint8]:
        """Return what `observe` made its frame of: grey, uint8 [210,160], a copy."""
        return self._emulator.pooled().reshape(SCREEN_SHAPE).copy()

    def save(self) -> bytes:
        """Return the game's state, for `restore`.

        The emulator's random generator is part of it. Its previous action is not, so that with sticky actions the
        first frame after a restore may repeat another action than it would have.
        """
        parts = [self._frames.to_bytes(8, "little"), self._stack.observation.tobytes(), self._emulator.save()]
        return snapshot.seal(self._emulator.body, parts)

    def restore(self, state: bytes) -> NDArray[np.uint8]:
        """Go back to a saved state of the same body; return its observation.

        Raises
        ------
        ValueError
            `state` was not saved by `save`, is damaged, or comes from another body; the game goes on as it was.
        """
        frames, stack, inner = snapshot.unseal(self._emulator.body, state, parts=3)
        self._emulator.restore(inner)
        self._frames = int.from_bytes(frames, "little")
        self._playing = not self._emulator.over and self._frames < self._max_frames
        return self._stack.restore(np.frombuffer(stack, np.uint8).reshape(self._stack.observation.shape))

    def close(self) -> None:
        """Free the emulator. Closing twice is harmless."""
        self._playing = False
        self._emulator.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _idle(self, frames: int) -> None:
        """Press FIRE, then nothing, for that many frames together."""
        if self._fire_on_reset:
            self._emulator.play(_FIRE, 1)
            frames -= 1
        while frames > 0:
            frames -= self._emulator.play(_NOOP, frames).frames
            if self._emulator.over:  # only a very large noop_max gets here
                self._emulator.reset()

    def _load(self, seed: int | None) -> None:
        if seed is not None:
            self._random = np.random.Generator(np.random.PCG64(seed))
        self._emulator.load(seed, self._sticky)


def _idle_of(options: Mapping[str, Any] | None) -> int | None:
    options = options or {}
    if unknown := sorted(set(options) - {"idle"}):
        raise ValueError(f"unknown option {unknown[0]!r}; known is 'idle'")
    idle = options.get("idle")
    if idle is not None:
        _check_at_least("idle", idle, 0)
        return int(idle)
    return None


def _is_integer(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_share(value: object) -> bool:
    return isinstance(value, int | float | np.floating) and not isinstance(value, bool) and bool(0 <= value <= 1)


def _check_at_least(name: str, value: int, least: int) -> None:
    if not _is_integer(value) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
