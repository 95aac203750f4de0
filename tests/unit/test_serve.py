from __future__ import annotations

import contextlib
import http.client
import os
import socket
import threading
from email.utils import formatdate
from typing import TYPE_CHECKING

import pytest

from pyapp.serve import ServeError, SiteServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HEADERS = """/*
  Cross-Origin-Opener-Policy: same-origin
  Cross-Origin-Embedder-Policy: require-corp
  Cache-Control: no-cache
/runtime/*
  ! Cache-Control
  Cache-Control: immutable
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_site(tmp_path)


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SiteServer]:
    """Serve one site to many tests, which leave it as it is: what one of them does must not stop it."""
    root = make_site(tmp_path_factory.mktemp("standing"))
    (root / "out").symlink_to(root.parent)
    (root / "link-to-headers").symlink_to(root / "_headers")
    (root / "same.wasm").symlink_to(root / "runtime" / "a.wasm")
    with SiteServer(root) as running:
        yield running


def make_site(tmp_path: Path) -> Path:
    site = tmp_path / "site"
    (site / "runtime").mkdir(parents=True)
    (site / "index.html").write_text("<!doctype html>")
    (site / "_headers").write_text(HEADERS)
    (site / "runtime" / "a.wasm").write_bytes(b"\0asm")
    (tmp_path / "secret.txt").write_text("secret")
    return site


@pytest.fixture
def server(root: Path) -> Iterator[SiteServer]:
    with SiteServer(root) as running:
        yield running


class Answer:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()


def ask(server: SiteServer, path: str = "/", method: str = "GET", **headers: str) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    try:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, headers=sent)
        return Answer(connection.getresponse())
    finally:
        connection.close()


def test_the_page_comes_with_its_headers(server: SiteServer) -> None:
    answer = ask(server)
    assert answer.status == 200
    assert answer.body == b"<!doctype html>"
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert answer.headers.get_all("Cache-Control") == ["no-cache"]
    assert server.url == f"http://127.0.0.1:{server.port}/"


def test_a_later_rule_replaces_what_it_detaches(server: SiteServer) -> None:
    assert ask(server, "/runtime/a.wasm").headers.get_all("Cache-Control") == ["immutable"]


def test_what_is_not_there_is_kept_by_no_cache(server: SiteServer) -> None:
    answer = ask(server, "/runtime/b.wasm")
    assert (answer.status, answer.headers.get_all("Cache-Control")) == (404, ["no-store"])


def test_headers_are_read_anew(server: SiteServer, root: Path) -> None:
    (root / "_headers").write_text("/*\n X-New: 1\n")
    assert ask(server).headers["X-New"] == "1"


def test_without_isolation_only_coop_and_coep_are_missing(root: Path) -> None:
    with SiteServer(root, isolated=False) as server:
        answer = ask(server)
    assert answer.headers["Cross-Origin-Opener-Policy"] is None
    assert answer.headers["Cross-Origin-Embedder-Policy"] is None
    assert answer.headers["Cache-Control"] == "no-cache"


def test_head_sends_the_length_and_no_body(server: SiteServer) -> None:
    answer = ask(server, "/runtime/a.wasm", "HEAD")
    assert (answer.status, answer.headers["Content-Length"], answer.body) == (200, "4", b"")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PROPFIND"])
def test_other_methods_are_refused(server: SiteServer, method: str) -> None:
    answer = ask(server, method=method)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1", "127.0.0.1:1", "localhost.example.org", ""])
def test_a_foreign_host_is_refused(server: SiteServer, host: str) -> None:
    assert ask(server, Host=host).status == 421


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
def test_this_machine_s_names_are_accepted(server: SiteServer, name: str) -> None:
    assert ask(server, Host=f"{name}:{server.port}").status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/%2e%2e%2fsecret.txt",
        "/runtime/../../secret.txt",
        "/..%5csecret.txt",
        "/%252e%252e/secret.txt",
        "//secret.txt",
        "/link.txt",
        "/index.html%00.js",
        "/_headers",
        "/runtime",
        "/runtime/",
        "/runtime//a.wasm",
        "/absent.js",
        "/" + "x" * 5000,
    ],
)
def test_what_is_no_file_of_the_site_is_not_found(server: SiteServer, root: Path, path: str) -> None:
    (root / "link.txt").symlink_to(root.parent / "secret.txt")
    answer = ask(server, path)
    assert answer.status == 404
    assert b"secret" not in answer.body
    # A worker's 404 without these would show up as another error than it is.
    assert answer.headers["Cross-Origin-Embedder-Policy"] == "require-corp"


def test_a_query_is_ignored(server: SiteServer) -> None:
    assert ask(server, "/index.html?runs=100&x=/../y").status == 200


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.js", "text/javascript; charset=utf-8"),
        ("a.mjs", "text/javascript; charset=utf-8"),
        ("a.css", "text/css; charset=utf-8"),
        ("a.json", "application/json"),
        ("a.wasm", "application/wasm"),
        ("a.wasm.gz", "application/gzip"),
        ("a.whl", "application/zip"),
        ("a.onnx", "application/octet-stream"),
    ],
)
def test_types_are_those_that_browsers_insist_on(server: SiteServer, root: Path, name: str, kind: str) -> None:
    (root / name).write_bytes(b"x")
    answer = ask(server, f"/{name}")
    assert answer.headers["Content-Type"] == kind
    assert answer.headers["Content-Encoding"] is None


def test_a_copy_that_is_fresh_is_not_sent_again(server: SiteServer) -> None:
    first = ask(server)
    again = ask(server, If_Modified_Since=first.headers["Last-Modified"])
    assert (again.status, again.body) == (304, b"")
    assert again.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert ask(server, If_None_Match=first.headers["ETag"]).status == 304


def test_a_copy_that_is_stale_is_sent_again(server: SiteServer) -> None:
    first = ask(server)
    assert ask(server, If_Modified_Since=formatdate(0, usegmt=True)).status == 200
    assert ask(server, If_Modified_Since="yesterday").status == 200
    # An older file in a site built anew: the date alone would call the browser's copy fresh.
    assert ask(server, If_None_Match='"other"', If_Modified_Since=first.headers["Last-Modified"]).status == 200


def test_wrong_headers_after_a_build_are_an_error_that_is_told(server: SiteServer, root: Path) -> None:
    (root / "_headers").write_text("nonsense\n")
    answer = ask(server)
    assert answer.status == 500
    assert b"line 1" in answer.body
    assert ask(server, "/absent").status == 500


def test_requests_are_logged_only_when_asked(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines: list[str] = []
    with SiteServer(root, log=lines.append) as server:
        ask(server)
    with SiteServer(root) as server:
        ask(server)
    assert lines == ['"GET / HTTP/1.1" 200 -']
    assert capsys.readouterr() == ("", "")


def test_a_missing_site_says_how_to_build_it(tmp_path: Path) -> None:
    with pytest.raises(ServeError, match="make build"):
        SiteServer(tmp_path / "absent")


def test_wrong_headers_are_known_at_the_start(root: Path) -> None:
    (root / "_headers").write_text("nonsense\n")
    with pytest.raises(ServeError, match="line 1"):
        SiteServer(root)


def test_a_port_in_use_is_named(root: Path, server: SiteServer) -> None:
    with pytest.raises(ServeError, match=f"port {server.port} is in use"):
        SiteServer(root, port=server.port)


def test_only_this_machine_is_listened_to(server: SiteServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection:
        assert connection.getpeername()[0] == "127.0.0.1"
    assert server._server.server_address[0] == "127.0.0.1"


def test_starting_twice_starts_one_thread(root: Path) -> None:
    before = set(threading.enumerate())
    with SiteServer(root) as server:
        server.start()
        assert len(set(threading.enumerate()) - before) == 1


def test_a_stopped_server_answers_no_more(root: Path) -> None:
    server = SiteServer(root)
    server.start()
    kept = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    kept.request("GET", "/")
    assert kept.getresponse().read() == b"<!doctype html>"
    server.stop()
    kept.request("GET", "/")
    with pytest.raises(http.client.RemoteDisconnected):
        kept.getresponse()
    kept.close()
    with pytest.raises(ConnectionRefusedError):
        http.client.HTTPConnection("127.0.0.1", server.port, timeout=5).connect()


class Raw:
    """An answer to bytes as they are, for http.client sends no nonsense."""

    def __init__(self, server: SiteServer, request: bytes) -> None:
        with socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection:
            # Over a limit the server answers without reading on, and may be gone before all is sent.
            with contextlib.suppress(ConnectionError):
                connection.sendall(request)
                connection.shutdown(socket.SHUT_WR)
            received = b""
            with contextlib.suppress(ConnectionError):
                while chunk := connection.recv(65536):
                    received += chunk
        self.head, _, self.body = received.partition(b"\r\n\r\n")
        self.status = int(self.head.split()[1]) if self.head.startswith(b"HTTP/") else None


def raw(server: SiteServer, target: str, *lines: str, method: str = "GET", host: bool = True) -> Raw:
    named = [f"Host: 127.0.0.1:{server.port}"] if host else []
    return Raw(
        server, "\r\n".join([f"{method} {target} HTTP/1.1", *named, "Connection: close", *lines, "", ""]).encode("latin-1")
    )


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1/../secret.txt",
        "http://example.org/index.html",
        "file:///etc/passwd",
        "../secret.txt",
        "secret.txt",
        "*",
        "/%2E%2E/secret.txt",
        "/.%2e/secret.txt",
        "/%2e./secret.txt",
        "/runtime/%2e%2e/%2e%2e/secret.txt",
        "/runtime%2f..%2f..%2fsecret.txt",
        "/..%2fsecret.txt",
        "/..%c0%afsecret.txt",
        "/%c0%ae%c0%ae/secret.txt",
        "/%uff0e%uff0e/secret.txt",
        "/\xef\xbc\x8e\xef\xbc\x8e/secret.txt",
        "/..;/secret.txt",
        "/...//secret.txt",
        "/out/secret.txt",
        "/out",
        "/%5f%68eaders",
        "/_HEADERS",
        "/./_headers",
        "/link-to-headers",
        "/%",
        "/%zz",
    ],
)
def test_no_target_leads_out_of_the_site(standing: SiteServer, target: str) -> None:
    answer = raw(standing, target)
    assert answer.status in {400, 404}
    assert b"secret" not in answer.body
    assert b"Cross-Origin" not in answer.body


def test_a_link_within_the_site_is_part_of_it(standing: SiteServer) -> None:
    assert ask(standing, "/same.wasm").body == b"\0asm"


@pytest.mark.parametrize("method", ["TRACE", "PUT", "CONNECT", "PATCH", "get", "GETX", "__class__", "X-Y"])
def test_odd_methods_are_refused_and_their_bodies_are_not_taken_for_requests(standing: SiteServer, method: str) -> None:
    smuggled = f"GET /runtime/a.wasm HTTP/1.1\r\nHost: 127.0.0.1:{standing.port}\r\n\r\n"
    head = f"{method} / HTTP/1.1\r\nHost: 127.0.0.1:{standing.port}\r\nX-Mine: 1\r\nContent-Length: {len(smuggled)}\r\n\r\n"
    answer = Raw(standing, (head + smuggled).encode())
    assert answer.status == 405
    assert b"Connection: close" in answer.head
    assert b"\0asm" not in answer.body
    assert b"X-Mine" not in answer.body, "what was sent comes back"


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("header", ["Content-Length: {}", "Transfer-Encoding: chunked"])
def test_what_follows_a_request_with_a_body_is_not_taken_for_another(standing: SiteServer, method: str, header: str) -> None:
    smuggled = f"GET /runtime/a.wasm HTTP/1.1\r\nHost: 127.0.0.1:{standing.port}\r\n\r\n"
    head = f"{method} / HTTP/1.1\r\nHost: 127.0.0.1:{standing.port}\r\n{header.format(len(smuggled))}\r\n\r\n"
    answer = Raw(standing, (head + smuggled).encode())
    assert answer.status == 400
    assert b"\0asm" not in answer.head + answer.body


@pytest.mark.parametrize(
    "host",
    [
        "{0}.example.org:{1}",
        "example.org@{0}:{1}",
        "{0}:{1}, example.org",
        "{0}:0{1}",
        "{0}.:{1}",
        "0.0.0.0:{1}",
        "127.1:{1}",
        "[::]:{1}",
        "localhost:{1}:{1}",
        "http://{0}:{1}",
    ],
)
def test_a_host_that_only_looks_like_this_machine_is_refused(standing: SiteServer, host: str) -> None:
    assert raw(standing, "/", f"Host: {host.format('127.0.0.1', standing.port)}", host=False).status == 421


def test_a_request_names_one_host(standing: SiteServer) -> None:
    assert raw(standing, "/", host=False).status == 421
    ours, foreign = f"Host: 127.0.0.1:{standing.port}", "Host: example.org"
    assert raw(standing, "/", foreign, ours, host=False).status == 421
    assert raw(standing, "/", ours, foreign, host=False).status == 421
    assert Raw(standing, b"GET / HTTP/1.0\r\n\r\n").status == 421


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_foreign_host_learns_nothing(standing: SiteServer, method: str) -> None:
    answer = raw(standing, "/", "Host: example.org", host=False, method=method)
    assert answer.status == 421
    assert b"<!doctype" not in answer.body


@pytest.mark.parametrize(
    "lines",
    [["X-Long: " + "x" * 70_000], [f"X-{number}: 1" for number in range(200)], ["no colon"], [" folded: at the start"]],
    ids=["long", "many", "no colon", "folded"],
)
def test_headers_that_are_none_or_too_many_do_not_stop_the_server(standing: SiteServer, lines: list[str]) -> None:
    assert raw(standing, "/", *lines).status in {200, 400, 431, None}
    assert ask(standing).status == 200


@pytest.mark.parametrize(
    "request_", [b"\r\n\r\n", b"GET\r\n\r\n", b"GET /\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\0", b"G" * 70_000]
)
def test_nonsense_gets_no_page_and_does_not_stop_the_server(standing: SiteServer, request_: bytes) -> None:
    answer = Raw(standing, request_)
    assert answer.status != 200
    assert b"<!doctype html>" not in answer.head + answer.body
    assert ask(standing).status == 200


def test_a_query_and_a_fragment_lead_nowhere(standing: SiteServer) -> None:
    assert raw(standing, "/index.html?/../../secret.txt").status == 200
    assert raw(standing, "/index.html#/../../secret.txt").status in {200, 404}
    assert raw(standing, "/?x=\r").status in {200, 400}


def test_no_header_of_an_answer_repeats_what_was_asked(standing: SiteServer) -> None:
    answer = raw(standing, "/%0d%0aX-Injected:%201")
    assert answer.status == 404
    assert b"Injected" not in answer.head + answer.body


@pytest.fixture
def packed(root: Path) -> Path:
    """Return the site with compressed forms beside one of its files."""
    (root / "runtime" / "a.wasm.gz").write_bytes(b"gzipped")
    (root / "runtime" / "a.wasm.br").write_bytes(b"brotli")
    return root


@pytest.mark.parametrize(
    ("accepted", "encoding", "body"),
    [
        ("gzip, deflate, br, zstd", "br", b"brotli"),
        ("gzip", "gzip", b"gzipped"),
        ("br;q=0, gzip;q=0.5", "gzip", b"gzipped"),
        ("BR ; Q=1.0", "br", b"brotli"),
        ("*", "br", b"brotli"),
        ("*;q=0", None, b"\0asm"),
        ("gzip;q=0.000", None, b"\0asm"),
        ("identity", None, b"\0asm"),
        ("", None, b"\0asm"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_browser_gets_the_form_that_it_takes(
    packed: Path, accepted: str, encoding: str | None, body: bytes, method: str
) -> None:
    with SiteServer(packed) as server:
        answer = ask(server, "/runtime/a.wasm", method, Accept_Encoding=accepted)
    assert (answer.status, answer.headers["Content-Encoding"]) == (200, encoding)
    assert answer.headers["Content-Length"] == str(len(body))
    assert answer.body == (body if method == "GET" else b"")
    assert answer.headers["Content-Type"] == "application/wasm"
    assert answer.headers["Vary"] == "Accept-Encoding"
    assert answer.headers["Cache-Control"] == "immutable"


def test_each_form_has_a_tag_of_its_own(packed: Path) -> None:
    with SiteServer(packed) as server:
        forms = ("br", "gzip", "identity")
        tags = {form: ask(server, "/runtime/a.wasm", Accept_Encoding=form).headers["ETag"] for form in forms}
        assert len(set(tags.values())) == 3
        for form in forms:
            for known in forms:
                answer = ask(server, "/runtime/a.wasm", Accept_Encoding=form, If_None_Match=tags[known])
                assert answer.status == (304 if form == known else 200)
                assert answer.headers["Vary"] == "Accept-Encoding"
                assert answer.headers["ETag"] == tags[form]


def test_what_has_no_other_form_does_not_vary(packed: Path) -> None:
    with SiteServer(packed) as server:
        answer = ask(server, "/", Accept_Encoding="gzip, br")
    assert (answer.headers["Vary"], answer.headers["Content-Encoding"]) == (None, None)


def test_a_form_that_is_older_than_its_file_is_not_sent(packed: Path) -> None:
    for name in ("a.wasm.br", "a.wasm.gz"):
        os.utime(packed / "runtime" / name, (1, 1))
    with SiteServer(packed) as server:
        answer = ask(server, "/runtime/a.wasm", Accept_Encoding="gzip, br")
    assert (answer.headers["Content-Encoding"], answer.body) == (None, b"\0asm")


def test_a_packed_form_that_leads_out_of_the_site_is_not_sent(root: Path, tmp_path: Path) -> None:
    (root / "runtime" / "a.wasm.br").symlink_to(tmp_path / "secret.txt")
    with SiteServer(root) as server:
        answer = ask(server, "/runtime/a.wasm", Accept_Encoding="br")
    assert answer.body == b"\0asm"


@pytest.mark.parametrize("form", ["br", "identity"])
def test_a_part_is_answered_with_the_whole(packed: Path, form: str) -> None:
    with SiteServer(packed) as server:
        answer = ask(server, "/runtime/a.wasm", Accept_Encoding=form, Range="bytes=0-1")
    assert (answer.status, answer.headers["Content-Range"], answer.headers["Accept-Ranges"]) == (200, None, "none")
    assert answer.headers["Content-Length"] == str(len(answer.body))
