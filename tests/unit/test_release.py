"""The folder named by the site's version: what goes there, and that the same content has the same name."""

from __future__ import annotations

from pathlib import Path

import pytest

from buildtools import release
from buildtools.errors import BuildError
from pyapp.sitefolder import app_folder

FILES = {
    "index.html": '<link href="page.css"><link href="icon.svg"><a href="#a"></a><link href="site.json"><script src="main.js">',
    "404.html": "",
    "_headers": "/*",
    "icon.svg": "",
    "page.css": "",
    "main.js": "",
    "views/race.js": "",
    "runtime/x-1.0/x.wasm": "",
}


def a_site(folder: Path, **changed: str) -> Path:
    for name, text in (FILES | changed).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_what_a_page_loads_moves_into_the_folder_and_the_page_points_there(tmp_path: Path) -> None:
    app = release.settle(a_site(tmp_path))
    assert app.parent == tmp_path / "app"
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    moved = {f"app/{app.name}/{name}" for name in ("page.css", "main.js", "views/race.js")}
    assert found == moved | {"index.html", "404.html", "_headers", "icon.svg", "runtime/x-1.0/x.wasm"}
    text = FILES["index.html"]
    for name in ("page.css", "site.json", "main.js"):
        text = text.replace(f'"{name}"', f'"app/{app.name}/{name}"')
    assert (tmp_path / "index.html").read_text() == text


def test_paths_in_its_files_begin_at_the_folder(tmp_path: Path) -> None:
    app = release.settle(a_site(tmp_path))
    for name in FILES:
        assert (app / release.from_app(name)).is_file(), name


@pytest.mark.parametrize("name", FILES)
def test_any_change_gives_another_version_and_the_same_content_the_same(tmp_path: Path, name: str) -> None:
    first, again, other = (a_site(tmp_path / folder) for folder in ("first", "again", "other"))
    (other / name).write_text(FILES[name] + " ")
    version = release.settle(first).name
    assert release.settle(again).name == version
    assert release.settle(other).name != version


def test_a_page_that_names_what_is_not_there_is_refused(tmp_path: Path) -> None:
    a_site(tmp_path, **{"index.html": '<script src="absent.js">'})
    with pytest.raises(BuildError, match=r"lacks \(absent\.js\)"):
        release.settle(tmp_path)


def test_a_site_of_no_version_or_of_two_is_none(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="0 versions"):
        app_folder(tmp_path)
    for version in ("a", "b"):
        (tmp_path / "app" / version).mkdir(parents=True)
        (tmp_path / "app" / version / "site.json").write_text("{}")
    with pytest.raises(FileNotFoundError, match="2 versions"):
        app_folder(tmp_path)
