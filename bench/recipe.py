"""Is the explanation whole, how far is the fast runner from its floor, does `tune` find the winner? `python bench/recipe.py`.

Several fresh browsers (needs `make build`): in each the stages of each engine; in the last one also a search, and a check that
races what the search had in its last rung. The fast runner's floor is what nobody can save: the GPU's arithmetic, and an empty
dispatch with its readback.

On a software adapter WebGPU is explained and judged, and not compared: the ratio in the last line is then that of `wasm-1`'s
whole run to the sum of its stages.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from common import dist, finish, load, machine

from pyapp.chromium import BrowserOptions, open_page
from pyapp.serve import SiteServer

FAST = "webgpu-fast"
BOUND = 1.5
SOFTWARE_BOUND = 1.1
TIE = 1.05
"""Two engines whose medians are so near are the same in another run."""

MOST_RACED = 6


def explain_table(stages: list[dict[str, Any]]) -> None:
    """Print every engine's stages, their sum and the whole run."""
    names = ["upload", "dispatch", "compute", "wait", "readback"]
    print(f"{'P50 in ms':16}" + "".join(f"{name:>10}" for name in [*names, "sum", "whole", "floor"]) + "  compute from")
    for entry in stages:
        ms = {stage["stage"]: stage["p50_ms"] for stage in entry["stages"]}
        values = [*(ms.get(name) for name in names), entry["sum_ms"], entry["total_ms"], entry["floor_ms"]]
        cells = "".join(f"{'-' if value is None else format(value, '.3f'):>10}" for value in values)
        print(f"{entry['engine']:16}{cells}  {entry['compute_from']}")
        for warning in entry["warnings"]:
            print(f"  {warning}")


def is_software(stages: list[dict[str, Any]]) -> bool:
    """Tell whether there is no GPU whose time means something."""
    fast = next((entry for entry in stages if entry["engine"] == FAST), None)
    return fast is None or any("software adapter" in warning for warning in fast["warnings"])


def of_sum(stages: list[dict[str, Any]]) -> float:
    """Return the ratio of the whole run of `wasm-1` to the sum of its stages."""
    entry = next(entry for entry in stages if entry["engine"] == "wasm-1")
    return float(entry["total_ms"] / entry["sum_ms"])


def of_floor(stages: list[dict[str, Any]]) -> float:
    """Return the ratio of the fast runner's whole run to what nobody can save."""
    entry = next(entry for entry in stages if entry["engine"] == FAST)
    compute = next(stage["p50_ms"] for stage in entry["stages"] if stage["stage"] == "compute")
    return float(entry["total_ms"] / (compute + entry["floor_ms"]))


def tune_table(tune: dict[str, Any]) -> None:
    """Print what was tried and what is recommended."""
    for one in tune["candidates"]:
        times = [f"{one[name]:8.3f}" if one[name] else f"{'-':>8}" for name in ("p50_ms", "p95_ms")]
        print(
            f"{one['engine']:32} {' '.join(times)} {one['agree']:4} of {one['cases']:4}  {one['status']} {one['reason'] or ''}"
        )
    for choice in tune["recipe"]:
        interval = f"{choice['ms']:.3f} ({choice['low']:.3f} to {choice['high']:.3f}) ms"
        print(f"recipe for {choice['purpose']:7} {choice['engine']:28} {interval}; ties: {', '.join(choice['ties']) or 'none'}")
    print(f"found in {tune['seconds']} s")


def picked_the_winner(tune: dict[str, Any], race: list[dict[str, Any]]) -> bool:
    """Tell whether the recipe for one state at a time is as fast as the fastest of a race of its own, or was tied with it."""
    p50 = {lane["engine"]: lane["p50_ms"] for lane in race}
    [single] = [choice for choice in tune["recipe"] if choice["purpose"] == "single"]
    fastest = min(p50, key=p50.__getitem__)
    print(
        f"the race after it: {', '.join(f'{name} {ms:.3f}' for name, ms in sorted(p50.items(), key=lambda item: item[1]))} ms"
    )
    return fastest in (single["engine"], *single["ties"]) or p50[single["engine"]] <= TIE * p50[fastest]


def main() -> int:
    """Ask, print tables, and return 0 if the stages add up, the floor is near and the winner was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--browsers", type=int, default=5, help="fresh browsers; one is enough on a software adapter")
    parser.add_argument("--runs", type=int, default=50, help="runs of each kind")
    parser.add_argument("--seconds", type=float, default=110, help="for the search")
    parser.add_argument("--gpu", choices=("auto", "software"), default="auto", help="auto: the machine's, where there is one")
    parser.add_argument("--browser", default="", help="path of Chromium")
    parser.add_argument("--driver", default="", help="path of chromedriver")
    parser.add_argument("--json", type=Path, help="write everything to this file")
    arguments = parser.parse_args()
    if arguments.browsers < 1:
        parser.error(f"--browsers is {arguments.browsers}; give at least 1")
    options = BrowserOptions(gpu=arguments.gpu, browser=arguments.browser, driver=arguments.driver)
    before = load()
    record: dict[str, Any] = {
        "what": "bench/recipe.py: stages, in fresh browsers; in the last one a search and a race of its finalists",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": shlex.join(["python", *sys.argv]),
        "machine": machine(),
    }

    def keep(**found: object) -> None:
        """Store what has been found so far: a machine that is lent may be taken away."""
        record.update(found)
        if arguments.json:
            arguments.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")

    explained: list[list[dict[str, Any]]] = []
    with SiteServer(dist()) as server:
        for left in reversed(range(arguments.browsers)):
            with open_page(options, server.url) as page:
                report = page.ask("explain", {"runs": arguments.runs})
                explained.append(report["stages"])
                print(f"browser {len(explained)}")
                explain_table(explained[-1])
                adapters = [entry["actual"]["adapter"] for entry in report["engines"] if entry["actual"]]
                facts = {name: report["environment"][name] for name in ("user_agent", "versions", "cores", "model_sha256")}
                keep(**facts, adapter=next(filter(None, adapters), None), stages=explained)
                last = not left or is_software(explained[-1])
                if last:
                    tune = page.ask("tune", {"budget_s": arguments.seconds})["tune"]
                    tune_table(tune)
                    keep(tune=tune)
                    most = max(one["rungs"] for one in tune["candidates"])
                    finalists = [
                        one["engine"] for one in tune["candidates"] if one["status"] == "raced" and one["rungs"] == most
                    ]
                    race = page.check({"engines": finalists[:MOST_RACED], "runs": 100})["race"]
                    keep(race=[{name: lane[name] for name in ("engine", "runs", "p50_ms", "p95_ms")} for lane in race])
            if last:
                break
    won = picked_the_winner(tune, race)
    print(f"the search {'found' if won else 'did not find'} the winner; {before} before, {load()} after")
    software = is_software(explained[-1])
    ratios = [of_sum(stages) if software else of_floor(stages) for stages in explained]
    print(f"browser by browser: {', '.join(f'{ratio:.2f}' for ratio in ratios)}")
    return finish(
        "recipe",
        ratio=float(np.median(ratios)),
        bound=SOFTWARE_BOUND if software else BOUND,
        n=arguments.runs * len(explained),
        condition=won,
        what="whole run of wasm-1 / sum of its stages" if software else f"P50 of {FAST} / (compute + floor)",
        software=software,
        winner_found=won,
        browsers=len(explained),
    )


if __name__ == "__main__":
    sys.exit(main())
