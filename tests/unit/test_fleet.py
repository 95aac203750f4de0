import contextlib
import json
import threading
import time
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selenium.common.exceptions import WebDriverException
from urllib3.exceptions import ProtocolError

from pyapp import fleet, grid
from pyapp.breakout.scores import tournament_entry
from pyapp.chromium import Browser, BrowserError
from pyapp.fleet import Environment, Loss, Outcome, Worker, chunks, share_out
from pyapp.report import PlayedGame, parse_report
from tests.unit.test_report_csv import REPORT

LIMIT_S = 10


class Page:
    def __init__(self):
        self.closed = threading.Event()

    def close(self):
        self.closed.set()


class Site:
    """Opens pages, and keeps them."""

    def __init__(self):
        self.opened = []

    @contextlib.contextmanager
    def __call__(self):
        page = Page()
        self.opened.append(page)
        try:
            yield page
        finally:
            page.close()


def crew(count, site, **rest):
    return [Worker(name=f"browser {number}", open=site, **rest) for number in range(count)]


def test_every_job_is_done_once_and_in_order():
    told = []
    outcome = share_out(range(20), crew(4, Site()), lambda _, job: job * 2, on_progress=lambda *seen: told.append(seen))
    assert [(done.job, done.result) for done in outcome.done] == [(job, job * 2) for job in range(20)]
    assert (outcome.failed, outcome.left, outcome.lost, outcome.fault) == ([], [], [], None)
    assert told == [(done, 20) for done in range(21)]


def test_progress_counts_what_is_in_a_job():
    told = []
    share_out([(1, 2), (3,)], crew(1, Site()), lambda *_: None, size=len, on_progress=lambda *seen: told.append(seen))
    assert told == [(0, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize(
    "error", [BrowserError("gone"), WebDriverException("gone\nStacktrace:"), ProtocolError("gone"), ConnectionError("gone")]
)
def test_a_lost_browser_gives_its_job_back(error):
    asked = Counter()
    both = threading.Barrier(2)

    def ask(_page, job):
        asked[job] += 1
        if sum(asked.values()) <= 2:
            both.wait(LIMIT_S)
            if job == 1:
                raise error
        return job

    outcome = share_out(range(6), crew(2, Site()), ask)
    assert [done.job for done in outcome.done] == list(range(6))
    assert asked == Counter({0: 1, 1: 2, 2: 1, 3: 1, 4: 1, 5: 1})
    assert [loss.reason for loss in outcome.lost] == ["gone"]
    assert outcome.fault is None


def test_the_last_job_is_waited_for_by_those_who_may_get_it_back():
    """A worker that finds the queue empty must not go while another one may still die."""
    idle = threading.Event()

    def ask(_page, job):
        if job == "slow" and not idle.is_set():
            idle.wait(LIMIT_S)
            raise BrowserError("died at last")
        time.sleep(0.05)
        idle.set()
        return threading.current_thread().name

    outcome = share_out(["slow", "quick"], crew(2, Site()), ask)
    assert [done.job for done in outcome.done] == ["slow", "quick"]
    assert len({done.result for done in outcome.done}) == 1
    assert len(outcome.lost) == 1


def test_a_job_that_kills_two_browsers_is_not_tried_again():
    def ask(_page, job):
        if job == 2:
            raise BrowserError("poison")
        return job

    outcome = share_out(range(5), crew(3, Site()), ask)
    assert [done.job for done in outcome.done] == [0, 1, 3, 4]
    assert outcome.failed == [2]
    assert [loss.reason for loss in outcome.lost] == ["poison"] * 2
    assert outcome.fault == "given up, for 2 browsers each were lost with them: 2"


def test_what_is_finished_is_kept_where_all_browsers_are_lost():
    def ask(_page, job):
        if job:
            raise BrowserError("no power")
        return job

    outcome = share_out(range(3), crew(1, Site()), ask)
    assert [done.job for done in outcome.done] == [0]
    assert outcome.left == [1, 2]
    assert outcome.fault == "2 of 3 jobs were not done: every browser was lost, browser 0 last (no power)"


def test_a_worker_may_open_another_browser():
    deaths = iter([True, False, True, False, False])

    def ask(_page, job):
        if next(deaths):
            raise BrowserError("gone")
        return job

    site = Site()
    outcome = share_out(range(3), crew(1, site, reopenings=2), ask)
    assert [done.job for done in outcome.done] == [0, 1, 2]
    assert (len(site.opened), len(outcome.lost)) == (3, 2)


def test_a_worker_without_a_slot_retires():
    def ask(*_):
        raise BrowserError("gone")

    site = Site()
    outcome = share_out([1], crew(1, site, reopenings=2, may_reopen=lambda: False), ask)
    assert (len(site.opened), len(outcome.lost), outcome.left) == (1, 1, [1])


def test_a_browser_that_does_not_start_is_a_loss():
    def open_():
        raise BrowserError("Chromium did not start")

    outcome = share_out([1], [Worker(name="dead", open=open_), *crew(1, Site())], lambda _, job: job)
    assert [done.job for done in outcome.done] == [1]
    assert outcome.lost in ([Loss(worker="dead", reason="Chromium did not start")], [])


@settings(max_examples=60, deadline=None)
@given(jobs=st.integers(0, 12), deaths=st.lists(st.sets(st.integers(0, 4)), max_size=4), reopenings=st.integers(0, 2))
def test_whatever_dies_every_job_is_finished_exactly_once(jobs, deaths, reopenings):
    """`deaths` says for each of some workers at which of its jobs it dies; one more never does."""
    finished = Counter()
    lock = threading.Lock()

    class Mortal(Page):
        def __init__(self, dies_at):
            super().__init__()
            self.dies_at, self.asked = dies_at, 0

    def ask(page, job):
        page.asked += 1
        if page.asked - 1 in page.dies_at:
            raise WebDriverException("died")
        with lock:
            finished[job] += 1
        return job

    workers = [
        Worker(name=str(number), open=lambda dies_at=dies_at: contextlib.nullcontext(Mortal(dies_at)), reopenings=reopenings)
        for number, dies_at in enumerate([*deaths, set()])
    ]
    outcome = share_out(range(jobs), workers, ask)
    assert set(finished.values()) <= {1}
    assert [done.job for done in outcome.done] == sorted(finished)
    assert sorted([*finished, *outcome.failed]) == list(range(jobs))
    assert not outcome.left
    assert len(outcome.lost) >= fleet.POISON * len(outcome.failed)


def test_another_error_ends_all_browsers_and_is_raised():
    def ask(page, job):
        if job == 0:
            raise ValueError("the report contradicts itself")
        page.closed.wait(LIMIT_S)
        raise BrowserError("closed")

    site = Site()
    started = time.monotonic()
    with pytest.raises(ValueError, match="contradicts"):
        share_out(range(3), crew(3, site), ask)
    assert time.monotonic() - started < LIMIT_S
    assert all(page.closed.is_set() for page in site.opened)


def test_an_interruption_ends_all_browsers(monkeypatch):
    site = Site()

    def ask(page, _job):
        page.closed.wait(LIMIT_S)
        raise BrowserError("closed")

    join = threading.Thread.join

    def interrupted(thread, limit_s=None):
        if limit_s == fleet.WATCH_S and len(site.opened) == 2:
            raise KeyboardInterrupt
        join(thread, limit_s)

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        share_out(range(9), crew(2, site), ask)
    assert time.monotonic() - started < LIMIT_S
    assert all(page.closed.is_set() for page in site.opened)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("browser ")]


@given(count=st.integers(1, 200), workers=st.integers(1, 16), lanes=st.integers(0, 16))
def test_chunks_hold_each_game_once(count, workers, lanes):
    found = chunks(range(count), workers, lanes)
    assert [seed for chunk in found for seed in chunk] == list(range(count))
    assert max(map(len, found)) <= (lanes or fleet.LARGEST_CHUNK)
    if not lanes:
        assert len(found) >= min(count, fleet.ROUNDS * workers) or len(found[0]) == 1


def part(*seeds):
    played = [
        PlayedGame(
            seed=seed, opening=0, score=float(seed), decisions=10, truncated=False, seconds=1.0, sha256="", reference_score=None
        )
        for seed in seeds
    ]
    return replace(REPORT, tournament=[tournament_entry("wasm-1", played, epsilon=0.5, lanes=1)])


def test_parts_are_merged_to_one_report():
    whole = fleet.merged_parts([part(4, 0), part(2)])
    [entry] = whole.tournament
    assert [game.seed for game in entry.played] == [0, 2, 4]
    assert (entry.games, entry.mean) == (3, 2.0)
    assert whole.engines == REPORT.engines
    with pytest.raises(ValueError, match="twice"):
        fleet.merged_parts([part(1), part(1)])


def test_environments_are_named_and_told_apart():
    name = fleet.environment_name(Browser(name="chrome", version="156.0.1", platform="linux"))
    assert name == "chrome 156 on linux"
    assert fleet.distinct(["a", "b", "a", "a"]) == ["a", "b", "a #2", "a #3"]


def test_all_environments_are_in_the_json_and_the_table():
    environments = [Environment(name="chrome", browser="chrome 156", report=part(2, 4)), Environment(name="firefox")]
    lost = [Loss(worker="firefox 1", reason="no | <b>memory</b>")]
    found = json.loads(fleet.fleet_json(environments, lost))
    assert found["schema"] == "pyapp-fleet/1"
    [only] = found["environments"]
    assert parse_report(json.dumps(only["report"])) == environments[0].report
    assert found["lost"] == [{"worker": "firefox 1", "reason": "no | <b>memory</b>"}]
    text = fleet.fleet_markdown(environments, lost)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    assert ["chrome", "chrome 156", "2", "3.0", "0"] in rows
    assert ["firefox", "–", "–", "–", "–"] in rows
    assert "- firefox 1: no \\| &lt;b>memory&lt;/b>" in text
    assert "# chrome\n" in text


def test_a_check_says_who_agrees_and_who_is_fastest():
    text = fleet.fleet_markdown([Environment(name="here", browser="chrome 1", report=REPORT)], [])
    fastest = min(REPORT.race, key=lambda entry: entry.p50_ms)
    assert f"2 of 2 | {fastest.engine} |" in " ".join(text.split())
    assert f"{fastest.p50_ms:.3f} |" in text


def test_an_outcome_without_a_fault_has_none():
    assert Outcome(done=[], failed=[], left=[], lost=[]).fault is None


# --- The grid ---------------------------------------------------------------------------------------------------------------


def node(*slots, most=8, availability="UP"):
    found = [{"stereotype": {"browserName": name}, "session": {} if busy else None} for name, busy in slots]
    return {"availability": availability, "maxSessions": most, "slots": found}


CHROME, FIREFOX = {"browserName": "chrome"}, {"browserName": "Firefox"}
FREE, BUSY, FOX = ("chrome", False), ("chrome", True), ("firefox", False)


@pytest.mark.parametrize(
    ("nodes", "wanted", "counts"),
    [
        ([], [CHROME], [1]),
        ([node(FREE), node(FREE)], [CHROME], [2]),
        ([node(FREE, BUSY)], [CHROME], [1]),
        ([node(BUSY)], [CHROME], [1]),
        ([node(*[FREE] * 20, most=20)], [CHROME], [8]),
        ([node(FREE, FREE, FOX, FOX, most=2)], [CHROME, FIREFOX], [1, 1]),
        ([node(FREE, FREE, FOX, FOX, most=4)], [CHROME, FIREFOX], [2, 2]),
        ([node(FREE, FREE, FREE)], [CHROME, CHROME], [2, 1]),
        ([node(FREE), node(FREE, availability="DOWN")], [CHROME], [1]),
        ([node(FREE, FREE)], [FIREFOX], [1]),
    ],
)
def test_slots_are_shared_out(nodes, wanted, counts):
    assert grid.session_counts({"nodes": nodes}, wanted, most=8) == counts


def test_a_grid_that_does_not_tell_its_slots_is_asked_for_one_session():
    assert grid.session_counts(None, [CHROME, FIREFOX], most=8) == [1, 1]


@pytest.mark.parametrize("text", ["", "grid", "ftp://grid", "http://", "http://grid:0", "http://grid:high", "http://[::1"])
def test_an_address_that_is_none_is_told(text):
    with pytest.raises(BrowserError, match="no address of a Selenium Grid") as told:
        grid.remote_url(text)
    assert repr(text) in str(told.value)


def test_a_login_is_in_no_name():
    options = grid.RemoteOptions(url=grid.remote_url("https://me:secret@grid:4444/wd/hub/"))
    assert (options.url, options.place) == ("https://me:secret@grid:4444/wd/hub", "grid:4444")


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://localhost:4444", True),
        ("http://127.0.0.1", True),
        ("http://[::1]:1", True),
        ("http://127.0.0.1.example.org", False),
        ("http://10.0.0.1", False),
        ("", False),
    ],
)
def test_loopback_is_this_machine(url, here):
    assert grid.is_loopback(url) is here


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (None, "cannot be read"),
        ("{", "holds no JSON"),
        ("{}", "no list of capabilities"),
        ("[]", "no list of capabilities"),
        ('["chrome"]', '"chrome"'),
        ('[{"browserVersion": "156"}]', "has no browserName"),
    ],
)
def test_capabilities_that_are_none_are_told(content, fault, tmp_path):
    file = tmp_path / "wanted.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(BrowserError, match="give --capabilities a file like") as told:
        grid.read_capabilities(file)
    assert fault in str(told.value)
    assert str(file) in str(told.value)


def test_capabilities_are_read(tmp_path):
    file = tmp_path / "wanted.json"
    file.write_text(json.dumps([CHROME, FIREFOX]))
    assert grid.read_capabilities(file) == [CHROME, FIREFOX]
