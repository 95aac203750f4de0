"""What is installed here is what was looked at: every way in has versions and hashes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REQUIREMENTS = sorted([*(ROOT / "requirements").glob("*.txt"), *(ROOT / "training").glob("requirements*.txt")])
PROGRAMS = [ROOT / "Makefile", ROOT / ".ci" / "run", *(ROOT / "buildtools").glob("*.py"), ROOT / "build_wheel.py"]


def requirements(path: Path) -> list[str]:
    """Return a file's requirements, each with its hashes on one line."""
    lines = path.read_text().replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def pip_calls(text: str) -> list[str]:
    """Return what is given to pip after ``install`` or ``download``, in a Makefile or a script of the shell."""
    joined = text.replace("\\\n", " ")
    return re.findall(r"(?:\bpip[\w.]*\b|\$\(PIP\))(?:\s+--[\w-]+)*\s+((?:install|download)\b[^\n;]*)", joined)


@pytest.mark.parametrize("path", REQUIREMENTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_requirement_has_a_version_and_hashes(path):
    found = requirements(path)
    assert len(found) >= 4
    for line in found:
        assert re.match(r"[\w.\[\]-]+==[\w.+!]+ ", line), line[:80]
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", line), line[:80]


def test_pip_installs_nothing_without_hashes():
    calls = [call for path in PROGRAMS[:2] for call in pip_calls(path.read_text())]
    # "Run pip install uv" is advice for who writes the locks, and nothing that is run.
    calls = [call for call in calls if not call.startswith("install uv'")]
    assert len(calls) == 3
    for call in calls:
        ours = "--no-deps" in call and "--no-build-isolation" in call and call.split("-e")[-1].split()[0] == "."
        assert "--require-hashes" in call or ours, call


def test_the_build_downloads_nothing_without_hashes():
    """Each download of pip takes a requirements file; to fetch what a build backend wants would be another way in."""
    text = (ROOT / "buildtools" / "sources.py").read_text()
    calls = re.findall(r"\[\*_PIP_DOWNLOAD[^\]]*\]", text)
    assert len(calls) == text.count("*_PIP_DOWNLOAD") == 3
    for call in calls:
        assert '"--requirement"' in call, call
        words = call + "".join(
            re.findall(rf"^ *{name} = (\[.*\])$", text, re.M)[0] for name in re.findall(r"\*([a-z]\w+)", call)
        )
        assert '"--require-hashes"' in words, call
    for path in PROGRAMS[2:]:
        if path.name != "sources.py":
            assert '"pip"' not in path.read_text(), path


def test_our_own_wheel_is_built_by_the_backend_that_is_pinned():
    assert '"--no-isolation"' in (ROOT / "buildtools" / "wheels.py").read_text()


def test_every_npm_package_has_a_hash():
    lock = json.loads((ROOT / "package-lock.json").read_text())
    packages = {name: facts for name, facts in lock["packages"].items() if name}
    assert len(packages) > 50
    assert [name for name, facts in packages.items() if not facts.get("integrity", "").startswith("sha512-")] == []
    assert {facts["resolved"] for facts in packages.values() if "resolved" in facts} == set(), "a registry's address"
    assert not [name for name, facts in packages.items() if facts.get("link")]


def test_npm_packages_are_pinned_and_installed_as_locked():
    manifest = json.loads((ROOT / "package.json").read_text())
    for name, version in (manifest["dependencies"] | manifest["devDependencies"]).items():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version), name
    calls = re.findall(r"\bnpm (?:ci|install|i|add|update|exec)\b[^\n]*", "".join(path.read_text() for path in PROGRAMS[:2]))
    assert calls
    for call in calls:
        assert call.startswith("npm ci "), call
        assert "--ignore-scripts" in call
    assert "npx" not in "".join(path.read_text() for path in PROGRAMS)


def test_the_check_sees_a_call_without_hashes():
    assert pip_calls("\t@$(PIP) install -r x.txt\n") == ["install -r x.txt"]
    assert pip_calls("python -m pip --quiet install x; echo") == ["install x"]
