"""Where a built site keeps what belongs to its version: ``app/VERSION/``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def app_folder(site: Path) -> Path:
    """Return the folder that is named by a site's version; its ``site.json`` lies in it.

    Raises
    ------
    FileNotFoundError
        `site` is no built site, or one of several versions.
    """
    found = [path.parent for path in site.glob("app/*/site.json")]
    if len(found) != 1:
        raise FileNotFoundError(f"{site} has {len(found)} versions of the site in app/, not one; run `make build`")
    return found[0]
