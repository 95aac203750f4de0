"""Whose work a site holds: what has no owner, two owners or no licence that is known stops the build, by name."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from buildtools.errors import BuildError
from buildtools.licences import Licences, _address, spdx_ids
from buildtools.vendor import bundled

ROOT = Path(__file__).parents[2]


@pytest.fixture
def root(tmp_path):
    """A project with one package, one page and two licences."""
    for path, text in {
        "LICENSE": "ours",
        "LICENSES/MIT.txt": "the MIT licence",
        "LICENSES/Zlib.txt": "the zlib licence",
        "LICENSES/GPL-2.0-only.txt": "GPL",
        "LICENSES/LicenseRef-Breakout-ROM.txt": "nobody's",
        "native/ale/NOTICE.txt": "notice",
        "web/index.html": "",
        "web/vendor/x.js": "",
        "node_modules/thing/package.json": json.dumps(
            {"name": "thing", "version": "1.2.3", "license": "MIT", "repository": {"url": "git+https://example.org/thing.git"}}
        ),
        "node_modules/thing/LICENCE.md": "copyright thing",
        "site/index.html": "",
        "site/_headers": "",
        "site/vendor/x.js": "",
        "site/ale/ale.wasm": "",
        "site/fixtures/model.onnx": "",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


@pytest.fixture
def licences(root):
    return Licences(root, root / "site")


def change(root, **facts):
    path = root / "node_modules" / "thing" / "package.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | facts))


def wheel(root, metadata, **files):
    (root / "site" / "python").mkdir()
    with zipfile.ZipFile(root / "site" / "python" / "w.whl", "w") as archive:
        archive.writestr("w-1.dist-info/METADATA", metadata)
        for name, text in files.items():
            archive.writestr(name.replace("__", "/"), text)
    return Licences(root, root / "site")


def test_a_whole_site_is_written(root, licences):
    licences.add_ours(root / "web")
    licences.own("a bundle", "vendor/x.js")
    licences.add_npm("thing", ["vendor/x.js"])
    licences.add_emulator()
    licences.write()
    first, *others = json.loads((root / "site" / "licences.json").read_text())["parts"]
    assert first["name"] == "pyapp and its page"
    assert first["files"] == ["fixtures/model.onnx", "../../index.html"]
    assert [part["name"] for part in others] == ["Arcade Learning Environment", "thing"], "there is no ROM in this site"
    assert others[1] == {
        "name": "thing",
        "version": "1.2.3",
        "licence": "MIT",
        "source": "https://example.org/thing",
        "text": "licences/thing.txt",
        "files": ["vendor/x.js"],
    }
    assert (root / "site" / "licences" / "thing.txt").read_text() == "copyright thing\n"


def test_a_file_without_an_owner_stops_the_build(root, licences):
    licences.add_ours(root / "web")
    licences.add_emulator()
    with pytest.raises(BuildError, match=r"whose these are: vendor/x\.js"):
        licences.write()


def test_a_file_with_two_owners_stops_the_build(licences):
    licences.own("one", "vendor/*")
    with pytest.raises(BuildError, match="both one's and another's"):
        licences.own("another", "*.js")


@pytest.mark.parametrize("licence", [None, "", "SEE LICENSE IN x", "SSPL-1.0", "MIT AND SSPL-1.0", "UNLICENSED"])
def test_a_licence_that_is_not_known_stops_the_build(root, licences, licence):
    change(root, license=licence)
    with pytest.raises(BuildError, match="licence of thing is not known"):
        licences.add_npm("thing", ["vendor/x.js"])


def test_a_package_without_a_text_gets_its_licence_s(root, licences):
    (root / "node_modules" / "thing" / "LICENCE.md").unlink()
    change(root, license="(MIT OR Zlib)")
    licences.add_npm("thing", ["vendor/x.js"])
    assert "the MIT licence" in licences.parts[0].text
    assert "the zlib licence" in licences.parts[0].text


def test_a_wheel_brings_its_texts(root):
    texts = {"w-1.dist-info__licenses__LICENSE": "mine", "w__licenses__x.py": "code", "w__sub__COPYING.txt": "its"}
    metadata = "Name: w\nVersion: 1\nLicense-Expression: MIT\nProject-URL: Source, https://example.org/w\n"
    licences = wheel(root, metadata, **texts)
    licences.add_wheel("python/w.whl")
    [part] = licences.parts
    assert (part.name, part.version, part.licence, part.source) == ("w", "1", "MIT", "https://example.org/w")
    assert "mine" in part.text
    assert "its" in part.text
    assert "code" not in part.text


@pytest.mark.parametrize("said", ["", "License: BSD\n", "License: Apache License 2.0\n"])
def test_a_wheel_of_which_only_words_are_known_stops_the_build(root, said):
    licences = wheel(root, f"Name: w\nVersion: 1\n{said}")
    with pytest.raises(BuildError, match="licence of w is not known"):
        licences.add_wheel("python/w.whl")


def test_what_is_inside_is_named_where_it_is(licences):
    entry = {"name": "zlib", "licence": "Zlib", "source": "", "within": ["vendor/*"], "copyright": "(C) them", "version": "{x}"}
    licences.add_inside([entry, entry | {"name": "other", "within": ["nowhere/*"]}], {"x": "9"})
    [part] = licences.parts
    assert (part.name, part.version, part.files) == ("zlib", "9", ("vendor/x.js",))
    assert part.text.startswith("(C) them")
    assert "the zlib licence" in part.text


def test_a_text_that_is_not_installed_stops_the_build(licences):
    entry = {"name": "x", "licence": "Zlib", "source": "", "within": ["vendor/*"], "texts": ["no-such-package:LICENSE"]}
    with pytest.raises(BuildError, match="no-such-package"):
        licences.add_inside([entry], {})


def test_the_packages_of_a_bundle_are_those_of_which_something_is_left():
    inputs = {
        "node_modules/@a/b/dist/index.js": {"bytesInOutput": 5},
        "../x/node_modules/c/index.js": {"bytesInOutput": 1},
        "node_modules/c/node_modules/d/index.js": {"bytesInOutput": 1},
        "node_modules/dropped/index.js": {"bytesInOutput": 0},
        "web/vendor/plot.js": {"bytesInOutput": 7},
    }
    assert bundled(inputs) == ["@a/b", "c", "d"]


def test_expressions_are_taken_apart():
    assert spdx_ids("Apache-2.0 WITH LLVM-exception OR (MIT AND Zlib)") == ["Apache-2.0", "LLVM-exception", "MIT", "Zlib"]
    assert spdx_ids("") == []


@pytest.mark.parametrize(
    "repository",
    [
        "git+https://github.com/a/b.git",
        "git://github.com/a/b.git",
        "https://github.com/a/b",
        "a/b",
        "git@https://github.com/a/b",
    ],
)
def test_repositories_become_addresses(repository):
    assert _address(repository) == "https://github.com/a/b"


def test_the_licences_are_whole():
    """By the words that each ends with."""
    ends = {
        "Apache-2.0": "limitations under the License.",
        "GPL-2.0-only": "Public License instead of this License.",
        "MPL-2.0": "defined by the Mozilla Public License, v. 2.0.",
        "BSD-3-Clause": "POSSIBILITY OF SUCH DAMAGE.",
        "MIT": "OTHER DEALINGS IN THE SOFTWARE.",
        "PSF-2.0": "terms and conditions of this License Agreement.",
    }
    for name, end in ends.items():
        text = " ".join((ROOT / "LICENSES" / f"{name}.txt").read_text().split())
        assert end.replace("\n", " ") in text[-400:], (name, text[-200:])
