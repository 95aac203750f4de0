"""The version of the site, and the folder named by it: a page finds its files only beside those of its own version."""

from __future__ import annotations

import fnmatch
import hashlib
import re
from typing import TYPE_CHECKING

from buildtools.cache import sha256_of
from buildtools.errors import BuildError

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = "app"

#: Is written when the version is known.
MANIFEST = "site.json"

#: What browsers and hosts look for at the site's root, whatever its version.
ROOT = ("index.html", "404.html", "_headers", "icon*", "manifest.webmanifest", "service-worker.js")

#: Its folders have versions of their own, which change seldom.
RUNTIME = "runtime"

_REFERENCE = re.compile(r'\b(href|src)="([^"#:]+)"')


def is_shared(path: str) -> bool:
    """Say whether a file of the site lies outside the folder of its version."""
    top = path.partition("/")[0]
    return top == RUNTIME or any(fnmatch.fnmatchcase(path, pattern) for pattern in ROOT)


def from_app(path: str) -> str:
    """Return a path, which is relative to the site before `settle`, relative to the version's folder after it."""
    return f"../../{path}" if is_shared(path) else path


def version_of(site: Path) -> str:
    """Return a digest of a folder's files and their names, the same for the same content."""
    files = sorted((path.relative_to(site).as_posix(), sha256_of(path)) for path in site.rglob("*") if path.is_file())
    return hashlib.sha256(repr(files).encode()).hexdigest()[:12]


def settle(site: Path) -> Path:
    """Move what a page loads into the folder of the site's version, and have ``index.html`` point there.

    Returns
    -------
    Path
        That folder.

    Raises
    ------
    BuildError
        The page names a file that the site lacks.
    """
    page = site / "index.html"
    text = page.read_text(encoding="utf-8")
    for _, name in _REFERENCE.findall(text):
        if name != MANIFEST and not (site / name).is_file():
            raise BuildError(f"index.html names a file that the site lacks ({name})", "correct web/index.html")
    app = site / FOLDER / version_of(site)
    movable = [path for path in site.iterdir() if not is_shared(path.name)]
    app.mkdir(parents=True)
    for path in movable:
        path.rename(app / path.name)
    prefix = app.relative_to(site).as_posix()
    page.write_text(_REFERENCE.sub(lambda found: _moved(found, prefix), text), encoding="utf-8")
    return app


def _moved(found: re.Match[str], prefix: str) -> str:
    attribute, name = found.groups()
    return found[0] if is_shared(name) else f'{attribute}="{prefix}/{name}"'
