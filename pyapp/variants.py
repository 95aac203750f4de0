"""Variants of the worked example in fewer bits, fetched when an engine is first asked for that runs one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pyapp.engine import FLOAT32, Engine, EngineError, EngineSpec, OpenEngine

PATHS = {name: f"variants/breakout_dqn.{name}.onnx" for name in ("float16", "int8")}
"""Where the site has them; the build makes them (`buildtools/variants.py`)."""


class VariantEngines:
    """An `OpenEngine` that gives an engine the variant that its name asks for.

    Parameters
    ----------
    open_engine : OpenEngine
        Opens engines.
    fetch : callable
        Fetches a file of the site.
    """

    def __init__(self, open_engine: OpenEngine, fetch: Callable[[str], Awaitable[bytes]]) -> None:
        self._open_engine = open_engine
        self._fetch = fetch
        self._fetched: dict[str, bytes] = {}
        self.model = b""
        """The model whose variants these are."""

    async def __call__(self, spec: EngineSpec, model: bytes) -> Engine:
        """Open `model`, or the variant of it that `spec` names.

        Raises
        ------
        EngineError
            ``NoVariant`` where the model has none, ``DownloadFailed``, or what opening raises.
        """
        if spec.precision == FLOAT32:
            return await self._open_engine(spec, model)
        if model != self.model:
            what = f"there is no {spec.precision} variant of this model, only of the worked example"
            raise EngineError("NoVariant", what, "Use an engine in float32.")
        if spec.precision not in self._fetched:
            self._fetched[spec.precision] = await self._fetch(PATHS[spec.precision])
        return await self._open_engine(spec, self._fetched[spec.precision])
