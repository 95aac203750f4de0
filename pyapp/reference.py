"""The public API, as its docstrings describe it: for the page's reference and for `docs/api.md`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

MODULES = (
    "pyapp",
    "pyapp.breakout",
    "pyapp.breakout.agent",
    "pyapp.agreement",
    "pyapp.casefile",
    "pyapp.casemaker",
    "pyapp.cases",
    "pyapp.doctor",
    "pyapp.external",
    "pyapp.fixes",
    "pyapp.graphedit",
    "pyapp.locate",
    "pyapp.onnxfile",
    "pyapp.placement",
    "pyapp.stages",
    "pyapp.sweep",
    "pyapp.tune",
    "pyapp.widen",
)
"""What a person at the console uses; of the last ones, what they define themselves."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One function, class or method: its full name, its signature, and its docstring without indentation."""

    name: str
    signature: str
    doc: str


def entries(modules: tuple[str, ...] = MODULES) -> list[Entry]:
    """List the public functions and classes of some modules, with their methods, in the order of their names."""
    found: dict[str, Entry] = {}
    for name in modules:
        module = import_module(name)
        for public in sorted(_public(module)):
            thing = getattr(module, public)
            for entry in _described(f"{name}.{public}", thing):
                found.setdefault(entry.name, entry)
    return list(found.values())


def _public(module: ModuleType) -> list[str]:
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if callable(getattr(module, name))]
    own = [name for name, thing in vars(module).items() if getattr(thing, "__module__", None) == module.__name__]
    return [name for name in own if not name.startswith("_") and callable(getattr(module, name))]


def _described(name: str, thing: object) -> Iterator[Entry]:
    doc = inspect.getdoc(thing)
    if not doc:
        return
    yield Entry(name, _signature(thing), doc)
    if not inspect.isclass(thing):
        return
    for method, function in sorted(vars(thing).items()):
        if method.startswith("_"):
            continue
        inner = function.__func__ if isinstance(function, classmethod | staticmethod) else function
        plain = inner.fget if isinstance(inner, property) else inner
        if inspect.isfunction(plain) and plain.__doc__:
            what = "" if isinstance(inner, property) else _signature(plain)
            yield Entry(f"{name}.{method}", what, inspect.getdoc(plain) or "")


def _signature(thing: object) -> str:
    if not callable(thing) or (inspect.isclass(thing) and issubclass(thing, BaseException)):
        return ""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    shown = [parameter for name, parameter in signature.parameters.items() if not name.startswith("_") and name != "self"]
    text = str(signature.replace(parameters=shown)).replace(" -> None", "").replace("<factory>", "…")
    # A function that is a default has no name worth showing, and an address that changes.
    text = re.sub(r"<(built-in )?function ([\w.]|<lambda>)+( at 0x[0-9a-f]+)?>", "…", text)
    # Annotations are texts, since they are not evaluated.
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)


def markdown() -> str:
    """Write the reference as Markdown."""
    lines = ["# Reference", "", "Made from the docstrings by `make reference`; the page shows the same under *Reference*.", ""]
    for entry in entries():
        lines += [f"## `{entry.name}`", ""]
        if entry.signature:
            lines += [f"    {entry.name.rsplit('.', 1)[-1]}{entry.signature}", ""]
        lines += ["```text", entry.doc, "```", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    print(markdown(), end="")
