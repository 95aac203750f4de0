"""The command line: `pyapp serve`, and questions and Python for the page in a headless browser, or in many on a grid."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyapp.arguments import parser
from pyapp.check import CheckSettings
from pyapp.headless import CommandError, ProgressLine, ask, page_of, require_writable
from pyapp.host import DEFAULT_ENGINES
from pyapp.report import Report
from pyapp.serve import ServeError, SiteServer

if TYPE_CHECKING:
    from pyapp.chromium import PageDriver

EXIT_AGREES = 0
EXIT_DIFFERS = 1
EXIT_FAILED = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 all agree, 1 an answer differs, 2 it could not run."""
    arguments = parser().parse_args(argv)
    try:
        code = COMMANDS[arguments.command](arguments)
    except (CommandError, ServeError) as error:
        print(f"pyapp: error: {error}", file=sys.stderr)
        return EXIT_FAILED
    except KeyboardInterrupt:
        print("pyapp: interrupted", file=sys.stderr)
        return EXIT_FAILED
    return code


def _serve(arguments: argparse.Namespace) -> int:
    with SiteServer(arguments.dist, port=arguments.port) as server:
        print(f"serving {arguments.dist} at {server.url} – stop with Ctrl-C", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
    return 0


def _check(arguments: argparse.Namespace) -> int:
    settings = {"engines": _engines(arguments), "runs": arguments.runs, "warmup": arguments.warmup, "seed": arguments.seed}
    answer = ask(arguments, "check", settings, CheckSettings)
    if not all(entry.passed for report in answer.reports for entry in report.parity):
        return EXIT_DIFFERS
    answer.require_whole()
    return EXIT_AGREES


def _explain(arguments: argparse.Namespace) -> int:
    from pyapp.stages import ExplainSettings

    ask(arguments, "explain", {"engines": _engines(arguments), "runs": arguments.runs}, ExplainSettings).require_whole()
    return EXIT_AGREES


def _placement(arguments: argparse.Namespace) -> int:
    from pyapp.placement import PlacementSettings

    settings = {"engines": _engines(arguments), "strict": arguments.strict}
    answer = ask(arguments, "placement", settings, PlacementSettings)
    answer.require_whole()
    return EXIT_AGREES if all(entry.valid for report in answer.reports for entry in report.placement) else EXIT_DIFFERS


def _locate(arguments: argparse.Namespace) -> int:
    from pyapp.locate import LocateSettings

    settings = {"engine": arguments.engine, "reference": arguments.reference, "case": arguments.case}
    if arguments.reproducer:
        require_writable(arguments.reproducer)
    [report] = ask(arguments, "locate", settings, LocateSettings, then=partial(_save_reproducer, arguments.reproducer)).reports
    return EXIT_AGREES if all(entry.kind == "none" for entry in report.faults) else EXIT_DIFFERS


def _save_reproducer(path: Path | None, page: PageDriver) -> None:
    if path and (found := page.reproducer()):
        for suffix, content in zip((".onnx", ".npz"), found, strict=True):
            path.with_name(path.name + suffix).write_bytes(content)
        print(f"the node alone was written to {path}.onnx and {path}.npz")


def _sweep(arguments: argparse.Namespace) -> int:
    from pyapp.sweep import MEASURED, SweepSettings

    settings = {"engines": _engines(arguments), "seed": arguments.seed, "precision": not arguments.no_precision}
    settings |= _given(batches=arguments.batches, widths=arguments.widths, budget_s=arguments.seconds)
    [report] = ask(arguments, "sweep", settings, SweepSettings).reports
    measured = [entry for entry in report.sweep if entry.status == MEASURED]
    if not measured:
        raise CommandError(f"nothing was measured: {report.sweep[0].reason}")
    return EXIT_AGREES if all(entry.passed for entry in measured) else EXIT_DIFFERS


def _tune(arguments: argparse.Namespace) -> int:
    from pyapp.tune import SINGLE, TuneSettings

    settings = {"precision": arguments.precision, "batch": arguments.batch, "seed": arguments.seed}
    settings |= _given(budget_s=arguments.seconds, engines=arguments.engines and _names(arguments.engines))
    if arguments.module:
        require_writable(arguments.module)
        if arguments.remote or arguments.site:
            raise CommandError("--module takes the recipe's code from --dist, for a browser of this machine; leave one out")
    answer = ask(arguments, "tune", settings, TuneSettings)
    for report in answer.reports:
        chosen = [choice for choice in report.tune.recipe if choice.purpose == SINGLE] if report.tune else []
        if not chosen:
            raise CommandError("no configuration is both right and measured; the table above says why")
        if arguments.module:
            _write_module(arguments, report, chosen[0].engine)
    if answer.fault:
        raise CommandError(answer.fault)
    return EXIT_AGREES


def _write_module(arguments: argparse.Namespace, report: Report, engine: str) -> None:
    from pyapp.recipe import from_engine, module_text, template_path
    from pyapp.sitefolder import app_folder

    [entry] = [entry for entry in report.engines if entry.name == engine]
    recipe = from_engine(entry, report.environment.versions)
    template = (app_folder(arguments.dist) / template_path(recipe)).read_text(encoding="utf-8")
    arguments.module.write_text(module_text(recipe, template), encoding="utf-8")
    print(f"recipe written to {arguments.module}")


def _tournament(arguments: argparse.Namespace) -> int:
    from pyapp.breakout.question import GamesSettings

    settings = {"engines": _fleet_engines(arguments)}
    settings |= {name: getattr(arguments, name) for name in ("games", "seed", "epsilon", "opening", "lanes")}
    answer = ask(arguments, "tournament", settings, GamesSettings)
    entries = [entry for report in answer.reports for entry in report.tournament]
    if any(entry.unexplained for entry in entries):
        return EXIT_DIFFERS
    answer.require_whole()
    failed = [entry for entry in entries if entry.error]
    if failed:
        raise CommandError("; ".join(f"{entry.engine}: {entry.warnings[-1]}" for entry in failed))
    return EXIT_AGREES


def _fleet_engines(arguments: argparse.Namespace) -> list[str]:
    """Return the engines that are wanted, for several browsers without the one that each would measure for itself."""
    from pyapp.fleet import MAX_WORKERS
    from pyapp.opening import BEST_THREADS

    if arguments.workers is not None and arguments.remote:
        raise CommandError(
            f"--workers {arguments.workers} is for browsers of this machine; a grid's slots say how many there are"
        )
    if not 1 <= (arguments.workers or 1) <= MAX_WORKERS or arguments.workers == 0:
        raise CommandError(f"--workers is {arguments.workers}; give a number from 1 to {MAX_WORKERS}")
    engines = _engines(arguments)
    if not arguments.remote and (arguments.workers or 1) == 1:
        return engines
    if arguments.engines is None:
        return [name for name in engines if name != BEST_THREADS]
    if BEST_THREADS in engines:
        raise CommandError(f"each browser would measure {BEST_THREADS} anew, so games would not be of one engine; name wasm-2")
    return engines


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _engines(arguments: argparse.Namespace) -> list[str]:
    if arguments.engines is not None:
        return _names(arguments.engines)
    return [name for name in DEFAULT_ENGINES if not (arguments.gpu == "none" and name.startswith("webgpu"))]


def _given(**settings: object) -> dict[str, object]:
    """Keep the settings that were given; the others have their defaults in the page."""
    return {name: value for name, value in settings.items() if value is not None}


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
        with page_of(arguments, progress) as page:
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


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "serve": _serve,
    "check": _check,
    "explain": _explain,
    "placement": _placement,
    "locate": _locate,
    "sweep": _sweep,
    "tune": _tune,
    "tournament": _tournament,
    "eval": _eval,
}


if __name__ == "__main__":
    sys.exit(main())
