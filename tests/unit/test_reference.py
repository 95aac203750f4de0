from pathlib import Path

import pyapp
from pyapp.reference import entries, markdown


def test_the_reference_in_the_docs_is_that_of_the_code():
    assert Path("docs/api.md").read_text(encoding="utf-8") == markdown(), "run `make reference`"


def test_it_has_all_that_is_public_and_nothing_that_is_not():
    names = {entry.name for entry in entries()}
    assert {f"pyapp.{name}" for name in pyapp.__all__} <= names
    assert {"pyapp.breakout.Breakout.step", "pyapp.widen.widened", "pyapp.tune.Tune.run"} <= names
    assert not [name for name in names if name.rsplit(".", 1)[-1].startswith("_")]
    assert all(entry.doc for entry in entries())


def test_signatures_are_readable():
    found = {entry.name: entry.signature for entry in entries()}
    assert found["pyapp.parity"].startswith("(engine: Engine, suite: Cases")
    assert found["pyapp.race"].endswith("on_block: Callable[[list[Lane], int, int], None] = …) -> list[Lane]")
    assert found["pyapp.Check"].startswith("(settings: CheckSettings, model: bytes, suites: Sequence[Cases]")
    assert found["pyapp.Check"].endswith("host: Host, listener: Listener)")
