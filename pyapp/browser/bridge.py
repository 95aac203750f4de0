"""The bridge: all of JavaScript that Python uses, as Protocols. JavaScript's half is `web/bridge.js`."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol

from pyodide.ffi import JsException, JsProxy, to_js

from pyapp.errors import AppError


class JsLane(Protocol):
    """A fast lane to an engine: one input and one output in shared memory, `Lane` of ``web/lane.js``."""

    input: JsProxy
    output: JsProxy
    busy: bool
    failed: bool
    compute_ms: float

    def ask(self) -> None:
        """Ask what is in `input`."""

    def answer(self, limit_ms: float, /) -> Awaitable[bool] | bool:
        """Wait for the answer; return whether there was one in time."""


class JsEngine(Protocol):
    """An engine's worker."""

    def call(self, verb: str, limit_ms: float, args: JsProxy) -> Awaitable[Any]:
        """Call a verb of `web/engine-worker.js`; typed arrays in `args` move to the worker."""

    def lane(self, input: str, dims: JsProxy, output_bytes: int, /) -> Awaitable[JsLane | None]:
        """Open a fast lane for a float32 input of one shape; None where the browser has none."""

    def end(self) -> None:
        """End the worker; open calls fail with ``EngineEnded``."""


class JsGame(Protocol):
    """One game of the emulator, `Game` of ``web/ale.js``; arrays are views on its memory, until the next call."""

    lives: int
    over: bool
    frame: int
    episode: int
    played: int

    def load(self, seed: int) -> None:
        """Seed the random generator and load the ROM again."""

    def reset(self) -> None:
        """Start a game."""

    def play(self, action: int, frames: int) -> float:
        """Play an action of ALE's; return the reward."""

    def look(self) -> None:
        """Look at the present screen alone."""

    def pooled(self) -> JsProxy:
        """Return a ``Uint8Array`` of 33,600."""

    def small(self) -> JsProxy:
        """Return a ``Uint8Array`` of 7,056."""

    def ram(self) -> JsProxy:
        """Return a ``Uint8Array`` of 128."""

    def save(self, rng: bool, /) -> JsProxy:
        """Return the state as a ``Uint8Array``."""

    def restore(self, state: JsProxy, rng: bool, /) -> None:
        """Go back to a state."""

    def close(self) -> None:
        """Free it."""


class JsCartridge(Protocol):
    """The emulator's module with Breakout's ROM."""

    def open(self, sticky: float, seed: int) -> JsGame:
        """Start a game that repeats actions with chance `sticky`."""


class JsBridge(Protocol):
    """The verbs."""

    def start_engine(self, name: str) -> Awaitable[JsEngine]:
        """Start an engine's worker."""

    def fetch(self, path: str) -> Awaitable[Any]:
        """Fetch a file of the site; a ``Uint8Array``."""

    def cartridge(self) -> Awaitable[JsCartridge]:
        """Load the emulator and the ROM, once; without a ROM in the site, the page asks the visitor for one."""

    def environment(self) -> JsProxy:
        """Describe this browser; a plain object."""

    def emit(self, name: str, json: str) -> None:
        """Tell the page something."""

    def hidden_count(self) -> int:
        """How often the tab has been hidden so far."""

    def hidden(self) -> bool:
        """Whether the tab is hidden now."""


def to_plain(value: object) -> JsProxy:
    """Copy a Python value to plain JavaScript: dicts to objects, arrays to typed arrays with buffers of their own."""
    from js import Object

    proxy: JsProxy = to_js(value, dict_converter=Object.fromEntries, create_pyproxies=False)
    return proxy


def from_js_error[E: AppError](error: JsException, kind: type[E]) -> E:
    """Turn an error with `{name, message, remedy}` into one of ours."""
    return kind(error.name, error.message, getattr(error, "remedy", ""))
