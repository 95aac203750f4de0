"""Atari Breakout on CPython: a small environment on top of ale_py's emulator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

import ale_py
import numpy as np

from pyapp.breakout import ACTIONS, ALE_ACTIONS
from pyapp.breakout.preprocess import SCREEN_SHAPE, FrameStack, area_resize, max_pool

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NOOP: Final = 0
_FIRE: Final = 1
_MAX_SEED: Final = 2**31 - 1  # the emulator keeps its seed in a C int


class Info(TypedDict):
    """What `NativeBreakout` says beside the observation."""

    lives: int
    """Lives left, 5 at the start."""
    frame_number: int
    """Emulator frames since the game's start, those of the reset included."""


class NativeBreakout:
    """Breakout with the preprocessing that the model was trained with, in Gymnasium's terms.

    Gives, bit for bit, the observations, rewards and ends of ``ale_py.vector_env.AtariVectorEnv`` 0.12.1 with
    ``reward_clipping=False``, except for how many no-ops a seed stands for. A lost life does not end the game.

    Parameters
    ----------
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
        *,
        frame_skip: int = 4,
        repeat_action_probability: float = 0.0,
        noop_max: int = 30,
        fire_on_reset: bool = True,
        max_frames: int = 108_000,
    ) -> None:
        _check_at_least("frame_skip", frame_skip, 1)
        _check_at_least("noop_max", noop_max, 0)
        _check_at_least("max_frames", max_frames, 1)
        if not 0 <= repeat_action_probability <= 1:
            raise ValueError(f"repeat_action_probability must be in 0..1, got {repeat_action_probability!r}")
        self._frame_skip = frame_skip
        self._noop_max = noop_max
        self._fire_on_reset = fire_on_reset
        self._max_frames = max_frames

        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self._ale = ale_py.ALEInterface()
        self._ale.setFloat("repeat_action_probability", repeat_action_probability)
        self._random = np.random.Generator(np.random.PCG64())
        self._load(None)

        self._stack = FrameStack()
        self._pooled = np.zeros(SCREEN_SHAPE, np.uint8)
        self._before = np.zeros(SCREEN_SHAPE, np.uint8)
        self._frames = 0
        self._playing = False

    def reset(self, seed: int | None = None) -> tuple[NDArray[np.uint8], Info]:
        """Start a new game.

        Parameters
        ----------
        seed
            Seeds the emulator and the number of no-ops, 0 … 2**31 - 1. None: go on with the generators as
            they are (their first state is random).

        Returns
        -------
        observation
            uint8 [4,84,84], oldest frame first; the first three are black.
        info
            Lives and frame number.

        Raises
        ------
        ValueError
            `seed` is out of range.
        """
        if seed is not None:
            if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed <= _MAX_SEED:
                raise ValueError(f"seed must be an integer in 0..{_MAX_SEED} or None, got {seed!r}")
            self._load(int(seed))
        self._ale.reset_game()
        self._idle()
        self._before = np.zeros(SCREEN_SHAPE, np.uint8)
        self._pooled = self._ale.getScreenGrayscale()
        self._frames = 0
        self._playing = True
        return self._stack.reset(area_resize(self._pooled)), self._info()

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
            Lives and frame number.

        Raises
        ------
        ValueError
            `action` is none of the four.
        RuntimeError
            The game is over, or was never started.
        """
        if isinstance(action, bool) or not isinstance(action, int | np.integer) or not 0 <= action < len(ACTIONS):
            raise ValueError(f"action must be 0..{len(ACTIONS) - 1} ({', '.join(ACTIONS)}), got {action!r}")
        if not self._playing:
            raise RuntimeError("no game is running: call reset() first")
        reward = self._advance(ALE_ACTIONS[action])
        self._pooled = max_pool(self._pooled, self._before)
        terminated = bool(self._ale.game_over())
        truncated = not terminated and self._frames >= self._max_frames
        self._playing = not (terminated or truncated)
        return self._stack.push(area_resize(self._pooled)), reward, terminated, truncated, self._info()

    def _advance(self, ale_action: int) -> float:
        """Play the frames of one step; keep the screens of the last two.

        The frame that ends a game is not looked at, as in ``AtariVectorEnv``: the last observation repeats
        earlier screens.
        """
        reward = 0.0
        for left in reversed(range(self._frame_skip)):
            reward += self._ale.act(ale_action)
            self._frames += 1
            if self._ale.game_over() or self._frames >= self._max_frames:
                break
            if left == 1:
                self._before = self._ale.getScreenGrayscale()
            elif left == 0:
                self._pooled = self._ale.getScreenGrayscale()
        return reward

    def _idle(self) -> None:
        """Press FIRE, then nothing for a random number of frames."""
        idle = int(self._random.integers(self._noop_max)) if self._noop_max else 0
        if self._fire_on_reset:
            self._ale.act(_FIRE)
            idle -= 1
        for _ in range(idle):
            self._ale.act(_NOOP)
            if self._ale.game_over():  # only a very large noop_max gets here
                self._ale.reset_game()

    def _load(self, seed: int | None) -> None:
        """Seed the generators and load the ROM: the emulator reads its seed only then."""
        self._ale.setInt("random_seed", -1 if seed is None else seed)
        if seed is not None:
            self._random = np.random.Generator(np.random.PCG64(seed))
        self._ale.loadROM(rom_path())

    def _info(self) -> Info:
        return Info(lives=self._ale.lives(), frame_number=self._ale.getEpisodeFrameNumber())


def rom_path() -> Path:
    """Return where the installed ale_py keeps Breakout's ROM."""
    return Path(ale_py.__file__).parent / "roms" / "breakout.bin"


def _check_at_least(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
