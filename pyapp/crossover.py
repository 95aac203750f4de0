"""From which batch size on is one engine faster than another? Pure functions on timings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyapp.stats import ratio_resamples

CROSSES, ALREADY, NOT_WITHIN, UNDECIDED, NONE = ANSWERS = ("crosses", "already", "not-within", "undecided", "none")
"""It overtakes somewhere between, is ahead from the smallest batch on, is behind at the largest one, cannot be told, or was not
measured."""

RESAMPLES = 500
"""A sweep resamples every point of every pair; in a browser, two thousand each take six seconds."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Two engines at one batch size: milliseconds, one array a round, as in `pyapp.stats.ratio_interval`."""

    batch: int
    numerator: list[NDArray[np.float64]]
    denominator: list[NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class Crossover:
    """From which batch size on the numerator is faster than the denominator, up to the largest one.

    Attributes
    ----------
    answer : str
        One of `ANSWERS`.
    batch : float or None
        Where the ratio of the medians becomes 1; None unless the answer is ``crosses``.
    low, high : float or None
        Bounds of the 95 % interval; None where a bound lies outside of what was measured.
    """

    answer: str
    batch: float | None = None
    low: float | None = None
    high: float | None = None


def find_crossover(points: Sequence[Compared], *, seed: int) -> Crossover:
    """Find where one engine overtakes another.

    Between two neighbouring batch sizes the ratio of the medians is taken for a power of the batch size. Where it passes 1 more
    than once, the last time counts: from there on the engine stays ahead. The interval is a bootstrap over rounds, each batch
    size by itself, since each is a race of its own. It is a crossing only where the engine is behind at some batch size and
    ahead at the largest one beyond the intervals of those ratios: two equal engines cross somewhere in every resample.

    Parameters
    ----------
    points : sequence of Compared
        In ascending order of batch size.
    seed : int
        Seed of the bootstrap.
    """
    if not points:
        return Crossover(NONE)
    batches = np.array([point.batch for point in points], dtype=np.float64)
    medians = [
        np.median(np.concatenate(point.numerator)) / np.median(np.concatenate(point.denominator)) for point in points
    ]  # fmt: skip
    place = float(_places(batches, np.array([medians]))[0])
    resamples = [
        ratio_resamples(point.numerator, point.denominator, 50, seed=seed + index, resamples=RESAMPLES)
        for index, point in enumerate(points)
    ]
    places = _places(batches, np.stack(resamples, axis=1))
    # No interpolation: some places are infinite.
    low = float(np.quantile(places, 0.025, method="lower"))
    high = float(np.quantile(places, 0.975, method="higher"))
    bounds = (low if np.isfinite(low) else None, high if np.isfinite(high) else None)
    if high == -np.inf:
        return Crossover(ALREADY)
    if low == np.inf:
        return Crossover(NOT_WITHIN)
    behind = any(np.quantile(ratios, 0.025) > 1 for ratios in resamples)
    ahead = np.quantile(resamples[-1], 0.975) < 1
    if not (np.isfinite(place) and behind and ahead):
        return Crossover(UNDECIDED, None, *bounds)
    return Crossover(CROSSES, place, *bounds)


def _places(batches: NDArray[np.float64], ratios: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return where each row of ratios [rows, batches] comes to 1 for good: -inf before the first, inf after the last batch."""
    logs = np.log(ratios)
    behind = logs > 0
    count = len(batches)
    last = count - 1 - np.argmax(behind[:, ::-1], axis=1)
    inside = np.minimum(last, max(count - 2, 0))
    rows = np.arange(len(ratios))
    before, after = logs[rows, inside], logs[rows, np.minimum(inside + 1, count - 1)]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.clip(np.nan_to_num(before / (before - after)), 0, 1)  # beyond 0..1 only where there is no crossing
    low, high = np.log2(batches[inside]), np.log2(batches[np.minimum(inside + 1, count - 1)])
    places = np.exp2(low + (high - low) * share)
    return np.where(~behind.any(axis=1), -np.inf, np.where(last == count - 1, np.inf, places))
