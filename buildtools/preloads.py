"""Links in the page that let the browser ask for all of its modules at once, rather than hop by hop by their imports."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buildtools import npm
from buildtools.errors import BuildError
from buildtools.tools import run_tool

if TYPE_CHECKING:
    from buildtools.progress import Progress

#: Where module scripts begin, in the order in which they matter.
ROOTS = ("update.js", "early.js", "main.js")

#: Is replaced by the links.
MARK = "    <!-- The build puts a modulepreload for each further module here, so that they come in one hop. -->\n"


def add_preloads(root: Path, site: Path, progress: Progress) -> None:
    """Name every module that `ROOTS` import, directly or not, in the site's ``index.html``.

    What is imported on demand (``import()``) is not among them.

    Raises
    ------
    BuildError
        A module is missing, or the page has no place for the links.
    """
    page = site / "index.html"
    text = page.read_text(encoding="utf-8")
    if text.count(MARK) != 1:
        raise BuildError(f"index.html has no place for the links to modules ({MARK.strip()})", "restore it from git")
    links = "".join(f'    <link rel="modulepreload" href="{name}">\n' for name in imported(_graph(root, site, progress), ROOTS))
    page.write_text(text.replace(MARK, links), encoding="utf-8")


def imported(graph: dict[str, Any], roots: tuple[str, ...]) -> list[str]:
    """Return what `roots` and what they import import statically, the nearest first, without `roots`.

    Parameters
    ----------
    graph : dict
        ``inputs`` of esbuild's metafile.
    roots : tuple of str
        Names in it.
    """
    found = dict.fromkeys(roots)
    waiting = list(roots)
    for name in waiting:
        for edge in graph[name]["imports"]:
            if edge["kind"] == "import-statement" and edge["path"] not in found:
                found[edge["path"]] = None
                waiting.append(edge["path"])
    return [name for name in found if name not in roots]


def _graph(root: Path, site: Path, progress: Progress) -> dict[str, Any]:
    esbuild = npm.npm_package(root, "esbuild").file("bin/esbuild")
    with tempfile.TemporaryDirectory() as folder:
        facts = Path(folder) / "graph.json"
        # Bundled only to learn who imports whom; the site keeps its modules as they are.
        run_tool(
            [esbuild, *ROOTS, "--bundle", "--format=esm", f"--outdir={folder}", f"--metafile={facts}", "--log-level=error"],
            task="reading which module imports which",
            remedy="correct the import that it names",
            progress=progress,
            folder=site,
        )
        inputs: dict[str, Any] = json.loads(facts.read_text(encoding="utf-8"))["inputs"]
        return inputs
