"""Atari Breakout in the browser: the Arcade Learning Environment as wasm, under the environment that CPython has, too."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Unpack

import numpy as np
from pyodide.ffi import JsException

from pyapp.breakout.emulator import EmulatorError, Played
from pyapp.breakout.environment import Breakout, Options
from pyapp.breakout.preprocess import FRAME_SHAPE, SCREEN_SHAPE
from pyapp.browser.bridge import JsBridge, JsCartridge, JsGame, from_js_error, to_plain

if TYPE_CHECKING:
    from numpy.typing import NDArray


async def open_breakout(bridge: JsBridge, **options: Unpack[Options]) -> Breakout:
    """Load the emulator, if this is the first time, and make an environment on it.

    Parameters
    ----------
    bridge
        The page's.
    **options
        The arguments of `Breakout`.

    Raises
    ------
    ValueError
        An argument is out of its range.
    EmulatorError
        The emulator or the ROM cannot be had: ``DownloadFailed``, ``BadRom``, ``NoRom``.
    """
    try:
        cartridge = await bridge.cartridge()
    except JsException as error:
        raise from_js_error(error, EmulatorError) from None
    return Breakout(WasmEmulator(cartridge), **options)


class WasmEmulator:
    """The emulator in wasm: an `Emulator`.

    A screen is copied once, from the emulator's memory to Python's. Pooling and resizing are done beside the emulator,
    bit for bit as `pyapp.breakout.preprocess` defines them, so that of every decision only 84 x 84 bytes move.
    """

    body = "wasm"

    def __init__(self, cartridge: JsCartridge) -> None:
        self._cartridge = cartridge
        self._game_or_none: JsGame | None = None
        self._pooled = np.zeros(SCREEN_SHAPE, np.uint8)
        self._small = np.zeros(FRAME_SHAPE, np.uint8)
        self._ram = np.zeros(128, np.uint8)

    @property
    def game(self) -> JsGame:
        """JavaScript's half, which can be drawn."""
        if self._game_or_none is None:
            raise EmulatorError("GameClosed", "this game has been closed", "Open another one.")
        return self._game_or_none

    def load(self, seed: int | None, repeat_action_probability: float) -> None:
        """See `Emulator.load`."""
        number = secrets.randbits(31) if seed is None else seed
        try:
            if self._game_or_none is None:
                self._game_or_none = self._cartridge.open(repeat_action_probability, number)
            else:
                self._game_or_none.load(number)
        except JsException as error:
            raise from_js_error(error, EmulatorError) from None

    def reset(self) -> None:
        """See `Emulator.reset`."""
        game = self.game
        try:
            game.reset()
        except JsException as error:
            raise from_js_error(error, EmulatorError) from None

    def play(self, action: int, frames: int) -> Played:
        """See `Emulator.play`."""
        game = self.game
        try:
            reward = float(game.play(action, frames))
        except JsException as error:
            raise from_js_error(error, EmulatorError) from None
        return Played(reward, int(game.played))

    def look(self) -> None:
        """See `Emulator.look`."""
        self.game.look()

    def pooled(self) -> NDArray[np.uint8]:
        """See `Emulator.pooled`."""
        self.game.pooled().assign_to(self._pooled)
        return self._pooled

    def small(self) -> NDArray[np.uint8]:
        """See `Emulator.small`."""
        self.game.small().assign_to(self._small)
        return self._small

    def ram(self) -> NDArray[np.uint8]:
        """See `Emulator.ram`."""
        self.game.ram().assign_to(self._ram)
        return self._ram

    @property
    def lives(self) -> int:
        """See `Emulator.lives`."""
        return int(self.game.lives)

    @property
    def over(self) -> bool:
        """See `Emulator.over`."""
        return bool(self.game.over)

    @property
    def frame_number(self) -> int:
        """See `Emulator.frame_number`."""
        return int(self.game.frame)

    @property
    def episode_frame_number(self) -> int:
        """See `Emulator.episode_frame_number`."""
        return int(self.game.episode)

    def save(self) -> bytes:
        """See `Emulator.save`."""
        state: bytes = self.game.save(True).to_bytes()
        return state

    def restore(self, state: bytes) -> None:
        """See `Emulator.restore`."""
        try:
            self.game.restore(to_plain(memoryview(state)), True)
        except JsException as error:
            raise ValueError(f"state: {error.message}") from None
        self.look()

    def close(self) -> None:
        """See `Emulator.close`."""
        if self._game_or_none is not None:
            self._game_or_none.close()
            self._game_or_none = None
