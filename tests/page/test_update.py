"""A new version is put in place while the page of the old one loads, or later: nothing of the two is ever mixed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from pyapp.chromium import BrowserOptions, launch
from pyapp.serve import SiteServer
from pyapp.sitefolder import app_folder

from .visit import wait_until

UPDATED = "This site was updated while this page was open"


class Deployed:
    """A site that is updated at the moment in which its server answers a path; that answer is the old version's last.

    The new version is the same under another name, with a heading of its own.
    """

    def __init__(self, dist: Path, folder: Path) -> None:
        self.site = Path(shutil.copytree(dist, folder / "site"))
        self._old = app_folder(self.site)
        self.new = self._old.with_name("0" * 12)
        self.moment = ""
        self.answers: list[tuple[str, int]] = []

    def hear(self, line: str) -> None:
        if found := re.match(r'"GET /(\S*) HTTP/1.1" (\d+)', line):
            self.answers.append((found[1], int(found[2])))
            if self.moment and found[1].endswith(self.moment):
                self.update()

    def update(self) -> None:
        if self.new.exists():
            return
        self._old.rename(self.new)
        page, lock = self.site / "index.html", self.new / "python" / "pyodide-lock.json"
        for path in (page, lock):
            text = path.read_text().replace(self._old.name, self.new.name).replace("<h1>", "<h1>New: ")
            path.unlink()  # the old one may be on its way to a browser
            path.write_text(text)


@pytest.fixture
def deployed(dist, tmp_path):
    return Deployed(dist, tmp_path)


@pytest.fixture
def server(deployed):
    with SiteServer(deployed.site, log=deployed.hear) as server:
        yield server


@pytest.fixture(scope="module")
def browser():
    driver = launch(BrowserOptions(), "none")
    yield driver
    driver.quit()


@pytest.fixture
def driver(browser):
    # Another port is another origin, which knows nothing of the last test's; what is left is the page.
    browser.get("about:blank")
    return browser


def ready(driver):
    return driver.execute_script("return document.documentElement.dataset.state === 'ready'")


def says(driver, css):
    return driver.execute_script("return document.querySelector(arguments[0])?.innerText ?? ''", css)


def assert_reload_brings_the_new_version(driver):
    driver.find_element("css selector", "#update button").click()
    wait_until(lambda: says(driver, "h1").startswith("New: ") and ready(driver), "the new version is ready", 60)
    assert says(driver, "#update") == ""


@pytest.mark.parametrize("moment", ["/update.js", "/main.js", "/python-worker.js", "/pyodide-lock.json"])
def test_an_update_in_mid_load_is_told_and_nothing_is_mixed(deployed, server, driver, moment):
    deployed.moment = moment
    driver.get(server.url)
    wait_until(lambda: UPDATED in says(driver, "#update"), "the page says that the site was updated", 60)
    assert not ready(driver)
    assert not [path for path, _ in deployed.answers if deployed.new.name in path], "it asked for the new version's files"
    assert 404 in {status for _, status in deployed.answers}
    assert_reload_brings_the_new_version(driver)


def test_a_page_none_of_whose_scripts_comes_says_what_to_do(deployed, server, driver):
    deployed.moment = "index.html"
    driver.get(f"{server.url}index.html")
    wait_until(lambda: "updated while this page was loading: reload it" in says(driver, "#stuck"), "there is a hint", 20)
    deployed.moment = ""
    driver.refresh()
    wait_until(lambda: ready(driver), "the new version is ready", 60)
    assert says(driver, "#stuck") == ""


@pytest.mark.parametrize(
    "use", ["document.querySelector('#console .actions button').click()", "pyappPage.ask('check', {runs: 3})"]
)
def test_an_update_after_the_load_is_told_when_something_is_missing(deployed, server, driver, use):
    driver.get(server.url)
    wait_until(lambda: ready(driver), "the page is ready", 60)
    deployed.update()
    assert says(driver, "#update") == ""
    driver.execute_script(use)
    wait_until(lambda: UPDATED in says(driver, "#update"), "the page says that the site was updated", 30)
    assert_reload_brings_the_new_version(driver)


def test_a_failure_that_is_none_of_an_update_is_not_taken_for_one(deployed, server, driver):
    [stress] = deployed.site.glob("app/*/fixtures/stress.npz")
    stress.unlink()
    driver.get(server.url)
    wait_until(lambda: "stress.npz could not be loaded" in says(driver, "#error"), "the page says what is missing", 60)
    manifest = stress.parents[1].name + "/site.json"
    wait_until(lambda: sum(path.endswith(manifest) for path, _ in deployed.answers) == 2, "it has looked", 10)
    assert says(driver, "#update") == ""
