"""The emulator's module under Node.js, where it can be crashed without a browser."""

import subprocess
from pathlib import Path

HERE = Path(__file__).parent


def test_the_module_under_node():
    done = subprocess.run(["node", "--test", HERE / "ale.test.mjs"], text=True, capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\n# tests 7\n" in done.stdout
