"""The built site is whole, and small enough for static hosts."""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
from html.parser import HTMLParser
from pathlib import Path

import pytest

from buildtools.licences import spdx_ids
from pyapp import headers
from pyapp.sitefolder import app_folder

from .conftest import ROOT

LARGEST = 25 * 1024 * 1024
"""Cloudflare Pages refuses a larger file."""


@pytest.fixture(scope="module")
def app(dist) -> Path:
    """Return the folder of the site's version, which the paths in its files begin at."""
    return app_folder(dist)


@pytest.fixture(scope="module")
def site(app) -> dict:
    return json.loads((app / "site.json").read_text())


def files_of(dist: Path) -> list[Path]:
    return [path for path in dist.rglob("*") if path.is_file()]


def test_no_file_is_too_large_to_deploy(dist):
    sizes = {path.relative_to(dist).as_posix(): path.stat().st_size for path in files_of(dist)}
    assert {path: size for path, size in sizes.items() if size > LARGEST} == {}


def test_the_list_of_files_is_true(app, site):
    for entry in site["files"]:
        content = (app / entry["path"]).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (entry["bytes"], entry["sha256"]), entry["path"]


def test_the_list_of_files_is_whole(dist, app, site):
    listed = {(app / entry["path"]).resolve() for entry in site["files"]}
    found = {path.resolve() for path in files_of(dist)}
    assert {path.name for path in found - listed} == {"site.json", "_headers", "service-worker.js"}
    assert listed <= found


def test_what_a_page_loads_lies_in_the_folder_of_its_version(dist, app, site):
    assert app.name == site["version"]
    outside = {path.relative_to(dist).parts[0] for path in files_of(dist) if not path.is_relative_to(app)}
    assert outside - {"runtime"} == {path.name for path in dist.iterdir() if path.is_file()}
    # So that no file of another version can be taken for one of this.
    assert {path.name for path in dist.glob("*.js")} == {"service-worker.js"}
    rules = headers.parse((dist / "_headers").read_text())
    for path in (app / "main.js", app / "python" / "x.whl", dist / "runtime" / "x"):
        assert "immutable" in headers.headers_for(rules, "/" + path.relative_to(dist).as_posix())["Cache-Control"]
    for path in ("/", "/index.html", "/icon.svg", "/404.html", "/service-worker.js", "/manifest.webmanifest"):
        assert headers.headers_for(rules, path)["Cache-Control"] == "no-cache"


def test_every_wheel_of_the_lock_is_there(app, site):
    packages = json.loads((app / site["lock_path"]).read_text())["packages"]
    assert {"pyapp", "numpy"} <= packages.keys()
    for name, package in packages.items():
        wheel = (app / site["pyodide_path"] / package["file_name"]).resolve()
        assert wheel.parent == (app / "python").resolve(), name
        assert hashlib.sha256(wheel.read_bytes()).hexdigest() == package["sha256"], name
        for needed in package["depends"]:
            assert needed in packages, f"{name} needs {needed}"


def test_the_page_can_be_installed(dist):
    """What Chromium asks of a page for that: a name, a start, and icons of two sizes, which are what they say."""
    manifest = json.loads((dist / "manifest.webmanifest").read_text())
    assert (manifest["start_url"], manifest["scope"], manifest["display"]) == ("./", "./", "standalone")
    assert manifest["short_name"]
    sizes = {}
    for icon in manifest["icons"]:
        content = (dist / icon["src"]).read_bytes()
        if icon["type"] == "image/png":
            width, height = struct.unpack(">II", content[16:24])
            assert content.startswith(b"\x89PNG")
            assert icon["sizes"] == f"{width}x{height}"
            sizes[width, icon.get("purpose", "any")] = icon["src"]
    assert sizes.keys() == {(192, "any"), (512, "any"), (512, "maskable")}


class References(HTMLParser):
    """Collects what a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attributes if name in {"src", "href"} and value and not value.startswith("#")]


def test_everything_that_the_page_names_is_there(dist):
    references = References()
    references.feed((dist / "index.html").read_text())
    assert f"app/{app_folder(dist).name}/main.js" in references.found
    for reference in references.found:
        assert not re.match(r"\w+:|//", reference), f"{reference} is not on this site"
        assert (dist / reference).is_file(), reference


def test_every_module_that_a_module_imports_is_there(dist):
    ours = [path for path in dist.rglob("*.js") if "runtime" not in path.parts]
    assert len(ours) > 10
    for path in ours:
        for name in re.findall(
            r"""(?:\bfrom|\bimport)\s+'(\.[^']+)'|new URL\('(\.[^']+)', import\.meta\.url\)""", path.read_text()
        ):
            target = path.parent / (name[0] or name[1])
            assert target.exists(), f"{path.name} names {target}"


def test_every_file_belongs_to_a_part_with_a_licence(dist, app):
    parts = json.loads((app / "licences.json").read_text())["parts"]
    covered = {path for part in parts for path in part["files"]}
    # What lists the others, and what comes after the list, is ours.
    written = {"licences.json", "site.json", "../../service-worker.js", "../../_headers", *(part["text"] for part in parts)}
    found = {os.path.relpath(path, app) for path in files_of(dist)}
    assert found - covered - written == set()
    assert covered <= found
    for part in parts:
        assert len((app / part["text"]).read_text()) > 200, part["name"]


def test_what_is_inside_is_listed_where_it_is(app):
    parts = json.loads((app / "licences.json").read_text())["parts"]
    inside = {path: {part["name"] for part in parts if path in part["files"]} for part in parts for path in part["files"]}
    assert "Dawn and Tint" in inside[next(path for path in inside if path.endswith(".jspi.wasm"))]
    assert "Dawn and Tint" not in inside[next(path for path in inside if path.endswith("threaded.wasm"))]


def test_the_licences_folder_holds_what_occurs(app):
    parts = json.loads((app / "licences.json").read_text())["parts"]
    occurring = {one for part in parts for one in spdx_ids(part["licence"])}
    assert occurring == {path.stem for path in (ROOT / "LICENSES").iterdir()}
