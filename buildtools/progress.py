"""Named steps with their elapsed time, on one stream."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator


class Progress:
    """Reports steps as they begin and end.

    Parameters
    ----------
    steps
        How many steps there will be.
    verbose
        Whether `detail` is shown.
    stream
        Where to write; standard error unless told otherwise.
    """

    def __init__(self, steps: int, *, verbose: bool = False, stream: TextIO | None = None) -> None:
        self._steps = steps
        self._verbose = verbose
        self._stream = stream or sys.stderr
        self._step = 0
        self._line_open = False

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Announce a step, and its duration once it has succeeded."""
        self._step += 1
        started = time.monotonic()
        self._write(f"[{self._step}/{self._steps}] {name}")
        self._line_open = True
        try:
            yield
        except BaseException:
            self._close_line()
            raise
        elapsed = f"{time.monotonic() - started:.1f} s"
        self._write(f"  {elapsed}\n" if self._line_open else f"      {elapsed}\n")
        self._line_open = False

    def note(self, text: str) -> None:
        """Say something that a waiting person wants to know, such as the size of a download."""
        self._close_line()
        self._write(f"      {text}\n")

    def detail(self, text: str) -> None:
        """Say something that only a person looking for a fault wants to know."""
        if self._verbose:
            self.note(text)

    def _close_line(self) -> None:
        if self._line_open:
            self._write("\n")
            self._line_open = False

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
