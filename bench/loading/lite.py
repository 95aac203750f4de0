"""JupyterLite's REPL as a static site with a Pyodide of its own: nothing of it comes from elsewhere.

The kernel 0.6.1 is the one for Pyodide 0.27, as ours is; wheels of Pyodide's are those of its lock.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from buildtools import lock, npm, sources
from buildtools.cache import project_cache
from buildtools.progress import Progress

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = Path(__file__).with_name("jupyterlite.txt")
PIPLITE = Path(__file__).with_name("piplite.txt")
"""What the kernel installs from PyPI, where the site does not hold it."""

LOADED = ("ipython", "jedi", "micropip", "numpy", "sqlite3", "ssl")
"""What the kernel asks Pyodide for before its first prompt, and what our code imports."""

PYODIDE_FILES = ("pyodide.js", "pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
PYODIDE = "static/pyodide/"
KERNEL = "@jupyterlite/pyodide-kernel-extension:kernel"


def build(out: Path) -> None:
    """Build the site into a folder that does not exist yet; the programs for it are installed once, into ``.cache/``."""
    cache = project_cache(ROOT)
    fetch = sources.Fetch(cache, offline=False, progress=Progress(1, verbose=False))
    bundled = sources.site_wheels(PIPLITE, fetch)
    empty = out.with_name(out.name + "-empty")
    empty.mkdir()
    command = [_programs(cache.folder) / "jupyter", "lite", "build", "--apps", "repl", "--no-sourcemaps", "--output-dir", out]
    command += [f"--piplite-wheels={wheel}" for wheel in bundled]
    subprocess.run(list(map(str, command)), cwd=empty, check=True, capture_output=True)
    _add_pyodide(out / PYODIDE, fetch)
    settings = out / "jupyter-lite.json"
    facts = json.loads(settings.read_text(encoding="utf-8"))
    plugins = facts["jupyter-config-data"].setdefault("litePluginSettings", {})
    plugins.setdefault(KERNEL, {}).update(pyodideUrl=f"./{PYODIDE}pyodide.js", disablePyPIFallback=True)
    settings.write_text(json.dumps(facts, indent=1), encoding="utf-8")


def _add_pyodide(target: Path, fetch: sources.Fetch) -> None:
    target.mkdir(parents=True)
    package = npm.npm_package(ROOT, "pyodide")
    for name in PYODIDE_FILES:
        shutil.copyfile(package.file(name), target / name)
    whole = lock.read_lock(package.file("pyodide-lock.json"))
    for one in whole["packages"].values():
        one["depends"] = [name.lower().replace("_", "-") for name in one["depends"]]  # as the lock's own keys are
    wanted = [whole["packages"][name] for name in lock.closure(whole, LOADED)]
    for wheel in sources.pyodide_wheels(wanted, sources.cdn_of(package.version), fetch):
        shutil.copyfile(wheel, target / wheel.name)


def _programs(folder: Path) -> Path:
    """Return the folder of the programs of `REQUIREMENTS`, in an environment of their own."""
    digest = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:12]
    home = folder / f"jupyterlite-{digest}"
    stamp = home / ".stamp"
    if not stamp.exists():
        print(f"installing {REQUIREMENTS.name} into {home.name}", file=sys.stderr)
        venv.create(home, clear=True, with_pip=True)
        pip = [str(home / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
        subprocess.run([*pip, "--require-hashes", "-r", str(REQUIREMENTS)], check=True, capture_output=True)
        stamp.touch()
    return home / "bin"
