"""Browsers of a Selenium Grid: which there are, how many may be had, and how one is asked for."""

from __future__ import annotations

import ipaddress
import json
import time
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import urllib3
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.options import BaseOptions
from selenium.webdriver.remote.client_config import ClientConfig

from pyapp.chromium import POLL_S, BrowserError, reason_of

STATUS_LIMIT_S = 10.0
SLOT_LIMIT_S = 5.0
SESSION_LIMIT_S = 120
"""How long a grid may take to give a browser; no later request takes so long, so a dead hub ends in an error too."""

DEFAULT_CAPABILITIES: tuple[Mapping[str, Any], ...] = ({"browserName": "chrome"},)


@dataclass(frozen=True, kw_only=True)
class RemoteOptions:
    """Which browser to ask of which Selenium Grid.

    Attributes
    ----------
    url : str
        Where the grid listens, as `remote_url` returns it.
    capabilities : mapping
        A W3C capabilities object: what the browser has to be, and how its node shall start it.
    session_limit_s : int
        Seconds that the grid may take to give the browser.
    """

    url: str
    capabilities: Mapping[str, Any] = field(default_factory=lambda: DEFAULT_CAPABILITIES[0])
    session_limit_s: int = SESSION_LIMIT_S

    @property
    def place(self) -> str:
        """The grid's host and port, without the login that its address may hold."""
        return place_of(self.url)

    def start(self) -> webdriver.Remote:
        """See `connect`."""
        return connect(self)


def place_of(url: str) -> str:
    """Return an address's host and port, without login and path."""
    parts = urllib.parse.urlsplit(url)
    return parts.netloc.rpartition("@")[2]


def is_loopback(url: str) -> bool:
    """Say whether an address is one of this machine only."""
    host = urllib.parse.urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def remote_url(text: str) -> str:
    """Check the address of a grid.

    Returns
    -------
    str
        The address without a slash at its end.

    Raises
    ------
    BrowserError
        If it is none of HTTP.
    """
    try:
        parts = urllib.parse.urlsplit(text)
        whole = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        whole = False
    if not whole:
        raise BrowserError(f"{text!r} is no address of a Selenium Grid; give --remote http://HOST:PORT")
    return text.rstrip("/")


def read_capabilities(path: Path) -> list[dict[str, Any]]:
    """Read a JSON file with a list of W3C capabilities objects, one for each kind of browser.

    Raises
    ------
    BrowserError
        If it cannot be read or holds something else.
    """
    remedy = 'give --capabilities a file like [{"browserName": "chrome"}, {"browserName": "firefox"}]'
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BrowserError(f"{path} cannot be read: {error}; {remedy}") from error
    except ValueError as error:
        raise BrowserError(f"{path} holds no JSON: {error}; {remedy}") from error
    if not isinstance(found, list) or not found:
        raise BrowserError(f"{path} holds {json.dumps(found)[:60]}, no list of capabilities; {remedy}")
    for wanted in found:
        if not isinstance(wanted, dict) or not isinstance(wanted.get("browserName"), str):
            raise BrowserError(f"{path} holds {json.dumps(wanted)[:60]}, which has no browserName; {remedy}")
    return found


def grid_status(url: str) -> dict[str, Any] | None:
    """Ask a grid for its state.

    Returns
    -------
    dict or None
        What ``GET /status`` answers; None where something listens there that does not say.

    Raises
    ------
    BrowserError
        If nothing listens there, or it does not answer within `STATUS_LIMIT_S` seconds.
    """
    manager = urllib3.PoolManager(timeout=STATUS_LIMIT_S, retries=urllib3.Retry(0, redirect=3))
    parts = urllib.parse.urlsplit(url)
    login = ":".join(urllib.parse.unquote(part) for part in (parts.username or "", parts.password or ""))
    headers = urllib3.make_headers(basic_auth=login) if parts.username else {}
    bare = urllib.parse.urlunsplit(parts._replace(netloc=place_of(url)))
    try:
        answer = manager.request("GET", f"{bare}/status", headers=headers)
    except urllib3.exceptions.HTTPError as error:
        raise BrowserError(f"no Selenium Grid answers at {place_of(url)}; start it, or correct --remote") from error
    if answer.status in {401, 403}:
        raise BrowserError(f"the grid at {place_of(url)} wants a login; give --remote http://USER:PASSWORD@HOST:PORT")
    try:
        found = json.loads(answer.data)["value"]
    except (ValueError, TypeError, KeyError):
        return None
    return found if isinstance(found, dict) else None


@dataclass
class _Node:
    """A node of a grid: how many sessions it can still take, and the browser of each of its slots that is free."""

    left: int
    free: list[str]
    all: list[str]

    def take(self, wanted: Mapping[str, Any]) -> bool:
        name = _browser_name(wanted)
        if self.left < 1 or name not in self.free:
            return False
        self.left -= 1
        self.free.remove(name)
        return True


def _browser_name(wanted: Mapping[str, Any]) -> str:
    return str(wanted.get("browserName", "")).lower()


def _offered(nodes: Sequence[_Node]) -> set[str]:
    return {name for node in nodes for name in node.all}


def _nodes(status: Mapping[str, Any] | None) -> list[_Node]:
    nodes = []
    for node in (status or {}).get("nodes") or []:
        if node.get("availability", "UP") != "UP":
            continue
        slots = [(_browser_name(slot["stereotype"]), slot.get("session")) for slot in node["slots"]]
        used = sum(session is not None for _, session in slots)
        free = [name for name, session in slots if session is None]
        nodes.append(_Node(int(node.get("maxSessions", len(slots))) - used, free, [name for name, _ in slots]))
    return nodes


def session_counts(status: Mapping[str, Any] | None, wanted: Sequence[Mapping[str, Any]], *, most: int) -> list[int]:
    """Share out a grid's free slots.

    Parameters
    ----------
    status
        What `grid_status` returned.
    wanted
        Capabilities objects; of them only ``browserName`` is compared with the slots.
    most
        Sessions that one of them may have.

    Returns
    -------
    list of int
        For each of `wanted` how many sessions to open: one at least, which a busy grid lets wait.
    """
    nodes = _nodes(status)

    def take(one: Mapping[str, Any]) -> bool:
        return any(node.take(one) for node in sorted(nodes, key=lambda node: -node.left))

    for one in wanted:
        take(one)
    counts = [1] * len(wanted)
    growing = set(range(len(wanted)))
    while growing:
        growing = {place for place in sorted(growing) if counts[place] < most and take(wanted[place])}
        for place in growing:
            counts[place] += 1
    return counts


def has_free_slot(options: RemoteOptions, limit_s: float = SLOT_LIMIT_S) -> bool:
    """Say whether the grid can give the browser within `limit_s` seconds; one that does not tell its slots may."""
    deadline = time.monotonic() + limit_s
    while True:
        try:
            nodes = _nodes(grid_status(options.url))
        except BrowserError:
            return False
        if not nodes or any(node.take(options.capabilities) for node in nodes):
            return True
        if _browser_name(options.capabilities) not in _offered(nodes) or time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)


def connect(options: RemoteOptions) -> webdriver.Remote:
    """Ask a grid for a browser.

    Raises
    ------
    BrowserError
        If nothing answers there, none of its nodes has such a browser, or it gives none within `session_limit_s`.
    """
    wanted = json.dumps(options.capabilities)[:200]
    offered = _offered(_nodes(grid_status(options.url)))
    # A grid without any node may be one that starts its nodes when they are wanted.
    if offered and _browser_name(options.capabilities) not in offered:
        only = ", ".join(sorted(offered))
        raise BrowserError(f"no node of the grid at {options.place} has {wanted}, only {only}; correct --capabilities FILE")
    try:
        return webdriver.Remote(options.url, options=_Wanted(options), client_config=_client(options))
    except WebDriverException as error:
        raise BrowserError(
            f"the grid at {options.place} gave no browser for {wanted}: {reason_of(error)}; "
            "correct --capabilities FILE, or free a slot"
        ) from error
    except urllib3.exceptions.HTTPError as error:
        raise BrowserError(
            f"the grid at {options.place} gave no browser for {wanted} within {options.session_limit_s} s "
            f"({reason_of(error)}); is it running, and is a slot free?"
        ) from error


def _client(options: RemoteOptions) -> ClientConfig:
    # Selenium's own would try each request four times, that is for minutes where a hub has lost its network.
    once = {"retries": urllib3.Retry(total=None, connect=0, read=0, other=0, redirect=3)}
    return ClientConfig(
        remote_server_addr=options.url,
        timeout=options.session_limit_s,
        init_args_for_pool_manager={"init_args_for_pool_manager": once},
    )


class _Wanted(BaseOptions):
    """Capabilities as they are, with nothing of Selenium's own added."""

    def __init__(self, options: RemoteOptions) -> None:
        super().__init__()
        self._given = dict(options.capabilities)
        if is_loopback(options.url):
            self.ignore_local_proxy_environment_variables()

    def to_capabilities(self) -> dict[str, Any]:
        return self._given

    @property
    def default_capabilities(self) -> dict[str, Any]:
        return {}
