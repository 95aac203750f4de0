from dataclasses import replace

import pytest

from pyapp import report as r
from pyapp.engine import EngineSpec
from pyapp.verdict import CRITERIA, verdict
from tests.unit.fakes import ENVIRONMENT

NOT_WEBGPU = r.Failure(name="WebGpuUnavailable", message="no adapter", remedy="Use another browser.")
CASES = {"states": 60, "stress": 600}


def engine(name, *, software=False, error=None, **changes):
    spec = EngineSpec.parse(name)
    gpu = spec.provider == "webgpu"
    adapter = r.Adapter(vendor="nvidia", architecture="hopper", device="", description="", software=software) if gpu else None
    ran = {"provider": spec.provider, "runner": spec.runner, "threads": spec.threads}
    actual = None if error else r.Actual(**ran, build="jspi", nodes={}, adapter=adapter, fallbacks=[])
    asked = r.Requested(**ran, build=spec.build)
    entry = r.EngineEntry(name=name, requested=asked, actual=actual, create_ms=1.0, first_run_ms=1.0, error=error)
    return replace(entry, **changes)


def answers(name, suite, wrong=()):
    fields = {"min_margin": 0.1, "hardest": 0, "could_flip": [], "explained": [], "failures": [], "q_values": [], "action": []}
    cases, wrong = CASES[suite], list(wrong)
    return r.ParityEntry(
        engine=name, suite=suite, cases=cases, agree=cases - len(wrong), passed=not wrong, max_abs_diff=3e-6,
        mean_abs_diff=1e-6, disagreements=wrong, warnings=["actions differ"] if wrong else [], **fields,
    )  # fmt: skip


def timed(name, ms, p95=None, **changes):
    fields = {"mean_ms": ms, "min_ms": ms, "max_ms": ms, "outliers": 0, "clock_step_ms": 0.005, "samples_ms": [], "blocks": []}
    counts = {"runs": 100, "warmup": 10, "lead_in": 10, "warmup_ms": []}
    return r.RaceEntry(engine=name, p50_ms=ms, p95_ms=p95 or 1.2 * ms, **counts, **fields, **changes)


def ratio(one, other, p50, low, high, **changes):
    bounds = {"p50": p50, "low": low, "high": high, "p95": p50, "p95_low": low, "p95_high": high}
    return r.RatioEntry(numerator=one, denominator=other, reason=None, **bounds) if not changes else r.RatioEntry(
        numerator=one, denominator=other, **dict.fromkeys(bounds), **changes
    )  # fmt: skip


def report(engines, times, ratios, *, wrong=(), asked=True, loop=(), **environment):
    known = ENVIRONMENT | {"webgpu": True, "jspi": True} | environment
    return r.Report(
        schema=r.SCHEMA,
        settings=r.Settings(engines=[entry.name for entry in engines], runs=100, warmup=10, seed=0),
        environment=r.Environment(**known, created="", clock_step_ms=0.005, model_sha256=""),
        engines=list(engines),
        suites=[r.SuiteEntry(suite=s, cases=n, source="", q_values=[], action=[], margin=[]) for s, n in CASES.items()],
        parity=[
            answers(entry.name, suite, [7] if entry.name in wrong and suite == "stress" else ())
            for suite in CASES for entry in engines if asked and entry.actual
        ],
        race=[timed(name, ms) if isinstance(ms, float) else ms for name, ms in times.items()],
        ratios=list(ratios),
        loop=list(loop),
    )  # fmt: skip


def games(name, low=-2.0, high=1.0, unexplained=0, error=None):
    scores = {"mean": 31.0, "low": 29.0, "high": 33.0, "median": 31.0, "min": 20.0, "max": 40.0, "mean_decisions": 900.0}
    counts = {"games": 30, "truncated": 0, "compared": 30, "departures": 4, "unexplained": unexplained}
    against = {"reference_mean": 31.5, "difference_low": low, "difference_high": high}
    speeds = {"decisions_per_s": 100.0, "games_per_min": 6.0}
    return r.TournamentEntry(
        engine=name, epsilon=0.01, lanes=1, played=[], error=error, **scores, **counts, **against, **speeds
    )


def played(*entries):
    return replace(CLEAR, tournament=list(entries))


def line(found, name, criterion):
    return next(line for line in found.lines if (line.engine, line.criterion) == (name, criterion))


PAIR = [engine("wasm-1"), engine("webgpu-fast")]
TIMES = {"wasm-1": 2.0, "webgpu-fast": 1.0}
CLEAR = report(PAIR, TIMES, [ratio("webgpu-fast", "wasm-1", 0.5, 0.4, 0.625)])


def test_a_clear_winner_with_its_numbers():
    loop = r.LoopEntry(engine="webgpu-fast", stage="decision", p50_ms=3.5, p95_ms=5.0, n=90, frames=600, missed_frames=3,
                       late_decisions=0)  # fmt: skip
    found = verdict(replace(CLEAR, loop=[loop]))
    assert (found.engine, found.decided) == ("webgpu-fast", True)
    # The ratio was measured the other way round.
    assert "wasm-1, the next, takes 2.00 (95 % interval 1.60 to 2.50) times as long" in found.sentence
    assert [one.criterion for one in found.lines] == [*CRITERIA, *CRITERIA]
    told = line(found, "webgpu-fast", "answers")
    assert told.status == "pass"
    assert told.text == "60 of 60 actions of states, 600 of 600 actions of stress, largest error 3.0e-06."
    assert "P95 is 1.20 times P50" in line(found, "webgpu-fast", "stability").text
    assert "3 of 600 frames missed" in line(found, "webgpu-fast", "stability").text
    assert "3.50 ms at the median of 90" in line(found, "webgpu-fast", "speed").text
    assert line(found, "wasm-1", "speed").status == "fail"
    assert line(found, "wasm-1", "scores").status == "unknown"
    assert found.next_steps == ["Play at least 30 games with every engine to compare scores."]


def test_a_tie_goes_to_the_simpler_engine():
    found = verdict(replace(CLEAR, ratios=[ratio("webgpu-fast", "wasm-1", 0.95, 0.8, 1.1)]))
    assert (found.engine, found.decided) == ("wasm-1", True)
    assert "tied" in found.sentence
    assert "simplest" in found.sentence
    assert line(found, "wasm-1", "speed").status == "pass"


@pytest.mark.parametrize(
    ("simple", "other"), [("wasm-1", "wasm-4"), ("wasm-4", "webgpu-stock"), ("webgpu-stock", "webgpu-fast")]
)
def test_what_is_simpler(simple, other):
    tied = report([engine(other), engine(simple)], {simple: 1.1, other: 1.0}, [ratio(simple, other, 1.1, 0.9, 1.3)])
    assert verdict(tied).engine == simple


def test_wrong_answers_never_win_although_fastest():
    found = verdict(report(PAIR, TIMES, CLEAR.ratios, wrong={"webgpu-fast"}))
    assert found.engine == "wasm-1"
    assert "webgpu-fast has a lower median, but does not give Python's answers" in found.sentence
    assert line(found, "webgpu-fast", "answers").status == "fail"
    assert "599 of 600" in line(found, "webgpu-fast", "answers").text
    nobody = verdict(report(PAIR, TIMES, CLEAR.ratios, wrong=TIMES.keys()))
    assert (nobody.engine, nobody.decided) == (None, False)


def test_a_software_gpu_never_wins():
    found = verdict(report([PAIR[0], engine("webgpu-fast", software=True)], TIMES, CLEAR.ratios))
    assert found.engine == "wasm-1"
    assert line(found, "webgpu-fast", "support").status == "fail"
    assert any("hardware adapter" in step for step in found.next_steps)


def test_without_webgpu_the_best_of_wasm_is_named():
    engines = [engine("wasm-1"), engine("wasm-4"), engine("webgpu-fast", error=NOT_WEBGPU, valid=False)]
    times = {"wasm-1": 2.0, "wasm-4": 1.0}
    found = verdict(report(engines, times, [ratio("wasm-4", "wasm-1", 0.5, 0.4, 0.6)], webgpu=False, jspi=False))
    assert found.engine == "wasm-4"
    assert "Open the page in a browser with WebGPU to compare." in found.next_steps
    assert line(found, "webgpu-fast", "support").status == "fail"
    assert "no adapter" in line(found, "webgpu-fast", "stability").text


def test_threads_need_isolation():
    found = verdict(report([engine("wasm-4")], {"wasm-4": 1.0}, [], cross_origin_isolated=False))
    assert (found.engine, line(found, "wasm-4", "support").status) == (None, "fail")


@pytest.mark.parametrize("engines", [[], PAIR])
def test_where_nothing_was_run_the_check_comes_first(engines):
    found = verdict(report(engines, {}, [], asked=False))
    assert (found.engine, found.decided, found.next_steps[0]) == (None, False, "Run the check.")
    assert {one.status for one in found.lines if one.criterion != "support"} <= {"unknown"}


@pytest.mark.parametrize(
    "ratios",
    [
        [],
        [ratio("webgpu-fast", "wasm-1", 0, 0, 0, reason="the tab was hidden", valid=False)],
        [replace(CLEAR.ratios[0], valid=False)],
        [ratio("webgpu-fast", "wasm-1", 2.0, 1.8, 2.2)],
    ],
    ids=["none", "with a reason", "invalid", "contradicts the medians"],
)
def test_without_a_ratio_it_is_open(ratios):
    found = verdict(replace(CLEAR, ratios=ratios))
    assert (found.engine, found.decided) == (None, False)
    assert found.next_steps[0] == "Run the check with 100 runs on a quiet machine."
    assert ("the tab was hidden" in found.sentence) == bool(ratios and ratios[0].reason)


def test_games_that_depart_unexplained_are_wrong_answers():
    found = verdict(played(games("webgpu-fast", unexplained=2), games("wasm-1")))
    assert found.engine == "wasm-1"
    assert line(found, "webgpu-fast", "answers").status == "fail"
    assert (
        "4 departures in 30 games compared with Python's, 2 of them unexplained" in line(found, "webgpu-fast", "answers").text
    )
    assert line(found, "wasm-1", "scores").status == "pass"
    assert verdict(played(games("webgpu-fast"), games("wasm-1"))).engine == "webgpu-fast"


def test_an_engine_that_stopped_playing_is_unstable():
    found = verdict(played(games("webgpu-fast", error=NOT_WEBGPU), games("wasm-1")))
    assert line(found, "webgpu-fast", "stability").status == "fail"
    assert "stopped playing (WebGpuUnavailable" in line(found, "webgpu-fast", "stability").text


def test_scores_below_the_reference_rule_an_engine_out():
    found = verdict(played(games("webgpu-fast", -6.0, -1.0), games("wasm-1")))
    assert found.engine == "wasm-1"
    assert line(found, "webgpu-fast", "scores").status == "fail"
    assert "-6.0 to -1.0" in line(found, "webgpu-fast", "scores").text


def test_a_wide_spread_and_a_fall_back_to_stock_are_unstable():
    actual = replace(PAIR[1].actual, runner="fast: stock", fallbacks=["capture: stale"])
    engines = [PAIR[0], replace(PAIR[1], actual=actual)]
    found = verdict(report(engines, TIMES | {"wasm-1": timed("wasm-1", 2.0, p95=8.0)}, CLEAR.ratios))
    assert line(found, "wasm-1", "stability").status == line(found, "webgpu-fast", "stability").status == "fail"
    assert "not steady: fell back to fast: stock (capture: stale)" in found.sentence
    assert "P95 is 4.00 times P50" in line(found, "wasm-1", "stability").text
