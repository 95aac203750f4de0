"""The command line: `pyapp serve` and `pyapp check`."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from pyapp.check import DEFAULT_ENGINES, CheckSettings
from pyapp.foreign import read_foreign
from pyapp.report import Report, ReportError
from pyapp.serve import ServeError, SiteServer
from pyapp.tables import report_markdown

EXIT_AGREES = 0
EXIT_DIFFERS = 1
EXIT_FAILED = 2
DEFAULT_PORT = 8000


class CommandError(Exception):
    """A command cannot be carried out; the message says why and what to do."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 all agree, 1 an answer differs, 2 it could not run."""
    arguments = _parser().parse_args(argv)
    try:
        code: int = arguments.command(arguments)
    except (CommandError, ServeError) as error:
        print(f"pyapp: error: {error}", file=sys.stderr)
        return EXIT_FAILED
    except KeyboardInterrupt:
        print("pyapp: interrupted", file=sys.stderr)
        return EXIT_FAILED
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pyapp", description="Check an ONNX model on WASM and WebGPU in a browser.")
    parser.add_argument("--version", action="version", version=version("pyapp"))
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    serve = commands.add_parser("serve", help="serve the built site on this machine")
    serve.add_argument("--port", type=int, default=DEFAULT_PORT, help="port on 127.0.0.1 (default: %(default)s)")
    serve.set_defaults(command=_serve)

    check = commands.add_parser(
        "check",
        help="run the check in a headless Chromium",
        description="Runs the check in a headless Chromium and prints its tables. Exit code 0: every action agrees (in the "
        "stress set, but for those that rounding explains); 1: one does not; 2: the check could not run.",
    )
    check.add_argument("--runs", type=int, default=100, help="measured runs per engine (default: %(default)s)")
    check.add_argument("--warmup", type=int, default=10, help="warm-up runs per engine (default: %(default)s)")
    check.add_argument("--seed", type=int, default=0, help="seed of the order of blocks (default: %(default)s)")
    check.add_argument("--engines", metavar="A,B", help=f"engines, with commas (default: {','.join(DEFAULT_ENGINES)})")
    check.add_argument(
        "--gpu",
        choices=("auto", "software", "none"),
        default="auto",
        help="auto: the machine's GPU where Chromium finds one, else a software GPU (default: %(default)s)",
    )
    check.add_argument(
        "--browser-arg",
        action="append",
        default=[],
        metavar="ARG",
        help="further argument for Chromium",
    )
    check.add_argument("--browser", default="", metavar="FILE", help="chromium (default: from PATH)")
    check.add_argument("--driver", default="", metavar="FILE", help="chromedriver (default: from PATH)")
    check.add_argument("--json", type=Path, metavar="FILE", help="write the report here")
    check.set_defaults(command=_check)

    for command in (serve, check):
        command.add_argument(
            "--dist", type=Path, default=Path("dist"), metavar="DIR", help="the built site (default: %(default)s)"
        )
    return parser


def _serve(arguments: argparse.Namespace) -> int:
    with SiteServer(arguments.dist, port=arguments.port) as server:
        print(f"serving {arguments.dist} at {server.url} – stop with Ctrl-C", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
    return 0


def _check(arguments: argparse.Namespace) -> int:
    settings = _settings(arguments)
    if arguments.json:
        _require_writable(arguments.json)
    report = _run_check(arguments, settings)
    print(report_markdown(report))
    if arguments.json:
        arguments.json.write_text(report.to_json(indent=1) + "\n", encoding="utf-8")
        print(f"report written to {arguments.json}")
    if not all(entry.passed for entry in report.parity):
        return EXIT_DIFFERS
    _require_engines(report)
    return EXIT_AGREES


def _settings(arguments: argparse.Namespace) -> CheckSettings:
    engines = list(DEFAULT_ENGINES)
    if arguments.engines is not None:
        engines = [name for name in arguments.engines.split(",") if name]
    elif arguments.gpu == "none":
        engines = [name for name in engines if not name.startswith("webgpu")]
    try:
        return CheckSettings(engines=engines, runs=arguments.runs, warmup=arguments.warmup, seed=arguments.seed)
    except ValueError as error:
        raise CommandError(str(error)) from error


def _require_writable(path: Path) -> None:
    """Find out before the check, not after it, that its report has nowhere to go."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise CommandError(f"no report can be written to {path}: {error.strerror}; choose another --json FILE") from error
    if path.is_dir():
        raise CommandError(f"no report can be written to {path}: it is a folder; choose another --json FILE")


def _require_engines(report: Report) -> None:
    """Refuse to call it agreement when an engine that was wanted did not run, however well the others agree."""
    missing = [entry for entry in report.engines if entry.error]
    if missing:
        reasons = "; ".join(f"{entry.name}: {entry.warnings[-1]}" for entry in missing)
        raise CommandError(f"not every engine ran. {reasons} Or leave it out with --engines")


def _run_check(arguments: argparse.Namespace, settings: CheckSettings) -> Report:
    try:
        # Selenium is an extra: `pyapp serve` does without it.
        from pyapp.chromium import BrowserError, BrowserOptions, open_page
    except ImportError as error:
        raise CommandError(f"{error.name} is not installed; run: pip install 'pyapp[browser]'") from error

    options = BrowserOptions(
        gpu=arguments.gpu, arguments=arguments.browser_arg, browser=arguments.browser, driver=arguments.driver
    )
    progress = ProgressLine()
    try:
        with SiteServer(arguments.dist) as server:
            progress.show("starting the browser", 0, 1)
            with open_page(options, server.url) as page:
                data = page.check(asdict(settings), progress.show)
    except BrowserError as error:
        raise CommandError(str(error)) from error
    finally:
        progress.clear()
    # `--dist` may hold another version's page, or a patched one: no exit code may rest on a report that contradicts itself.
    try:
        return read_foreign(json.dumps(data))
    except ReportError as error:
        raise CommandError(f"the page in {arguments.dist} gave {error}; build it anew with: make build") from error


class ProgressLine:
    """Progress on stderr: one line that renews itself in a terminal, a line a stage elsewhere."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._stage = ""
        self._started = time.monotonic()

    def show(self, stage: str, done: int, total: int) -> None:
        """Show that `done` of `total` steps of a stage are done."""
        elapsed = f"{time.monotonic() - self._started:5.1f} s"
        if self._terminal:
            print(f"\r\033[K{elapsed}  {stage}: {done} of {total}", end="", file=sys.stderr, flush=True)
        elif stage != self._stage:
            print(f"{elapsed}  {stage}", file=sys.stderr, flush=True)
        self._stage = stage

    def clear(self) -> None:
        """Take the line away."""
        if self._terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
