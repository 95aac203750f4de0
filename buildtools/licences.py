"""Whose work the site holds: every file has one owner, every part a licence whose text is in the site."""

from __future__ import annotations

import fnmatch
import hashlib
import importlib.metadata
import json
import re
import tomllib
import zipfile
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buildtools import ale
from buildtools.errors import BuildError
from buildtools.release import from_app
from buildtools.tools import INSTALL_REMEDY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

LIST = "licences.json"
FOLDER = "licences/"

#: What metadata call a licence, where it is no SPDX expression. A classifier is no help: "BSD" may be one of several.
WORDS = {
    ("micropip", "Mozilla Public License Version 2.0"): "MPL-2.0",
    ("numpy", "Copyright (c) 2005-2024, NumPy Developers."): "BSD-3-Clause",
    ("packaging", ""): "Apache-2.0 OR BSD-2-Clause",
    ("protobuf", "3-Clause BSD License"): "BSD-3-Clause",
}

#: Of packages whose metadata do not name a place.
PLACES = {"protobuf": "https://github.com/protocolbuffers/protobuf", "pyapp": ""}

#: Microsoft's npm packages lack the text; their Python package is of the same repository.
MICROSOFT = {"onnxruntime-web": "onnxruntime:onnxruntime/LICENSE", "onnxruntime-common": "onnxruntime:onnxruntime/LICENSE"}

_TEXT = re.compile(r"(?i)(^|/)(licen[cs]e|copying|notice)(?![^/]*\.pyc?$)[^/]*$")


@dataclass(frozen=True)
class Part:
    """Somebody's work.

    Attributes
    ----------
    name : str
        What it is called.
    version : str or None
        None where it is that of what holds it.
    licence : str
        An SPDX expression.
    source : str
        Where it comes from, as an address; empty for this project's own.
    files : tuple of str
        The site's files that it is in.
    text : str
        The licence, with its copyright.
    """

    name: str
    version: str | None
    licence: str
    source: str
    files: tuple[str, ...]
    text: str


class Licences:
    """Collects the parts of a site, and the owner of each of its files.

    Parameters
    ----------
    root
        The project's folder.
    site
        The built site's folder.
    """

    def __init__(self, root: Path, site: Path) -> None:
        self._root = root
        self._site = site
        self._files = sorted(path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file())
        self._owners: dict[str, str] = {}
        self.parts: list[Part] = []

    def own(self, name: str, *patterns: str) -> tuple[str, ...]:
        """Say whose files these are, and return them.

        Raises
        ------
        BuildError
            One of them has an owner already.
        """
        found = self._matching(patterns)
        for path in found:
            if path in self._owners:
                raise BuildError(f"{path} is both {self._owners[path]}'s and {name}'s", "correct buildtools/licences.py")
            self._owners[path] = name
        return found

    def add_ours(self, web: Path) -> None:
        """Add this project's own files: the page, the fixtures, the model's variants, what the build writes."""
        ours = [path.relative_to(web).as_posix() for path in web.rglob("*") if path.is_file() and path.parent.name != "vendor"]
        files = self.own("pyapp", *ours, "fixtures/*", "variants/*", "python/pyapp-*.whl", "site.json", LIST, f"{FOLDER}*")
        self.parts.append(Part("pyapp and its page", None, "MIT", "", files, (self._root / "LICENSE").read_text("utf-8")))

    def add_npm(self, name: str, files: Sequence[str]) -> None:
        """Add an installed npm package."""
        folder = self._root / "node_modules" / name
        facts = json.loads((folder / "package.json").read_text("utf-8"))
        licence = str(facts.get("license") or "").removeprefix("(").removesuffix(")")
        self._require_known(name, licence)
        texts = [path.read_text("utf-8") for path in sorted(folder.iterdir()) if path.is_file() and _TEXT.search(path.name)]
        if not texts and name in MICROSOFT:
            texts = [_installed(MICROSOFT[name])]
        source = facts.get("repository") or facts.get("homepage") or ""
        place = _address(source["url"] if isinstance(source, dict) else str(source))
        self.parts.append(Part(name, facts["version"], licence, place, tuple(files), self._text(licence, texts)))

    def add_wheel(self, path: str) -> None:
        """Add a wheel of the site."""
        with zipfile.ZipFile(self._site / path) as archive:
            names = archive.namelist()
            [metadata] = [name for name in names if re.fullmatch(r"[^/]+\.dist-info/METADATA", name)]
            facts = HeaderParser().parsestr(archive.read(metadata).decode())
            inside = (name for name in sorted(names) if _TEXT.search(name) and "_vendored/" not in name)
            texts = [archive.read(name).decode() for name in inside if not name.endswith("/")]
        name, said = facts["Name"], (facts["License"] or "").partition("\n")[0].strip()
        licence = facts["License-Expression"] or WORDS.get((name, said), said)
        self._require_known(name, licence)
        urls = dict(entry.lower().split(", ", 1) for entry in facts.get_all("Project-URL", []))
        found = (urls.get(label) for label in ("repository", "source", "github", "homepage", "home"))
        source = next((url for url in found if url), PLACES.get(name, ""))
        files = self.own(name, path)
        self.parts.append(Part(name, facts["Version"], licence, source, files, self._text(licence, texts)))

    def add_inside(self, entries: Iterable[Mapping[str, Any]], versions: Mapping[str, str]) -> None:
        """Add what `inside.toml` knows of; what is in no file of this site is left out."""
        for entry in entries:
            files = self._matching(entry["within"])
            if not files:
                continue
            self._require_known(entry["name"], entry["licence"])
            texts = [_installed(place) for place in entry.get("texts", ())]
            text = self._text(entry["licence"], texts, entry.get("copyright", ""))
            version = entry["version"].format_map(versions) if "version" in entry else None
            self.parts.append(Part(entry["name"], version, entry["licence"], entry["source"], files, text))

    def add_emulator(self) -> None:
        """Add the emulator with its source, and the ROM where the site has it."""
        name, _, version = ale.REQUIREMENT.partition("==")
        emulator = self.own(name, ale.WASM, f"{ale.FOLDER}source.tar.gz", f"{ale.FOLDER}*.txt")
        notice = (self._root / "native" / "ale" / "NOTICE.txt").read_text("utf-8")
        text = self._text("GPL-2.0-only", [notice, self._known_text("GPL-2.0-only")])
        place = "https://github.com/Farama-Foundation/Arcade-Learning-Environment"
        self.parts.append(Part("Arcade Learning Environment", version, "GPL-2.0-only", place, emulator, text))
        if rom := self.own("Breakout's ROM", ale.ROM):
            licence = "LicenseRef-Breakout-ROM"
            self.parts.append(Part("Breakout's ROM", None, licence, "", rom, self._known_text(licence)))

    def write(self) -> None:
        """Write the list and the texts into the site; paths in it are relative to the folder of the site's version.

        Raises
        ------
        BuildError
            A file of the site has no owner.
        """
        known = self._owners.keys() | {"_headers"}
        strange = [path for path in self._files if path not in known]
        if strange:
            raise BuildError(f"nobody knows whose these are: {', '.join(strange)}", "say so in buildtools/licences.py")
        (self._site / FOLDER).mkdir()
        written: dict[str, str] = {}
        listed = []
        for part in sorted(self.parts, key=lambda part: (part.name != "pyapp and its page", part.name.lower())):
            digest = hashlib.sha256(part.text.encode()).hexdigest()
            if digest not in written:
                slug = re.sub("[^a-z0-9]+", "-", part.name.lower()).strip("-")[:40].strip("-")
                written[digest] = f"{FOLDER}{slug}.txt"
                (self._site / written[digest]).write_text(part.text, encoding="utf-8")
            facts = {"name": part.name, "version": part.version, "licence": part.licence, "source": part.source}
            listed.append({**facts, "text": written[digest], "files": [from_app(path) for path in part.files]})
        data = {"schema": "pyapp-licences/1", "parts": listed}
        (self._site / LIST).write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def _matching(self, patterns: Iterable[str]) -> tuple[str, ...]:
        wanted = list(patterns)
        plain = {pattern for pattern in wanted if "*" not in pattern}
        globs = [pattern for pattern in wanted if "*" in pattern]
        return tuple(path for path in self._files if path in plain or any(fnmatch.fnmatchcase(path, glob) for glob in globs))

    def _text(self, licence: str, texts: Sequence[str], copyright_: str = "") -> str:
        found = list(texts) or [self._known_text(one) for one in spdx_ids(licence)]
        # Its customary notice only points to the text, which is to be given along.
        if licence == "Apache-2.0" and not any("TERMS AND CONDITIONS" in text for text in found):
            found.append(self._known_text(licence))
        return ("\n\n" + "-" * 78 + "\n\n").join([copyright_] * bool(copyright_) + [text.strip() for text in found]) + "\n"

    def _known_text(self, identifier: str) -> str:
        return (self._root / "LICENSES" / f"{identifier}.txt").read_text("utf-8")

    def _require_known(self, name: str, licence: str) -> None:
        unknown = [one for one in spdx_ids(licence) if not (self._root / "LICENSES" / f"{one}.txt").is_file()]
        if unknown or not licence:
            what = f"the licence of {name} is not known here ({licence!r})"
            raise BuildError(what, "see that it may be shipped, then put its text into LICENSES/<SPDX identifier>.txt")


def spdx_ids(expression: str) -> list[str]:
    """Return the identifiers of an SPDX expression; of words that are none, the words as they are."""
    parts = re.split(r" (?:AND|OR|WITH) ", expression.replace("(", "").replace(")", ""))
    return [part.strip() for part in parts if part.strip()]


def add_licences(root: Path, site: Path, bundles: Mapping[str, Sequence[str]], npm: Mapping[str, str], python: str) -> None:
    """Find out whose work a site holds, and write that into it.

    Parameters
    ----------
    root
        The project's folder.
    site
        The site, whole but for its version and manifest.
    bundles
        The packages that each bundle of the site holds, as `buildtools.vendor.bundle_vendor` returns them.
    npm
        The folder in the site of each npm package that is shipped as it is.
    python
        CPython's version.

    Raises
    ------
    BuildError
        A part has no licence that is known, or a file has no owner or two.
    """
    found = Licences(root, site)
    found.add_ours(root / "web")
    packages: dict[str, list[str]] = {}
    for bundle, names in bundles.items():
        found.own(f"the bundle {bundle}", bundle)
        for name in names:
            packages.setdefault(name, []).append(bundle)
    for name, folder in npm.items():
        packages.setdefault(name, []).extend(found.own(name, f"{folder}*"))
    packages["pyodide"].extend(found.own("pyodide's lock", "python/pyodide-lock.json"))
    packages["onnxruntime-common"] = [path for path in packages["onnxruntime-web"] if path.endswith(".min.mjs")]
    for name, files in packages.items():
        found.add_npm(name, files)
    for wheel in sorted((site / "python").glob("*.whl")):
        if not wheel.name.startswith("pyapp-"):
            found.add_wheel(f"python/{wheel.name}")
    found.add_emulator()
    inside = tomllib.loads(Path(__file__).with_name("inside.toml").read_text("utf-8"))
    found.add_inside(inside["part"], {"python": python})
    found.write()


def _installed(place: str) -> str:
    """Return a text out of an installed Python package; `place` is ``package:path``, with ``{version}`` for its version."""
    name, _, path = place.partition(":")
    try:
        package = importlib.metadata.distribution(name)
        return Path(str(package.locate_file(path.format(version=package.version)))).read_text("utf-8")
    except (importlib.metadata.PackageNotFoundError, OSError) as error:
        raise BuildError(f"the licence's text {place} is missing", INSTALL_REMEDY) from error


def _address(repository: str) -> str:
    """Return the address of an npm package's repository."""
    if re.fullmatch(r"[\w-]+/[\w.-]+", repository):
        return f"https://github.com/{repository}"
    return re.sub(r"^(git\+|git:|git@)?(https:)?//", "https://", repository).removesuffix(".git")
