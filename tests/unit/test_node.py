"""Modules of JavaScript that need no browser, under Node.js."""

import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    ("module", "tests"), [("download", 6), ("language", 22), ("models", 12), ("play", 18), ("profile", 3), ("stages", 9)]
)
def test_under_node(module, tests):
    command = ["node", "--test", HERE / f"{module}.test.mjs"]
    done = subprocess.run(command, text=True, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"\n# tests {tests}\n" in done.stdout
