"""The soak's arithmetic: what counts as memory that grows."""

import importlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

BENCH = Path(__file__).parents[2] / "bench"
COUNT = 60
MINUTES = 60.0 * np.arange(1, COUNT + 1)
LATER = COUNT - COUNT // 10
"""Samples after the first tenth."""


@pytest.fixture(scope="module")
def soak():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCH))
        yield importlib.import_module("soak")


def noisy(values, seed=0):
    return values * np.random.default_rng(seed).normal(1, 0.01, len(values))


def growing(share):
    """Grow by a share of the first value after the first tenth, in a straight line."""
    return 100 * (1 + share * (np.arange(COUNT) - COUNT // 10) / (LATER - 1))


@pytest.mark.parametrize("seed", range(20))
def test_noise_is_flat(soak, seed):
    assert soak.judge(MINUTES, noisy(np.full(COUNT, 100.0), seed)).flat


@pytest.mark.parametrize(("share", "flat"), [(0.03, True), (0.08, False), (0.5, False), (-0.5, True)])
def test_a_straight_line_is_known_by_level_and_by_trend(soak, share, flat):
    values = growing(share)
    found = soak.judge(MINUTES, values)
    # The tenths' medians lie within their ends.
    assert found.level == pytest.approx(share * (LATER - COUNT // 10) / (LATER - 1) / (values[6:12].mean() / 100), rel=1e-6)
    assert found.trend == pytest.approx(share / (1 + share / 2), rel=1e-6)
    assert found.flat is flat
    assert soak.judge(MINUTES, noisy(values)).flat is flat


def test_what_the_first_tenth_does_is_left_out(soak):
    values = np.full(COUNT, 100.0)
    values[: COUNT // 10] = np.linspace(10, 500, COUNT // 10)
    found = soak.judge(MINUTES, values)
    assert (found.level, found.trend, found.spread, found.flat) == (0, 0, 0, True)


def test_a_few_samples_far_off_are_no_growth(soak):
    values = noisy(np.full(COUNT, 100.0))
    values[[10, 30, 57]] = 300.0
    found = soak.judge(MINUTES, values)
    assert found.flat
    assert found.spread > 1.5


def test_a_step_that_comes_late_is_known_by_the_level_alone(soak):
    values = np.full(COUNT, 100.0)
    values[-8:] = 120.0
    found = soak.judge(MINUTES, values)
    assert (found.level, found.trend) == (pytest.approx(0.2), 0)
    assert not found.flat


def test_growth_that_falls_at_the_end_is_known_by_the_trend_alone(soak):
    values = growing(0.4)
    values[-6:] = 100.0
    found = soak.judge(MINUTES, values)
    assert found.level < 0.05
    assert found.trend > 0.2
    assert not found.flat


def test_one_worker_that_stays_is_growth(soak):
    values = np.ones(COUNT)
    values[40:] = 2.0
    assert not soak.judge(MINUTES, values).flat


def test_what_is_nowhere_is_flat_and_what_comes_of_nothing_is_not(soak):
    nothing = np.zeros(COUNT)
    assert soak.judge(MINUTES, nothing).flat
    nothing[-10:] = 1.0
    assert not soak.judge(MINUTES, nothing).flat


@given(st.lists(st.floats(1, 100), min_size=10, max_size=40), st.floats(0.01, 100))
def test_the_verdict_does_not_depend_on_units(soak, values, factor):
    times = 5.0 * np.arange(len(values))
    found, scaled = (soak.judge(unit * times, unit * np.array(values)) for unit in (1, factor))
    assert (scaled.level, scaled.trend) == (pytest.approx(found.level, abs=1e-9), pytest.approx(found.trend, abs=1e-9))


def test_too_few_samples_are_refused(soak):
    with pytest.raises(ValueError, match="9 samples"):
        soak.judge(MINUTES[:9], np.ones(9))


def test_every_series_is_judged_but_those_that_are_only_shown(soak, capsys):
    samples = [
        {"seconds": 60.0 * k, "browser process": 40.0 + k, "page": 6.0 + 0.01 * k, "workers": 77.0} for k in range(COUNT)
    ]
    found = {"loop": soak.verdicts(samples)}
    assert set(found["loop"]) == {"browser process", "page", "workers"}
    name, growth = soak.worst_of(found)
    assert name == "loop, page"
    assert growth == pytest.approx(max(found["loop"]["page"].level, found["loop"]["page"].trend))
    soak.print_table("loop", samples, found["loop"])
    remarks = {line.split("  ")[0]: line.split("%")[-1].strip() for line in capsys.readouterr().out.splitlines()[2:]}
    assert remarks == {"browser process": "only shown", "page": "GROWS", "workers": ""}


def test_memory_of_files_is_not_counted(soak, tmp_path, monkeypatch):
    rollup = "00400000-7fff ---p 00000000 00:00 0 [rollup]\nRss: 900 kB\nPss: 700 kB\nPss_Anon: 400 kB\nPss_File: 290 kB\n"
    (tmp_path / "smaps_rollup").write_text(rollup + "Pss_Shmem: 10 kB\nSwapPss: 5 kB\n")
    monkeypatch.setattr(soak, "Path", lambda name: tmp_path / Path(name).name)
    assert soak.own_memory(1) == 1024 * 415


def test_all_samples_are_written(soak, tmp_path):
    rows = [{"part": "loop", "seconds": 1.0}, {"part": "engines", "seconds": 2.0, "page": 3.0}]
    soak.write(tmp_path / "soak.csv", rows)
    assert (tmp_path / "soak.csv").read_text().splitlines() == ["part,seconds,page", "loop,1.0,", "engines,2.0,3.0"]
