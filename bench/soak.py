"""Does memory stay where it is, hour after hour? `python bench/soak.py` (needs `make build`; Linux).

Two parts, each in a page of its own that is never reloaded. *loop*: check and race, play with changes of engines, tournament,
and again. *engines*: one engine after the other is opened, asked once and closed. After each loop, or every five engines,
garbage is collected in the page and in all its workers, and memory is measured: of each kind of process by the operating
system, of the page and of its workers by the browser itself.

A series is flat where neither of two figures is above 5 % (`BOUND`), both without the first tenth of the samples, in which
code is compiled and pools fill: the *level*, the median of the last tenth over that of the second; and the *trend*, the
Theil-Sen slope times the time, over the median. The level alone misses what grows and happens to fall at the end, the trend
alone a step that comes late. What falls is no leak. Every series has to be flat but those of `SHOWN_ONLY`.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import websocket
from common import dist, finish, load, run_inside
from numpy.typing import NDArray
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.remote.remote_connection import RemoteConnection
from urllib3 import PoolManager

from pyapp.chromium import BrowserOptions, PageDriver, open_page
from pyapp.serve import SiteServer

BOUND = 1.05
"""A series may grow to that many times what it was, after its first tenth."""

STATES = 12
"""Of each suite, for each engine of a check."""

SETTLE_S = 10.0
"""How long an ended worker may take to be gone."""

ANSWER_S = 610
"""Selenium gives up after 120 s, which a check on a software GPU takes on a busy machine; a script may run for 600 s."""

WASM = ("wasm-1", "wasm-2")
WEBGPU = ("webgpu-stock", "webgpu-fast")

PROCESSES = {"browser": "browser process", "renderer": "renderer process", "GPU": "GPU process"}

SHOWN_ONLY = frozenset({"browser process"})
"""Chromium's own: a worker that is nothing but `postMessage(1)` leaves some 50 kB there, however it ends."""

type Sample = dict[str, float]


@dataclass(frozen=True)
class Trend:
    """What became of one series after its first tenth.

    Attributes
    ----------
    start, end : float
        Medians of the second tenth and of the last.
    level : float
        How much `end` is above `start`, as a share of it.
    trend : float
        The Theil-Sen slope times the time, as a share of the median.
    spread : float
        The largest less the smallest sample, as a share of the median.
    """

    start: float
    end: float
    level: float
    trend: float
    spread: float

    @property
    def growth(self) -> float:
        """The worse of level and trend."""
        return max(self.level, self.trend)

    @property
    def flat(self) -> bool:
        """Whether it grew by no more than `BOUND`."""
        return 1 + self.growth <= BOUND


def judge(times: NDArray[np.float64], values: NDArray[np.float64]) -> Trend:
    """Judge one series.

    Parameters
    ----------
    times, values : float64 [n]
        Seconds, ascending, and what was measured then.

    Raises
    ------
    ValueError
        If there are fewer than 10 samples, so that a tenth is less than one.
    """
    tenth = len(values) // 10
    if tenth == 0:
        raise ValueError(f"{len(values)} samples cannot be judged; measure at least 10")
    times, values = times[tenth:], values[tenth:]
    start, end, median = (float(np.median(part)) for part in (values[:tenth], values[-tenth:], values))
    earlier, later = np.triu_indices(len(values), k=1)
    slope = float(np.median((values[later] - values[earlier]) / (times[later] - times[earlier])))
    share = {"level": end - start, "trend": slope * (times[-1] - times[0]), "spread": float(np.ptp(values))}
    # What is nowhere is flat at nothing.
    of = {"level": start, "trend": median, "spread": median}
    return Trend(start, end, **{name: _over(part, of[name]) for name, part in share.items()})


def _over(part: float, whole: float) -> float:
    if whole:
        return float(part / whole)
    return 0.0 if part == 0 else math.inf


class Devtools:
    """Chromium's own end of its debugging protocol: all processes and all workers, which Selenium's end does not reach."""

    def __init__(self, address: str) -> None:
        version = PoolManager().request("GET", f"http://{address}/json/version").json()
        self._socket = websocket.create_connection(version["webSocketDebuggerUrl"], suppress_origin=True, timeout=60)
        self._last = 0

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def ask(self, method: str, session: str | None = None, **params: object) -> dict[str, Any]:
        """Call a method; events that come meanwhile are dropped."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        self._socket.send(json.dumps(message | ({"sessionId": session} if session else {})))
        while (answer := json.loads(self._socket.recv())).get("id") != self._last:
            pass
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        found: dict[str, Any] = answer["result"]
        return found

    def targets(self, *kinds: str) -> list[dict[str, Any]]:
        """List pages or workers."""
        return [target for target in self.ask("Target.getTargets")["targetInfos"] if target["type"] in kinds]

    def collect(self) -> None:
        """Collect garbage in the page and in all its workers."""
        for target in self.targets("page", "worker"):
            session = self.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
            self.ask("HeapProfiler.collectGarbage", session)
            self.ask("Target.detachFromTarget", sessionId=session)

    def processes(self) -> dict[str, float]:
        """Return the MB of each kind of process."""
        found: Counter[str] = Counter()
        for process in self.ask("SystemInfo.getProcessInfo")["processInfo"]:
            if process["type"] in PROCESSES:
                found[PROCESSES[process["type"]]] += own_memory(process["id"])
        return {name: size / 1e6 for name, size in found.items()}


def own_memory(pid: int) -> int:
    """Return the bytes of a process, its own and its part of what it shares; without files, which other browsers share, too."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]
    kilobytes = {name: int(value.split()[0]) for name, value in (line.split(":") for line in lines)}
    return 1024 * (kilobytes["Pss_Anon"] + kilobytes["Pss_Shmem"] + kilobytes["SwapPss"])


class Soak:
    """One part: a page, and the memory it took."""

    def __init__(self, driver: PageDriver) -> None:
        self.driver = driver
        self.samples: list[Sample] = []
        self._begun = time.monotonic()
        self._devtools = Devtools(driver.driver.capabilities["goog:chromeOptions"]["debuggerAddress"])
        driver.driver.execute_cdp_cmd("Performance.enable", {})
        connection = driver.driver.command_executor
        assert isinstance(connection, RemoteConnection)
        connection.client_config.timeout = ANSWER_S

    def close(self) -> None:
        """End the connection to the browser."""
        self._devtools.close()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the part began."""
        return time.monotonic() - self._begun

    def sample(self, workers: int) -> None:
        """Measure, once no more than so many workers are left."""
        deadline = time.monotonic() + SETTLE_S
        while len(self._devtools.targets("worker")) > workers and time.monotonic() < deadline:
            time.sleep(0.1)
        python = run_inside(self.driver, "soak", verb="memory")
        for _ in range(2):  # what one realm lets go of may be what another one held
            self._devtools.collect()
        realms = self.driver.run(REALMS)
        counts = self.driver.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        counted = {metric["name"]: metric["value"] for metric in counts}
        sample = {
            "seconds": round(self.elapsed_s, 1),
            **self._devtools.processes(),
            "page": realms["page"] / 1e6,
            "workers": realms["workers"] / 1e6,
            "Python's heap": python["heap"] / 1e6,
            "Python's objects": python["objects"],
            "DOM nodes": counted["Nodes"],
            "listeners": counted["JSEventListeners"],
            "number of workers": len(self._devtools.targets("worker")),
        }
        self.samples.append(sample)
        shown = ", ".join(f"{name} {value:.6g}" for name, value in sample.items())
        print(f"{len(self.samples)}: {shown}", flush=True)


REALMS = """
    const { breakdown } = await performance.measureUserAgentSpecificMemory();
    const found = { page: 0, workers: 0 };
    for (const { bytes, attribution } of breakdown) {
        found[attribution.some(({ scope }) => scope.includes('Worker')) ? 'workers' : 'page'] += bytes;
    }
    return found;
"""


def ask(driver: PageDriver, question: str, settings: dict[str, object], wanted: str) -> Any:
    """Ask a question and return what `wanted` says of its report.

    It waits within the page: Chromium's driver keeps what each call answers in the page's memory, and polling would look like a
    leak of some 60 kB a minute.
    """
    script = f"""
        await pyappPage.ask(argument.question, argument.settings);
        if (pyappPage.error) throw new Error(JSON.stringify(pyappPage.error));
        const {{ report }} = pyappPage;
        return {wanted};
    """
    return driver.run(script, {"question": question, "settings": settings})


def check(soak: Soak, number: int, engines: list[str]) -> None:
    """Check and race, a few runs of each engine."""
    wrong = "report.engines.some(({ actual }) => !actual) || report.parity.some(({ passed }) => !passed)"
    if ask(soak.driver, "check", {"engines": engines, "runs": 5, "warmup": 1, "seed": number}, wrong):
        raise RuntimeError(f"in the check of loop {number} an engine did not open, or gave other answers than Python")


def play(soak: Soak, seconds: float, engine: str) -> None:
    """Start both games, hold the space bar, change the agent's engine in mid-game and back, at both speeds."""
    driver = soak.driver
    driver.run("document.querySelector('#play select').value = 'wasm-1'; await pyappPage.play.start()")
    if (state := driver.run("return pyappPage.play.state")) != "playing":
        raise RuntimeError(f"the games are {state}: " + driver.run("return document.querySelector('#play .error').textContent"))
    keys = ActionChains(driver.driver).key_down(Keys.SPACE).pause(seconds / 3).key_up(Keys.SPACE)
    choose_speed(driver, "1×")
    keys.key_down(Keys.ARROW_LEFT).pause(seconds / 6).key_up(Keys.ARROW_LEFT).perform()
    exchange(driver, engine)
    time.sleep(seconds / 4)
    exchange(driver, "wasm-1")
    choose_speed(driver, "max")
    time.sleep(seconds / 4)
    driver.run("await pyappPage.play.pause()")


def choose_speed(driver: PageDriver, label: str) -> None:
    """Choose the agent's speed; within the page, because the driver keeps each element that it finds, some kB of them."""
    driver.run(
        """
        const labels = [...document.querySelectorAll('#play .speeds label')];
        labels.find((one) => one.textContent.includes(argument)).querySelector('input').click();
        """,
        label,
    )


def exchange(driver: PageDriver, engine: str) -> None:
    """Choose another engine, and wait until it plays."""
    driver.run(
        """
        const part = (css) => document.querySelector(`#play ${css}`);
        const [choice, status, trouble] = ['select', '[role=status]', '.error'].map(part);
        const begun = performance.now();
        choice.value = argument;
        choice.dispatchEvent(new Event('change'));
        while (!status.textContent.startsWith(`${argument} plays on`)) {
            if (performance.now() - begun > 300_000) throw new Error(`${argument} does not play: ${trouble?.textContent}`);
            await new Promise((done) => setTimeout(done, 50));
        }
        """,
        engine,
    )


def tournament(soak: Soak, number: int, games: int) -> None:
    """Play whole games; on WASM alone, because a software GPU would take an hour for one."""
    settings = {"engines": list(WASM), "games": games, "seed": 1000 * number}
    played = ask(soak.driver, "tournament", settings, "report.tournament.map(({ games }) => games)")
    if played != [games] * len(WASM):
        raise RuntimeError(f"the tournament of loop {number} is not whole: {played} games")


def run_loop(soak: Soak, arguments: argparse.Namespace) -> None:
    """Go round until the time is over."""
    engines = [*WASM, *(WEBGPU if arguments.gpu != "none" else ())]
    run_inside(soak.driver, "soak", verb="cut", count=STATES)
    for number, other in enumerate(cycle(engines[1:]), 1):
        laps = [soak.elapsed_s]
        check(soak, number, engines)
        laps.append(soak.elapsed_s)
        play(soak, arguments.play, other)
        laps.append(soak.elapsed_s)
        tournament(soak, number, arguments.games)
        laps.append(soak.elapsed_s)
        soak.sample(workers=3)  # Python, the visitor's board, the agent's engine
        took = ", ".join(f"{later - earlier:.0f}" for earlier, later in pairwise(laps))
        print(f"   seconds of check, play and tournament: {took}", flush=True)
        if soak.elapsed_s > 60 * arguments.minutes:
            return


def run_engines(soak: Soak, arguments: argparse.Namespace) -> None:
    """Open, ask and close so many engines."""
    names = cycle([*WASM, *(WEBGPU if arguments.gpu != "none" else ())])
    left = arguments.engines
    while left > 0:
        some = list(islice(names, min(5, left)))
        left -= len(some)
        differences = run_inside(soak.driver, "soak", verb="engines", names=some)
        if not max(differences) < 1e-4:
            raise RuntimeError(f"engines {some} differ from Python by {differences}")
        soak.sample(workers=1)


@contextmanager
def opened(site: Path, gpu: str) -> Iterator[Soak]:
    """Open a page on a copy of the site, which no build can change meanwhile."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "site"
        shutil.copytree(site, folder)
        # So that memory is measured at once, not at the next garbage collection.
        options = BrowserOptions(gpu=gpu, arguments=("--enable-blink-features=ForceEagerMeasureMemory",))
        with SiteServer(folder) as server, open_page(options, server.url) as driver:
            soak = Soak(driver)
            try:
                yield soak
            finally:
                soak.close()


def verdicts(samples: list[Sample]) -> dict[str, Trend]:
    """Judge every series of a part."""
    times = np.array([sample["seconds"] for sample in samples])
    names = [name for name in samples[0] if name != "seconds"]
    return {name: judge(times, np.array([sample[name] for sample in samples])) for name in names}


def print_table(part: str, samples: list[Sample], found: dict[str, Trend]) -> None:
    """Print what became of every series."""
    print(f"{part}: {len(samples)} samples in {samples[-1]['seconds'] / 60:.1f} min, the first tenth left out")
    print(f"{'MB, or a count':20} {'2nd tenth':>10} {'last tenth':>10} {'level':>8} {'trend':>8} {'spread':>8}")
    for name, trend in found.items():
        figures = " ".join(f"{value:8.2%}" for value in (trend.level, trend.trend, trend.spread))
        remark = "  only shown" if name in SHOWN_ONLY else "" if trend.flat else "  GROWS"
        print(f"{name:20} {trend.start:10.4g} {trend.end:10.4g} {figures}{remark}")


def main() -> int:
    """Soak, print what memory did, and return 0 if every series is flat."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0, help="of the loop; 0: without it")
    parser.add_argument("--engines", type=int, default=200, help="engines opened and closed; 0: without it")
    parser.add_argument("--gpu", default="software", choices=("auto", "software", "none"))
    parser.add_argument("--play", type=float, default=8.0, help="seconds of play in each loop")
    parser.add_argument("--games", type=int, default=2, help="games of a tournament")
    parser.add_argument("--site", type=Path, default=dist(), help="the built site; a copy of it is measured")
    parser.add_argument("--csv", type=Path, help="where every sample goes, after each part")
    arguments = parser.parse_args()
    before = load()
    found: dict[str, dict[str, Trend]] = {}
    rows: list[dict[str, object]] = []
    parts = {"loop": (arguments.minutes, run_loop), "engines": (arguments.engines, run_engines)}
    for part, (wanted, run) in parts.items():
        if not wanted:
            continue
        with opened(arguments.site, arguments.gpu) as soak:
            try:
                run(soak, arguments)
            finally:
                rows += [{"part": part, **sample} for sample in soak.samples]
                if arguments.csv:
                    write(arguments.csv, rows)
        found[part] = verdicts(soak.samples)
        print_table(part, soak.samples, found[part])
    print(f"{before} before, {load()} after")
    worst, growth = worst_of(found)
    return finish("soak", ratio=1 + growth, bound=BOUND, n=len(rows), worst=worst)


def worst_of(found: dict[str, dict[str, Trend]]) -> tuple[str, float]:
    """Name the series of all parts that grew most, and say how much."""
    judged = {
        f"{part}, {name}": trend.growth
        for part, series in found.items()
        for name, trend in series.items()
        if name not in SHOWN_ONLY
    }
    return max(judged.items(), key=lambda item: item[1])


def write(path: Path, rows: list[dict[str, object]]) -> None:
    """Write all samples, a line each."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    sys.exit(main())
