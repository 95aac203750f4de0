"""The game's pace and its rounds, which are JavaScript."""

import subprocess
from pathlib import Path

HERE = Path(__file__).parent


def test_the_pace_and_the_rounds_under_node():
    done = subprocess.run(["node", "--test", HERE / "play.test.mjs"], text=True, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\n# tests 18\n" in done.stdout
