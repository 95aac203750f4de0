"""The site's folder: collected beside the old one, checked, and put in its place whole."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from buildtools import offline
from buildtools.cache import sha256_of
from buildtools.errors import BuildError
from buildtools.release import FOLDER, MANIFEST
from pyapp import headers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: What static hosts (Cloudflare Pages) take for one file.
MAX_FILE_BYTES = 25 * 1024 * 1024

#: What lists others cannot list itself; the host reads its rules, and sends them to nobody.
UNLISTED = frozenset({MANIFEST, offline.NAME, "_headers"})


@contextmanager
def replacing(out: Path) -> Iterator[Path]:
    """Give an empty folder that takes the place of `out` if the block succeeds.

    Until then, and for ever if it fails, `out` stays as it was.

    Raises
    ------
    BuildError
        `out` is something that no build has made.
    """
    out = out.absolute()
    if out.exists() and not _is_ours(out) and (not out.is_dir() or any(out.iterdir())):
        raise BuildError(f"{out} exists and is no site of ours", "name another folder with --out, or remove it")
    out.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}-"))
    fresh, stale = work / "fresh", work / "stale"
    fresh.mkdir()
    try:
        yield fresh
        _swap(fresh, out, stale)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _is_ours(out: Path) -> bool:
    return any(path.is_file() for path in (out / MANIFEST, *out.glob(f"{FOLDER}/*/{MANIFEST}")))


def _swap(fresh: Path, out: Path, stale: Path) -> None:
    if out.exists():
        out.rename(stale)
    try:
        fresh.rename(out)
    except BaseException:
        if stale.exists():
            stale.rename(out)
        raise


def copy_web(source: Path, site: Path) -> None:
    """Copy the page's own files, without those that only editors and type checkers read."""
    for required in ("index.html", "_headers"):
        if not (source / required).is_file():
            raise BuildError(f"the page lacks a file ({source / required})", "restore it from git")
    shutil.copytree(
        source,
        site,
        dirs_exist_ok=True,
        ignore=shutil.ignore_patterns("jsconfig.json", "*.d.ts", "*.md", ".*"),
    )


def copy_fixtures(source: Path, site: Path) -> None:
    """Copy the model, the states and Python's answers."""
    target = site / "fixtures"
    target.mkdir()
    for pattern in ("*.onnx", "*.npz", "*.json"):
        found = sorted(source.glob(pattern))
        if not found:
            raise BuildError(f"a fixture is missing ({source / pattern})", "restore it from git, or run `make fixtures`")
        for path in found:
            shutil.copyfile(path, target / path.name)


def write_manifest(site: Path, app: Path, facts: Mapping[str, str | list[str] | None]) -> None:
    """Write ``site.json`` into the version's folder: the given facts, and every file with its size and hash.

    Its paths are relative to that folder.
    """
    files = [
        {"path": os.path.relpath(path, app), "bytes": path.stat().st_size, "sha256": sha256_of(path)} for path in _files(site)
    ]
    files.sort(key=lambda file: str(file["path"]))
    manifest = {"schema": "pyapp-site/2", "version": app.name, **facts, "files": files}
    (app / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def check_site(site: Path) -> None:
    """Raise a `BuildError` if a static host would not take the site, or not as it is meant."""
    for path in _files(site):
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            name = path.relative_to(site).as_posix()
            what = f"{name} is too large ({size} bytes; static hosts take {MAX_FILE_BYTES})"
            raise BuildError(what, "ship it compressed, or not at all")
    try:
        headers.parse((site / "_headers").read_text(encoding="utf-8"))
    except headers.HeadersError as error:
        raise BuildError(str(error), "correct web/_headers") from error


def _files(site: Path) -> list[Path]:
    return [path for path in site.rglob("*") if path.is_file() and path.name not in UNLISTED]
