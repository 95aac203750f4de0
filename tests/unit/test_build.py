from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

import pytest

import build_wheel
from buildtools import npm, runtime, site, tools, wheels
from buildtools.cache import Cache
from buildtools.errors import BuildError


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Everything a build reads, as small as can be."""
    root = tmp_path / "project"
    pins = {"pyodide": "0.27.7", "onnxruntime-web": "1.30.0"}
    for name, version in pins.items():
        folder = root / "node_modules" / name
        folder.mkdir(parents=True)
        (folder / "package.json").write_text(json.dumps({"version": version}))
    (root / "package.json").write_text(json.dumps({"dependencies": pins}))
    (root / "node_modules" / "pyodide" / "pyodide-lock.json").write_text(
        json.dumps({"info": {"python": "3.12.7"}, "packages": {}})
    )
    (root / "web").mkdir()
    (root / "web" / "index.html").write_text("<!doctype html>")
    (root / "web" / "_headers").write_text("/*\n X: y\n")
    (root / "fixtures").mkdir()
    for name in ("model.onnx", "states.npz", "provenance.json"):
        (root / "fixtures" / name).write_text("{}")
    return root


@pytest.fixture
def old_site(tmp_path: Path) -> Path:
    dist = tmp_path / "dist"
    dist.mkdir()
    (dist / "site.json").write_text("old")
    return dist


def build(project: Path, out: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(build_wheel, "ROOT", project)
    monkeypatch.setenv("PYAPP_CACHE", str(project / "cache"))
    return build_wheel.main(["--out", str(out), *arguments])


def assert_stopped(capsys: pytest.CaptureFixture[str], out: Path, *words: str) -> None:
    """One line, the words in it, no traceback, and the old site whole with nothing beside it."""
    said = capsys.readouterr().err
    (line,) = [line for line in said.splitlines() if line.startswith("error:")]
    assert said.endswith(line + "\n")
    assert " – " in line
    for word in words:
        assert word in line
    assert [path.name for path in out.iterdir()] == ["site.json"]
    assert (out / "site.json").read_text() == "old"
    assert not list(out.parent.glob(".dist-*"))


# --- the command line ---


def test_missing_npm_packages_stop_the_build(
    project: Path, old_site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "node_modules" / "pyodide" / "package.json").unlink()
    assert build(project, old_site, monkeypatch) == 2
    assert_stopped(capsys, old_site, "pyodide is not installed", "npm ci")


def test_another_npm_version_stops_the_build(
    project: Path, old_site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "node_modules" / "onnxruntime-web" / "package.json").write_text('{"version": "1.29.0"}')
    assert build(project, old_site, monkeypatch) == 2
    assert_stopped(capsys, old_site, "onnxruntime-web", "1.29.0", "1.30.0", "npm ci")


@pytest.mark.parametrize("name", ["model.onnx", "states.npz", "provenance.json"])
def test_a_missing_fixture_stops_the_build(
    project: Path, old_site: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "fixtures" / name).unlink()
    assert build(project, old_site, monkeypatch) == 2
    assert_stopped(capsys, old_site, Path(name).suffix, "make fixtures")


def test_a_missing_tool_stops_the_build(
    project: Path, old_site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tools.importlib.util, "find_spec", lambda name: None)
    assert build(project, old_site, monkeypatch) == 2
    assert_stopped(capsys, old_site, "'build' is missing", "make build")


def test_an_empty_cache_without_network_stops_the_build(
    project: Path, old_site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pins = f"attrs==26.1.0 \\\n    --hash=sha256:{'0' * 64}\n"
    (project / "requirements").mkdir()
    (project / "requirements" / "site.txt").write_text(pins)
    monkeypatch.setattr(wheels, "build_wheel", lambda root, target, progress: target / "pyapp.whl")
    assert build(project, old_site, monkeypatch, "--offline") == 2
    assert_stopped(capsys, old_site, "attrs==26.1.0", "without --offline")


def test_a_folder_that_no_build_made_is_not_replaced(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    assert build(project, tmp_path / "mine", monkeypatch) == 2
    assert "no site of ours" in capsys.readouterr().err
    assert (tmp_path / "mine" / "thesis.txt").exists()


# --- replacing the site ---


def test_a_failure_leaves_the_old_site(old_site: Path) -> None:
    def failing() -> None:
        with site.replacing(old_site) as fresh:
            (fresh / "site.json").write_text("new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        failing()
    assert (old_site / "site.json").read_text() == "old"
    assert [path.name for path in old_site.parent.iterdir()] == ["dist"]


def test_a_success_replaces_it_whole(old_site: Path) -> None:
    (old_site / "stale.js").write_text("")
    with site.replacing(old_site) as fresh:
        (fresh / "site.json").write_text("new")
    assert [path.name for path in old_site.iterdir()] == ["site.json"]
    assert (old_site / "site.json").read_text() == "new"
    assert [path.name for path in old_site.parent.iterdir()] == ["dist"]


def test_a_rename_that_fails_is_undone(old_site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = Path.rename

    def failing(self: Path, target: Path) -> Path:
        if self.name == "fresh":
            raise OSError("disk gone")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(OSError, match="disk gone"), site.replacing(old_site):
        pass
    assert (old_site / "site.json").read_text() == "old"


# --- what is in it ---


def test_the_page_is_copied_without_what_editors_read(project: Path, tmp_path: Path) -> None:
    for name in ("jsconfig.json", "types.d.ts", ".hidden", "main.js", "views/race.js", "views/types.d.ts"):
        path = project / "web" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    site.copy_web(project / "web", tmp_path / "out")
    copied = sorted(path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.*"))
    assert copied == ["index.html", "main.js", "views/race.js"]
    assert (tmp_path / "out" / "_headers").exists()


def test_the_manifest_names_every_file_and_is_the_same_for_the_same_site(tmp_path: Path) -> None:
    app = tmp_path / "app" / "0123"
    (app / "b").mkdir(parents=True)
    for path, text in {app / "b" / "x.js": "1", tmp_path / "index.html": "22", tmp_path / "_headers": "/*"}.items():
        path.write_text(text)
    site.write_manifest(tmp_path, app, {"pyapp": "0.1.0"})
    first = (app / "site.json").read_text()
    site.write_manifest(tmp_path, app, {"pyapp": "0.1.0"})
    assert (app / "site.json").read_text() == first
    manifest = json.loads(first)
    assert (manifest["schema"], manifest["pyapp"], manifest["version"]) == ("pyapp-site/2", "0.1.0", "0123")
    assert [(file["path"], file["bytes"]) for file in manifest["files"]] == [("../../index.html", 2), ("b/x.js", 1)]
    assert manifest["files"][0]["sha256"] == hashlib.sha256(b"22").hexdigest()


def test_a_file_over_25_mib_is_refused(project: Path) -> None:
    large = project / "web" / "large.wasm"
    large.touch()
    with large.open("r+b") as stream:
        stream.truncate(site.MAX_FILE_BYTES)
        site.check_site(project / "web")
        stream.truncate(site.MAX_FILE_BYTES + 1)
    with pytest.raises(BuildError, match=r"large\.wasm is too large \(26214401 bytes"):
        site.check_site(project / "web")


def test_wrong_headers_are_refused(project: Path) -> None:
    (project / "web" / "_headers").write_text("/*\n nonsense\n")
    with pytest.raises(BuildError, match="line 2"):
        site.check_site(project / "web")


def test_what_is_too_large_is_shipped_compressed_and_made_once(tmp_path: Path) -> None:
    folder = tmp_path / "module"
    folder.mkdir()
    (folder / "x.wasm").write_bytes(b"wasm" * 1000)
    module, cache = npm.NpmPackage("module", "1.0", folder), Cache(tmp_path / "cache")
    runtime.compress_runtime(module, ("x.wasm",), tmp_path / "site", "", cache)
    (shipped,) = (tmp_path / "site").rglob("x.*")
    assert shipped.relative_to(tmp_path / "site").as_posix() == "runtime/module-1.0/x.wasm.gz"
    assert gzip.decompress(shipped.read_bytes()) == b"wasm" * 1000
    assert shipped.read_bytes()[4:8] == b"\0\0\0\0"  # no date
    kept = runtime.gzipped(folder / "x.wasm", cache)
    before = kept.stat().st_mtime_ns
    assert runtime.gzipped(folder / "x.wasm", cache).stat().st_mtime_ns == before
    kept.write_bytes(b"damaged")
    assert gzip.decompress(runtime.gzipped(folder / "x.wasm", cache).read_bytes()) == b"wasm" * 1000


def test_a_missing_runtime_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"absent\.mjs.*npm ci"):
        npm.NpmPackage("module", "1.0", tmp_path).file("absent.mjs")
