"""A development server for the built site, with the headers that its host will send."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import threading
import urllib.parse
from email.utils import formatdate, parsedate_to_datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pyapp import headers

if TYPE_CHECKING:
    import types
    from collections.abc import Callable

LOOPBACK = "127.0.0.1"

ISOLATION_HEADERS = frozenset({"cross-origin-opener-policy", "cross-origin-embedder-policy"})

#: Written down rather than asked of the system, whose tables differ; browsers refuse modules and wasm of a wrong type.
MIME_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".csv": "text/csv; charset=utf-8",
    ".gz": "application/gzip",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/vnd.microsoft.icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".mjs": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".wasm": "application/wasm",
    ".webmanifest": "application/manifest+json",
    ".whl": "application/zip",
    ".zip": "application/zip",
}
OTHER_TYPE = "application/octet-stream"

PACKED = {"br": ".br", "gzip": ".gz"}
"""What may lie beside a file, the smallest first: content encodings, and the endings by which hosts know them."""


class ServeError(Exception):
    """A site that cannot be served.

    Parameters
    ----------
    what
        What is wrong, with the value that is wrong in it.
    remedy
        What to do about it.
    """

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what} – {remedy}")
        self.what = what
        self.remedy = remedy


class SiteServer:
    """Serves one folder to this machine only.

    As a context manager it serves inside the block, from a thread of its own.

    Parameters
    ----------
    root
        The built site; its ``_headers`` file says which headers are sent.
    port
        Port to listen on; 0 takes a free one.
    isolated
        Whether pages are cross-origin isolated; False leaves out COOP and COEP, whatever ``_headers`` says.
    log
        Called with one line for each request; nothing is said unless it is given.

    Raises
    ------
    ServeError
        There is no site at `root`, its ``_headers`` are wrong, or the port is taken.
    """

    def __init__(
        self,
        root: Path,
        *,
        port: int = 0,
        isolated: bool = True,
        log: Callable[[str], None] | None = None,
    ) -> None:
        if not (root / "index.html").is_file():
            raise ServeError(f"there is no site in {root} (no index.html)", "run `make build`")
        self._server = _listening(port, _Site(root, isolated=isolated), log)
        self._thread: threading.Thread | None = None
        self._serving = False

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return self._server.server_port

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{LOOPBACK}:{self.port}/"

    def start(self) -> None:
        """Serve from a thread that does not keep the program alive; a second call changes nothing.

        A second thread would outlive the server's socket and answer on whichever one gets its number next.
        """
        if self._thread is not None:
            return
        self._thread = threading.Thread(target=self.serve_forever, name="site-server", daemon=True)
        self._thread.start()

    def serve_forever(self) -> None:
        """Serve until `stop` is called from another thread, or an exception such as `KeyboardInterrupt` comes."""
        self._serving = True
        try:
            self._server.serve_forever(poll_interval=0.05)
        finally:
            self._serving = False

    def stop(self) -> None:
        """Stop serving, and free the port."""
        # The standard library's shutdown waits for ever for a loop that never ran.
        if self._serving or (self._thread is not None and self._thread.is_alive()):
            self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        self.stop()


class _Site:
    """The files of a site, and the headers that each gets."""

    def __init__(self, root: Path, *, isolated: bool) -> None:
        self._root = root.resolve()
        self._isolated = isolated
        self.rules()  # so that a wrong file is known before the first request

    def rules(self) -> tuple[headers.Rule, ...]:
        """Read ``_headers``, each time anew: the site may have been built again since."""
        path = self._root / "_headers"
        try:
            return headers.parse(path.read_text(encoding="utf-8")) if path.is_file() else ()
        except headers.HeadersError as error:
            raise ServeError(str(error), f"correct {path}") from error

    def headers(self, path: str) -> dict[str, str]:
        """Return the headers for a request's path."""
        found = headers.headers_for(self.rules(), path)
        if self._isolated:
            return found
        return {name: value for name, value in found.items() if name.lower() not in ISOLATION_HEADERS}

    def file(self, path: str) -> Path | None:
        """Return the file that a request's decoded path names, or None where there is nothing to serve."""
        parts = path.split("/")[1:]
        if not path.startswith("/") or any(part in {".", ".."} or "\\" in part or "\0" in part for part in parts):
            return None
        if "" in parts[:-1]:
            return None
        if parts[-1] == "":
            parts[-1] = "index.html"
        try:
            # After resolving: a link that leads out of the site is not part of it.
            found = self._root.joinpath(*parts).resolve(strict=True)
        except (OSError, RuntimeError):  # nothing there, a name too long, a circle of links
            return None
        hidden = found.name.lower() == "_headers"
        return found if found.is_file() and found.is_relative_to(self._root) and not hidden else None


class _Server(ThreadingHTTPServer):
    # A page opens with more requests at once than the five that the standard library lets wait.
    request_queue_size = 64

    def __init__(self, port: int, site: _Site, log: Callable[[str], None] | None) -> None:
        self.site = site
        self.log = log
        super().__init__((LOOPBACK, port), _Handler)
        self.hosts = frozenset(f"{name}:{self.server_port}" for name in ("localhost", LOOPBACK, "[::1]"))
        self.stopping = False

    def shutdown(self) -> None:
        self.stopping = True
        super().shutdown()

    def handle_error(self, request: object, client_address: object) -> None:
        """Log what broke off an answer; mostly a browser that has gone, so it is not worth a traceback."""
        if self.log is not None:
            self.log(f"{client_address}: {sys.exception()!r}")


def _listening(port: int, site: _Site, log: Callable[[str], None] | None) -> _Server:
    try:
        return _Server(port, site, log)
    except (OSError, OverflowError) as error:
        taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        what = f"port {port} is in use" if taken else f"port {port} cannot be opened ({error})"
        raise ServeError(what, "choose another port, or 0 for a free one") from error


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    server_version = "pyapp"
    sys_version = ""
    timeout = 30  # seconds; an idle connection must not hold its thread for ever

    def do_GET(self) -> None:
        try:
            self._answer()
        except ServeError as error:
            self._send_text(HTTPStatus.INTERNAL_SERVER_ERROR, str(error), {})

    do_HEAD = do_GET  # noqa: N815

    def __getattr__(self, name: str) -> Callable[[], None]:
        # The base class looks for do_NAME, and says 501 to methods that have none.
        if name.startswith("do_"):
            return self._refuse_method
        raise AttributeError(name)

    def _refuse_method(self) -> None:
        if self._is_foreign():
            self._refuse_and_close(HTTPStatus.MISDIRECTED_REQUEST)
        else:
            self._refuse_and_close(HTTPStatus.METHOD_NOT_ALLOWED, {"Allow": "GET, HEAD"})

    def _refuse_and_close(self, status: HTTPStatus, extra: dict[str, str] | None = None) -> None:
        # A body is not read, so what follows on this connection could not be understood.
        self.close_connection = True
        self._refuse(status, (extra or {}) | {"Connection": "close"})

    def _is_foreign(self) -> bool:
        """Say whether another host is asked for, as by a page from elsewhere under a name of its own (DNS rebinding)."""
        hosts = [host.lower() for host in self.headers.get_all("Host", [])]
        return len(hosts) != 1 or hosts[0] not in self.server.hosts

    def _has_body(self) -> bool:
        return "Transfer-Encoding" in self.headers or any(
            size.strip() != "0" for size in self.headers.get_all("Content-Length", [])
        )

    def _answer(self) -> None:
        if self.server.stopping:
            # Connections outlive the listening socket; a stopped server must not go on answering on them.
            self.close_connection = True
            return
        if self._is_foreign() or self._has_body():
            self._refuse_and_close(HTTPStatus.MISDIRECTED_REQUEST if self._is_foreign() else HTTPStatus.BAD_REQUEST)
            return
        path = self.server.site.file(self._path())
        if path is None:
            self._refuse(HTTPStatus.NOT_FOUND)
        else:
            self._send(path)

    def _path(self) -> str:
        return urllib.parse.unquote(self.path.partition("?")[0])

    def _send(self, path: Path) -> None:
        extra = self._site_headers()
        packed = _packed(path)
        encoding = next((name for name in packed if _accepts(self.headers.get("Accept-Encoding", ""), name)), None)
        if packed:
            # For all of its forms, the plain one as well: a cache in between has to keep them apart.
            extra["Vary"] = "Accept-Encoding"
        if encoding:
            extra["Content-Encoding"] = encoding
        with (packed[encoding] if encoding else path).open("rb") as stream:
            status = os.fstat(stream.fileno())
            tag = f'"{status.st_mtime_ns:x}-{status.st_size:x}-{status.st_ino:x}"'
            fresh = self._is_fresh(tag, status.st_mtime)
            self.send_response(HTTPStatus.NOT_MODIFIED if fresh else HTTPStatus.OK)
            for name, value in extra.items():
                self.send_header(name, value)
            self.send_header("Last-Modified", formatdate(status.st_mtime, usegmt=True))
            self.send_header("ETag", tag)
            if not fresh:
                self.send_header("Content-Type", MIME_TYPES.get(path.suffix.lower(), OTHER_TYPE))
                self.send_header("Content-Length", str(status.st_size))
                self.send_header("Accept-Ranges", "none")
            self.end_headers()
            if not fresh and self.command == "GET":
                shutil.copyfileobj(stream, self.wfile)

    def _is_fresh(self, tag: str, modified: float) -> bool:
        """Say whether the browser's copy is the file."""
        known = self.headers.get("If-None-Match")
        if known is not None:
            # The tag decides where both are given: a site built again may hold an older file.
            return tag in (word.strip().removeprefix("W/") for word in known.split(","))
        try:
            since = parsedate_to_datetime(self.headers.get("If-Modified-Since", ""))
            return int(modified) <= since.timestamp()
        except ValueError:
            return False

    def _site_headers(self) -> dict[str, str]:
        return self.server.site.headers(self._path())

    def _refuse(self, status: HTTPStatus, extra: dict[str, str] | None = None) -> None:
        # What is not there now may be there later, whatever the rules say of the place: a version may come back.
        rules = {name: value for name, value in self._site_headers().items() if name.lower() != "cache-control"}
        self._send_text(status, f"{status.value} {status.phrase}", rules | {"Cache-Control": "no-store"} | (extra or {}))

    def _send_text(self, status: HTTPStatus, text: str, extra: dict[str, str]) -> None:
        body = f"{text}\n".encode()
        self.send_response(status)
        for name, value in extra.items():
            self.send_header(name, value)
        self.send_header("Content-Type", MIME_TYPES[".txt"])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        if self.server.log is not None:
            self.server.log(format % args)


def _packed(path: Path) -> dict[str, Path]:
    """Return a file's compressed forms that lie beside it, by encoding; one that is older than the file is not its own."""
    found = {}
    for encoding, ending in PACKED.items():
        beside = path.with_name(path.name + ending)
        if beside.is_file() and not beside.is_symlink() and beside.stat().st_mtime_ns >= path.stat().st_mtime_ns:
            found[encoding] = beside
    return found


def _accepts(header: str, encoding: str) -> bool:
    """Say whether an ``Accept-Encoding`` allows an encoding (RFC 9110, 12.5.3)."""
    weights = {}
    for word in header.lower().split(","):
        name, _, parameter = word.partition(";")
        weights[name.strip()] = parameter.replace(" ", "").removeprefix("q=") or "1"
    weight = weights.get(encoding, weights.get("*", "0"))
    return any(digit in weight for digit in "123456789")
