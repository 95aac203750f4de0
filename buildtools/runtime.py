"""The runtimes that the page loads: Pyodide and onnxruntime-web."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from buildtools.cache import Cache
    from buildtools.npm import NpmPackage

PYODIDE_FILES = ("pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip")

ORT_FILES = (
    "ort.wasm.min.mjs",
    "ort.jspi.min.mjs",
    "ort.webgpu.min.mjs",
    "ort-wasm-simd-threaded.mjs",
    "ort-wasm-simd-threaded.wasm",
    "ort-wasm-simd-threaded.jspi.mjs",
    "ort-wasm-simd-threaded.jspi.wasm",
    "ort-wasm-simd-threaded.asyncify.mjs",
)

#: Over the size that static hosts take for one file; the page unpacks it.
ORT_COMPRESSED = ("ort-wasm-simd-threaded.asyncify.wasm",)


def runtime_path(package: NpmPackage) -> str:
    """Return where a runtime lies in the site; the version in it lets browsers keep the files for ever."""
    return f"runtime/{package.name}-{package.version}/"


def copy_runtime(package: NpmPackage, files: tuple[str, ...], site: Path, subfolder: str = "") -> None:
    """Copy a runtime's files into the site."""
    target = site / runtime_path(package)
    target.mkdir(parents=True, exist_ok=True)
    for name in files:
        shutil.copyfile(package.file(subfolder + name), target / name)


def compress_runtime(package: NpmPackage, files: tuple[str, ...], site: Path, subfolder: str, cache: Cache) -> None:
    """Put a runtime's files into the site as ``.gz`` only."""
    target = site / runtime_path(package)
    target.mkdir(parents=True, exist_ok=True)
    for name in files:
        shutil.copyfile(gzipped(package.file(subfolder + name), cache), target / f"{name}.gz")


def gzipped(source: Path, cache: Cache) -> Path:
    """Return a file's gzip, made once; the same bytes for the same content.

    Notes
    -----
    The best level takes several seconds on the file of 26 MB that this is for.
    """
    data = source.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    known = cache.get_derived("gzip-9", digest)
    if known is not None and _unpacks_to(known, digest):
        return known
    return cache.put_derived("gzip-9", digest, gzip.compress(data, compresslevel=9, mtime=0))


def _unpacks_to(path: Path, digest: str) -> bool:
    try:
        with gzip.open(path) as stream:
            return hashlib.sha256(stream.read()).hexdigest() == digest
    except (OSError, EOFError, zlib.error):
        return False
