"""A recipe: what `pyapp.tune` recommends, as data and as a JavaScript module that runs without this project."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from pyapp.engine import EngineSpec
from pyapp.report import EngineEntry

CAPTURED = "fast: capture + nudge"
"""What the fast runner calls itself where it captured the graph (`web/runners/gpu-fast.js`)."""

PLACE = "const RECIPE = "


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A configuration of onnxruntime-web.

    Attributes
    ----------
    engine : str
        Its name here.
    provider, build, runner : str
        Execution provider, onnxruntime-web's build, and how one inference is run, as they ran.
    threads : int
        Threads of WASM.
    capture : bool
        Whether the graph is captured.
    precision : str
        Variant of the model: ``float32``, ``float16`` or ``int8``.
    onnxruntime_web : str
        The version that was measured.
    """

    engine: str
    provider: str
    build: str
    runner: str
    threads: int
    capture: bool
    precision: str
    onnxruntime_web: str


def from_engine(entry: EngineEntry, versions: Mapping[str, str]) -> Recipe:
    """Make a recipe of an engine that ran.

    Parameters
    ----------
    entry : EngineEntry
        Of a report; what really ran counts, not what was asked for.
    versions : mapping of str to str
        The report's, which name ``onnxruntime_web``.

    Raises
    ------
    ValueError
        If the engine did not run.
    """
    if entry.actual is None:
        raise ValueError(f"engine {entry.name} did not run, so there is no recipe of it; choose one that did")
    return Recipe(
        engine=entry.name,
        provider=entry.actual.provider,
        build=entry.actual.build,
        runner=entry.actual.runner,
        threads=entry.actual.threads,
        capture=entry.actual.runner == CAPTURED,
        precision=EngineSpec.parse(entry.name).precision,
        onnxruntime_web=versions["onnxruntime_web"],
    )


def template_path(recipe: Recipe) -> str:
    """Return the place in the site of the module that a recipe is put into."""
    fast = recipe.runner.startswith("fast: ") and not recipe.runner.endswith("stock")
    return f"recipes/{'gpu-fast' if fast else 'stock'}.js"


def module_text(recipe: Recipe, template: str) -> str:
    """Write a recipe as a JavaScript module: its data in one line, and the template, which is the same for all."""
    data = json.dumps(asdict(recipe), ensure_ascii=True)
    # In a page's script element, a tag or a comment would begin or end something.
    return f"{PLACE}{data.replace('<', '\\u003c')};\n{template}"
