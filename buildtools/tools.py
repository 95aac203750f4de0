"""Other programs that the build runs, and how their failures are told."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

from buildtools.errors import BuildError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from buildtools.progress import Progress

INSTALL_REMEDY = "run `make build`, which installs requirements/run.txt into .venv"

#: 2026-01-01. Any fixed moment does; it makes wheels built twice the same bytes.
SOURCE_DATE_EPOCH = 1767225600


def run_tool(
    command: Sequence[str | Path],
    *,
    task: str,
    remedy: str,
    progress: Progress,
    folder: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> None:
    """Run a program and keep its output for the error message.

    Parameters
    ----------
    command
        Program and arguments.
    task
        What is being attempted, in words that fit "… failed".
    remedy
        What to do when it fails.
    progress
        Shows the command and its output to those who asked for details.
    folder
        Where it runs; here unless told otherwise.
    variables
        Added to the environment.

    Raises
    ------
    BuildError
        The program is missing or ended with another status than 0.
    """
    words = [str(word) for word in command]
    progress.detail("$ " + " ".join(words))
    # The hash seed decides the order of sets in byte code, and so the bytes of a wheel.
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(SOURCE_DATE_EPOCH), "PYTHONHASHSEED": "0"} | dict(variables or {})
    try:
        done = subprocess.run(words, cwd=folder, env=environment, text=True, capture_output=True, check=False)
    except OSError as error:
        raise BuildError(f"{task} failed: {words[0]}: {error.strerror}", remedy) from error
    for line in (done.stdout + done.stderr).splitlines():
        progress.detail(line)
    if done.returncode != 0:
        raise BuildError(f"{task} failed: {_reason(done.stdout + done.stderr)}", remedy)


def require_module(name: str) -> None:
    """Raise a `BuildError` unless ``python -m name`` or its import would work here."""
    # "name.__init__" rather than "name": a folder of that name without code is no module.
    try:
        found = importlib.util.find_spec(f"{name}.__init__")
    except ModuleNotFoundError:
        found = None
    if found is None:
        raise BuildError(f"the Python module '{name}' is missing in {sys.prefix}", INSTALL_REMEDY)


def pyodide_command() -> Path:
    """Return the path of this environment's ``pyodide`` command, or raise a `BuildError`."""
    command = Path(sysconfig.get_path("scripts"), "pyodide")
    if not command.exists():
        raise BuildError(f"the pyodide command is missing ({command})", INSTALL_REMEDY)
    return command


def _reason(output: str) -> str:
    """Return the line of a program's output that most likely says why it failed."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    # esbuild states its reason first and lets Node.js add a trace of how it was called.
    marked = [line for line in lines if "[ERROR]" in line]
    if marked:
        return marked[0].partition("[ERROR]")[2].strip()
    # A compiler's first error brings on the others, and a count comes last.
    located = [line for line in lines if re.search(r"\w: (fatal )?error: ", line)]
    if located:
        return located[0]
    # A wrapper's own "ERROR" comes last and says less than the exception that it wraps.
    raised = [line for line in lines if re.match(r"[\w.]*(Error|Exception): ", line)]
    errors = [line for line in lines if line.lower().startswith("error")]
    return (raised or errors or lines or ["it said nothing"])[-1]
