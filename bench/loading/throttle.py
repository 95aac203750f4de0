"""A slow network for everything that a browser does.

The driver's own throttle (`Network.emulateNetworkConditions`) holds for a page and not for its workers, in which Python is
loaded: in a worker of a page held to 10 Mbit/s, Chromium 156 fetched 5 MB within 0.2 s, and it answers "Not supported" to the
command in a worker's session. So the browser is given a SOCKS5 proxy, which all of its connections go through.
"""

from __future__ import annotations

import contextlib
import socket
import socketserver
import struct
import threading
import time
from typing import Self

CHUNK = 8 * 1024
"""Bytes that are let through at once; 6.5 ms at 10 Mbit/s."""


class SlowNetwork:
    """A SOCKS5 proxy on loopback with one rate for all connections together, and a round trip for each connection and request.

    Parameters
    ----------
    mbit_s : float
        Megabits a second, of what comes down.
    round_trip_ms : float
        How long a request takes beside its bytes.
    """

    def __init__(self, mbit_s: float, round_trip_ms: float) -> None:
        self._seconds_a_byte = 8 / (mbit_s * 1e6)
        self._round_trip_s = round_trip_ms / 1000
        self._lock = threading.Lock()
        self._free_at = 0.0
        self.bytes = 0
        #: Whether bytes come as fast as they can, while nothing is measured.
        self.unlimited = False
        network = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(OSError):
                    network._serve(self.request)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            block_on_close = False
            request_queue_size = 64

        self._server = Server(("127.0.0.1", 0), Handler)

    @property
    def arguments(self) -> tuple[str, ...]:
        """Chromium's arguments; without the second it would go to loopback without a proxy."""
        return (f"--proxy-server=socks5://127.0.0.1:{self._server.server_address[1]}", "--proxy-bypass-list=<-loopback>")

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _serve(self, client: socket.socket) -> None:
        address = _greet(client)
        if address is None:
            return
        with socket.create_connection(address) as server:
            for side in (client, server):
                side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            time.sleep(self._round_trip_s)
            client.sendall(b"\x05\0\0\x01" + bytes(6))
            threading.Thread(target=self._up, args=(client, server), daemon=True).start()
            while data := server.recv(CHUNK):
                self._wait_for(len(data))
                client.sendall(data)

    def _up(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(CHUNK):
                time.sleep(self._round_trip_s)
                server.sendall(data)
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    def _wait_for(self, size: int) -> None:
        with self._lock:
            self.bytes += size
            if self.unlimited:
                return
            self._free_at = max(self._free_at, time.monotonic()) + size * self._seconds_a_byte
            wait = self._free_at - time.monotonic()
        if wait > 0:
            time.sleep(wait)


def _greet(client: socket.socket) -> tuple[str, int] | None:
    """Read whom the browser wants to reach; None for whatever is not this machine."""
    _, methods = _exactly(client, 2)
    _exactly(client, methods)
    client.sendall(b"\x05\0")
    _, _, _, kind = _exactly(client, 4)
    size = {1: 4, 4: 16}.get(kind) or _exactly(client, 1)[0]
    host = _exactly(client, size)
    (port,) = struct.unpack(">H", _exactly(client, 2))
    if host not in {b"\x7f\0\0\x01", b"127.0.0.1", b"localhost"}:
        client.sendall(b"\x05\x02\0\x01" + bytes(6))
        return None
    return "127.0.0.1", port


def _exactly(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = client.recv(size - len(data))
        if not more:
            raise ConnectionError("the browser has gone")
        data += more
    return data
