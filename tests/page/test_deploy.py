"""The built site on the hosts that docs/deploy.md is about: it boots, answers as Python does, and is kept."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

import pytest
import urllib3

from pyapp import headers
from pyapp.chromium import BrowserOptions, open_page
from pyapp.sitefolder import app_folder

from .deployed import says
from .hosts import BASE, cloudflare, github, nginx
from .visit import section, wait_until

PACKED = "runtime/pyodide-0.27.7/pyodide.asm.wasm"


@pytest.fixture(scope="module")
def packed(dist, tmp_path_factory) -> Path:
    """Return a copy of the site with one file's gzip beside it, as `--precompress` makes for all."""
    site = Path(shutil.copytree(dist, tmp_path_factory.mktemp("packed") / "site", copy_function=os.link))
    (site / f"{PACKED}.gz").write_bytes(gzip.compress((site / PACKED).read_bytes(), 1))
    return site


HOSTS = {"cloudflare": cloudflare, "github": github, "nginx": nginx}


@pytest.fixture(scope="module", params=HOSTS)
def host(request, packed, dist, tmp_path_factory):
    """Return the name of a host, and the address at which it serves the site."""
    site = packed if request.param == "nginx" else dist
    with HOSTS[request.param](site, tmp_path_factory.mktemp(request.param)) as url:
        yield request.param, url


def ask(url, path, **sent):
    return urllib3.request("GET", url + path, headers=sent, redirect=False, retries=False, timeout=20)


def test_the_page_boots_answers_as_python_does_and_is_kept(host):
    name, url = host
    with open_page(BrowserOptions(gpu="none"), url) as page:
        report = page.check({"engines": ["wasm-1"], "runs": 3, "warmup": 1})
        for suite, cases in (("states", 60), ("stress", 600)):
            found = section(report, "parity", f"{suite} on wasm-1")
            assert (found["agree"], found["cases"]) == (cases, cases)
        assert report["environment"]["cross_origin_isolated"], name
        kept = "works without a network"
        wait_until(lambda: kept in says(page.driver, "#offline"), f"it is kept ({says(page.driver, '#offline')!r})", 90)
        severe = [line["message"] for line in page.driver.get_log("browser") if line["level"] == "SEVERE"]
        assert severe == []


# GitHub Pages sends none of ours, which is why there is a service worker.
@pytest.mark.parametrize("host", ["cloudflare", "nginx"], indirect=True)
def test_every_path_has_the_headers_of_the_rules(host, dist):
    _, url = host
    rules = headers.parse((dist / "_headers").read_text())
    app = app_folder(dist).relative_to(dist).as_posix()
    for path in (
        "",
        "icon.svg",
        "service-worker.js",
        "manifest.webmanifest",
        f"{app}/main.js",
        f"{app}/python-worker.js",
        PACKED,
    ):
        answer = ask(url, path)
        assert answer.status == 200, path
        wanted = headers.headers_for(rules, f"/{path}")
        assert {key: answer.headers.get(key) for key in wanted} == wanted, path
    for path, kinds in {
        f"{app}/main.js": ("text/javascript", "application/javascript"),
        "runtime/pyodide-0.27.7/pyodide.mjs": ("text/javascript", "application/javascript"),
        PACKED: ("application/wasm",),
        "manifest.webmanifest": ("application/manifest+json",),
    }.items():
        assert ask(url, path).headers["Content-Type"].partition(";")[0] in kinds, path


def test_what_is_not_there_is_404_and_kept_by_nobody(host):
    name, url = host
    for path in ("nothing", "app/000000000000/main.js"):
        answer = ask(url, path)
        assert answer.status == 404, path
        assert b"There is no such page" in answer.data
        if name != "github":
            assert answer.headers["Cache-Control"] == "no-store", path
            assert answer.headers["Cross-Origin-Embedder-Policy"] == "require-corp"


def test_what_is_redirected_leads_to_the_page(host):
    name, url = host
    if name == "github":
        assert ask(url.removesuffix("/"), "").headers["Location"] == BASE
    elif name == "cloudflare":
        assert (ask(url, "index.html").status, ask(url, "index.html").headers["Location"]) == (308, "/")
    else:
        assert ask(url, "index.html").data == ask(url, "").data


@pytest.mark.parametrize("host", ["nginx"], indirect=True)
def test_nginx_sends_what_lies_there_compressed(host, dist):
    _, url = host
    answer = ask(url, PACKED, **{"Accept-Encoding": "gzip"})
    assert (answer.headers["Content-Encoding"], answer.headers["Vary"]) == ("gzip", "Accept-Encoding")
    assert answer.data == (dist / PACKED).read_bytes()
    assert "Content-Encoding" not in ask(url, PACKED).headers
    assert ask(url, "_headers").status == 404
