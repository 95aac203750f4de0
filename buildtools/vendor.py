"""Third-party modules of the page, each bundled with its dependencies into one file."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from buildtools import npm
from buildtools.tools import run_tool

if TYPE_CHECKING:
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


def bundle_vendor(root: Path, site: Path, progress: Progress) -> dict[str, list[str]]:
    """Bundle `web/vendor/*.js` over their copies in the site.

    Returns
    -------
    dict
        The packages of which each bundle holds something, by the bundle's path in the site.

    Raises
    ------
    BuildError
        A package is missing or in another version than pinned, or esbuild fails.
    """
    for name in PACKAGES:
        npm.npm_package(root, name)
    esbuild = npm.npm_package(root, "esbuild").file("bin/esbuild")
    sources = sorted((root / "web" / "vendor").glob("*.js"))
    form = ("--bundle", "--minify", "--format=esm", "--target=es2022", "--legal-comments=eof", "--allow-overwrite")
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "made.json")
        run_tool(
            [
                esbuild,
                *sources,
                *form,
                f"--outdir={site / 'vendor'}",
                f"--metafile={made}",
                "--log-level=error",
            ],
            task="bundling the page's third-party modules",
            remedy=npm.REMEDY,
            progress=progress,
        )
        outputs = json.loads(made.read_text(encoding="utf-8"))["outputs"]
    return {f"vendor/{Path(path).name}": bundled(output["inputs"]) for path, output in outputs.items()}


def bundled(inputs: dict[str, dict[str, int]]) -> list[str]:
    """Return the npm packages of the modules that a bundle was made of; what nothing is left of does not count."""
    kept = (path for path, input_ in inputs.items() if input_["bytesInOutput"] > 0)
    found = (re.search(r".*node_modules/((?:@[^/]+/)?[^/]+)/", path) for path in kept)
    return sorted({match[1] for match in found if match})
