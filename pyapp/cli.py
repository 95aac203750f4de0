"""The command line: `pyapp serve`, and questions and Python for the page in a headless browser, or in many on a grid."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
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
    from pyapp.chromium import BrowserOptions, PageDriver, RemoteOptions
    from pyapp.fleet import Done, Environment, Loss, Outcome, Worker

EXIT_AGREES = 0
EXIT_DIFFERS = 1
EXIT_FAILED = 2
DEFAULT_PORT = 8000


class CommandError(Exception):
    """A command cannot be carried out; the message says why and what to do."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a question found: a report for each environment, and why not all of it is there, or None."""

    reports: list[Report]
    fault: str | None = None

    def require_whole(self) -> None:
        """Raise `CommandError` unless all is there and every engine that was wanted ran."""
        for report in self.reports:
            _require_engines(report)
        if self.fault:
            raise CommandError(self.fault)


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
    answer = _ask(arguments, "check", settings, CheckSettings)
    if not all(entry.passed for report in answer.reports for entry in report.parity):
        return EXIT_DIFFERS
    answer.require_whole()
    return EXIT_AGREES


def _explain(arguments: argparse.Namespace) -> int:
    from pyapp.stages import ExplainSettings

    _ask(arguments, "explain", {"engines": _engines(arguments), "runs": arguments.runs}, ExplainSettings).require_whole()
    return EXIT_AGREES


def _sweep(arguments: argparse.Namespace) -> int:
    from pyapp.sweep import MEASURED, SweepSettings

    settings = {"engines": _engines(arguments), "seed": arguments.seed, "precision": not arguments.no_precision}
    settings |= _given(batches=arguments.batches, widths=arguments.widths, budget_s=arguments.seconds)
    [report] = _ask(arguments, "sweep", settings, SweepSettings).reports
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
        if arguments.remote or arguments.site:
            raise CommandError("--module takes the recipe's code from --dist, for a browser of this machine; leave one out")
    answer = _ask(arguments, "tune", settings, TuneSettings)
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
    answer = _ask(arguments, "tournament", settings, GamesSettings)
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


def _ask[T](arguments: argparse.Namespace, question: str, settings: dict[str, Any], kind: type[T]) -> Answer:
    """Ask the page a question in one browser or many, print the report and store it where that was wanted."""
    try:
        kind(**settings)
    except ValueError as error:
        raise CommandError(str(error)) from error
    if arguments.json:
        _require_writable(arguments.json)
    if arguments.remote:
        return _ask_remotes(arguments, question, settings)
    if arguments.capabilities:
        raise CommandError(
            f"--capabilities is for --remote, and {arguments.capabilities} has nothing to say without; leave it out"
        )
    if question == "tournament" and (arguments.workers or 1) > 1:
        return _ask_workers(arguments, settings)
    report = _run(arguments, question, settings)
    _tell(arguments, report_markdown(report), report.to_json(indent=1))
    return Answer(reports=[report])


def _tell(arguments: argparse.Namespace, markdown: str, text: str) -> None:
    print(markdown)
    if arguments.json:
        arguments.json.write_text(text + "\n", encoding="utf-8")
        print(f"report written to {arguments.json}")


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
    return _read(arguments, data)


def _read(arguments: argparse.Namespace, data: dict[str, Any]) -> Report:
    # The page may be another version's, or a patched one: no exit code may rest on a report that contradicts itself.
    try:
        return read_foreign(json.dumps(data))
    except ReportError as error:
        where = arguments.site or arguments.dist
        raise CommandError(f"the page in {where} gave {error}; build it anew with: make build") from error


@contextlib.contextmanager
def _page(arguments: argparse.Namespace, progress: ProgressLine) -> Iterator[PageDriver]:
    """Open the page in a headless browser; what the browser cannot do is a `CommandError`."""
    with _browsers() as (open_page, lost):
        try:
            with _site(arguments) as url:
                progress.show("starting the browser", 0, 1)
                with open_page(_local(arguments), url) as page:
                    yield page
        except lost as error:
            from pyapp.chromium import reason_of

            raise CommandError(f"the browser was lost: {reason_of(error)}; run it again") from error


type _OpenPage = Callable[[BrowserOptions | RemoteOptions, str], AbstractContextManager[PageDriver]]


@contextlib.contextmanager
def _browsers() -> Iterator[tuple[_OpenPage, tuple[type[Exception], ...]]]:
    """Return what opens a page, and the exceptions of a lost browser; what a browser cannot do becomes a `CommandError`."""
    try:
        # Selenium is an extra: `pyapp serve` does without it.
        from pyapp.chromium import LOST, BrowserError, open_page
    except ImportError as error:
        raise CommandError(f"{error.name} is not installed; run: pip install 'pyapp[browser]'") from error
    try:
        yield open_page, LOST
    except BrowserError as error:
        raise CommandError(str(error)) from error


def _local(arguments: argparse.Namespace) -> BrowserOptions:
    from pyapp.chromium import BrowserOptions

    return BrowserOptions(
        gpu=arguments.gpu, arguments=arguments.browser_arg, browser=arguments.browser, driver=arguments.driver
    )


@contextlib.contextmanager
def _site(arguments: argparse.Namespace) -> Iterator[str]:
    """Return the address of the page: of the one that is deployed, or of the built one, which is served meanwhile."""
    from pyapp.chromium import is_loopback, place_of

    site: str | None = getattr(arguments, "site", None)
    if site is not None:
        if not place_of(site) or not (site.startswith("https://") or (site.startswith("http://") and is_loopback(site))):
            raise CommandError(f"--site is {site!r}, where no page can use all processors; give an address of HTTPS")
        yield site
        return
    for remote in getattr(arguments, "remote", []):
        if not is_loopback(remote):
            raise CommandError(
                f"--remote {place_of(remote)} cannot open what is served here; give --site https://…, the deployed page"
            )
    with SiteServer(arguments.dist) as server:
        yield server.url


@dataclass(frozen=True, kw_only=True)
class _Found:
    """What one browser answered."""

    browser: str
    name: str
    report: Report


def _ask_workers(arguments: argparse.Namespace, settings: dict[str, Any]) -> Answer:
    """Share out games among browsers of this machine, and put them together as one report."""
    from pyapp.fleet import Worker, merged_parts

    with _browsers() as (open_page, _), _site(arguments) as url:
        options = _local(arguments)
        workers = [
            Worker(name=f"browser {number}", open=lambda: open_page(options, url)) for number in range(1, arguments.workers + 1)
        ]
        outcome = _play(arguments, settings, workers)
    _warn(outcome.lost)
    if not outcome.done:
        raise CommandError(outcome.fault or "no game was played")
    report = merged_parts([done.result.report for done in outcome.done])
    _tell(arguments, report_markdown(report), report.to_json(indent=1))
    return Answer(reports=[report], fault=outcome.fault)


def _ask_remotes(arguments: argparse.Namespace, question: str, settings: dict[str, Any]) -> Answer:
    """Ask in every environment, that is each kind of browser on each grid, and tell what all found together."""
    from pyapp.fleet import fleet_json, fleet_markdown

    with _browsers() as (open_page, _):
        kinds = _kinds(arguments)
        with _site(arguments) as url:
            workers = _remote_workers(kinds, lambda options: open_page(options, url), several=question == "tournament")
            outcomes: list[Outcome[Any, _Found]]
            if question == "tournament":
                outcomes = [_play(arguments, settings, workers)]
            else:
                # One after the other: two browsers on one machine would spoil each other's times.
                outcomes = [_ask_one(arguments, question, settings, worker) for worker in workers]
    lost = [loss for outcome in outcomes for loss in outcome.lost]
    environments = _environments(kinds, [done for outcome in outcomes for done in outcome.done])
    _warn(lost)
    _tell(arguments, fleet_markdown(environments, lost), fleet_json(environments, lost))
    faults = [outcome.fault for outcome in outcomes if outcome.fault]
    return Answer(reports=[one.report for one in environments if one.report], fault="; ".join(faults) or None)


def _kinds(arguments: argparse.Namespace) -> list[RemoteOptions]:
    """Return every kind of browser on every grid."""
    from pyapp.chromium import DEFAULT_CAPABILITIES, RemoteOptions, read_capabilities, remote_url

    if arguments.gpu != "auto" or arguments.browser_arg or arguments.browser or arguments.driver:
        raise CommandError(
            "--gpu, --browser-arg, --browser and --driver are for a browser of this machine; "
            "say in --capabilities FILE how a grid shall start its own"
        )
    urls = [remote_url(text) for text in arguments.remote]
    if len(set(urls)) < len(urls):
        raise CommandError("--remote names a grid twice; name each once")
    wanted = read_capabilities(arguments.capabilities) if arguments.capabilities else DEFAULT_CAPABILITIES
    return [RemoteOptions(url=url, capabilities=one) for url in urls for one in wanted]


def _remote_workers(
    kinds: Sequence[RemoteOptions], open_: Callable[[RemoteOptions], AbstractContextManager[PageDriver]], *, several: bool
) -> list[Worker[PageDriver]]:
    """Return a worker for each kind of browser or, where `several` may share the work, one for each free slot."""
    from pyapp.chromium import grid_status, has_free_slot, session_counts
    from pyapp.fleet import MAX_SESSIONS, REOPENINGS, Worker

    counts: list[int] = []
    for url in dict.fromkeys(kind.url for kind in kinds):
        wanted = [kind.capabilities for kind in kinds if kind.url == url]
        counts += session_counts(grid_status(url), wanted, most=MAX_SESSIONS if several else 1)
    return [
        Worker(
            name=f"{kind.capabilities['browserName']} {number} @ {kind.place}",
            open=partial(open_, kind),
            reopenings=REOPENINGS,
            may_reopen=partial(has_free_slot, kind),
            group=group,
        )
        for group, (kind, count) in enumerate(zip(kinds, counts, strict=True))
        for number in range(1, count + 1)
    ]


def _environments(kinds: Sequence[RemoteOptions], done: Sequence[Done[Any, _Found]]) -> list[Environment]:
    from pyapp.fleet import Environment, distinct, merged_parts

    found = [[one.result for one in done if one.group == group] for group in range(len(kinds))]
    names = distinct(
        [
            f"{parts[0].name} @ {kind.place}" if parts else f"{kind.capabilities['browserName']} @ {kind.place}"
            for kind, parts in zip(kinds, found, strict=True)
        ]
    )
    return [
        Environment(name=name, browser=parts[0].browser, report=merged_parts([part.report for part in parts]))
        if parts
        else Environment(name=name)
        for name, parts in zip(names, found, strict=True)
    ]


def _play(
    arguments: argparse.Namespace, settings: dict[str, Any], workers: Sequence[Worker[PageDriver]]
) -> Outcome[tuple[int, ...], _Found]:
    """Share out the games of a tournament."""
    from pyapp.breakout.question import GamesSettings
    from pyapp.fleet import chunks, share_out

    seeds = [start.seed for start in GamesSettings(**settings).starts()]
    progress = ProgressLine()
    try:
        return share_out(
            chunks(seeds, len(workers), settings["lanes"]),
            workers,
            lambda page, job: _found(arguments, page, page.ask("tournament", settings | {"seeds": list(job)})),
            size=lambda job: len(job) * len(settings["engines"]),
            on_progress=lambda done, total: progress.tell(f"{done} of {total} games"),
        )
    finally:
        progress.clear()


def _ask_one(
    arguments: argparse.Namespace, question: str, settings: dict[str, Any], worker: Worker[PageDriver]
) -> Outcome[str, _Found]:
    """Ask one environment all of a question."""
    from pyapp.fleet import share_out

    progress = ProgressLine()

    def ask(page: PageDriver, _: str) -> _Found:
        shown = page.ask(question, settings, lambda stage, done, total: progress.show(f"{worker.name}: {stage}", done, total))
        return _found(arguments, page, shown)

    try:
        progress.show(f"{worker.name}: starting", 0, 1)
        return share_out([question], [worker], ask)
    finally:
        progress.clear()


def _found(arguments: argparse.Namespace, page: PageDriver, data: dict[str, Any]) -> _Found:
    from pyapp.fleet import environment_name

    browser = page.browser
    return _Found(browser=f"{browser.name} {browser.version}", name=environment_name(browser), report=_read(arguments, data))


def _warn(lost: Sequence[Loss]) -> None:
    for loss in lost:
        print(f"pyapp: lost {loss.worker}: {loss.reason}", file=sys.stderr)


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
        if self._terminal:
            self.tell(f"{stage}: {done} of {total}")
        elif (headline := stage.partition(":")[0]) != self._stage:
            self._stage = headline
            self.tell(headline)

    def tell(self, text: str) -> None:
        """Show a line."""
        elapsed = f"{time.monotonic() - self._started:5.1f} s"
        start, end = ("\r\033[K", "") if self._terminal else ("", "\n")
        print(f"{start}{elapsed}  {text}", end=end, file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Take the line away."""
        if self._terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
