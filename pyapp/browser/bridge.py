"""The bridge: all of JavaScript that Python uses, as Protocols. JavaScript's half is `web/bridge.js`."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol

from pyodide.ffi import JsException, JsProxy, to_js

from pyapp.engine import EngineError


class JsEngine(Protocol):
    """An engine's worker."""

    def call(self, verb: str, limit_ms: float, args: JsProxy) -> Awaitable[Any]:
        """Call a verb of `web/engine-worker.js`; typed arrays in `args` move to the worker."""

    def end(self) -> None:
        """End the worker; open calls fail with ``EngineEnded``."""


class JsBridge(Protocol):
    """The verbs."""

    def start_engine(self, name: str) -> Awaitable[JsEngine]:
        """Start an engine's worker."""

    def fetch(self, path: str) -> Awaitable[Any]:
        """Fetch a file of the site; a ``Uint8Array``."""

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


def from_js_error(error: JsException) -> EngineError:
    """Turn a rejection with `{name, message, remedy}` into an `EngineError`."""
    return EngineError(error.name, error.message, getattr(error, "remedy", ""))
