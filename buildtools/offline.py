"""The service worker's list of what it keeps: every file of the site with its hash."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING

from buildtools.errors import BuildError

if TYPE_CHECKING:
    from pathlib import Path

NAME = "service-worker.js"

#: Is replaced by the list.
MARK = "const SITE = { version: '', rules: '', files: [] };"

#: The worker cannot keep itself; the other two are the host's.
NOT_KEPT = frozenset({NAME, "_headers", "404.html"})


def add_worker(source: Path, site: Path, app: Path) -> None:
    """Write the service worker of a site that is whole but for it.

    Parameters
    ----------
    source
        The worker without its list.
    site
        The site's folder.
    app
        The folder of its version.

    Raises
    ------
    BuildError
        The worker has no place for the list.
    """
    text = source.read_text(encoding="utf-8")
    if text.count(MARK) != 1:
        raise BuildError(f"{source} has no place for the list of files ({MARK})", "restore it from git")
    files = {path.relative_to(site).as_posix(): path for path in site.rglob("*") if path.is_file()}
    facts = {
        "version": app.name,
        # A file is kept with the headers that it came with.
        "rules": hashlib.sha256((site / "_headers").read_bytes()).hexdigest()[:12],
        "files": [[path, _digest(files[path])] for path in sorted(files.keys() - NOT_KEPT)],
    }
    (site / NAME).write_text(text.replace(MARK, f"const SITE = {json.dumps(facts, indent=0)};"), encoding="utf-8")


def _digest(path: Path) -> str:
    """Return a file's SHA-256 as subresource integrity writes it."""
    return base64.b64encode(hashlib.sha256(path.read_bytes()).digest()).decode()
