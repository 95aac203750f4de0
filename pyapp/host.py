"""What a question needs of the program that it runs in, and the settings that all questions share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, Self

from pyapp import report as r
from pyapp.engine import NAME_PATTERN, EngineError, EngineSpec
from pyapp.strict import structure

DEFAULT_ENGINES = ("wasm-1", "wasm-N", "webgpu-stock", "webgpu-fast")
MAX_ENGINES = 16


class Host(Protocol):
    """What a question needs to know of the program that it runs in."""

    def environment(self) -> dict[str, Any]:
        """Return the fields of `pyapp.report.Environment` that the host knows."""

    def hidden_count(self) -> int:
        """How often the page has been hidden so far, a spell that still lasts included."""

    def hidden(self) -> bool:
        """Whether the page is hidden now."""


class Listener(Protocol):
    """Hears of a question's progress."""

    def progress(self, stage: str, done: int, total: int) -> None:
        """Tell that `done` of `total` steps of a stage are done."""

    def section(self, name: str, section: r.Section) -> None:
        """Show a section of the report that is ready, named as the report's field; some come again and again."""


class Hidden:
    """Whether the page was hidden since this was made."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._hidden, self._count = host.hidden(), host.hidden_count()

    @property
    def was(self) -> bool:
        """Whether it was, so far."""
        return self._hidden or self._host.hidden_count() != self._count


def usable_cores(host: Host) -> int:
    """Return how many processors threads can use.

    Raises
    ------
    EngineError
        ``ThreadsUnavailable``, where there is no shared memory.
    """
    environment = host.environment()
    if not environment["cross_origin_isolated"]:
        raise EngineError(
            "ThreadsUnavailable",
            "this page is not cross-origin isolated, so there is no shared memory and only one thread",
            "Serve it with the COOP and COEP headers of its _headers file.",
        )
    return int(environment["cores"])


def settings_from[T](data: object, kind: type[T]) -> T:
    """Read settings from parsed JSON; raises ValueError that names the value and its place."""
    try:
        return structure(data, kind, lambda faults: ValueError("; ".join(faults)))
    except TypeError as error:
        raise ValueError(str(error)) from error


class Settings:
    """What the dataclasses of all questions' settings have in common."""

    @classmethod
    def from_data(cls, data: object) -> Self:
        """Read settings from parsed JSON; raises ValueError that names the value and its place."""
        return settings_from(data, cls)


def require_engines(names: Sequence[str]) -> None:
    """Raise ValueError unless these are names of engines, at least one, none of them twice."""
    if not 1 <= len(names) <= MAX_ENGINES:
        raise ValueError(f"{len(names)} engines were named; name 1 to {MAX_ENGINES}")
    for name in names:
        if NAME_PATTERN.fullmatch(name) is None:
            EngineSpec.parse(name)  # raises, naming those that are known
    if len(set(names)) != len(names):
        raise ValueError(f"an engine is named twice in {', '.join(names)}; name each once")


def require_within(name: str, value: float, low: float, high: float) -> None:
    """Raise ValueError, naming the setting and its bounds, unless a value is within them."""
    if not low <= value <= high:
        raise ValueError(f"{name} is {value}; give a number from {low} to {high}")


def require_seed(seed: int) -> None:
    """Raise ValueError unless a random generator can be seeded with it."""
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed is {seed}; give a number from 0 to {2**32 - 1}")
