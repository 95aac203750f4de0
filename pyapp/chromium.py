"""Starts a browser through Selenium, here or on a Selenium Grid, and drives the page in it."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import shutil
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import urllib3
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.options import BaseOptions
from selenium.webdriver.remote.client_config import ClientConfig

GPU_MODES = ("auto", "software", "none")
BOOT_LIMIT_S = 180.0
ADAPTER_LIMIT_S = 2.0
POLL_S = 0.2
STATUS_LIMIT_S = 10.0
SLOT_LIMIT_S = 5.0
SESSION_LIMIT_S = 120
"""How long a grid may take to give a browser; no later request takes so long, so a dead hub ends in an error too."""

LOST = (WebDriverException, urllib3.exceptions.HTTPError, ConnectionError)
"""What Selenium raises where a browser, its driver or its grid is no more."""

DEFAULT_CAPABILITIES: tuple[Mapping[str, Any], ...] = ({"browserName": "chrome"},)

_QUIET = (
    "--headless=new",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1280,1600",
)
_GPU_ARGUMENTS = {
    # On Linux, Chromium offers WebGPU only on request, and reaches a headless GPU only through Vulkan.
    "hardware": ("--enable-unsafe-webgpu", "--use-angle=vulkan", "--enable-features=Vulkan", "--disable-vulkan-surface"),
    "software": ("--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--enable-features=Vulkan"),
    "none": ("--disable-features=WebGPU", "--disable-blink-features=WebGPU"),
}


class BrowserError(Exception):
    """The browser or the page could not do what was asked; the message ends in a remedy."""


@dataclass(frozen=True, kw_only=True)
class BrowserOptions:
    """How to start Chromium.

    Attributes
    ----------
    gpu : str
        ``auto`` (the machine's GPU where the browser finds one, else a software one), ``software`` or ``none``.
    arguments : sequence of str
        Further command-line arguments of Chromium.
    browser, driver : str
        Paths of chromium and chromedriver; looked for on PATH where empty.
    """

    gpu: str = "auto"
    arguments: Sequence[str] = field(default_factory=tuple)
    browser: str = ""
    driver: str = ""


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


@dataclass(frozen=True, kw_only=True)
class Browser:
    """What a driver says of its browser: `name`, `version` and `platform`, as in ``chrome``, ``156.0.1``, ``linux``."""

    name: str
    version: str
    platform: str


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


def reason_of(error: BaseException) -> str:
    """Return the first line of what an error says, of a browser's mostly the only one that is no stack trace."""
    text = (error.msg if isinstance(error, WebDriverException) else None) or str(error) or type(error).__name__
    return text.strip().splitlines()[0].removeprefix("Message: ")


def _program(given: str, names: Sequence[str], option: str) -> str:
    if given:
        if not shutil.which(given):
            raise BrowserError(f"{given!r} is no program; correct {option}")
        return given
    for name in names:
        if found := shutil.which(name):
            return found
    raise BrowserError(f"{names[0]} was not found on PATH; install it (apt install chromium chromium-driver) or give {option}")


def launch(options: BrowserOptions, mode: str) -> webdriver.Chrome:
    """Start Chromium with a fresh profile.

    Parameters
    ----------
    options : BrowserOptions
        Paths and further arguments.
    mode : str
        ``hardware``, ``software`` or ``none``: which GPU WebGPU may use.

    Raises
    ------
    BrowserError
        If a program is missing or does not start.
    """
    chrome = webdriver.ChromeOptions()
    chrome.binary_location = _program(options.browser, ("chromium", "chromium-browser", "google-chrome"), "--browser")
    driver = _program(options.driver, ("chromedriver",), "--driver")
    for argument in (*_QUIET, *_GPU_ARGUMENTS[mode], *options.arguments):
        chrome.add_argument(argument)
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        chrome.add_argument("--no-sandbox")  # Chromium's sandbox refuses to run as root
    chrome.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    try:
        return webdriver.Chrome(options=chrome, service=webdriver.ChromeService(executable_path=driver))
    except WebDriverException as error:
        raise BrowserError(
            f"Chromium did not start: {reason_of(error)}; do the versions of browser and driver match?"
        ) from error


@contextlib.contextmanager
def open_page(options: BrowserOptions | RemoteOptions, url: str) -> Iterator[PageDriver]:
    """Start a browser, open the page and wait until it is ready; the browser is closed afterwards.

    Raises
    ------
    BrowserError
        If the browser does not start or the page does not become ready.
    """
    if isinstance(options, RemoteOptions):
        with _closing(connect(options)) as remote:
            page = PageDriver(remote, url)
            page.wait_ready()
            yield page
        return
    if options.gpu not in GPU_MODES:
        raise BrowserError(f"gpu is {options.gpu!r}; give one of {', '.join(GPU_MODES)}")
    driver = launch(options, "hardware" if options.gpu == "auto" else options.gpu)
    try:
        page = PageDriver(driver, url)
        if options.gpu == "auto" and not page.has_adapter():
            driver.quit()
            driver = launch(options, "software")
            page = PageDriver(driver, url)
        page.wait_ready()
        yield page
    finally:
        driver.quit()


@contextlib.contextmanager
def _closing(driver: webdriver.Remote) -> Iterator[webdriver.Remote]:
    try:
        yield driver
    finally:
        # A browser that is no more cannot be closed, and that is not what went wrong.
        with contextlib.suppress(*LOST):
            driver.quit()


class PageDriver:
    """The page in a browser, driven through `globalThis.pyappPage`."""

    def __init__(self, driver: webdriver.Remote, url: str) -> None:
        self.driver = driver
        driver.set_script_timeout(600)
        try:
            driver.get(url)
        except WebDriverException as error:
            raise BrowserError(f"{url} could not be opened: {reason_of(error)}") from error

    @property
    def browser(self) -> Browser:
        """Which browser this is."""
        found = self.driver.capabilities
        names = ("browserName", "browserVersion", "platformName")
        name, version, platform = (str(found.get(key) or "unknown") for key in names)
        return Browser(name=name, version=version, platform=platform.lower())

    def close(self) -> None:
        """End the browser, from whichever thread: who waits for its answer gets an error."""
        with contextlib.suppress(*LOST):
            self.driver.quit()

    def has_adapter(self) -> bool:
        """Whether WebGPU finds a graphics adapter in this browser; a GPU process that is just starting is waited for."""
        deadline = time.monotonic() + ADAPTER_LIMIT_S
        while not self.run("return navigator.gpu ? (await navigator.gpu.requestAdapter()) !== null : false"):
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        return True

    def get(self, name: str) -> Any:  # noqa: ANN401 - whatever the page shows under this name
        """Return a property of `pyappPage`: ``state``, ``progress``, ``report`` or ``error``."""
        return self.driver.execute_script("return globalThis.pyappPage?.[arguments[0]]", name)

    def wait_ready(self, limit_s: float = BOOT_LIMIT_S) -> None:
        """Wait until the page is ready; raises BrowserError with its own reason, or after `limit_s` seconds."""
        deadline = time.monotonic() + limit_s
        while (state := self.get("state")) != "ready":
            if state == "failed":
                raise BrowserError(f"the page did not start: {_sentence(self.get('error'))}")
            if time.monotonic() > deadline:
                raise BrowserError(f"the page was not ready within {limit_s:.0f} s (state: {state})")
            time.sleep(POLL_S)

    def ask(
        self,
        question: str,
        settings: dict[str, Any],
        on_progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
    ) -> dict[str, Any]:
        """Ask ``check``, ``explain``, ``sweep``, ``tune`` or ``tournament``, and return the report as plain data.

        Raises
        ------
        BrowserError
            If the page refuses the settings or the question cannot be answered.
        """
        self.start(question, settings)
        while self.get("state") == "running":
            if progress := self.get("progress"):
                on_progress(progress["stage"], progress["done"], progress["total"])
            time.sleep(POLL_S)
        if error := self.get("error"):
            raise BrowserError(f"the {question} did not finish: {_sentence(error)}")
        report: dict[str, Any] = self.get("report")
        return report

    def check(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Run a check and return its report as plain data; see `ask`."""
        return self.ask("check", settings)

    def start(self, question: str, settings: dict[str, Any]) -> None:
        """Ask a question without waiting for its answer."""
        self.driver.execute_script("globalThis.pyappPage.ask(...arguments)", question, settings)

    def cancel(self) -> None:
        """Cancel the running check."""
        self.run("await globalThis.pyappPage.cancel()")

    def evaluate(self, source: str) -> dict[str, str | None]:
        """Run Python in the page; returns ``{"repr": …}`` or ``{"traceback": …}``."""
        answer: dict[str, str | None] = self.run("return await globalThis.pyappPage.evaluate(argument)", source)
        return answer

    def run_code(self, source: str, filename: str = "<console>") -> dict[str, Any]:
        """Run Python in the page, and return ``stdout``, ``stderr``, its last ``value`` as plain data, and its ``traceback``.

        The value is None where the code ends in a statement or raises, and then only the traceback is not None.
        """
        answer = self.run(
            """
            pyappPage.printed.length = 0;
            const answer = await pyappPage.runPlain(argument.source, argument.filename);
            const lines = (stream) => pyappPage.printed.filter((one) => one.stream === stream).map(({ text }) => text + '\\n');
            return { ...answer, stdout: lines('stdout').join(''), stderr: lines('stderr').join('') };
            """,
            {"source": source, "filename": filename},
        )
        return {name: answer.get(name) for name in ("stdout", "stderr", "value", "traceback")}

    def run(self, body: str, argument: object = None) -> Any:  # noqa: ANN401 - whatever the script returns
        """Run the body of an async JavaScript function of `argument` in the page; raises BrowserError with what it throws."""
        script = f"""
            const [argument, done] = arguments;
            (async () => {{ {body} }})().then((value) => done({{ value }}), (error) => done({{ error: String(error) }}));
        """
        answer = self.driver.execute_async_script(script, argument)
        if "error" in answer:
            raise BrowserError(answer["error"])
        return answer.get("value")


def _sentence(error: dict[str, str] | None) -> str:
    if not error:
        return json.dumps(error)
    return f"{error['message']}. {error['remedy']}".strip()
