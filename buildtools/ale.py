"""The emulator: our C API over the Arcade Learning Environment, compiled to WebAssembly by the clang that zig brings."""

from __future__ import annotations

import gzip
import hashlib
import importlib.metadata
import importlib.util
import io
import json
import os
import shutil
import sys
import tarfile
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from buildtools import sources
from buildtools.errors import BuildError
from buildtools.tools import INSTALL_REMEDY, require_module, run_tool

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The sources are of the release whose wheel plays on CPython, so that both play the same game.
REQUIREMENT = "ale-py==0.12.1"
SDIST_SHA256 = "c503d574c5983e1063b451201ccb779d935919c0f6bf116fb0f4f8aa4c86d249"
BACKEND = "scikit_build_core"

ROM_MD5 = "f34f08e5eb96e500e851a80be3277a56"

FOLDER = "ale/"
WASM = FOLDER + "ale.wasm"
ROM = FOLDER + "breakout.bin"

#: Contraction would round a product and a sum once instead of twice, and the resized frames would not be Python's.
#: SIMD halves the time of a resize; onnxruntime-web needs it, too, so that every browser that gets here has it.
COMPILE = ("-std=c++17", "-O3", "-msimd128", "-DNDEBUG", "-fexceptions", "-fignore-exceptions", "-ffp-contract=off")
TARGET = ("-target", "wasm32-wasi")
#: A stack of 1 MiB, for zig's 16 would be most of the module's memory.
LINK = ("-O3", "-mexec-model=reactor", "-Wl,-s", "-Wl,-z,stack-size=1048576")

#: What is source in ALE's archive, and to be handed on with the module; the rest is other games' ROMs, Python and papers.
_SOURCE_SUFFIXES = frozenset({".cpp", ".cxx", ".hpp", ".hxx", ".h", ".ins", ".m4", ".in"})

_FILES_PER_NOTE = 20


@dataclass(frozen=True)
class Unit:
    """One file to compile: its path in the working folder, and the folders of its headers there."""

    path: str
    includes: tuple[str, ...]


def add_emulator(root: Path, site: Path, fetch: sources.Fetch, *, with_rom: bool) -> None:
    """Put the module, its licence, its source and, if wanted, the ROM into the site.

    Raises
    ------
    BuildError
        A tool, the source or the ROM is missing or is not the pinned one, or something does not compile.
    """
    rom = breakout_rom() if with_rom else None
    archive = sources.source_archive(REQUIREMENT, SDIST_SHA256, BACKEND, fetch)
    ours = root / "native" / "ale"
    module = build_module(ours, archive, fetch)
    target = site / FOLDER
    target.mkdir()
    shutil.copyfile(module, site / WASM)
    shutil.copyfile(root / "LICENSES" / "GPL-2.0-only.txt", target / "GPL-2.0-only.txt")
    shutil.copyfile(ours / "NOTICE.txt", target / "NOTICE.txt")
    (target / "source.tar.gz").write_bytes(corresponding_source(root, archive))
    if rom is not None:
        (site / ROM).write_bytes(rom)


def breakout_rom() -> bytes:
    """Return Breakout's ROM out of the installed ale_py, its MD5 checked."""
    spec = importlib.util.find_spec("ale_py")
    if spec is None or spec.origin is None:
        raise BuildError(f"the Python module 'ale_py', which holds Breakout's ROM, is missing in {sys.prefix}", INSTALL_REMEDY)
    path = Path(spec.origin).parent / "roms" / "breakout.bin"
    remedy = f"install {REQUIREMENT} again, or build with --no-rom"
    try:
        rom = path.read_bytes()
    except OSError as error:
        raise BuildError(f"Breakout's ROM cannot be read ({path}: {error.strerror})", remedy) from error
    found = hashlib.md5(rom, usedforsecurity=False).hexdigest()
    if found != ROM_MD5:
        raise BuildError(f"Breakout's ROM ({path}) has the MD5 {found}, not {ROM_MD5}", remedy)
    return rom


def build_module(ours: Path, archive: Path, fetch: sources.Fetch) -> Path:
    """Return the compiled module, built where the cache lacks it.

    Parameters
    ----------
    ours
        Our C++ and the list of ALE's files.
    archive
        ALE's sources.
    fetch
        Where results are kept, and who is told.
    """
    require_module("ziglang")
    zig = importlib.metadata.version("ziglang")
    recipe = json.dumps([zig, TARGET, COMPILE, LINK, SDIST_SHA256])
    inputs = _digest(recipe, ours)
    found = fetch.cache.get_made("ale-module", inputs)
    if found is None:
        with tempfile.TemporaryDirectory() as folder:
            work = Path(folder)
            _unpack(archive, work / "ale")
            shutil.copytree(ours, work / "ours")
            built = _Zig(work, recipe, fetch).build()
            found = fetch.cache.put_made("ale-module", inputs, built)
    return found


class _Zig:
    """Compiles what lies in a working folder. All paths are relative to it, so that its own path is in no result."""

    def __init__(self, work: Path, recipe: str, fetch: sources.Fetch) -> None:
        self._work = work
        self._recipe = recipe
        self._fetch = fetch
        # libc++ is compiled once and kept; what zig keeps of our files goes with the folder, since the cache has them.
        self._variables = {
            "ZIG_GLOBAL_CACHE_DIR": str((fetch.cache.folder / "zig").absolute()),
            "ZIG_LOCAL_CACHE_DIR": str(work / "zig"),
        }

    def build(self) -> Path:
        """Return the module."""
        units = _units(self._work)
        (self._work / "objects").mkdir()
        self._fetch.progress.note(f"compiling {len(units)} files and the C++ library: about a minute on two idle cores, once")
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            # Linking anything makes zig compile libc++, on one core: it goes first, beside our files.
            jobs = [pool.submit(self._warm), *(pool.submit(self._object, index, unit) for index, unit in enumerate(units))]
            try:
                for done, job in enumerate(as_completed(jobs), 1):
                    job.result()
                    if done % _FILES_PER_NOTE == 0 or done == len(jobs):
                        self._fetch.progress.note(f"{done} of {len(jobs)} compiled")
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        objects = [f"objects/{index}.o" for index in range(len(units))]
        self._run("c++", *TARGET, *LINK, *objects, "-o", "ale.wasm", task="linking the emulator")
        return self._work / "ale.wasm"

    def _warm(self) -> None:
        (self._work / "empty.cpp").write_text("#include <string>\n", encoding="utf-8")
        self._run("c++", *TARGET, *LINK, "empty.cpp", "-o", "empty.wasm", task="compiling the C++ library")

    def _object(self, index: int, unit: Unit) -> None:
        source, target = self._work / unit.path, self._work / f"objects/{index}.o"
        headers = [self._work / folder for folder in unit.includes if folder.startswith("ours")]
        inputs = _digest(self._recipe + unit.path, source, *(path for folder in headers for path in _headers(folder)))
        kept = self._fetch.cache.get_made("ale-object", inputs)
        if kept is None:
            includes = [f"-I{folder}" for folder in unit.includes]
            what = f"compiling {PurePosixPath(unit.path).name}"
            self._run("c++", *TARGET, *COMPILE, *includes, "-c", unit.path, "-o", f"objects/{index}.o", task=what)
            self._fetch.cache.put_made("ale-object", inputs, target)
        else:
            shutil.copyfile(kept, target)

    def _run(self, *arguments: str, task: str) -> None:
        run_tool(
            [sys.executable, "-m", "ziglang", *arguments],
            task=task,
            remedy="see the whole output with -v",
            progress=self._fetch.progress,
            folder=self._work,
            variables=self._variables,
        )


def _units(work: Path) -> list[Unit]:
    listed = (work / "ours" / "sources.txt").read_text(encoding="utf-8").split()
    theirs = [Unit(f"ale/src/ale/{name}", ("ours/shims", "ale/src")) for name in listed]
    for unit in theirs:
        if not (work / unit.path).is_file():
            raise BuildError(f"native/ale/sources.txt names a file that {REQUIREMENT} lacks ({unit.path})", "correct the list")
    shims = sorted((work / "ours" / "shims").glob("*.cpp"))
    api = sorted((work / "ours").glob("*.cpp"))
    ours = [Unit(path.relative_to(work).as_posix(), ("ours", "ours/shims", "ale/src")) for path in (*shims, *api)]
    return theirs + ours


def _headers(folder: Path) -> Iterator[Path]:
    """Give the headers that lie in a folder itself; one of the C++ library's has no suffix."""
    return (path for path in sorted(folder.iterdir()) if path.is_file() and path.suffix in (".h", ""))


def _digest(recipe: str, *paths: Path) -> str:
    """Return a hash of names and contents; of a folder, of all that is in it."""
    digest = hashlib.sha256(recipe.encode())
    for path in paths:
        inside = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        for file in inside:
            content = file.read_bytes()
            digest.update(f"\0{file.relative_to(path.parent).as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _members(archive: tarfile.TarFile) -> Iterator[tuple[PurePosixPath, tarfile.TarInfo]]:
    """Give ALE's source files and its licence, their paths without the archive's own folder."""
    for member in archive:
        path = PurePosixPath(*PurePosixPath(member.name).parts[1:])
        source = path.parts[:2] == ("src", "ale") and path.suffix in _SOURCE_SUFFIXES
        if member.isfile() and ".." not in path.parts and (source or path.name == "LICENSE.md"):
            yield path, member


def _unpack(archive: Path, target: Path) -> None:
    with tarfile.open(archive) as stream:
        for path, member in _members(stream):
            file = stream.extractfile(member)
            if file is not None:
                (target / path).parent.mkdir(parents=True, exist_ok=True)
                (target / path).write_bytes(file.read())


def corresponding_source(root: Path, archive: Path) -> bytes:
    """Return all that the module is compiled from, as a ``.tar.gz``, the same bytes for the same sources.

    The licence wants that whoever is given the module is given these. They are our folder, ALE's sources and the
    programs that compile them.
    """
    files = {f"ale-wasm/{path.relative_to(root).as_posix()}": path.read_bytes() for path in _own_sources(root)}
    with tarfile.open(archive) as stream:
        for path, member in _members(stream):
            file = stream.extractfile(member)
            if file is not None:
                files[f"ale-wasm/{REQUIREMENT.replace('==', '-')}/{path}"] = file.read()
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as stream:
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            stream.addfile(entry, io.BytesIO(content))
    return gzip.compress(plain.getvalue(), compresslevel=9, mtime=0)


def _own_sources(root: Path) -> Iterator[Path]:
    folders = (root / "native" / "ale", root / "LICENSES", root / "buildtools")
    for folder in folders:
        yield from (path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)
    yield root / "build_wheel.py"
