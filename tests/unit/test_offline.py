"""The service worker's list: all that a page may ask for, with the right hashes, the same for the same site."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest

from buildtools.errors import BuildError
from buildtools.offline import MARK, NAME, add_worker

ROOT = Path(__file__).parents[2]
FILES = ("index.html", "404.html", "_headers", "icon.svg", "app/0123/main.js", "app/0123/site.json", "runtime/x-1/x.wasm")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"content of {name}")
    return tmp_path


def written(site: Path) -> dict:
    add_worker(ROOT / "web" / NAME, site, site / "app" / "0123")
    text = (site / NAME).read_text()
    return json.loads(re.search(r"const SITE = (.*?);\n", text, re.DOTALL)[1])


def test_every_file_but_the_host_s_is_kept_with_its_hash(site: Path) -> None:
    (site / NAME).write_text("the worker without its list, as the page's files are copied")
    facts = written(site)
    assert facts["version"] == "0123"
    digests = dict(facts["files"])
    assert set(digests) == set(FILES) - {"404.html", "_headers"}
    for name, digest in digests.items():
        assert base64.b64decode(digest) == hashlib.sha256(f"content of {name}".encode()).digest()


def test_the_worker_is_the_same_for_the_same_site_and_another_for_other_headers(site: Path) -> None:
    first = written(site)
    assert written(site) == first
    (site / "_headers").write_text("/*\n X: y\n")
    assert {name for name, value in written(site).items() if first[name] != value} == {"rules"}


def test_a_worker_without_a_place_for_the_list_is_refused(site: Path) -> None:
    source = site / "other.js"
    source.write_text(MARK * 2)
    with pytest.raises(BuildError, match="no place for the list of files"):
        add_worker(source, site, site / "app" / "0123")
