"""A proxy that lets nothing through and remembers what was asked for."""

from __future__ import annotations

import socketserver
import threading
from typing import Self
from urllib.parse import urlsplit


class Recorder:
    """Listens on loopback for Chromium's requests to anywhere but the site.

    Chromium never asks a proxy for loopback addresses; the site is on one, so whatever comes here would have left the machine.
    """

    def __init__(self) -> None:
        self._requests: list[str] = []
        recorder = self

        class Handler(socketserver.StreamRequestHandler):
            timeout = 10

            def handle(self) -> None:
                if request := self.rfile.readline(8192).decode("latin-1").strip():  # empty from connections opened in advance
                    recorder._requests.append(request)
                self.wfile.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    @property
    def arguments(self) -> tuple[str, ...]:
        """Chromium's arguments."""
        return (
            f"--proxy-server=http://127.0.0.1:{self._server.server_address[1]}",
            "--proxy-bypass-list=127.0.0.1",
            # Services of Chromium's own that want to hear of pages and forms, and so do not show on about:blank.
            "--disable-features=OptimizationHints,AutofillServerCommunication",
        )

    @property
    def hosts(self) -> set[str]:
        """Hosts that were asked for so far."""
        targets = [request.split()[1] for request in self._requests]
        return {urlsplit(target if "://" in target else f"//{target}").hostname or target for target in targets}

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
