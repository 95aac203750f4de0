"""Asks the page its questions in a headless browser of this machine, in several, or in those of a Selenium Grid.

What the commands of `pyapp.cli` have in common: how a page is opened, who answers, and where the report goes.
"""

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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyapp.foreign import read_foreign
from pyapp.ownmodel import OwnModel, own_model
from pyapp.report import Report, ReportError
from pyapp.serve import SiteServer
from pyapp.tables import report_markdown

if TYPE_CHECKING:
    from pyapp.chromium import BrowserOptions, Elsewhere, PageDriver
    from pyapp.fleet import Done, Environment, Loss, Outcome, Worker
    from pyapp.grid import RemoteOptions


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


def ask[T](
    arguments: argparse.Namespace,
    question: str,
    settings: dict[str, Any],
    kind: type[T],
    *,
    then: Callable[[PageDriver], None] = lambda page: None,
) -> Answer:
    """Ask the page a question in one browser or many, print the report and store it where that was wanted.

    `then` is called with the page when it has answered, if it is a single one.
    """
    try:
        kind(**settings)
        own = own_model(arguments)
    except ValueError as error:
        raise CommandError(str(error)) from error
    if arguments.json:
        require_writable(arguments.json)
    if arguments.remote:
        return _ask_remotes(arguments, question, settings, own)
    if arguments.capabilities:
        raise CommandError(
            f"--capabilities is for --remote, and {arguments.capabilities} has nothing to say without; leave it out"
        )
    if question == "tournament" and (arguments.workers or 1) > 1:
        return _ask_workers(arguments, settings)
    report = _run(arguments, question, settings, own, then)
    _tell(arguments, report_markdown(report), report.to_json(indent=1))
    return Answer(reports=[report])


def _tell(arguments: argparse.Namespace, markdown: str, text: str) -> None:
    print(markdown)
    if arguments.json:
        arguments.json.write_text(text + "\n", encoding="utf-8")
        print(f"report written to {arguments.json}")


def require_writable(path: Path) -> None:
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


def _run(
    arguments: argparse.Namespace,
    question: str,
    settings: dict[str, Any],
    own: OwnModel | None,
    then: Callable[[PageDriver], None],
) -> Report:
    progress = ProgressLine()
    try:
        with page_of(arguments, progress) as page:
            if own:
                _tell_findings(page.load_model(own, progress.show))
            data = page.ask(question, settings, progress.show)
            then(page)
    finally:
        progress.clear()
    return _read(arguments, data)


def _tell_findings(model: dict[str, Any]) -> None:
    for finding in model["findings"]:
        where = f"{finding['node']}: " if finding["node"] else ""
        fix = f" (--fix {finding['fix']})" if finding["fix"] else ""
        print(f"pyapp: {finding['severity']}: {where}{finding['message']}. {finding['remedy']}{fix}", file=sys.stderr)


def _read(arguments: argparse.Namespace, data: dict[str, Any]) -> Report:
    # The page may be another version's, or a patched one: no exit code may rest on a report that contradicts itself.
    try:
        return read_foreign(json.dumps(data))
    except ReportError as error:
        where = arguments.site or arguments.dist
        raise CommandError(f"the page in {where} gave {error}; build it anew with: make build") from error


@contextlib.contextmanager
def page_of(arguments: argparse.Namespace, progress: ProgressLine) -> Iterator[PageDriver]:
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


type _OpenPage = Callable[[BrowserOptions | Elsewhere, str], AbstractContextManager[PageDriver]]


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
    from pyapp.grid import is_loopback, place_of

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


def _ask_remotes(arguments: argparse.Namespace, question: str, settings: dict[str, Any], own: OwnModel | None) -> Answer:
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
                outcomes = [_ask_one(arguments, question, settings, worker, own) for worker in workers]
    lost = [loss for outcome in outcomes for loss in outcome.lost]
    environments = _environments(kinds, [done for outcome in outcomes for done in outcome.done])
    _warn(lost)
    _tell(arguments, fleet_markdown(environments, lost), fleet_json(environments, lost))
    faults = [outcome.fault for outcome in outcomes if outcome.fault]
    return Answer(reports=[one.report for one in environments if one.report], fault="; ".join(faults) or None)


def _kinds(arguments: argparse.Namespace) -> list[RemoteOptions]:
    """Return every kind of browser on every grid."""
    from pyapp.grid import DEFAULT_CAPABILITIES, RemoteOptions, read_capabilities, remote_url

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
    from pyapp.fleet import MAX_SESSIONS, REOPENINGS, Worker
    from pyapp.grid import grid_status, has_free_slot, session_counts

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
    arguments: argparse.Namespace,
    question: str,
    settings: dict[str, Any],
    worker: Worker[PageDriver],
    own: OwnModel | None,
) -> Outcome[str, _Found]:
    """Ask one environment all of a question."""
    from pyapp.fleet import share_out

    progress = ProgressLine()

    def ask(page: PageDriver, _: str) -> _Found:
        if own:
            page.load_model(own)
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
