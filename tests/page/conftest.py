"""Browsers and sites for the tests of the page."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from pyapp.chromium import BrowserError, BrowserOptions, launch, open_page
from pyapp.serve import ServeError, SiteServer

from .deployed import Deployed
from .recorder import Recorder
from .visit import Visit

ROOT = Path(__file__).parents[2]

Open = Callable[..., AbstractContextManager[Visit]]


@pytest.fixture(scope="session")
def dist() -> Path:
    """Return the built site's folder."""
    folder = ROOT / "dist"
    if not (folder / "index.html").is_file():
        pytest.fail(f"there is no site in {folder} – run `make build`; then `make test-page`", pytrace=False)
    return folder


@pytest.fixture(scope="session")
def visit(dist: Path) -> Open:
    """Return a function that starts a browser with the page in it, for a `with` block."""

    @contextlib.contextmanager
    def open_(
        query: str = "",
        *,
        gpu: str = "none",
        isolated: bool = True,
        arguments: tuple[str, ...] = (),
        site: Path = dist,
    ) -> Iterator[Visit]:
        try:
            with contextlib.ExitStack() as stack:
                server = stack.enter_context(SiteServer(site, isolated=isolated))
                options = BrowserOptions(gpu=gpu, arguments=arguments)
                yield Visit(stack.enter_context(open_page(options, server.url + query)))
        except ServeError as error:
            pytest.fail(str(error), pytrace=False)
        except BrowserError as error:
            pytest.fail(f"{error}; `make test` installs Chromium where it is missing", pytrace=False)

    return open_


@pytest.fixture
def deployed(dist: Path, tmp_path: Path) -> Deployed:
    """Return a copy of the site that can be updated."""
    return Deployed(dist, tmp_path)


@pytest.fixture
def server(deployed: Deployed) -> Iterator[SiteServer]:
    """Serve that copy, which hears what is asked for."""
    with SiteServer(deployed.site, log=deployed.hear) as server:
        yield server


@contextlib.contextmanager
def blank_browser(asked: Recorder) -> Iterator[None]:
    """Keep a browser open that shows nothing: what it asks for is Chromium's own doing."""
    driver = launch(BrowserOptions(arguments=asked.arguments), "software")
    try:
        driver.get("about:blank")
        yield
    finally:
        driver.quit()


class Checked:
    """A whole check with the default engines, started by a click.

    `asked` has what this browser wanted of the network, `asked_by_blank` what one without the page wanted in the same time.
    """

    def __init__(self, visit: Visit, asked: Recorder, asked_by_blank: Recorder) -> None:
        self.visit = visit
        self.asked = asked
        self.asked_by_blank = asked_by_blank
        self.report: dict[str, Any] = visit.check_by_click(limit_s=480)
        self.log = visit.driver.get_log("browser")


@pytest.fixture(scope="session")
def checked(visit: Open) -> Iterator[Checked]:
    """Run the one whole check that several tests look at; it takes longest of all."""
    with (
        Recorder() as asked,
        Recorder() as asked_by_blank,
        visit("?runs=10&warmup=2", gpu="software", arguments=asked.arguments) as page,
        blank_browser(asked_by_blank),
    ):
        yield Checked(page, asked, asked_by_blank)
