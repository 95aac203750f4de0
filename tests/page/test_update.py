"""A new version is put in place while the page of the old one loads, or later: nothing of the two is ever mixed."""

from __future__ import annotations

import pytest

from pyapp.chromium import BrowserOptions, launch

from .deployed import open_ready, ready, reload_by_click, says
from .visit import wait_until

UPDATED = "This site was updated while this page was open"


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


@pytest.mark.parametrize("moment", ["/update.js", "/main.js", "/python-worker.js", "/pyodide-lock.json"])
def test_an_update_in_mid_load_is_told_and_nothing_is_mixed(deployed, server, driver, moment):
    deployed.moment = moment
    driver.get(server.url)
    wait_until(lambda: UPDATED in says(driver, "#update"), "the page says that the site was updated", 60)
    assert not ready(driver)
    assert not [path for path in deployed.asked if deployed.new.name in path], "it asked for the new version's files"
    assert 404 in {status for _, status in deployed.answers}
    reload_by_click(driver)


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
    open_ready(driver, server.url)
    deployed.update()
    assert says(driver, "#update") == ""
    driver.execute_script(use)
    wait_until(lambda: UPDATED in says(driver, "#update"), "the page says that the site was updated", 30)
    reload_by_click(driver)


def test_a_failure_that_is_none_of_an_update_is_not_taken_for_one(deployed, server, driver):
    [stress] = deployed.site.glob("app/*/fixtures/stress.npz")
    stress.unlink()
    driver.get(server.url)
    wait_until(lambda: "stress.npz could not be loaded" in says(driver, "#error"), "the page says what is missing", 60)
    manifest = stress.parents[1].name + "/site.json"
    wait_until(lambda: sum(path.endswith(manifest) for path in deployed.asked) == 2, "it has looked", 10)
    assert says(driver, "#update") == ""
