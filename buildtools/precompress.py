"""Brotli and gzip beside the site's files, for hosts that send what lies there ready (nginx, Caddy, `pyapp serve`)."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from buildtools.cache import sha256_of
from buildtools.tools import run_tool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from buildtools.cache import Cache
    from buildtools.progress import Progress

SCRIPT = Path(__file__).with_name("compress.mjs")

#: Brotli's best level takes 20 s for the 10 MB of Pyodide's wasm, and this one 3 s, for a tenth more bytes.
LARGE_BYTES = 2 * 1024 * 1024
LARGE_QUALITY = 9
BEST = {"br": 11, "gz": 9}

#: What saves less is not worth a second file: archives, and weights at random.
LEAST_SAVING = 0.05
LEAST_BYTES = 256

#: By the names that hosts look for.
ENCODINGS = ("br", "gz")

#: Hosts read these themselves, and never send them.
NEVER = frozenset({"_headers"})


@dataclass(frozen=True)
class _Job:
    source: Path
    encoding: str
    quality: int
    sha256: str

    @property
    def recipe(self) -> str:
        return f"precompressed-{self.encoding}-{self.quality}"


def precompress(site: Path, cache: Cache, progress: Progress) -> int:
    """Write ``NAME.br`` and ``NAME.gz`` beside every file of a folder for which it pays.

    What was once made of a file's content is taken from the cache.

    Returns
    -------
    int
        How many files were written.

    Raises
    ------
    BuildError
        Node is missing or fails.
    """
    jobs = list(_jobs(site))
    kept = {job: cache.get_made(job.recipe, job.sha256) for job in jobs}
    with tempfile.TemporaryDirectory() as folder:
        # The largest first, so that no thread is left alone with it at the end.
        missing = sorted((job for job in jobs if kept[job] is None), key=lambda job: -job.source.stat().st_size)
        targets = {job: Path(folder) / f"{number}.{job.encoding}" for number, job in enumerate(missing)}
        _run(targets, Path(folder), progress)
        for job, target in targets.items():
            kept[job] = cache.put_made(job.recipe, job.sha256, target)
    written = 0
    for job, packed in kept.items():
        if packed and packed.stat().st_size <= (1 - LEAST_SAVING) * job.source.stat().st_size:
            shutil.copyfile(packed, f"{job.source}.{job.encoding}")
            written += 1
    return written


def _jobs(site: Path) -> Iterator[_Job]:
    for path in sorted(site.rglob("*")):
        size = path.stat().st_size
        if not path.is_file() or size < LEAST_BYTES or path.name in NEVER or path.suffix[1:] in ENCODINGS:
            continue
        sha256 = sha256_of(path)
        for encoding in ENCODINGS:
            large = encoding == "br" and size > LARGE_BYTES
            yield _Job(path, encoding, LARGE_QUALITY if large else BEST[encoding], sha256)


def _run(targets: dict[_Job, Path], folder: Path, progress: Progress) -> None:
    if not targets:
        return
    jobs = [
        {"source": str(job.source), "target": str(target), "encoding": job.encoding, "quality": job.quality}
        for job, target in targets.items()
    ]
    listed = folder / "jobs.json"
    listed.write_text(json.dumps(jobs), encoding="utf-8")
    run_tool(["node", SCRIPT, listed], task="compressing files", remedy="install Node 20 or newer", progress=progress)
