"""The command line's arguments."""

from __future__ import annotations

import argparse
from importlib.metadata import version
from pathlib import Path

from pyapp.host import DEFAULT_ENGINES
from pyapp.ownmodel import NO_MODEL

DEFAULT_PORT = 8000

type _Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def parser() -> argparse.ArgumentParser:
    """Return the parser; `command` of what it reads is the name of the command."""
    made = argparse.ArgumentParser(prog="pyapp", description="Check an ONNX model on WASM and WebGPU in a browser.")
    made.add_argument("--version", action="version", version=version("pyapp"))
    commands = made.add_subparsers(required=True, metavar="COMMAND")

    for add in (
        _add_serve,
        _add_check,
        _add_explain,
        _add_placement,
        _add_locate,
        _add_sweep,
        _add_tune,
        _add_tournament,
        _add_evaluate,
    ):
        add(commands)
    return made


def _add_serve(commands: _Commands) -> None:
    serve = commands.add_parser("serve", help="serve the built site on this machine")
    serve.add_argument("--port", type=int, default=DEFAULT_PORT, help="port on 127.0.0.1 (default: %(default)s)")
    serve.set_defaults(command="serve")
    _add_dist(serve)


def _add_check(commands: _Commands) -> None:
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
    _add_model(check)
    _add_remote(check)
    check.set_defaults(command="check")


def _add_explain(commands: _Commands) -> None:
    explain = _add_question(
        commands,
        "explain",
        "say where the time of a run goes",
        "Takes one run of each engine apart into its stages. Exit code 0, or 2 where an engine could not be explained.",
    )
    explain.add_argument("--runs", type=int, default=50, help="runs of each kind (default: %(default)s)")
    _add_engines(explain)
    _add_model(explain)
    explain.set_defaults(command="explain")


def _add_placement(commands: _Commands) -> None:
    placement = _add_question(
        commands,
        "placement",
        "say which provider runs which node",
        "Lists every node with its operator, shape, provider and time, and the copies between CPU and GPU. Exit code 0; "
        "1 where a node runs on the CPU although a GPU was asked for; 2 where an engine could not be opened.",
    )
    placement.add_argument("--strict", action="store_true", help="let no node run on the CPU where a GPU was asked for")
    _add_engines(placement)
    _add_model(placement)
    placement.set_defaults(command="placement")


def _add_locate(commands: _Commands) -> None:
    locate = _add_question(
        commands,
        "locate",
        "find the node at which an engine goes wrong",
        "Compares all values within the model on two engines. Exit code 0: none differs; 1: one does; 2: it could not run.",
    )
    locate.add_argument("--engine", default="webgpu-stock", help="whose values are looked at (default: %(default)s)")
    locate.add_argument("--reference", default="wasm-1", metavar="ENGINE", help="whose are right (default: %(default)s)")
    locate.add_argument("--case", type=int, metavar="N", help="the case to look at (default: the first that differs)")
    locate.add_argument("--reproducer", type=Path, metavar="FILE", help="write the node alone to FILE.onnx and FILE.npz")
    _add_model(locate)
    locate.set_defaults(command="locate")


def _add_sweep(commands: _Commands) -> None:
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
    _add_model(sweep)
    sweep.set_defaults(command="sweep")


def _add_tune(commands: _Commands) -> None:
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
    _add_model(tune)
    tune.add_argument("--engines", metavar="A,B", help="candidates, with commas (default: all that make sense here)")
    _add_remote(tune)
    tune.set_defaults(command="tune")


def _add_tournament(commands: _Commands) -> None:
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
    tournament.set_defaults(command="tournament")


def _add_evaluate(commands: _Commands) -> None:
    evaluate = commands.add_parser(
        "eval",
        help="run Python in the page",
        description="Runs Python in the page of a headless Chromium, in the namespace of its console. Prints what it prints "
        "and its last value as JSON. Exit code 0; 1 with the traceback where it raises; 2 where it could not run.",
    )
    evaluate.add_argument("code", metavar="CODE|FILE.py", help="Python (await is allowed), or a file that ends in .py")
    evaluate.add_argument("--json", action="store_true", help="print one JSON object: stdout, stderr, value and traceback")
    _add_browser(evaluate)
    evaluate.set_defaults(command="eval")


def _add_question(commands: _Commands, name: str, summary: str, description: str) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=summary, description=description)
    _add_browser(parser)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report here")
    parser.set_defaults(remote=[], site=None, capabilities=None, **NO_MODEL)
    return parser


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", type=Path, metavar="FILE", help="a model of your own (default: the worked example)")
    parser.add_argument(
        "--external", type=Path, action="append", default=[], metavar="FILE", help="a file with its weights; may be repeated"
    )
    parser.add_argument("--cases", type=Path, metavar="FILE", help=".npz, .npy or .json (default: made from its signature)")
    parser.add_argument(
        "--size", action="append", default=[], metavar="NAME=N", help="size of a free dimension for made cases; may be repeated"
    )
    parser.add_argument("--rtol", type=float, help="tolerance relative to the reference (default: 0.001)")
    parser.add_argument("--atol", type=float, help="absolute tolerance (default: 0.0001)")
    parser.add_argument(
        "--fix", action="append", default=[], metavar="NAME", help="apply a fix of the doctor's first; may be repeated"
    )


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
