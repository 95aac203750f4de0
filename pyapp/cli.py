"""The command line: `pyapp serve`, and `pyapp check`, `explain`, `sweep`, `tune` and `eval` in a headless browser."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyapp.check import CheckSettings
from pyapp.foreign import read_foreign
from pyapp.host import DEFAULT_ENGINES
from pyapp.report import Report, ReportError
from pyapp.serve import ServeError, SiteServer
from pyapp.tables import report_markdown

if TYPE_CHECKING:
    from pyapp.chromium import PageDriver

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
    _add_dist(serve)

    check = _add_question(
        commands,
        "check",
        "run the check in a headless Chromium",
        "Runs the check in a headless Chromium and prints its tables. Exit code 0: every action agrees (in the "
        "stress set, but for those that rounding explains); 1: one does not; 2: the check could not run.",
    )
    check.add_argument("--runs", type=int, default=100, help="measured runs per engine (default: %(default)s)")
    check.add_argument("--warmup", type=int, default=10, help="warm-up runs per engine (default: %(default)s)")
    _add_seed(check)
    _add_engines(check)
    check.set_defaults(command=_check)

    explain = _add_question(
        commands,
        "explain",
        "say where the time of a run goes",
        "Takes one run of each engine apart into its stages. Exit code 0, or 2 where an engine could not be explained.",
    )
    explain.add_argument("--runs", type=int, default=50, help="runs of each kind (default: %(default)s)")
    _add_engines(explain)
    explain.set_defaults(command=_explain)

    sweep = _add_question(
        commands,
        "sweep",
        "find the batch from which on a GPU is worth it",
        "Measures batches and network widths on every engine. Exit code 0; 1 where a point does not give Python's answers; "
        "2 where nothing could be measured.",
    )
    sweep.add_argument("--batches", type=_numbers, metavar="A,B", help="batch sizes (default: 1,2,4 to 256)")
    sweep.add_argument("--widths", type=_numbers, metavar="A,B", help="network widths (default: 1,2,4,8)")
    sweep.add_argument("--seconds", type=float, help="time for all of it (default: 180)")
    sweep.add_argument("--no-precision", action="store_true", help="leave out the variants in fewer bits")
    _add_seed(sweep)
    _add_engines(sweep)
    sweep.set_defaults(command=_sweep)

    tune = _add_question(
        commands,
        "tune",
        "find the fastest right configuration",
        "Opens every configuration that makes sense here, drops those that are not right, and races the rest. Exit code 0, "
        "or 2 where none is right.",
    )
    tune.add_argument("--precision", action="store_true", help="let variants in fewer bits win too")
    tune.add_argument("--batch", type=int, default=64, help="states in a batch (default: %(default)s)")
    tune.add_argument("--seconds", type=float, help="time for all of it (default: 110)")
    tune.add_argument("--module", type=Path, metavar="FILE", help="write the recipe for one state at a time as JavaScript")
    _add_seed(tune)
    tune.add_argument("--engines", metavar="A,B", help="candidates, with commas (default: all that make sense here)")
    tune.set_defaults(command=_tune)

    evaluate = commands.add_parser(
        "eval",
        help="run Python in the page",
        description="Runs Python in the page of a headless Chromium, in the namespace of its console. Prints what it prints "
        "and its last value as JSON. Exit code 0; 1 with the traceback where it raises; 2 where it could not run.",
    )
    evaluate.add_argument("code", metavar="CODE|FILE.py", help="Python (await is allowed), or a file that ends in .py")
    evaluate.add_argument("--json", action="store_true", help="print one JSON object: stdout, stderr, value and traceback")
    _add_browser(evaluate)
    evaluate.set_defaults(command=_eval)
    return parser


type _Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def _add_question(commands: _Commands, name: str, summary: str, description: str) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=summary, description=description)
    _add_browser(parser)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report here")
    return parser


def _add_browser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--gpu",
        choices=("auto", "software", "none"),
        default="auto",
        help="auto: the machine's GPU where Chromium finds one, else a software GPU (default: %(default)s)",
    )
    parser.add_argument("--browser-arg", action="append", default=[], metavar="ARG", help="further argument for Chromium")
    parser.add_argument("--browser", default="", metavar="FILE", help="chromium (default: from PATH)")
    parser.add_argument("--driver", default="", metavar="FILE", help="chromedriver (default: from PATH)")
    _add_dist(parser)


def _add_dist(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dist", type=Path, default=Path("dist"), metavar="DIR", help="the built site (default: %(default)s)")


def _add_seed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, default=0, help="seed of orders and intervals (default: %(default)s)")


def _add_engines(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--engines", metavar="A,B", help=f"engines, with commas (default: {','.join(DEFAULT_ENGINES)})")


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


def _serve(arguments: argparse.Namespace) -> int:
    with SiteServer(arguments.dist, port=arguments.port) as server:
        print(f"serving {arguments.dist} at {server.url} – stop with Ctrl-C", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
    return 0


def _check(arguments: argparse.Namespace) -> int:
    settings = {"engines": _engines(arguments), "runs": arguments.runs, "warmup": arguments.warmup, "seed": arguments.seed}
    report = _ask(arguments, "check", settings, CheckSettings)
    if not all(entry.passed for entry in report.parity):
        return EXIT_DIFFERS
    _require_engines(report)
    return EXIT_AGREES


def _explain(arguments: argparse.Namespace) -> int:
    from pyapp.stages import ExplainSettings

    report = _ask(arguments, "explain", {"engines": _engines(arguments), "runs": arguments.runs}, ExplainSettings)
    _require_engines(report)
    return EXIT_AGREES


def _sweep(arguments: argparse.Namespace) -> int:
    from pyapp.sweep import MEASURED, SweepSettings

    settings = {"engines": _engines(arguments), "seed": arguments.seed, "precision": not arguments.no_precision}
    settings |= _given(batches=arguments.batches, widths=arguments.widths, budget_s=arguments.seconds)
    report = _ask(arguments, "sweep", settings, SweepSettings)
    measured = [entry for entry in report.sweep if entry.status == MEASURED]
    if not measured:
        raise CommandError(f"nothing was measured: {report.sweep[0].reason}")
    return EXIT_AGREES if all(entry.passed for entry in measured) else EXIT_DIFFERS


def _tune(arguments: argparse.Namespace) -> int:
    from pyapp.tune import SINGLE, TuneSettings

    settings = {"precision": arguments.precision, "batch": arguments.batch, "seed": arguments.seed}
    settings |= _given(budget_s=arguments.seconds, engines=arguments.engines and _names(arguments.engines))
    if arguments.module:
        _require_writable(arguments.module)
    report = _ask(arguments, "tune", settings, TuneSettings)
    chosen = [choice for choice in report.tune.recipe if choice.purpose == SINGLE] if report.tune else []
    if not chosen:
        raise CommandError("no configuration is both right and measured; the table above says why")
    if arguments.module:
        from pyapp.recipe import from_engine, module_text, template_path

        [entry] = [entry for entry in report.engines if entry.name == chosen[0].engine]
        recipe = from_engine(entry, report.environment.versions)
        template = (arguments.dist / template_path(recipe)).read_text(encoding="utf-8")
        arguments.module.write_text(module_text(recipe, template), encoding="utf-8")
        print(f"recipe written to {arguments.module}")
    return EXIT_AGREES


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _engines(arguments: argparse.Namespace) -> list[str]:
    if arguments.engines is not None:
        return _names(arguments.engines)
    return [name for name in DEFAULT_ENGINES if not (arguments.gpu == "none" and name.startswith("webgpu"))]


def _given(**settings: object) -> dict[str, object]:
    """Keep the settings that were given; the others have their defaults in the page."""
    return {name: value for name, value in settings.items() if value is not None}


def _ask[T](arguments: argparse.Namespace, question: str, settings: dict[str, Any], kind: type[T]) -> Report:
    """Ask the page a question, print the report and store it where that was wanted."""
    try:
        kind(**settings)
    except ValueError as error:
        raise CommandError(str(error)) from error
    if arguments.json:
        _require_writable(arguments.json)
    report = _run(arguments, question, settings)
    print(report_markdown(report))
    if arguments.json:
        arguments.json.write_text(report.to_json(indent=1) + "\n", encoding="utf-8")
        print(f"report written to {arguments.json}")
    return report


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
    """Refuse to call it a success when an engine that was wanted did not run, however well the others did."""
    missing = [entry for entry in report.engines if entry.error]
    if missing:
        reasons = "; ".join(f"{entry.name}: {entry.warnings[-1]}" for entry in missing)
        raise CommandError(f"not every engine ran. {reasons} Or leave it out with --engines")


def _run(arguments: argparse.Namespace, question: str, settings: dict[str, Any]) -> Report:
    progress = ProgressLine()
    try:
        with _page(arguments, progress) as page:
            data = page.ask(question, settings, progress.show)
    finally:
        progress.clear()
    # `--dist` may hold another version's page, or a patched one: no exit code may rest on a report that contradicts itself.
    try:
        return read_foreign(json.dumps(data))
    except ReportError as error:
        raise CommandError(f"the page in {arguments.dist} gave {error}; build it anew with: make build") from error


@contextlib.contextmanager
def _page(arguments: argparse.Namespace, progress: ProgressLine) -> Iterator[PageDriver]:
    """Open the page in a headless browser; what the browser cannot do is a `CommandError`."""
    try:
        # Selenium is an extra: `pyapp serve` does without it.
        from pyapp.chromium import BrowserError, BrowserOptions, open_page
    except ImportError as error:
        raise CommandError(f"{error.name} is not installed; run: pip install 'pyapp[browser]'") from error

    options = BrowserOptions(
        gpu=arguments.gpu, arguments=arguments.browser_arg, browser=arguments.browser, driver=arguments.driver
    )
    try:
        with SiteServer(arguments.dist) as server:
            progress.show("starting the browser", 0, 1)
            with open_page(options, server.url) as page:
                yield page
    except BrowserError as error:
        raise CommandError(str(error)) from error


def _eval(arguments: argparse.Namespace) -> int:
    source: str = arguments.code
    filename = "<console>"
    if source.endswith(".py"):
        filename = source
        try:
            source = Path(source).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{filename} cannot be read: {error}; give a file with Python, or the code itself") from error
    progress = ProgressLine()
    try:
        with _page(arguments, progress) as page:
            progress.show("running", 0, 1)
            found = page.run_code(source, filename)
    finally:
        progress.clear()
    if arguments.json:
        print(json.dumps(found))
    else:
        print(found["stdout"], end="")
        print(found["stderr"], end="", file=sys.stderr)
        if found["traceback"]:
            print(found["traceback"], file=sys.stderr)
        elif found["value"] is not None:
            print(json.dumps(found["value"]))
    return EXIT_DIFFERS if found["traceback"] else EXIT_AGREES


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
