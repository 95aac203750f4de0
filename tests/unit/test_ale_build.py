"""The emulator's build: a missing tool, a wrong hash and faulty code stop it in words, and nothing is compiled twice."""

from __future__ import annotations

import importlib.util
import io
import json
import re
import shutil
import tarfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

import build_wheel
from buildtools import ale, site, sources, tools
from buildtools.cache import Cache, sha256_of
from buildtools.errors import BuildError
from buildtools.progress import Progress
from pyapp.sitefolder import app_folder

type Build = Callable[[], Path]

ROOT = Path(__file__).parents[2]
OURS = ROOT / "native" / "ale"


@pytest.fixture
def fetch(tmp_path: Path) -> sources.Fetch:
    return sources.Fetch(Cache(tmp_path / "cache"), False, Progress(1))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An emulator of three files, two of which are ALE's."""
    root = tmp_path / "project"
    files = {
        "native/ale/sources.txt": "emucore/A.cxx\nemucore/B.cxx\n",
        "native/ale/api.cpp": "api",
        "native/ale/api.h": "header",
        "native/ale/NOTICE.txt": "notice",
        "native/ale/shims/zlib.h": "shim",
        "LICENSES/GPL-2.0-only.txt": "licence",
        "buildtools/ale.py": "builds",
        "build_wheel.py": "calls it",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return write_archive(tmp_path / "ale.tar.gz", ("src/ale/emucore/A.cxx", "src/ale/emucore/B.cxx", "src/ale/x.hpp"))


def write_archive(path: Path, names: tuple[str, ...]) -> Path:
    others = ("LICENSE.md", "src/ale/python/roms/pong.bin", "docs/paper.cpp", "../out.cpp")
    with tarfile.open(path, "w:gz") as stream:
        for name in (*names, *others):
            entry = tarfile.TarInfo(f"ale_py-0/{name}")
            entry.size = len(name)
            stream.addfile(entry, io.BytesIO(name.encode()))
    return path


class FakeZig:
    """Compiles by putting together what it reads, and remembers what it was asked."""

    def __init__(self) -> None:
        self.compiled: list[str] = []
        self.linked = 0
        self.fails_on: str | None = None

    def __call__(self, command: list[str], *, task: str, folder: Path, **_: object) -> None:
        words = [str(word) for word in command[command.index("c++") + 1 :]]
        inputs = [word for word in words if word.endswith((".cpp", ".cxx", ".o")) and word != words[-1]]
        if self.fails_on and any(self.fails_on in word for word in inputs):
            raise BuildError(f"{task} failed", "look at it")
        if "-c" in words:
            self.compiled.append(Path(inputs[0]).name)
        elif inputs != ["empty.cpp"]:
            self.linked += 1
        (folder / words[-1]).write_bytes(b"".join((folder / name).read_bytes() for name in inputs))


@pytest.fixture
def build(project: Path, archive: Path, fetch: sources.Fetch) -> Build:
    return lambda: ale.build_module(project / "native" / "ale", archive, fetch)


@pytest.fixture
def zig(monkeypatch: pytest.MonkeyPatch) -> FakeZig:
    fake = FakeZig()
    monkeypatch.setattr(ale, "run_tool", fake)
    return fake


# --- compiling ---


def test_the_module_is_compiled_once(build: Build, zig: FakeZig) -> None:
    module = build()
    assert sorted(zig.compiled) == ["A.cxx", "B.cxx", "api.cpp"]
    assert module.read_bytes() == b"src/ale/emucore/A.cxx" + b"src/ale/emucore/B.cxx" + b"api"
    assert build() == module
    assert (len(zig.compiled), zig.linked) == (3, 1)


@pytest.mark.parametrize(
    ("changed", "again"),
    [("api.cpp", ["api.cpp"]), ("api.h", ["api.cpp"]), ("shims/zlib.h", ["A.cxx", "B.cxx", "api.cpp"]), ("README.md", [])],
)
def test_only_what_a_change_concerns_is_compiled_again(
    project: Path, build: Build, zig: FakeZig, changed: str, again: list[str]
) -> None:
    ours = project / "native" / "ale"
    build()
    zig.compiled.clear()
    (ours / changed).write_text("changed")
    build()
    assert sorted(zig.compiled) == again
    assert zig.linked == 2


def test_other_flags_compile_everything_again(build: Build, zig: FakeZig, monkeypatch: pytest.MonkeyPatch) -> None:
    build()
    monkeypatch.setattr(ale, "COMPILE", (*ale.COMPILE, "-g"))
    build()
    assert len(zig.compiled) == 6


def test_a_damaged_module_is_linked_again(build: Build, zig: FakeZig) -> None:
    module = build()
    whole = module.read_bytes()
    module.write_bytes(b"damaged")
    assert build().read_bytes() == whole
    assert (len(zig.compiled), zig.linked) == (3, 2)


def test_a_file_that_does_not_compile_stops_the_build(build: Build, zig: FakeZig) -> None:
    zig.fails_on = "B.cxx"
    with pytest.raises(BuildError, match=r"compiling B\.cxx failed"):
        build()
    zig.fails_on = None
    build()
    assert zig.linked == 1


def test_a_source_that_the_release_lacks_is_named(project: Path, build: Build, zig: FakeZig) -> None:
    (project / "native" / "ale" / "sources.txt").write_text("emucore/Gone.cxx\n")
    with pytest.raises(BuildError, match=r"Gone\.cxx"):
        build()


def test_a_missing_compiler_stops_the_build(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BuildError, match=r"'ziglang' is missing.*make build"):
        build()


def test_a_compilers_first_error_is_told() -> None:
    output = "In file included from a.cpp:1:\na.h:3:7: error: expected ';'\na.h:9:1: error: and more\n2 errors generated.\n"
    assert tools._reason(output) == "a.h:3:7: error: expected ';'"
    assert "undefined symbol: x" in tools._reason("error: undefined symbol: x\n    note: referenced by 1.o\n")


# --- the sources ---


def fetch_source(fetch: sources.Fetch, sha256: str) -> Path:
    return sources.source_archive("ale-py==0.12.1", sha256, "hatchling", fetch)


def test_the_sources_are_fetched_once(archive: Path, fetch: sources.Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def pip(command: list[str | Path], **_: object) -> None:
        calls.append([str(word) for word in command])
        assert sha256_of(archive) in Path(command[-1]).read_text()
        shutil.copy(archive, command[command.index("--dest") + 1])

    monkeypatch.setattr(sources, "run_tool", pip)
    found = fetch_source(fetch, sha256_of(archive))
    assert fetch_source(fetch, sha256_of(archive)) == found
    (command,) = calls
    assert {"--require-hashes", "--no-build-isolation", "--no-deps"} <= set(command)


def test_other_sources_than_pinned_are_refused(archive: Path, fetch: sources.Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "run_tool", lambda command, **_: shutil.copy(archive, command[command.index("--dest") + 1]))
    with pytest.raises(BuildError, match=f"not the sha256 {'0' * 64}"):
        fetch_source(fetch, "0" * 64)


def test_no_network_and_an_empty_cache_stop_the_build(fetch: sources.Fetch) -> None:
    offline = sources.Fetch(fetch.cache, True, fetch.progress)
    with pytest.raises(BuildError, match=r"source of ale-py==0\.12\.1.*without --offline"):
        fetch_source(offline, "0" * 64)


def test_a_missing_backend_stops_the_build_before_pip_would_build_it(fetch: sources.Fetch) -> None:
    with pytest.raises(BuildError, match=r"'no_such_backend' is missing.*make build"):
        sources.source_archive("ale-py==0.12.1", "0" * 64, "no_such_backend", fetch)


def test_the_source_that_is_handed_on_is_whole_and_holds_no_rom(project: Path, archive: Path) -> None:
    packed = ale.corresponding_source(project, archive)
    assert packed == ale.corresponding_source(project, archive)
    with tarfile.open(fileobj=io.BytesIO(packed)) as stream:
        names = sorted(name.removeprefix("ale-wasm/") for name in stream.getnames())
    theirs = ["LICENSE.md", "src/ale/emucore/A.cxx", "src/ale/emucore/B.cxx", "src/ale/x.hpp"]
    ours = [path.relative_to(project).as_posix() for path in project.rglob("*") if path.is_file()]
    assert names == sorted([*(f"ale-py-0.12.1/{name}" for name in theirs), *ours])


# --- the ROM ---


def install_rom(folder: Path, content: bytes | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the installed ale_py be one with this ROM."""
    if content is not None:
        (folder / "roms").mkdir()
        (folder / "roms" / "breakout.bin").write_bytes(content)
    spec = SimpleNamespace(origin=str(folder / "__init__.py"))
    monkeypatch.setattr(ale.importlib.util, "find_spec", lambda name: spec)


def test_the_rom_is_that_of_the_installed_package() -> None:
    assert len(ale.breakout_rom()) == 2048


def test_another_rom_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_rom(tmp_path, b"pong", monkeypatch)
    with pytest.raises(
        BuildError, match=rf"MD5 [0-9a-f]{{32}}, not {ale.ROM_MD5} – install ale-py==0\.12\.1 again, or .*--no-rom"
    ):
        ale.breakout_rom()


def test_a_missing_rom_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_rom(tmp_path, None, monkeypatch)
    with pytest.raises(BuildError, match=r"cannot be read .*--no-rom"):
        ale.breakout_rom()


@pytest.mark.usefixtures("zig")
@pytest.mark.parametrize("with_rom", [True, False])
def test_the_site_has_licence_and_source_and_the_rom_if_wanted(
    project: Path, archive: Path, fetch: sources.Fetch, monkeypatch: pytest.MonkeyPatch, with_rom: bool
) -> None:
    monkeypatch.setattr(sources, "source_archive", lambda *_: archive)
    monkeypatch.setattr(ale, "breakout_rom", lambda: b"rom" if with_rom else pytest.fail("no ROM was wanted"))
    (project / "site").mkdir()
    ale.add_emulator(project, project / "site", fetch, with_rom=with_rom)
    found = {path.name for path in (project / "site" / "ale").iterdir()}
    assert found == {"ale.wasm", "GPL-2.0-only.txt", "NOTICE.txt", "source.tar.gz"} | ({"breakout.bin"} if with_rom else set())


@pytest.mark.parametrize(("arguments", "path"), [([], "ale/breakout.bin"), (["--no-rom"], None)])
def test_the_manifest_says_whether_there_is_a_rom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], path: str | None
) -> None:
    without_other_steps(monkeypatch)
    wanted = []

    def add_emulator(root: Path, site: Path, fetch: sources.Fetch, *, with_rom: bool) -> None:
        wanted.append(with_rom)
        (site / "ale").mkdir()
        (site / "ale" / "NOTICE.txt").touch()  # the page names it

    monkeypatch.setattr(ale, "add_emulator", add_emulator)
    assert build_wheel.main(["--out", str(tmp_path / "dist"), *arguments]) == 0
    manifest = json.loads((app_folder(tmp_path / "dist") / "site.json").read_text())
    assert (manifest["ale_path"], manifest["rom_path"], wanted) == ("ale/ale.wasm", path, [path is not None])


def test_a_failure_leaves_the_old_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_other_steps(monkeypatch)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "site.json").write_text("old")
    assert build_wheel.main(["--out", str(tmp_path / "dist")]) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error:")]
    assert "'ale_py', which holds Breakout's ROM, is missing" in line
    assert "make build" in line
    assert [path.name for path in (tmp_path / "dist").iterdir()] == ["site.json"]
    assert not list(tmp_path.glob(".dist-*"))


def without_other_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = {"info": {"python": "3.12.7"}, "packages": {"pyapp": {"version": "0", "file_name": "pyapp-0.whl", "depends": []}}}
    monkeypatch.setattr(build_wheel, "build_python", lambda plan, pyodide, target: target.mkdir() or needed)
    monkeypatch.setattr(build_wheel, "add_lock", lambda *_: None)
    for name in ("copy_runtime", "compress_runtime"):
        monkeypatch.setattr(build_wheel.runtime, name, lambda *_: None)
    monkeypatch.setattr(build_wheel.vendor, "bundle_vendor", lambda *_: None)
    monkeypatch.setattr(build_wheel.preloads, "add_preloads", lambda *_: None)
    monkeypatch.setattr(build_wheel.licences, "add_licences", lambda *_: None)
    monkeypatch.setattr(site, "check_site", lambda *_: None)


# --- what is in the repository ---


def test_the_release_is_pinned_the_same_everywhere() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    pins = {pin.split("==")[0]: pin for pin in extras["build"]}
    assert pins["ale-py"] == ale.REQUIREMENT
    assert ale.REQUIREMENT in extras["native"]
    assert ale.SDIST_SHA256 in (ROOT / "requirements" / "run.txt").read_text()
    notice = (OURS / "NOTICE.txt").read_text()
    assert f"release {ale.REQUIREMENT.partition('==')[2]}," in notice
    assert f"ziglang {pins['ziglang'].partition('==')[2]}." in notice


def test_every_file_of_ours_says_its_licence() -> None:
    for path in OURS.rglob("*"):
        if path.suffix in (".cpp", ".h", "") and path.is_file():
            assert "SPDX-License-Identifier: GPL-2.0-only" in path.read_text().splitlines()[0], path


def test_javascript_knows_the_statuses_that_the_module_answers() -> None:
    header = (OURS / "api.h").read_text()
    checks = (ROOT / "web" / "ale-checks.js").read_text()
    found = re.findall(r"^(?:export )?const (BAD_\w+|CANNOT_START) = (-\d);", checks, re.MULTILINE)
    assert len(found) == 3
    for name, value in found:
        assert f"k{name.title().replace('_', '')} = {value}" in header


def test_javascript_knows_what_the_module_exports() -> None:
    exported = set(re.findall(r"^EXPORT\(.+, (\w+)\)", (OURS / "api.h").read_text(), re.MULTILINE))
    script = (ROOT / "web" / "ale.js").read_text()
    assert exported == set(re.findall(r"@property \{.+\} (ale_\w+)$", script, re.MULTILINE))
