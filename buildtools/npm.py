"""Installed npm packages, checked against the versions that package.json pins."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from buildtools.errors import BuildError

if TYPE_CHECKING:
    from pathlib import Path

REMEDY = "run `npm ci`"


@dataclass(frozen=True)
class NpmPackage:
    """An npm package as it is installed."""

    name: str
    version: str
    folder: Path

    def file(self, path: str) -> Path:
        """Return the path of one of its files, or raise a `BuildError`."""
        found = self.folder / path
        if not found.is_file():
            raise BuildError(f"{self.name} {self.version} lacks a file ({found})", REMEDY)
        return found


def npm_package(root: Path, name: str) -> NpmPackage:
    """Find an installed package.

    Parameters
    ----------
    root
        The folder of package.json and node_modules.
    name
        The package's name.

    Raises
    ------
    BuildError
        It is not installed, or in another version than package.json says.
    """
    folder = root / "node_modules" / name
    manifest = folder / "package.json"
    if not manifest.is_file():
        raise BuildError(f"{name} is not installed ({folder})", REMEDY)
    version = str(json.loads(manifest.read_text(encoding="utf-8"))["version"])
    pin = str(json.loads((root / "package.json").read_text(encoding="utf-8"))["dependencies"][name])
    if version != pin:
        raise BuildError(f"{name} is installed in version {version}, but package.json pins {pin}", REMEDY)
    return NpmPackage(name, version, folder)
