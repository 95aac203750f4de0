"""Third-party modules: a missing package, a wrong version and a bundler that fails stop the build in words."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from buildtools.errors import BuildError
from buildtools.progress import Progress
from buildtools.vendor import bundle_vendor

ROOT = Path(__file__).parents[2]
PINS = json.loads((ROOT / "package.json").read_text())["dependencies"]


@pytest.fixture
def project(tmp_path):
    """A project with the real packages and an entry of its own."""
    shutil.copy(ROOT / "package.json", tmp_path)
    (tmp_path / "node_modules").symlink_to(ROOT / "node_modules")
    (tmp_path / "web" / "vendor").mkdir(parents=True)
    (tmp_path / "site" / "vendor").mkdir(parents=True)
    return tmp_path


def bundle(project):
    bundle_vendor(project, project / "site", Progress(1))


def test_an_entry_becomes_one_file_with_what_it_imports(project):
    (project / "web" / "vendor" / "x.js").write_text("export { plot } from '@observablehq/plot';")
    bundle(project)
    text = (project / "site" / "vendor" / "x.js").read_text()
    assert "plot" in text
    assert "@observablehq" not in text.split("/*!")[0]
    assert len(text) > 50_000


def test_an_import_that_is_not_there_stops_the_build(project):
    (project / "web" / "vendor" / "x.js").write_text("export { nothing } from 'no-such-package';")
    with pytest.raises(BuildError, match="no-such-package"):
        bundle(project)


def test_another_version_than_pinned_stops_the_build(project):
    manifest = json.loads((project / "package.json").read_text())
    manifest["dependencies"]["@observablehq/plot"] = "0.0.1"
    (project / "package.json").write_text(json.dumps(manifest))
    with pytest.raises(BuildError, match=r"pins 0\.0\.1"):
        bundle(project)
