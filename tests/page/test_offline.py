"""After a first visit the site works without a network; a newer version waits for a click, and is whole or not there."""

from __future__ import annotations

import time
from urllib.parse import urlsplit

import pytest

from pyapp.chromium import BrowserOptions, PageDriver, launch, open_page
from pyapp.serve import SiteServer

from .deployed import kept_versions, open_ready, quiet_site, ready, reload_by_click, replace, says
from .game import Game
from .visit import Visit, section, wait_until

KEPT = "This page is kept in this browser and works without a network."
NOT_KEPT = "This page is not kept for use without a network"
NEWER = "A new version of this page is there."
HELD = "return (await navigator.locks.query()).held.some(({ name }) => name === 'pyapp-quiet')"


@pytest.fixture(scope="module")
def browser():
    driver = launch(BrowserOptions(), "software")
    driver.set_script_timeout(120)
    yield driver
    driver.quit()


@pytest.fixture
def driver(browser):
    # Another port is another origin, with caches and a service worker of its own.
    browser.get("about:blank")
    return browser


def visited(driver, url):
    """Visit the site until it is kept."""
    open_ready(driver, url)
    wait_until(lambda: says(driver, "#offline") == KEPT, f"the site is kept ({says(driver, '#offline')!r})", 60)


def look_for_updates(driver):
    """Do what the browser does by itself at every navigation, and once a day."""
    script = (
        "navigator.serviceWorker.getRegistration().then((one) => one.update()).then(() => arguments[0](), () => arguments[0]())"
    )
    driver.execute_async_script(script)


def test_without_a_network_the_page_boots_checks_and_plays(deployed, driver):
    with SiteServer(deployed.site, log=deployed.hear) as server:
        visited(driver, server.url)
    deployed.answers.clear()
    page = Visit(PageDriver(driver, f"{server.url}?engines=wasm-1,webgpu-stock&runs=3&warmup=1"))
    page.wait_for("ready", 60)
    report = page.check_by_click(240)
    assert {entry["engine"]: entry["agree"] for entry in report["parity"] if entry["suite"] == "states"} == {
        "wasm-1": 60,
        "webgpu-stock": 60,
    }
    assert report["environment"]["cross_origin_isolated"]
    assert section(report, "race", "wasm-1")["runs"] == 3
    game = Game(page)
    game.start()
    assert game.changes("agent")
    assert page.python("import micropip; micropip.__version__")
    page.driver.execute_script("document.querySelector('#licences').open = true")
    wait_until(lambda: "onnxruntime-web" in page.text("#licences"), "the licences are there", 10)
    assert deployed.answers == []


def test_a_new_version_waits_for_a_click_and_loses_nothing_before(deployed, server, driver):
    visited(driver, server.url)
    assert kept_versions(driver) == [deployed.old.name]
    driver.execute_script("globalThis.mine = 'kept'")
    deployed.update()
    deployed.answers.clear()
    look_for_updates(driver)
    wait_until(lambda: NEWER in says(driver, "#update"), "the new version is offered", 60)
    fetched = [path for path in deployed.asked if path]
    assert set(fetched) == {"service-worker.js"} | {
        f"app/{deployed.new.name}/{name}" for name in ("python/pyodide-lock.json", "site.json")
    }
    assert driver.execute_script("return globalThis.mine") == "kept"
    # Whoever loads the page without that click gets the old version, whole, though the host has none of it any more.
    open_ready(driver, server.url)
    assert not says(driver, "h1").startswith("New: ")
    wait_until(lambda: NEWER in says(driver, "#update"), "it is offered again", 30)
    reload_by_click(driver)
    assert kept_versions(driver) == [deployed.new.name]


def test_a_tab_that_stays_open_is_told_what_another_one_has_done(deployed, server, driver):
    visited(driver, server.url)
    first = driver.current_window_handle
    driver.switch_to.new_window("tab")
    second = driver.current_window_handle
    try:
        open_ready(driver, server.url)
        deployed.update()
        look_for_updates(driver)
        wait_until(lambda: NEWER in says(driver, "#update"), "the new version is offered", 60)
        reload_by_click(driver)
        driver.switch_to.window(first)
        wait_until(lambda: "was updated while this page was open" in says(driver, "#update"), "the other tab knows", 30)
        assert not says(driver, "h1").startswith("New: ")
        reload_by_click(driver)
    finally:
        driver.switch_to.window(second)
        driver.close()
        driver.switch_to.window(first)


def test_a_version_that_is_deployed_by_half_is_not_taken(deployed, server, driver):
    visited(driver, server.url)
    deployed.update()
    manifest = deployed.new / "site.json"
    right = manifest.read_text()
    replace(manifest, right.replace('"pyapp"', '"other"'))
    look_for_updates(driver)
    wait_until(lambda: f"app/{deployed.new.name}/site.json" in deployed.asked, "it was asked for", 30)
    wait_until(lambda: kept_versions(driver) == [deployed.old.name], "the new version is given up", 30)
    assert says(driver, "#update") == ""
    assert says(driver, "#offline") == KEPT
    open_ready(driver, server.url)
    assert not says(driver, "h1").startswith("New: ")
    assert says(driver, "#update") == ""
    replace(manifest, right)
    look_for_updates(driver)
    wait_until(lambda: NEWER in says(driver, "#update"), "the whole one is offered", 60)
    reload_by_click(driver)


def test_a_full_disk_leaves_a_page_that_works(deployed, server, driver):
    origin = "http://" + urlsplit(server.url).netloc
    driver.execute_cdp_cmd("Storage.overrideQuotaForOrigin", {"origin": origin, "quotaSize": 8_000_000})
    page = PageDriver(driver, server.url)
    page.wait_ready()
    wait_until(lambda: NOT_KEPT in says(driver, "#offline"), "the page says that it is not kept", 60)
    assert "Quota" in says(driver, "#offline")
    assert kept_versions(driver) == []
    report = page.check({"engines": ["wasm-1"], "runs": 3, "warmup": 1})
    assert report["parity"][0]["agree"] == 60


def test_without_a_service_worker_the_page_works_and_says_so(dist, tmp_path, driver):
    with SiteServer(quiet_site(dist, tmp_path)) as server:
        open_ready(driver, server.url)
        wait_until(lambda: NOT_KEPT in says(driver, "#offline"), "the page says that it is not kept", 30)
        assert says(driver, "#update") == ""


def test_nothing_is_fetched_while_the_page_boots_or_measures(deployed, server, driver):
    page = PageDriver(driver, server.url)
    page.wait_ready()
    assert not page.run(HELD)
    driver.execute_script("void pyappPage.evaluate('import asyncio; await asyncio.sleep(1)')")
    assert page.run(HELD), "what was typed may measure"
    wait_until(lambda: not page.run(HELD), "it has ended", 5)
    page.start("tournament", {"engines": ["wasm-1"], "games": 2})
    wait_until(lambda: page.get("state") == "running", "it plays", 10)
    assert page.run(HELD)
    time.sleep(4)
    assert "service-worker.js" not in deployed.asked
    page.cancel()
    wait_until(lambda: page.get("state") == "ready", "it has stopped", 10)
    driver.execute_script("void navigator.locks.request('pyapp-quiet', () => new Promise((over) => (globalThis.over = over)))")
    before = len(deployed.asked)
    wait_until(lambda: "service-worker.js" in deployed.asked, "the worker is there", 30)
    time.sleep(1)
    assert set(deployed.asked[before:]) <= {"service-worker.js", f"app/{deployed.old.name}/offline.js"}
    driver.execute_script("over()")
    wait_until(lambda: says(driver, "#offline") == KEPT, "the site is kept", 60)


def test_on_a_host_without_the_headers_the_page_isolates_itself_with_one_reload(deployed, driver):
    with SiteServer(deployed.site, isolated=False, log=deployed.hear) as server:
        open_ready(driver, server.url)
        assert driver.execute_script("return crossOriginIsolated")
        assert deployed.asked.count("") == 2
        wait_until(lambda: says(driver, "#offline") == KEPT, "the site is kept", 60)
    open_ready(driver, server.url)
    assert driver.execute_script("return crossOriginIsolated"), "nor without a network"


def test_a_command_waits_for_that_reload(deployed):
    with SiteServer(deployed.site, isolated=False) as server, open_page(BrowserOptions(gpu="auto"), server.url) as page:
        assert page.run("return crossOriginIsolated")
        assert page.evaluate("1 + 1")["repr"] == "2"


def test_where_that_does_not_help_the_page_is_not_reloaded_again_and_again(deployed, driver):
    replace(deployed.site / "service-worker.js", "// adds nothing")
    with SiteServer(deployed.site, isolated=False, log=deployed.hear) as server:
        open_ready(driver, server.url)
        assert not driver.execute_script("return crossOriginIsolated")
        assert deployed.asked.count("") == 2
        assert ready(driver)
