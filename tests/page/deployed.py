"""A copy of the site that another version takes the place of."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from buildtools.offline import add_worker
from pyapp.sitefolder import app_folder

from .visit import wait_until

ROOT = Path(__file__).parents[2]


class Deployed:
    """A site that is updated on demand, or as its server answers a path; that answer is the old version's last.

    The new version is the same under another name, with a heading of its own.
    """

    def __init__(self, dist: Path, folder: Path) -> None:
        self.site = Path(shutil.copytree(dist, folder / "site", copy_function=os.link))
        self.old = app_folder(self.site)
        self.new = self.old.with_name("0" * 12)
        self.moment = ""
        self.answers: list[tuple[str, int]] = []

    def hear(self, line: str) -> None:
        """Take a line of the server's log."""
        if found := re.match(r'"GET /(\S*) HTTP/1.1" (\d+)', line):
            self.answers.append((found[1], int(found[2])))
            if self.moment and found[1].endswith(self.moment) and self.old.exists():
                self.update()

    @property
    def asked(self) -> list[str]:
        """The paths that were asked for."""
        return [path for path, _ in self.answers]

    def update(self) -> None:
        """Put the new version in place."""
        self.old.rename(self.new)
        for path in (self.site / "index.html", self.new / "python" / "pyodide-lock.json", self.new / "site.json"):
            replace(path, path.read_text().replace(self.old.name, self.new.name).replace("<h1>", "<h1>New: "))
        self.write_worker()

    def write_worker(self) -> None:
        """Have the service worker keep what the site holds now."""
        (self.site / "service-worker.js").unlink(missing_ok=True)
        add_worker(ROOT / "web" / "service-worker.js", self.site, app_folder(self.site))


def replace(path: Path, text: str) -> None:
    """Write a file anew: the old one may be on its way to a browser, and is another folder's as well."""
    path.unlink()
    path.write_text(text)


def ready(driver):
    return driver.execute_script("return document.documentElement.dataset.state === 'ready'")


def says(driver, css):
    return driver.execute_script("return document.querySelector(arguments[0])?.innerText ?? ''", css)


def open_ready(driver, url):
    driver.get(url)
    wait_until(lambda: ready(driver), "the page is ready", 60)


def reload_by_click(driver):
    """Click on the offer to reload, and see that the new version comes."""
    driver.find_element("css selector", "#update button").click()
    wait_until(lambda: says(driver, "h1").startswith("New: ") and ready(driver), "the new version is ready", 60)
    assert says(driver, "#update") == ""


def quiet_site(dist: Path, folder: Path) -> Path:
    """Return a copy of the site that lacks its service worker."""
    site = Path(shutil.copytree(dist, folder / "quiet", copy_function=os.link))
    (site / "service-worker.js").unlink()
    return site


def kept_versions(driver) -> list[str]:
    """Return the versions that this browser keeps."""
    names = driver.execute_async_script("caches.keys().then((names) => arguments[0](names))")
    return [name.rpartition(" ")[2] for name in names]
