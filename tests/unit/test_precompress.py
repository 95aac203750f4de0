"""Compressed files beside the site's own: what they hold, and for which they are made."""

from __future__ import annotations

import gzip
import io
import random

import pytest

from buildtools.cache import Cache
from buildtools.precompress import precompress
from buildtools.progress import Progress

TEXT = b"<p>the same words again and again</p>\n" * 200


@pytest.fixture
def site(tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "index.html").write_bytes(TEXT)
    (folder / "weights.bin").write_bytes(random.Random(0).randbytes(8_000))
    (folder / "tiny.txt").write_bytes(b"a" * 20)
    (folder / "_headers").write_bytes(TEXT)
    return folder


def test_what_pays_is_compressed_and_nothing_else(site, tmp_path):
    before = {path.name for path in site.iterdir()}
    written = precompress(site, Cache(tmp_path / "cache"), Progress(1, stream=io.StringIO()))
    assert {path.name for path in site.iterdir()} - before == {"index.html.br", "index.html.gz"}
    assert written == 2
    assert gzip.decompress((site / "index.html.gz").read_bytes()) == TEXT
    assert (site / "index.html").read_bytes() == TEXT


def test_the_second_time_it_comes_from_the_cache(site, tmp_path, monkeypatch):
    cache = Cache(tmp_path / "cache")
    precompress(site, cache, Progress(1, stream=io.StringIO()))
    first = (site / "index.html.br").read_bytes()
    for path in site.glob("*.[bg][rz]"):
        path.unlink()
    monkeypatch.setattr("buildtools.precompress.run_tool", lambda *_, **__: pytest.fail("compressed again"))
    precompress(site, cache, Progress(1, stream=io.StringIO()))
    assert (site / "index.html.br").read_bytes() == first
