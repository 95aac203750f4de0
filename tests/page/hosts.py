"""The hosts that docs/deploy.md is about, on this machine: each serves a folder within a `with` block and gives its address."""

from __future__ import annotations

import contextlib
import gzip
import mimetypes
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import urllib3

ROOT = Path(__file__).parents[2]
START_S = 60
BASE = "/repo/"

#: As GitHub Pages has them.
TYPES = {
    ".mjs": "application/javascript",
    ".js": "application/javascript",
    ".wasm": "application/wasm",
    ".onnx": "application/octet-stream",
}


@contextlib.contextmanager
def cloudflare(site: Path, work: Path) -> Iterator[str]:
    """Cloudflare Pages' own emulation, without telemetry; it needs no network."""
    port = free_port()
    program = ROOT / "node_modules" / "wrangler" / "bin" / "wrangler.js"
    command = ["node", program, "pages", "dev", site, "--ip", "127.0.0.1", "--port", port, "--compatibility-date", "2026-04-01"]
    quiet = {"CI": "1", "NO_COLOR": "1", "WRANGLER_SEND_METRICS": "false", "WRANGLER_SEND_ERROR_REPORTS": "false"}
    quiet["CLOUDFLARE_CF_FETCH_ENABLED"] = "false"
    # Its home is here, so that nobody's account is used and nothing is left behind.
    with running([*command, "--show-interactive-dev-session=false"], port, work, {"HOME": str(work), **quiet}) as url:
        yield url


@contextlib.contextmanager
def nginx(site: Path, work: Path) -> Iterator[str]:
    """Run nginx with the documented configuration."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if not program:
        pytest.fail("nginx is missing – `make nginx` installs it", pytrace=False)
    port = free_port()
    documented = (ROOT / "deploy" / "nginx.conf").read_text()
    for line, ours in {"listen       8080;": f"listen 127.0.0.1:{port};", "root         /srv/pyapp;": f"root {site};"}.items():
        assert documented.count(line) == 1, line
        documented = documented.replace(line, ours)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    folders = "\n".join(f"{kind}_temp_path {work}/{kind};" for kind in kinds)
    user = "user root;" if os.geteuid() == 0 else ""
    config = work / "nginx.conf"
    shutil.copyfile("/etc/nginx/mime.types", work / "mime.types")
    config.write_text(
        f"{user} daemon off; pid {work}/pid; error_log stderr; events {{}} http {{ access_log off; {folders}\n{documented} }}"
    )
    with running([program, "-p", work, "-c", config], port, work, {}) as url:
        yield url


@contextlib.contextmanager
def running(command: list[object], port: int, work: Path, environment: dict[str, str]) -> Iterator[str]:
    """Run a server until the block ends, with all that it starts."""
    log = work / "server.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=work,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + START_S
        while not answers(port):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def answers(port: int) -> bool:
    try:
        return urllib3.request("GET", f"http://127.0.0.1:{port}/", retries=False, timeout=2).status == 200
    except urllib3.exceptions.HTTPError:
        return False


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextlib.contextmanager
def github(site: Path, work: Path) -> Iterator[str]:
    """Behave as GitHub Pages does: a folder below the root, none of our headers, ten minutes for every file, gzip, 404.html."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            file = site / path.removeprefix(BASE)
            if f"{path}/" == BASE or (path.startswith(BASE) and not path.endswith("/") and file.is_dir()):
                self.answer(301, b"", Location=f"{path}/")
            elif path.startswith(BASE) and (file / "index.html" if path.endswith("/") else file).is_file():
                self.send(200, file / "index.html" if path.endswith("/") else file)
            else:
                self.send(404, site / "404.html")

        def send(self, status: int, file: Path) -> None:
            kind = TYPES.get(file.suffix) or mimetypes.guess_type(file.name)[0] or "application/octet-stream"
            content, extra = file.read_bytes(), {}
            if "gzip" in self.headers.get("Accept-Encoding", "") and kind.startswith(
                ("text/", "application/javascript", "application/wasm")
            ):
                content, extra = gzip.compress(content, 1), {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
            self.answer(
                status,
                content,
                **{"Content-Type": kind, "Cache-Control": "max-age=600", "Access-Control-Allow-Origin": "*"},
                **extra,
            )

        def answer(self, status: int, content: bytes, **headers: str) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}{BASE}"
        server.shutdown()
