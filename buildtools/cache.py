"""Downloads and slow results, kept by the hash of their content."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from pathlib import Path


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def project_cache(root: Path) -> Cache:
    """Return the cache of the project in `root`; the environment variable `PYAPP_CACHE` names another folder."""
    return Cache(Path(os.environ.get("PYAPP_CACHE") or root / ".cache"))


class Cache:
    """Files by the SHA-256 of their content; each keeps its name.

    A file is checked whenever it is taken out, so that a damaged cache costs a download and never a wrong site.

    Parameters
    ----------
    folder
        Where the files lie; made when the first one is put in.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, sha256: str) -> Path | None:
        """Return the file with this hash, or None."""
        for path in sorted((self.folder / sha256).glob("*")):
            if sha256_of(path) == sha256:
                return path
            path.unlink()
        return None

    def put(self, path: Path) -> Path:
        """Copy a file into the cache and return its place there."""
        target = self.folder / sha256_of(path) / path.name
        self._copy(path, target)
        return target

    def get_derived(self, recipe: str, source_sha256: str) -> Path | None:
        """Return what `recipe` once made of the file with this hash, or None."""
        path = self.folder / recipe / source_sha256
        return path if path.is_file() else None

    def put_derived(self, recipe: str, source_sha256: str, data: bytes) -> Path:
        """Keep what `recipe` made of the file with this hash."""
        target = self.folder / recipe / source_sha256
        with tempfile.NamedTemporaryFile() as stream:
            stream.write(data)
            stream.flush()
            self._copy(Path(stream.name), target)
        return target

    def get_made(self, recipe: str, inputs_sha256: str) -> Path | None:
        """Return the file that `recipe` once made of inputs with this hash, or None; unlike `get_derived`, checked."""
        note = self.get_derived(recipe, inputs_sha256)
        sha256 = note.read_text(encoding="ascii", errors="replace") if note else ""
        return self.get(sha256) if re.fullmatch("[0-9a-f]{64}", sha256) else None

    def put_made(self, recipe: str, inputs_sha256: str, path: Path) -> Path:
        """Keep a copy of the file that `recipe` made of inputs with this hash; return its place."""
        kept = self.put(path)
        self.put_derived(recipe, inputs_sha256, sha256_of(kept).encode())
        return kept

    def _copy(self, source: Path, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Two builds may share the cache: a file appears whole or not at all.
        handle, name = tempfile.mkstemp(dir=self.folder, prefix=".part-")
        os.close(handle)
        try:
            shutil.copyfile(source, name)
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
