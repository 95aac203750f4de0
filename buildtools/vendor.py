"""Third-party modules of the page, each bundled with its dependencies into one file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buildtools import npm
from buildtools.tools import run_tool

if TYPE_CHECKING:
    from pathlib import Path

    from buildtools.progress import Progress

#: Our own modules are shipped as they are; only what comes from npm is bundled.
PACKAGES = (
    "@codemirror/autocomplete",
    "@codemirror/commands",
    "@codemirror/lang-python",
    "@codemirror/language",
    "@codemirror/state",
    "@codemirror/view",
    "@lezer/highlight",
    "@observablehq/plot",
    "dompurify",
    "idb-keyval",
)


def bundle_vendor(root: Path, site: Path, progress: Progress) -> None:
    """Bundle `web/vendor/*.js` over their copies in the site.

    Raises
    ------
    BuildError
        A package is missing or in another version than pinned, or esbuild fails.
    """
    for name in PACKAGES:
        npm.npm_package(root, name)
    esbuild = npm.npm_package(root, "esbuild").file("bin/esbuild")
    sources = sorted((root / "web" / "vendor").glob("*.js"))
    form = ("--bundle", "--minify", "--format=esm", "--target=es2022", "--legal-comments=eof")
    run_tool(
        [esbuild, *sources, *form, f"--outdir={site / 'vendor'}", "--allow-overwrite", "--log-level=error"],
        task="bundling the page's third-party modules",
        remedy=npm.REMEDY,
        progress=progress,
    )
