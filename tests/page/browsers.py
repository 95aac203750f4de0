"""What a browser can do with the page: asked of the page itself, kept in `docs/browsers.json`, shown in the README."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "docs" / "browsers.json"
README = ROOT / "README.md"
BEGIN, END = "<!-- docs/browsers.json, by `make browsers` -->\n", "<!-- end -->\n"


class Page(Protocol):
    """The page in a browser, whoever drives it."""

    def run(self, body: str, argument: object = None) -> Any:
        """Run the body of an async JavaScript function of `argument` in the page."""


STOPPED = """
    const answer = pyappPage.evaluate(argument).then(({ traceback }) => traceback, ({ name }) => name);
    await new Promise((done) => setTimeout(done, 500));
    await pyappPage.stop();
    const ended = await answer;
    const words = { KeyboardInterrupt: 'an interrupt', CancelledError: 'a cancel', PythonRestarted: 'a restart' };
    const found = Object.keys(words).find((name) => ended.includes(name));
    return found ? `by ${words[found]}` : ended;
"""

PLAYED = """
    const { play } = pyappPage;
    const drawn = (board) => {
        const shown = document.querySelector(`.board.${board} canvas.game`);
        const copy = new OffscreenCanvas(shown.width, shown.height).getContext('2d');
        copy.drawImage(shown, 0, 0);
        return copy.getImageData(0, 0, shown.width, shown.height).data.reduce((sum, byte) => (31 * sum + byte) >>> 0, 7);
    };
    const until = async (met) => {
        for (const end = performance.now() + 20_000; performance.now() < end; ) {
            if (await met()) return true;
            await new Promise((done) => setTimeout(done, 50));
        }
        return false;
    };
    await play.start();
    const playing = await until(() => play.state === 'playing');
    if (!playing) return `no: ${document.querySelector('#play .error').textContent}`;
    const [agent, { frame }] = [drawn('agent'), await play.probe()];
    const agentMoves = await until(() => drawn('agent') !== agent);
    const visitorMoves = await until(async () => (await play.probe()).frame > frame + 30);
    return agentMoves && visitorMoves ? 'yes' : 'no: a board stands still';
"""


def capabilities(page: Page, report: dict[str, Any]) -> dict[str, str]:
    """Return what a browser can do, in words that are the same from run to run.

    Parameters
    ----------
    page
        A page that is ready; afterwards a game plays in it.
    report
        Of a whole check in this browser, with a WASM engine of one thread, one of several, `webgpu-stock` and `webgpu-fast`.
    """
    environment = report["environment"]
    engines = {entry["name"]: entry for entry in report["engines"]}
    threaded = next(name for name in engines if name.startswith("wasm-") and name != "wasm-1")
    stock, fast = engines["webgpu-stock"], engines["webgpu-fast"]
    can_measure = page.run("return 'measureUserAgentSpecificMemory' in performance")
    return {
        "Cross-origin isolated": _yes(environment["cross_origin_isolated"]),
        "Step of the clock": f"{round(environment['clock_step_ms'] * 1000)} µs",
        "WASM, one thread": _answers(report, "wasm-1"),
        "WASM, threads": _answers(report, threaded)
        if (engines[threaded]["actual"] or {}).get("threads", 1) > 1
        else "one only",
        "`WebAssembly.Suspending` (JSPI build)": _yes(environment["jspi"]),
        "WebGPU adapter": _adapter(environment, stock),
        "`webgpu-stock`": _answers(report, "webgpu-stock"),
        "`webgpu-fast`": _answers(report, "webgpu-fast"),
        "Graph capture": _yes("capture" in fast["actual"]["runner"]) if fast["actual"] else "–",
        "Python stops while it computes": page.run(STOPPED, "while True: pass"),
        "Python stops while it waits": page.run(STOPPED, "import asyncio; await asyncio.sleep(1000)"),
        "The game": page.run(PLAYED),
        "Measures memory": _yes(can_measure),
    }


def _yes(holds: object) -> str:
    return "yes" if holds else "no"


def _answers(report: dict[str, Any], engine: str) -> str:
    parts = [entry for entry in report["parity"] if entry["engine"] == engine]
    return ", ".join(f"{entry['agree']} of {entry['cases']}" for entry in parts) or "–"


def _adapter(environment: dict[str, Any], stock: dict[str, Any]) -> str:
    if stock["actual"]:
        return "software" if stock["actual"]["adapter"]["software"] else "hardware"
    return "none on this machine" if environment["webgpu"] else "not offered"


def kept() -> list[dict[str, Any]]:
    """Return what was found last: of each browser its name, version, how it ran, and what it can do."""
    found: list[dict[str, Any]] = json.loads(KEPT.read_text(encoding="utf-8"))["browsers"] if KEPT.is_file() else []
    return found


def keep(name: str, version: str, how: str, can: dict[str, str]) -> None:
    """Write down what a browser can do, and make the README's table anew."""
    entry = {"name": name, "version": version, "how": how, "can": can}
    browsers = sorted([*(one for one in kept() if one["name"] != name), entry], key=lambda one: str(one["name"]))
    data = {"schema": "pyapp-browsers/1", "browsers": browsers}
    KEPT.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    before, begin, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    README.write_text(f"{before}{begin}{table(browsers)}{END}{after}", encoding="utf-8")


def shown() -> str:
    """Return the README's table."""
    return README.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]


def table(browsers: list[dict[str, Any]]) -> str:
    """Return a Markdown table with a column for each browser."""
    rows = dict.fromkeys(row for browser in browsers for row in browser["can"])
    lines = [
        ["", *(f"{browser['name']} {browser['version'].partition('.')[0]}, {browser['how']}" for browser in browsers)],
        ["---"] * (len(browsers) + 1),
        *([row, *(browser["can"].get(row, "–") for browser in browsers)] for row in rows),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
