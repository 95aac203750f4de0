"""Several browsers share the work of one question: who does what, what happens where one dies, and what all found together.

The sharing knows neither browsers nor pages, only that a page is opened, asked and closed; `pyapp.cli` brings them together.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from typing import Protocol

from pyapp.breakout.scores import merged_entries
from pyapp.chromium import LOST, Browser, BrowserError, reason_of
from pyapp.markdown import markdown_table, markdown_text
from pyapp.report import Report, merged
from pyapp.tables import report_markdown
from pyapp.tune import SINGLE

SCHEMA = "pyapp-fleet/1"
MAX_WORKERS = 16
MAX_SESSIONS = 8
"""Sessions that one kind of browser is given on one grid."""

REOPENINGS = 2
"""How often a grid is asked for another browser where one was lost."""

POISON = 2
"""A job with which so many browsers were lost is not tried again."""

LARGEST_CHUNK = 3
"""Games in one job: what is lost with a browser has to be played again."""

ROUNDS = 4
"""Jobs that each worker should get at least, so that the slow ones hold nobody up at the end."""

WATCH_S = 0.1
END_LIMIT_S = 15.0
NOTHING = "–"


class Closable(Protocol):
    """A page, as far as sharing out work needs to know."""

    def close(self) -> None:
        """End it, from whichever thread, so that who waits for its answer gets an error."""


@dataclass(frozen=True, kw_only=True)
class Worker[P: Closable]:
    """One place where jobs are done.

    Attributes
    ----------
    name : str
        For people.
    open : callable
        Opens a page, as a context manager that closes it.
    reopenings : int
        How often it may be opened again after a loss.
    may_reopen : callable
        Asked before each time; where there is nothing to open, the worker retires.
    group : int
        Which environment it belongs to.
    """

    name: str
    open: Callable[[], AbstractContextManager[P]]
    reopenings: int = 0
    may_reopen: Callable[[], bool] = lambda: True
    group: int = 0


@dataclass(frozen=True, kw_only=True)
class Loss:
    """A browser that was lost."""

    worker: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Done[J, R]:
    """A job with its result, and the group of the worker that did it."""

    job: J
    result: R
    group: int


@dataclass(frozen=True, kw_only=True)
class Outcome[J, R]:
    """What became of all jobs; each is in one of the first three lists, and each list is in the jobs' order.

    Attributes
    ----------
    done : list of Done
        Finished jobs.
    failed : list
        Jobs that were given up because `POISON` browsers were lost with them.
    left : list
        Jobs that nobody was left to do.
    lost : list of Loss
        Every browser that was lost, in that order.
    """

    done: list[Done[J, R]]
    failed: list[J]
    left: list[J]
    lost: list[Loss]

    @property
    def fault(self) -> str | None:
        """Why not all is done, or None where it is."""
        if self.left:
            total = len(self.done) + len(self.failed) + len(self.left)
            last = self.lost[-1]
            return f"{len(self.left)} of {total} jobs were not done: every browser was lost, {last.worker} last ({last.reason})"
        if self.failed:
            return f"given up, for {POISON} browsers each were lost with them: {', '.join(map(str, self.failed))}"
        return None


def chunks(seeds: Sequence[int], workers: int, lanes: int = 0) -> list[tuple[int, ...]]:
    """Cut games into jobs.

    A job has as many games as are played side by side where that is given (`lanes`); else up to `LARGEST_CHUNK`, fewer where
    there would be less than `ROUNDS` jobs for each worker.
    """
    size = lanes or max(1, min(LARGEST_CHUNK, len(seeds) // (ROUNDS * workers)))
    return [tuple(seeds[at : at + size]) for at in range(0, len(seeds), size)]


def share_out[P: Closable, J, R](
    jobs: Sequence[J],
    workers: Sequence[Worker[P]],
    ask: Callable[[P, J], R],
    *,
    size: Callable[[J], int] = lambda job: 1,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Outcome[J, R]:
    """Let workers do jobs, each the next one as soon as it is free.

    Where a browser is lost, its job goes back to the others, and its worker opens another one if it may. A finished job is
    never done again.

    Parameters
    ----------
    jobs
        What there is to do.
    workers
        Who does it; each has a thread of its own.
    ask
        Does one job in a page. `BrowserError` and what Selenium raises mean that the browser is lost.
    size
        How much a job is, in the unit of progress.
    on_progress
        Called with how much is done of how much, from any of the threads but never from two at once.

    Raises
    ------
    Exception
        Whatever else `ask` raises, after all browsers have been ended; so does an interruption by the user.
    """
    board = _Board[P, J, R](jobs, size, on_progress)
    threads = [threading.Thread(target=_work, args=(worker, board, ask), name=worker.name, daemon=True) for worker in workers]
    try:
        for thread in threads:
            thread.start()
        while board.error is None and (alive := [thread for thread in threads if thread.is_alive()]):
            alive[0].join(WATCH_S)
    finally:
        # Only an interruption or an error leaves threads behind; they wait for answers that nobody wants any more.
        _end(board, threads)
    if board.error is not None:
        raise board.error
    return board.outcome()


def _end[P: Closable, J, R](board: _Board[P, J, R], threads: Sequence[threading.Thread]) -> None:
    closers = [threading.Thread(target=page.close, daemon=True) for page in board.stop()]
    for closer in closers:
        closer.start()
    for thread in (*closers, *threads):
        if thread.ident is not None:
            thread.join(END_LIMIT_S)


def _work[P: Closable, J, R](worker: Worker[P], board: _Board[P, J, R], ask: Callable[[P, J], R]) -> None:
    try:
        for opened in range(1 + worker.reopenings):
            if board.is_over() or (opened and not worker.may_reopen()) or _serve(worker, board, ask):
                return
    except BaseException as error:
        board.fail(error)


def _serve[P: Closable, J, R](worker: Worker[P], board: _Board[P, J, R], ask: Callable[[P, J], R]) -> bool:
    """Do jobs in one browser; return whether there are none left, and not its loss made an end of it."""
    place: int | None = None
    try:
        with worker.open() as page, board.at_work(page):
            while (place := board.take()) is not None:
                board.finish(place, worker.group, ask(page, board.jobs[place]))
                place = None
    except (BrowserError, *LOST) as error:
        board.lose(worker.name, reason_of(error), place)
        return False
    return True


class _Board[P: Closable, J, R]:
    """What all workers know: the jobs that wait, those that are being done, and what came of the others."""

    def __init__(self, jobs: Sequence[J], size: Callable[[J], int], on_progress: Callable[[int, int], None]) -> None:
        self.jobs = jobs
        self.error: BaseException | None = None
        self._size = size
        self._on_progress = on_progress
        self._total = sum(map(size, jobs))
        self._waiting = deque(range(len(jobs)))
        self._doing: set[int] = set()
        self._done: dict[int, Done[J, R]] = {}
        self._failed: set[int] = set()
        self._losses = [0] * len(jobs)
        self._lost: list[Loss] = []
        self._pages: list[P] = []
        self._stopped = False
        self._changed = threading.Condition(threading.RLock())
        on_progress(0, self._total)

    def is_over(self) -> bool:
        with self._changed:
            return self._stopped or not (self._waiting or self._doing)

    def at_work(self, page: P) -> AbstractContextManager[None]:
        return _AtWork(page, self._pages, self._changed)

    def take(self) -> int | None:
        """Return the next job's place; while others work, wait for what they may give back."""
        with self._changed:
            while self._doing and not self._waiting and not self._stopped:
                self._changed.wait()
            if self._stopped or not self._waiting:
                return None
            place = self._waiting.popleft()
            self._doing.add(place)
            return place

    def finish(self, place: int, group: int, result: R) -> None:
        with self._changed:
            if self._stopped:
                return
            self._doing.remove(place)
            self._done[place] = Done(job=self.jobs[place], result=result, group=group)
            self._on_progress(sum(self._size(done.job) for done in self._done.values()), self._total)
            self._changed.notify_all()

    def lose(self, worker: str, reason: str, place: int | None) -> None:
        with self._changed:
            if self._stopped:
                return
            self._lost.append(Loss(worker=worker, reason=reason))
            if place is not None:
                self._doing.remove(place)
                self._losses[place] += 1
                if self._losses[place] < POISON:
                    self._waiting.appendleft(place)
                else:
                    self._failed.add(place)
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        with self._changed:
            self.error = self.error or error
            self._stopped = True
            self._changed.notify_all()

    def stop(self) -> list[P]:
        """Give out no more jobs and take no more results; return the pages that are still open."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
            return list(self._pages)

    def outcome(self) -> Outcome[J, R]:
        with self._changed:
            left = [self.jobs[place] for place in sorted({*self._waiting, *self._doing})]
            return Outcome(
                done=[self._done[place] for place in sorted(self._done)],
                failed=[self.jobs[place] for place in sorted(self._failed)],
                left=left,
                lost=list(self._lost),
            )


class _AtWork[P]:
    """Keeps a page in a list while it is in use."""

    def __init__(self, page: P, pages: list[P], lock: threading.Condition) -> None:
        self._page, self._pages, self._lock = page, pages, lock

    def __enter__(self) -> None:
        with self._lock:
            self._pages.append(self._page)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._pages.remove(self._page)


def merged_parts(parts: Sequence[Report]) -> Report:
    """Put together the tournaments that browsers of one kind played parts of; all else is as the first one found it.

    Raises
    ------
    ValueError
        If a game is in two of them, or there is none.
    """
    first, *others = parts
    whole = first
    for part in others:
        whole = merged(whole, replace(part, tournament=[]))
    return replace(whole, tournament=merged_entries([part.tournament for part in parts]))


@dataclass(frozen=True, kw_only=True)
class Environment:
    """One kind of browser on one grid, and what was found there; `report` is None where nothing was."""

    name: str
    browser: str = ""
    report: Report | None = None


def environment_name(browser: Browser) -> str:
    """Name where a browser runs, as in ``chrome 156 on linux``."""
    return f"{browser.name} {browser.version.partition('.')[0]} on {browser.platform}"


def distinct(names: Sequence[str]) -> list[str]:
    """Tell names that are there more than once apart, as in ``chrome``, ``chrome #2``."""
    found: list[str] = []
    for name in names:
        count = sum(other == name for other in names[: len(found)])
        found.append(f"{name} #{count + 1}" if count else name)
    return found


def fleet_json(environments: Sequence[Environment], lost: Sequence[Loss]) -> str:
    """Return everything that was found as JSON text: a report for each environment, and every browser that was lost."""
    found = [{"name": one.name, "report": json.loads(one.report.to_json())} for one in environments if one.report]
    return json.dumps({"schema": SCHEMA, "environments": found, "lost": [asdict(loss) for loss in lost]}, indent=1)


def fleet_markdown(environments: Sequence[Environment], lost: Sequence[Loss]) -> str:
    """Write everything that was found as Markdown: a table of the environments, the losses, and each one's own report."""
    tournament = any(one.report and one.report.tournament for one in environments)
    columns = ["games", "mean score", "departures"] if tournament else ["engines that agree", "fastest", "P50 ms"]
    row = _games_row if tournament else _answers_row
    table = markdown_table(
        ["environment", "browser", *columns],
        [[one.name, one.browser or NOTHING, *(row(one.report) if one.report else [NOTHING] * 3)] for one in environments],
    )
    parts = ["# Environments\n", table]
    if lost:
        parts += ["\n# Lost\n", *(f"- {markdown_text(f'{loss.worker}: {loss.reason}')}" for loss in lost)]
    for one in environments:
        if one.report:
            parts += [f"\n# {markdown_text(one.name)}\n", report_markdown(one.report)]
    return "\n".join(parts)


def _games_row(report: Report) -> list[str]:
    scores = [game.score for entry in report.tournament for game in entry.played]
    departures = sum(entry.departures for entry in report.tournament)
    return [str(len(scores)), f"{sum(scores) / len(scores):.1f}" if scores else NOTHING, str(departures)]


def _answers_row(report: Report) -> list[str]:
    if report.tune:
        candidates = report.tune.candidates
        agree, of = sum(0 < one.cases == one.agree for one in candidates), len(candidates)
        chosen = next((choice for choice in report.tune.recipe if choice.purpose == SINGLE), None)
        fastest = (chosen.ms, chosen.engine) if chosen else None
    else:
        wrong = {entry.engine for entry in report.parity if not entry.passed}
        right = {entry.engine for entry in report.parity} - wrong
        agree, of = len(right), len(report.engines)
        times = [(entry.p50_ms, entry.engine) for entry in report.race if entry.valid and entry.p50_ms is not None]
        fastest = min(times, default=None)
    return [f"{agree} of {of}", *((fastest[1], f"{fastest[0]:.3f}") if fastest else (NOTHING, NOTHING))]
