"""What the environment asks of an emulator: ale_py answers on CPython (`pyapp.native`), wasm in a browser (`pyapp.browser`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from pyapp.errors import AppError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class EmulatorError(AppError):
    """An emulator could not do what it was asked: ``BadRom``, ``AleCrashed`` and others."""


class Played(NamedTuple):
    """What came of some frames."""

    reward: float
    """Points won, not clipped."""
    frames: int
    """Frames played: fewer than asked for where the game ended."""


class Emulator(Protocol):
    """One game of Breakout in the Arcade Learning Environment, with the two screens that the agent is shown together.

    Whatever is out of range has been refused before it gets here. Arrays may be views on the emulator's memory: they
    hold until its next call.
    """

    @property
    def body(self) -> str:
        """``native`` or ``wasm``: states saved by one do not fit the other."""

    def load(self, seed: int | None, repeat_action_probability: float) -> None:
        """Load the cartridge, with the random generator seeded (None: from the system), and start a game.

        The generator is seeded at no other time, and it is what sticky actions are drawn from.
        """

    def reset(self) -> None:
        """Start a game; the random generator goes on."""

    def play(self, action: int, frames: int) -> Played:
        """Play one of `ALE_ACTIONS` for `frames` frames, or until the game is over.

        The screens of the last two frames asked for are looked at, and pooled. The frame that ends a game is not
        looked at: what was seen before stays.
        """

    def look(self) -> None:
        """Take the present screen for the latest one, and black for the one before."""

    def pooled(self) -> NDArray[np.uint8]:
        """Return `max_pool` of the two screens: grey, uint8 [210,160]."""

    def small(self) -> NDArray[np.uint8]:
        """Return `area_resize` of `pooled`: uint8 [84,84]."""

    def ram(self) -> NDArray[np.uint8]:
        """Return the console's memory, uint8 [128]."""

    @property
    def lives(self) -> int:
        """Lives left, 5 at the start."""

    @property
    def over(self) -> bool:
        """Whether the last life is lost."""

    @property
    def frame_number(self) -> int:
        """Frames since the cartridge was loaded."""

    @property
    def episode_frame_number(self) -> int:
        """Frames since the game's start."""

    def save(self) -> bytes:
        """Return the emulator's state, its random generator's included, but not the screens."""

    def restore(self, state: bytes) -> None:
        """Go back to a state of the same body.

        Raises
        ------
        ValueError
            The emulator does not know it.
        """

    def close(self) -> None:
        """Free what it holds. Closing twice is harmless."""
