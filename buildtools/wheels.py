"""Our package as a wheel, byte-compiled and the same bytes every time."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import shutil
import sys
import tempfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from buildtools.cache import sha256_of
from buildtools.errors import BuildError
from buildtools.lock import read_lock
from buildtools.tools import INSTALL_REMEDY, SOURCE_DATE_EPOCH, pyodide_command, require_module, run_tool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from buildtools.cache import Cache
    from buildtools.lock import Lock
    from buildtools.progress import Progress

#: Where `pyapp.onnxparts` looks for ONNX's schema first.
SCHEMA = "pyapp/_onnx_ml_pb2.py"

#: What only type checkers and C compilers read.
NOT_RUN = (".pyi", ".h", ".pxd", ".c", ".pyx", ".a")

_ZIP_DATE = datetime.fromtimestamp(SOURCE_DATE_EPOCH, UTC).timetuple()[:6]


def build_wheel(root: Path, target: Path, progress: Progress) -> Path:
    """Build the wheel of the project in `root` with its pinned backend; return its path in `target`."""
    for module in ("build", "hatchling"):
        require_module(module)
    run_tool(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", target, root],
        task="building pyapp's wheel",
        remedy="see the whole output with -v",
        progress=progress,
    )
    (wheel,) = target.glob("pyapp-*.whl")
    add_schema(wheel)
    return wheel


def add_schema(wheel: Path) -> None:
    """Put ONNX's schema into the wheel: generated code, out of the pinned `onnx`, which itself has no wheel for Pyodide.

    The RECORD does not know of it until `normalise_wheel` has written that anew.
    """
    require_module("onnx")
    spec = importlib.util.find_spec("onnx")
    source = Path(spec.origin).with_name("onnx_ml_pb2.py") if spec and spec.origin else None
    if source is None or not source.is_file():
        raise BuildError("the installed onnx has no onnx_ml_pb2.py", INSTALL_REMEDY)
    with zipfile.ZipFile(wheel, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(SCHEMA, source.read_bytes())


def check_python(lock: Lock) -> None:
    """Raise a `BuildError` unless this Python writes byte code that the lock's Python reads."""
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    there = lock["info"]["python"].rpartition(".")[0]
    if here != there:
        raise BuildError(f"this is Python {here}, but Pyodide's is {there}", INSTALL_REMEDY)


def lock_wheels(wheels: Sequence[Path], source: Path, progress: Progress) -> Lock:
    """Add wheels to a copy of Pyodide's lock, then byte-compile them in their place.

    Parameters
    ----------
    wheels
        Wheels in one folder that holds nothing else; they are replaced by compiled ones with other names.
    source
        Pyodide's own lock.
    progress
        Told what the tools say.

    Returns
    -------
    Lock
        Every package of the source, with ours added. Hashes are those of the tool; call `pinned` before shipping it.

    Notes
    -----
    The order is forced: ``add-wheels`` refuses the tag ``cp312-none-any`` that ``py-compile`` gives, and finds the
    import names by looking for ``.py`` files.
    """
    pyodide, folder = pyodide_command(), wheels[0].parent
    lock = folder / "pyodide-lock.json"
    run_tool(
        [pyodide, "lockfile", "add-wheels", "--input", source, "--output", lock, "--base-path", folder, *wheels],
        task="adding the wheels to Pyodide's lock",
        remedy="name what is missing in requirements/site.txt (`make lock`)",
        progress=progress,
    )
    run_tool(
        [pyodide, "py-compile", "--silent", folder],
        task="compiling the wheels",
        remedy="see the whole output with -v",
        progress=progress,
    )
    for wheel in folder.glob("*.whl"):
        normalise_wheel(wheel)
    # add-wheels drops info.version, without which Pyodide refuses the lock.
    return {**read_lock(lock), "info": read_lock(source)["info"]}


def compile_wheel(wheel: Path, cache: Cache, progress: Progress) -> Path:
    """Return a wheel of Pyodide's byte-compiled, as ours are; made once for each content.

    Python would compile its modules anew in every visit: for numpy, that is a third of the time that its import takes.

    Parameters
    ----------
    wheel
        A wheel for Pyodide's platform; its name stays.
    cache
        Where the compiled wheel is kept.
    progress
        Told what the tools say.
    """
    recipe, digest = f"py-compile-run-{sys.version_info.major}.{sys.version_info.minor}", sha256_of(wheel)
    if known := cache.get_made(recipe, digest):
        return known
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copyfile(wheel, Path(folder) / wheel.name))
        run_tool(
            [pyodide_command(), "py-compile", "--silent", copy],
            task=f"compiling {wheel.name}",
            remedy="see the whole output with -v",
            progress=progress,
        )
        normalise_wheel(copy, without=NOT_RUN)
        return cache.put_made(recipe, digest, copy)


def normalise_wheel(path: Path, without: tuple[str, ...] = ()) -> None:
    """Give a compiled wheel fixed dates and a RECORD that is true, and leave out files whose names end in one of `without`.

    ``py-compile`` dates every entry with the time of the run, and leaves the RECORD of the ``.py`` files.
    """
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist() if not name.endswith(("/", *without))}
    (record,) = [name for name in entries if name.endswith(".dist-info/RECORD")]
    del entries[record]
    lines = [f"{name},sha256={_urlsafe_sha256(data)},{len(data)}\n" for name, data in sorted(entries.items())]
    entries[record] = "".join([*lines, f"{record},,\n"]).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in entries.items():
            info = zipfile.ZipInfo(name, _ZIP_DATE)
            info.external_attr = 0o100644 << 16
            archive.writestr(info, data, zipfile.ZIP_DEFLATED)


def _urlsafe_sha256(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
