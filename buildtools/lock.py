"""Pyodide's lock file: which packages a page needs, and where their files lie."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NotRequired, TypedDict, cast

from buildtools.cache import sha256_of
from buildtools.errors import BuildError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class LockedPackage(TypedDict):
    """One package of a lock, as Pyodide reads it."""

    name: str
    version: str
    file_name: str
    sha256: str
    depends: list[str]
    imports: list[str]
    install_dir: str
    package_type: str
    unvendored_tests: NotRequired[bool]
    tool: NotRequired[dict[str, object]]


class Lock(TypedDict):
    """A ``pyodide-lock.json``."""

    info: dict[str, str]
    packages: dict[str, LockedPackage]
    tool: NotRequired[dict[str, object]]


def read_lock(path: Path) -> Lock:
    """Read a lock file."""
    try:
        return cast("Lock", json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise BuildError(f"{path} cannot be read: {error}", "run `npm ci`") from error


def write_lock(lock: Lock, path: Path) -> None:
    """Write a lock file, the same bytes for the same content."""
    path.write_text(json.dumps(lock, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def closure(lock: Lock, roots: Iterable[str]) -> list[str]:
    """Return the packages that loading `roots` would load, sorted."""
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        if name not in lock["packages"]:
            raise BuildError(f"the lock holds no package '{name}'", "add it to requirements/site.txt with `make lock`")
        found.add(name)
        waiting += lock["packages"][name]["depends"]
    return sorted(found)


def pruned(lock: Lock, names: Iterable[str]) -> Lock:
    """Return the lock with these packages only.

    A package that the lock lists but the site lacks would end as a 404 in the page, where micropip, had the lock not
    listed it, would look it up as any other.
    """
    return {**lock, "packages": {name: lock["packages"][name] for name in names}}


def pinned(lock: Lock, folder: Path, prefix: str) -> Lock:
    """Return the lock with the hashes of the files in `folder`, their names behind `prefix`.

    Pyodide resolves a file name against its ``indexURL``, not against the place of the lock.
    """
    packages: dict[str, LockedPackage] = {}
    for name, package in lock["packages"].items():
        file = package["file_name"]
        packages[name] = {**package, "file_name": prefix + file, "sha256": sha256_of(folder / file)}
    return {**lock, "packages": packages}


def check_lock(lock: Lock, index: Path) -> None:
    """Raise a `BuildError` unless every file of the lock lies where Pyodide will look and has its hash.

    Parameters
    ----------
    lock
        The lock that the site ships.
    index
        The folder that the page gives Pyodide as ``indexURL``.
    """
    for package in lock["packages"].values():
        name, expected = package["file_name"], package["sha256"]
        if "://" in name:
            raise BuildError(f"the lock names an absolute address ({name})", "give `add-wheels` no --wheel-url")
        path = index / name
        if not path.is_file():
            raise BuildError(f"the lock names a file that the site lacks ({name})", "run `make clean build`")
        check_hash(path, expected)


def check_hash(path: Path, expected: str) -> None:
    """Raise a `BuildError` unless a file has the SHA-256 that is expected of it."""
    actual = sha256_of(path)
    if actual != expected:
        what = f"{path.name} has the sha256 {actual}, but the lock says {expected}"
        raise BuildError(what, "run it again; if it stays so, what was downloaded is not what Pyodide released")
