"""Atari Breakout on CPython: ale_py's emulator under the environment that the browser has, too."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import ale_py
import numpy as np

from pyapp.breakout.emulator import EmulatorError, Played
from pyapp.breakout.environment import Breakout
from pyapp.breakout.preprocess import SCREEN_SHAPE, area_resize, max_pool

if TYPE_CHECKING:
    from typing import Unpack

    from numpy.typing import NDArray

    from pyapp.breakout.environment import Options


class NativeBreakout(Breakout):
    """`Breakout` on ale_py; the arguments are those of `Breakout`."""

    def __init__(self, **options: Unpack[Options]) -> None:
        super().__init__(NativeEmulator(), **options)


class NativeEmulator:
    """ale_py's emulator with Breakout in it: an `Emulator`."""

    body = "native"

    def __init__(self) -> None:
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self._ale_or_none: ale_py.ALEInterface | None = ale_py.ALEInterface()
        self._before = np.zeros(SCREEN_SHAPE, np.uint8)
        self._pooled = np.zeros(SCREEN_SHAPE, np.uint8)

    @property
    def _ale(self) -> ale_py.ALEInterface:
        if self._ale_or_none is None:
            raise EmulatorError("GameClosed", "this game has been closed", "Open another one.")
        return self._ale_or_none

    def load(self, seed: int | None, repeat_action_probability: float) -> None:
        """Load the ROM of the installed ale_py; see `Emulator.load`."""
        self._ale.setFloat("repeat_action_probability", repeat_action_probability)
        self._ale.setInt("random_seed", -1 if seed is None else seed)
        self._ale.loadROM(rom_path())

    def reset(self) -> None:
        """See `Emulator.reset`."""
        self._ale.reset_game()

    def play(self, action: int, frames: int) -> Played:
        """See `Emulator.play`."""
        reward = 0.0
        left = frames
        while left and not self._ale.game_over():
            reward += self._ale.act(action)
            left -= 1
            if self._ale.game_over():
                break
            if left == 1:
                self._before = self._ale.getScreenGrayscale()
            elif left == 0:
                self._pooled = self._ale.getScreenGrayscale()
        self._pooled = max_pool(self._pooled, self._before)
        return Played(reward, frames - left)

    def look(self) -> None:
        """See `Emulator.look`."""
        self._before = np.zeros(SCREEN_SHAPE, np.uint8)
        self._pooled = self._ale.getScreenGrayscale()

    def pooled(self) -> NDArray[np.uint8]:
        """See `Emulator.pooled`."""
        return self._pooled

    def small(self) -> NDArray[np.uint8]:
        """See `Emulator.small`."""
        return area_resize(self._pooled)

    def ram(self) -> NDArray[np.uint8]:
        """See `Emulator.ram`."""
        ram: NDArray[np.uint8] = self._ale.getRAM()
        return ram

    @property
    def lives(self) -> int:
        """See `Emulator.lives`."""
        return int(self._ale.lives())

    @property
    def over(self) -> bool:
        """See `Emulator.over`."""
        return bool(self._ale.game_over())

    @property
    def frame_number(self) -> int:
        """See `Emulator.frame_number`."""
        return int(self._ale.getFrameNumber())

    @property
    def episode_frame_number(self) -> int:
        """See `Emulator.episode_frame_number`."""
        return int(self._ale.getEpisodeFrameNumber())

    def save(self) -> bytes:
        """See `Emulator.save`."""
        return bytes(self._ale.cloneState(include_rng=True).__getstate__())

    def restore(self, state: bytes) -> None:
        """See `Emulator.restore`; only `Breakout.restore` should call it, which has checked the bytes."""
        saved = ale_py.ALEState.__new__(ale_py.ALEState)
        saved.__setstate__(state)  # type: ignore[arg-type]  # its stub says tuple; it takes the bytes of __getstate__
        self._ale.restoreState(saved)
        self.look()

    def close(self) -> None:
        """See `Emulator.close`."""
        self._ale_or_none = None


def rom_path() -> Path:
    """Return where the installed ale_py keeps Breakout's ROM."""
    return Path(ale_py.__file__).parent / "roms" / "breakout.bin"
