"""Statistics of timings: pure functions on arrays of milliseconds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

BOOTSTRAP_RESAMPLES = 2_000
COARSE_STEP = 0.02
"""A clock whose step is a smaller part of the median than this is fine enough, however the samples lie."""

COARSE_MIN_SAMPLES = 10
"""Below this many samples nothing is said about the clock: two samples always lie on two steps."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Summary of one sample of timings, all in milliseconds but `n` and `outliers`.

    `outliers` counts the samples beyond Tukey's outer fences (three interquartile ranges from the quartiles). They are
    counted, never dropped.
    """

    n: int
    p50: float
    p95: float
    mean: float
    min: float
    max: float
    outliers: int


def summarize(samples_ms: ArrayLike) -> Summary:
    """Summarise timings; percentiles are numpy's linear ones.

    Parameters
    ----------
    samples_ms : float [n], n >= 1
        Milliseconds.

    Raises
    ------
    ValueError
        If there is no sample, or one is not finite.
    """
    samples = np.asarray(samples_ms, dtype=np.float64)
    if samples.ndim != 1 or samples.size == 0:
        raise ValueError(f"timings must be a non-empty one-dimensional array, got shape {samples.shape}")
    if not np.isfinite(samples).all():
        raise ValueError("timings must be finite")
    q1, p50, q3, p95 = np.percentile(samples, [25, 50, 75, 95])
    fence = 3 * (q3 - q1)
    return Summary(
        n=samples.size,
        p50=float(p50),
        p95=float(p95),
        mean=float(samples.mean()),
        min=float(samples.min()),
        max=float(samples.max()),
        outliers=int(((samples < q1 - fence) | (samples > q3 + fence)).sum()),
    )


def clock_is_coarse(samples_ms: ArrayLike, step_ms: float) -> bool:
    """Whether percentiles say little because the clock is too coarse.

    It is where more than half of the samples lie on only two of its steps, and a step is more than 2 % of the median. An engine
    that is steady to a hundredth piles its samples up on two steps of any clock, and is measured well all the same.

    Parameters
    ----------
    samples_ms : float [n]
        Milliseconds.
    step_ms : float
        Step of the clock in milliseconds; 0 where it is not known, which is never coarse.
    """
    samples = np.asarray(samples_ms, dtype=np.float64)
    if samples.size < COARSE_MIN_SAMPLES or step_ms <= 0:
        return False
    counts = np.unique(np.round(samples / step_ms), return_counts=True)[1]
    return bool(np.sort(counts)[-2:].sum() * 2 > samples.size and step_ms > COARSE_STEP * np.median(samples))


@dataclass(frozen=True, slots=True)
class RatioInterval:
    """A ratio of two engines' percentiles with the bounds of its 95 % bootstrap interval."""

    value: float
    low: float
    high: float

    @property
    def spans_one(self) -> bool:
        """Whether the interval leaves open which of the two is faster."""
        return self.low <= 1.0 <= self.high


def ratio_interval(
    numerator: list[NDArray[np.float64]],
    denominator: list[NDArray[np.float64]],
    percentile: float,
    *,
    seed: int,
    resamples: int = BOOTSTRAP_RESAMPLES,
) -> RatioInterval:
    """Ratio of two percentiles, with a 95 % bootstrap interval over the rounds of a race.

    Samples of one block resemble each other (the machine drifts), so whole rounds are resampled, the same ones for both
    engines. Resampling single samples would promise more than was measured.

    Parameters
    ----------
    numerator, denominator : list of float64 [block]
        Milliseconds, one array a round; both lists have the same length, and round *i* of both was measured close together.
    percentile : float
        0 to 100.
    seed : int
        Seed of the bootstrap.
    resamples : int
        Number of bootstrap resamples.

    Raises
    ------
    ValueError
        If there is no round, or the numbers of rounds differ.
    """
    ratios = ratio_resamples(numerator, denominator, percentile, seed=seed, resamples=resamples)
    low, high = np.percentile(ratios, [2.5, 97.5])
    value = np.percentile(np.concatenate(numerator), percentile) / np.percentile(np.concatenate(denominator), percentile)
    return RatioInterval(value=float(value), low=float(low), high=float(high))


@dataclass(frozen=True, slots=True)
class Interval:
    """A number with the bounds of its 95 % bootstrap interval."""

    value: float
    low: float
    high: float


def mean_interval(values: ArrayLike, *, seed: int = 0, resamples: int = BOOTSTRAP_RESAMPLES) -> Interval:
    """Return the 95 % bootstrap interval of the mean of independent values, such as the scores of games.

    Raises
    ------
    ValueError
        There are none.
    """
    array = np.asarray(values, np.float64)
    if not array.size:
        raise ValueError("there are no values to take the mean of; give at least one")
    means = np.random.default_rng(seed).choice(array, (resamples, array.size)).mean(1)
    low, high = np.percentile(means, [2.5, 97.5])
    return Interval(float(array.mean()), float(low), float(high))


def percentile_interval(rounds: list[NDArray[np.float64]], percentile: float, *, seed: int) -> Interval:
    """Percentile of all samples, with a 95 % bootstrap interval over rounds; see `ratio_interval`."""
    picks = np.random.default_rng(seed).integers(0, len(rounds), size=(BOOTSTRAP_RESAMPLES, len(rounds)))
    low, high = np.percentile(_resampled_percentile(rounds, picks, percentile), [2.5, 97.5])
    return Interval(float(np.percentile(np.concatenate(rounds), percentile)), float(low), float(high))


def ratio_resamples(
    numerator: list[NDArray[np.float64]],
    denominator: list[NDArray[np.float64]],
    percentile: float,
    *,
    seed: int,
    resamples: int = BOOTSTRAP_RESAMPLES,
) -> NDArray[np.float64]:
    """Ratio of two percentiles in each bootstrap resample of rounds: float64 [resamples]; see `ratio_interval`."""
    if not numerator or len(numerator) != len(denominator):
        raise ValueError(f"both engines need the same rounds, got {len(numerator)} and {len(denominator)}")
    picks = np.random.default_rng(seed).integers(0, len(numerator), size=(resamples, len(numerator)))
    return _resampled_percentile(numerator, picks, percentile) / _resampled_percentile(denominator, picks, percentile)


def _resampled_percentile(
    rounds: list[NDArray[np.float64]], picks: NDArray[np.int64], percentile: float
) -> NDArray[np.float64]:
    """Percentile of each resample of rounds: float64 [resamples].

    One sort for all resamples (in a browser a call of `np.percentile` for each takes ten seconds). Rounds of unequal length
    are padded with NaN, which sorts last.
    """
    lengths = np.array([len(samples) for samples in rounds])
    padded = np.full((len(rounds), lengths.max()), np.nan)
    for row, samples in zip(padded, rounds, strict=True):
        row[: len(samples)] = samples
    resamples = np.sort(padded[picks].reshape(len(picks), -1), axis=1)
    rank = (lengths[picks].sum(axis=1) - 1) * percentile / 100
    below = np.floor(rank).astype(np.int64)
    above = np.ceil(rank).astype(np.int64)
    rows = np.arange(len(picks))
    low, high = resamples[rows, below], resamples[rows, above]
    return np.asarray(low + (high - low) * (rank - below))
