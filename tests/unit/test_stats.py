import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pyapp.stats import clock_is_coarse, ratio_interval, summarize

MILLISECONDS = st.floats(min_value=1e-3, max_value=1e5)
SAMPLES = st.integers(1, 300).flatmap(lambda n: arrays(np.float64, n, elements=MILLISECONDS))
ROUNDS = st.lists(st.lists(MILLISECONDS, min_size=1, max_size=12).map(np.array), min_size=1, max_size=10)


@given(SAMPLES)
def test_summary_is_numpys(samples):
    summary = summarize(samples)
    assert summary.n == len(samples)
    assert summary.p50 == np.percentile(samples, 50)
    assert summary.p95 == np.percentile(samples, 95)
    assert (summary.mean, summary.min, summary.max) == (samples.mean(), samples.min(), samples.max())


@given(SAMPLES)
def test_outliers_are_counted_by_tukeys_outer_fences(samples):
    q1, q3 = np.percentile(samples, [25, 75])
    inside = [sample for sample in samples if q1 - 3 * (q3 - q1) <= sample <= q3 + 3 * (q3 - q1)]
    assert summarize(samples).outliers == len(samples) - len(inside)


@pytest.mark.parametrize("samples", [[], [[1.0]], [1.0, np.nan], [np.inf]])
def test_summary_refuses_what_is_no_sample(samples):
    with pytest.raises(ValueError, match="timings must be"):
        summarize(samples)


def test_clock_is_coarse_when_most_samples_lie_on_two_steps():
    rng = np.random.default_rng(0)
    true = rng.normal(1.05, 0.02, 100)
    assert clock_is_coarse(np.round(true, 1), step_ms=0.1)
    assert not clock_is_coarse(np.round(true / 0.005) * 0.005, step_ms=0.005)


def test_a_steady_engine_is_no_coarse_clock():
    samples = np.random.default_rng(0).choice([0.825, 0.83, 0.835], 100, p=[0.5, 0.4, 0.1])
    assert not clock_is_coarse(samples, step_ms=0.005)


def test_clock_is_fine_at_exactly_half_on_two_steps():
    samples = np.array([1.0] * 5 + [2.0] * 5 + list(range(3, 13)), dtype=float)
    assert not clock_is_coarse(samples, step_ms=1.0)
    assert clock_is_coarse(np.append(samples, 1.0), step_ms=1.0)


@pytest.mark.parametrize(("samples", "step"), [([1.0, 1.0], 0.1), ([1.0] * 50, 0.0)])
def test_clock_is_not_judged_from_few_samples_or_an_unknown_step(samples, step):
    assert not clock_is_coarse(samples, step)


@given(ROUNDS, st.sampled_from([50, 95]), st.integers(0, 2**32 - 1))
def test_resampled_percentiles_are_numpys(rounds, percentile, seed):
    """One resample, worked out the slow way with numpy.percentile."""
    picks = np.random.default_rng(seed).integers(0, len(rounds), size=(1, len(rounds)))[0]
    slow = np.percentile(np.concatenate([rounds[i] for i in picks]), percentile)
    ones = [np.ones(len(samples)) for samples in rounds]
    interval = ratio_interval(rounds, ones, percentile, seed=seed, resamples=1)
    assert interval.low == interval.high == pytest.approx(slow, rel=1e-12)


@given(ROUNDS, st.floats(0.1, 10))
def test_ratio_of_scaled_timings_is_the_scale(rounds, factor):
    interval = ratio_interval([samples * factor for samples in rounds], rounds, 50, seed=1, resamples=50)
    assert interval.value == pytest.approx(factor)
    assert interval.low == pytest.approx(factor)
    assert interval.high == pytest.approx(factor)


def test_interval_covers_the_true_ratio_about_95_times_in_100():
    rng = np.random.default_rng(7)
    covered = 0
    for seed in range(200):
        slow = list(rng.lognormal(np.log(2), 0.1, (10, 10)))
        fast = list(rng.lognormal(0, 0.1, (10, 10)))
        interval = ratio_interval(slow, fast, 50, seed=seed, resamples=400)
        covered += interval.low <= 2 <= interval.high
    assert 0.85 <= covered / 200 <= 0.99


def test_drift_between_rounds_widens_the_interval():
    rng = np.random.default_rng(3)
    ones = [np.ones(10)] * 10
    steady = [rng.normal(2, 0.05, 10) for _ in range(10)]
    drifting = [rng.normal(level, 0.05, 10) for level in np.linspace(1.5, 2.5, 10)]
    calm, wide = (ratio_interval(rounds, ones, 50, seed=0) for rounds in (steady, drifting))
    assert wide.high - wide.low > 3 * (calm.high - calm.low)
    assert not calm.spans_one


def test_same_seed_same_interval():
    rounds = list(np.random.default_rng(0).random((10, 10)) + 1)
    assert ratio_interval(rounds, rounds[::-1], 95, seed=5) == ratio_interval(rounds, rounds[::-1], 95, seed=5)


@pytest.mark.parametrize(("numerator", "denominator"), [([], []), ([np.ones(2)], [np.ones(2), np.ones(2)])])
def test_ratio_needs_the_same_rounds(numerator, denominator):
    with pytest.raises(ValueError, match="same rounds"):
        ratio_interval(numerator, denominator, 50, seed=0)
