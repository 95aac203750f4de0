"""What the build does for a first visit: links to modules, and wheels that are compiled once."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from buildtools import wheels
from buildtools.cache import Cache
from buildtools.errors import BuildError
from buildtools.preloads import MARK, add_preloads, imported
from buildtools.progress import Progress

ROOT = Path(__file__).parents[2]
QUIET = Progress(1)


# --- links to modules ---


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """A site whose modules import each other in a circle, and one of them on demand."""
    (tmp_path / "index.html").write_text(f"<head>\n{MARK}</head>")
    (tmp_path / "update.js").write_text("export {};")
    (tmp_path / "early.js").write_text("import './views/deep.js'; import './update.js'; export const early = 1;")
    (tmp_path / "main.js").write_text("import { early } from './early.js'; import './near.js'; import('./later.js'); early;")
    (tmp_path / "near.js").write_text("export * from './views/deep.js';")
    (tmp_path / "later.js").write_text("import './views/deep.js'; import './hidden.js';")
    (tmp_path / "hidden.js").write_text("export {};")
    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "deep.js").write_text("import '../near.js'; export const deep = 1;")
    return tmp_path


def test_the_page_names_all_that_it_imports_and_nothing_that_waits(modules: Path) -> None:
    before = {path: path.read_text() for path in modules.rglob("*.js")}
    add_preloads(ROOT, modules, QUIET)
    links = [line.strip() for line in (modules / "index.html").read_text().splitlines() if "modulepreload" in line]
    assert links == ['<link rel="modulepreload" href="views/deep.js">', '<link rel="modulepreload" href="near.js">']
    assert {path: path.read_text() for path in modules.rglob("*.js")} == before


def test_the_nearest_come_first() -> None:
    def edges(*names: str) -> dict[str, list[dict[str, str]]]:
        return {"imports": [{"path": name, "kind": "import-statement"} for name in names]}

    graph = {"early.js": edges("a.js"), "main.js": edges("b.js"), "a.js": edges("c.js"), "b.js": edges(), "c.js": edges("a.js")}
    assert imported(graph, ("early.js", "main.js")) == ["a.js", "b.js", "c.js"]


def test_a_page_without_a_place_for_links_is_refused(modules: Path) -> None:
    (modules / "index.html").write_text("<head></head>")
    with pytest.raises(BuildError, match="no place for the links"):
        add_preloads(ROOT, modules, QUIET)


def test_a_module_that_is_missing_is_named(modules: Path) -> None:
    (modules / "near.js").unlink()
    with pytest.raises(BuildError, match="which module imports which failed"):
        add_preloads(ROOT, modules, QUIET)


# --- compiled wheels ---


def test_a_wheel_of_pyodides_is_compiled_once_and_loses_what_nothing_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tmp_path / "thing-1.0-cp312-cp312-pyodide_2024_0_wasm32.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in ("thing/__init__.py", "thing/core.so", "thing/core.pyi", "thing/core.h", "thing/data.txt"):
            archive.writestr(name, "")
        archive.writestr("thing-1.0.dist-info/RECORD", "")
        archive.writestr("thing-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: cp312-cp312-pyodide_2024_0_wasm32\n")
        archive.writestr("thing-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
    cache = Cache(tmp_path / "cache")
    compiled = wheels.compile_wheel(wheel, cache, QUIET)
    assert compiled.name == wheel.name
    with zipfile.ZipFile(compiled) as archive:
        names = {name for name in archive.namelist() if name.startswith("thing/")}
        record = archive.read("thing-1.0.dist-info/RECORD").decode()
    assert names == {"thing/__init__.pyc", "thing/core.so", "thing/data.txt"}
    assert "thing/core.pyi" not in record
    monkeypatch.setattr(wheels, "run_tool", lambda *_args, **_options: pytest.fail("it was compiled again"))
    assert wheels.compile_wheel(wheel, cache, QUIET) == compiled
