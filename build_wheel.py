"""Build the whole site into ``dist/``: the wheel, its lock, the runtimes, the fixtures and the page."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from buildtools import (
    ale,
    licences,
    lock,
    npm,
    offline,
    precompress,
    preloads,
    release,
    runtime,
    site,
    sources,
    variants,
    vendor,
    wheels,
)
from buildtools.cache import project_cache
from buildtools.errors import BuildError
from buildtools.progress import Progress

ROOT = Path(__file__).resolve().parent

#: What a page loads by name; the lock lists these, what they depend on, and nothing else.
LOADED = ("pyapp", "micropip")

#: What it loads before it is ready.
BOOTED = ("pyapp",)

PYTHON = "python/"
LOCK = PYTHON + "pyodide-lock.json"


@dataclass(frozen=True)
class Plan:
    """What is built, and how its downloads are had."""

    root: Path
    fetch: sources.Fetch
    with_rom: bool
    precompressed: bool

    @property
    def progress(self) -> Progress:
        """Who is told about the steps."""
        return self.fetch.progress


def build_python(plan: Plan, pyodide: npm.NpmPackage, target: Path) -> lock.Lock:
    """Put the wheels and their lock into the site's Python folder.

    Returns
    -------
    Lock
        The lock that was written.
    """
    step = plan.progress.step
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        source = pyodide.file("pyodide-lock.json")
        original = lock.read_lock(source)
        wheels.check_python(original)
        with step("pyapp: wheel"):
            ours = [wheels.build_wheel(plan.root, work, plan.progress)]
        with step("pyapp: dependencies"):
            requirements = plan.root / "requirements" / "site.txt"
            for wheel in sources.site_wheels(requirements, plan.fetch):
                ours.append(Path(shutil.copyfile(wheel, work / wheel.name)))
        with step("pyapp: lock, byte code"):
            whole = wheels.lock_wheels(ours, source, plan.progress)
            needed = lock.pruned(whole, lock.closure(whole, LOADED))
        with step(f"pyodide {pyodide.version}: wheels"):
            theirs = [package for package in needed["packages"].values() if not (work / package["file_name"]).exists()]
            at_boot = {needed["packages"][name]["file_name"] for name in lock.closure(needed, BOOTED)}
            for wheel in sources.pyodide_wheels(theirs, sources.cdn_of(pyodide.version), plan.fetch):
                compiled = wheels.compile_wheel(wheel, plan.fetch.cache, plan.progress) if wheel.name in at_boot else wheel
                shutil.copyfile(compiled, work / wheel.name)
        target.mkdir()
        for package in needed["packages"].values():
            shutil.copyfile(work / package["file_name"], target / package["file_name"])
    return needed


def add_lock(needed: lock.Lock, folder: Path, index: Path) -> None:
    """Write the lock beside the wheels, with their places as Pyodide in `index` finds them."""
    shipped = lock.pinned(needed, folder, os.path.relpath(folder, index) + "/")
    lock.check_lock(shipped, index)
    lock.write_lock(shipped, folder / Path(LOCK).name)


def build_site(plan: Plan, out: Path) -> None:
    """Build the site and put it in the place of `out`."""
    step = plan.progress.step
    pyodide = npm.npm_package(plan.root, "pyodide")
    ort = npm.npm_package(plan.root, "onnxruntime-web")
    with site.replacing(out) as fresh:
        site.copy_web(plan.root / "web", fresh)
        site.copy_fixtures(plan.root / "fixtures", fresh)
        needed = build_python(plan, pyodide, fresh / PYTHON)
        index = fresh / runtime.runtime_path(pyodide)
        with step(f"runtimes: pyodide {pyodide.version}, onnxruntime-web {ort.version}"):
            runtime.copy_runtime(pyodide, runtime.PYODIDE_FILES, fresh)
            runtime.copy_runtime(ort, runtime.ORT_FILES, fresh, "dist/")
            runtime.compress_runtime(ort, runtime.ORT_COMPRESSED, fresh, "dist/", plan.fetch.cache)
        with step(f"emulator: {ale.REQUIREMENT}"):
            ale.add_emulator(plan.root, fresh, plan.fetch, with_rom=plan.with_rom)
        with step("model: fewer bits"):
            variants.add_variants(fresh)
        with step("third-party modules"):
            bundles = vendor.bundle_vendor(plan.root, fresh, plan.progress)
            preloads.add_preloads(plan.root, fresh, plan.progress)
        with step("licences"):
            add_lock(needed, fresh / PYTHON, index)
            folders = {package.name: runtime.runtime_path(package) for package in (pyodide, ort)}
            licences.add_licences(plan.root, fresh, bundles, folders, needed["info"]["python"])
        with step("version"):
            app = release.settle(fresh)
            # The wheels lie elsewhere now, and the version cannot be a digest of itself.
            add_lock(needed, app / PYTHON, index)
            facts: dict[str, str | list[str] | None] = {
                "pyapp": needed["packages"]["pyapp"]["version"],
                "pyodide": pyodide.version,
                "onnxruntime_web": ort.version,
                "pyodide_path": release.from_app(runtime.runtime_path(pyodide)),
                "ort_path": release.from_app(runtime.runtime_path(ort)),
                "lock_path": LOCK,
                "boot_wheels": [PYTHON + needed["packages"][name]["file_name"] for name in lock.closure(needed, BOOTED)],
                "ale_path": ale.WASM,
                "rom_path": ale.ROM if plan.with_rom else None,
            }
            site.write_manifest(fresh, app, facts)
            offline.add_worker(plan.root / "web" / offline.NAME, fresh, app)
            site.check_site(fresh)
        if plan.precompressed:
            with step("brotli and gzip"):
                precompress.precompress(fresh, plan.fetch.cache, plan.progress)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    Returns
    -------
    int
        0 when the site was built, 2 when it could not be.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", metavar="DIR", help="folder to build (default: dist)")
    parser.add_argument("--no-rom", action="store_true", help="leave the ROM out; the page then asks its visitor for one")
    parser.add_argument(
        "--precompress", action="store_true", help="write .br and .gz beside the files, for a host that sends them (nginx)"
    )
    parser.add_argument("--offline", action="store_true", help="use only what the cache holds")
    parser.add_argument("-v", "--verbose", action="store_true", help="show the commands and what they say")
    options = parser.parse_args(arguments)

    progress = Progress(11 if options.precompress else 10, verbose=options.verbose)
    cache = project_cache(ROOT)
    try:
        fetch = sources.Fetch(cache, options.offline, progress)
        build_site(Plan(ROOT, fetch, not options.no_rom, options.precompress), options.out)
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {error} – see that the disk has room and may be written to", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("error: interrupted – the previous site is untouched", file=sys.stderr)
        return 130
    print(f"built {options.out}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
