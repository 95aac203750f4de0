"""The command line: `pyapp serve`, and questions and Python for the page in a headless browser, or in many on a grid."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from pyapp.check import CheckSettings
from pyapp.headless import CommandError, ProgressLine, ask, page_of, require_writable
from pyapp.host import DEFAULT_ENGINES
from pyapp.report import Report
from pyapp.serve import ServeError, SiteServer

EXIT_AGREES = 0
EXIT_DIFFERS = 1
EXIT_FAILED = 2
DEFAULT_PORT = 8000


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
    _add_remote(check)
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
    _add_remote(tune)
    tune.set_defaults(command=_tune)

    tournament = _add_question(
        commands,
        "tournament",
        "play whole games on every engine",
        "Plays whole games of Breakout on every engine, and compares each with Python's where Python played it. Exit code 0; "
        "1 where a game departs in a way that rounding does not explain; 2 where it could not run or an engine failed.",
    )
    tournament.add_argument("--games", type=int, default=30, help="games per engine (default: %(default)s)")
    tournament.add_argument("--seed", type=int, default=0, help="seed of the first game (default: %(default)s)")
    tournament.add_argument("--epsilon", type=float, default=0.01, help="chance of a random action (default: %(default)s)")
    tournament.add_argument(
        "--opening", type=int, metavar="N", help="random decisions at the start (default: 20 where epsilon is 0, else 0)"
    )
    tournament.add_argument("--lanes", type=int, default=0, help="games side by side (default: as measured)")
    tournament.add_argument(
        "--workers", type=int, metavar="N", help="browsers of this machine that share the games, 1 to 16 (default: 1)"
    )
    _add_engines(tournament)
    _add_remote(tournament)
    tournament.set_defaults(command=_tournament)

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
    parser.set_defaults(remote=[], site=None, capabilities=None)
    return parser


def _add_remote(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--remote", action="append", default=[], metavar="URL", help="a Selenium Grid whose browsers to use; may be repeated"
    )
    parser.add_argument("--site", metavar="URL", help="the deployed page to open (default: the built site, served here)")
    parser.add_argument(
        "--capabilities", type=Path, metavar="FILE", help="JSON list of W3C capabilities to use on each grid (default: chrome)"
    )


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
    answer = ask(arguments, "check", settings, CheckSettings)
    if not all(entry.passed for report in answer.reports for entry in report.parity):
        return EXIT_DIFFERS
    answer.require_whole()
    return EXIT_AGREES


def _explain(arguments: argparse.Namespace) -> int:
    from pyapp.stages import ExplainSettings

    ask(arguments, "explain", {"engines": _engines(arguments), "runs": arguments.runs}, ExplainSettings).require_whole()
    return EXIT_AGREES


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

    [entry] = [entry for entry in report.engines if entry.name == engine]
    recipe = from_engine(entry, report.environment.versions)
    template = (arguments.dist / template_path(recipe)).read_text(encoding="utf-8")
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


if __name__ == "__main__":
    sys.exit(main())
