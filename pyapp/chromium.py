"""Starts a headless Chromium through Selenium, and drives the page in it or in a browser from elsewhere."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import urllib3
from selenium import webdriver
from selenium.common.exceptions import JavascriptException, WebDriverException

from pyapp.ownmodel import OwnModel

GPU_MODES = ("auto", "software", "none")
BOOT_LIMIT_S = 180.0
ADAPTER_LIMIT_S = 2.0
POLL_S = 0.2
LOST = (WebDriverException, urllib3.exceptions.HTTPError, ConnectionError)
"""What Selenium raises where a browser, its driver or its grid is no more."""

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
class Browser:
    """What a driver says of its browser: `name`, `version` and `platform`, as in ``chrome``, ``156.0.1``, ``linux``."""

    name: str
    version: str
    platform: str


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


class Elsewhere(Protocol):
    """A browser that somebody else starts, such as a Selenium Grid (`pyapp.grid`)."""

    def start(self) -> webdriver.Remote:
        """Ask for it; raises BrowserError where it cannot be had."""


@contextlib.contextmanager
def open_page(options: BrowserOptions | Elsewhere, url: str) -> Iterator[PageDriver]:
    """Start a browser, open the page and wait until it is ready; the browser is closed afterwards.

    Raises
    ------
    BrowserError
        If the browser does not start or the page does not become ready.
    """
    if not isinstance(options, BrowserOptions):
        with _closing(options.start()) as remote:
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
        while True:
            # A page that isolates itself loads itself once more, under whoever waits for an answer.
            with contextlib.suppress(JavascriptException):
                if self.run("return navigator.gpu ? (await navigator.gpu.requestAdapter()) !== null : false"):
                    return True
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)

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

    def load_model(
        self, own: OwnModel, on_progress: Callable[[str, int, int], None] = lambda stage, done, total: None
    ) -> dict[str, Any]:
        """Give the page a model, and return what it says of it.

        Raises
        ------
        BrowserError
            If it is none that can be used, or a setting is refused; the page's reason.
        """
        on_progress(f"loading {own.files[0].name}", 0, 1)
        field = self.driver.find_element("css selector", "#model-file")
        self.change(own.files[0].name, lambda: field.send_keys("\n".join(map(str, own.files))))
        if own.tolerance:
            known = self.get("model")["model"]
            self.change_model("allow", {name: known[name] for name in ("rtol", "atol")} | own.tolerance)
        if own.sizes:
            self.change_model("make_cases", {"sizes": own.sizes})
        for fix in own.fixes:
            on_progress(f"applying {fix}", 0, 1)
            self.change_model("fix", fix)
        found: dict[str, Any] = self.get("model")
        return found

    def change_model(self, verb: str, settings: object) -> None:
        """Do what a control does: ``make_cases``, ``allow`` or ``fix``; raises `BrowserError` with the page's reason."""
        script = "globalThis.pyappPage.changeModel(...arguments)"
        self.change(verb, lambda: self.driver.execute_script(script, verb, settings))

    def change(self, what: str, act: Callable[[], object]) -> None:
        """Do something that changes the model, and wait until it is done."""
        changes = self.get("changes")
        act()
        while self.get("changes") == changes:
            time.sleep(POLL_S)
        if error := self.get("error"):
            raise BrowserError(f"{what}: {_sentence(error)}")

    def reproducer(self) -> tuple[bytes, bytes] | None:
        """Return the model and the cases that show the fault which was found last; None where there is none."""
        found = self.run("return await globalThis.pyappPage.reproducer()")
        return (base64.b64decode(found["model"]), base64.b64decode(found["cases"])) if found else None

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
