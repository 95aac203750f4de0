"""Every text that the page's own modules show has a translation, and every translation is of use."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from shown import python_texts

HERE = Path(__file__).parent
CATALOGUE = HERE.parents[1] / "web" / "languages" / "zh-TW.json"

COMPOSED = [
    "3 nodes",
    "1 node",
    "5 lines",
    "seed 3: 12 points",
    "Ship",
    "An empty dispatch and its readback alone take 3 ms here",
    "2 cases with a margin of at most twice the error, which could flip the action",
    "1.44 (95 % interval 1.35 to 1.73) times as long as wasm-2",
]
"""Phrases that come together only when the page runs."""


def translated(**given):
    done = subprocess.run(
        ["node", HERE / "catalogue.mjs"], input=json.dumps(given), text=True, capture_output=True, check=True, timeout=60
    )
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def catalogue():
    return json.loads(CATALOGUE.read_text())


@pytest.fixture(scope="module")
def python():
    """Return what Python shows; not all of it is translated yet."""
    return list(dict.fromkeys(python_texts(HERE.parents[1] / "pyapp")))


def test_no_text_lacks_a_translation_and_no_translation_a_text(python):
    found = translated(texts=COMPOSED, partly=python)
    assert found["all"] > 1_000
    assert found["missing"] == []
    assert found["unused"] == []


def test_what_is_missing_or_of_no_use_is_seen(catalogue, python):
    without = {**catalogue, "page": {key: value for key, value in catalogue["page"].items() if key != "Same answers?"}}
    found = translated(texts=COMPOSED, partly=python, catalogue={**without, "more": {"Nobody ever says this": "沒有人說這句"}})
    assert found["missing"] == ["Same answers?"]
    assert found["unused"] == ["Nobody ever says this"]


def test_both_sides_have_the_same_placeholders(catalogue):
    entries = {key: value for room in catalogue.values() for key, value in room.items()}
    assert len(entries) == sum(len(room) for room in catalogue.values()), "a text is in two rooms"
    for key, value in entries.items():
        wanted = sorted(name for name in re.findall(r"\{(\w+)\}", key) if not name.startswith("_"))
        assert sorted(re.findall(r"\{(\w+)\}", value)) == wanted, key
