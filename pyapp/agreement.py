"""How far an output is from its reference, and whether that is near enough."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyapp.host import require_within

MISSING = "missing"
WRONG_TYPE = "wrong-type"
WRONG_SHAPE = "wrong-shape"
NON_FINITE = "non-finite"
REFERENCE_NON_FINITE = "reference-non-finite"

ARGMAX = "argmax"
CLOSE = "close"

MAX_SCORES = 50_000
"""Longer vectors are no scores of classes or actions."""

BITS: dict[int, tuple[type[np.signedinteger[Any]], int]] = {2: (np.int16, 15), 4: (np.int32, 31), 8: (np.int64, 63)}
"""By bytes of a float: the integer of its size, and the place of its sign."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a floating-point number may be from its reference: ``atol + rtol * |reference|``; other types must be equal.

    The defaults let different orders of float32 summation and GPU's approximate functions pass, and little else.
    """

    rtol: float = 1e-3
    atol: float = 1e-4

    def __post_init__(self) -> None:
        """Refuse what is no tolerance; raises ValueError that names it."""
        require_within("rtol", self.rtol, 0, 1)
        require_within("atol", self.atol, 0, 1e6)


@dataclass(frozen=True, slots=True)
class Difference:
    """One output of one case against its reference.

    Attributes
    ----------
    failure : str or None
        Why it is no answer: ``missing``, ``wrong-type``, ``wrong-shape``, ``non-finite`` (where the reference is finite) or
        ``reference-non-finite``. Without an answer the numbers below are NaN or empty.
    close : bool
        Whether every element is within the tolerance.
    same_best : bool or None
        Whether the largest score is at the same place; None where this is no vector of scores (`is_scores`).
    margin : float
        Best minus second-best score of the reference; NaN where it is no vector of scores.
    max_abs, max_rel, max_ulp : float
        Largest difference: absolute, relative to the reference (elements that are 0 there left out), and in units in the last
        place (NaN for types that have none).
    cosine : float
        Cosine of the angle between the two, as vectors; 1 where both are all zero.
    noise, signal : float
        Sums of the squared difference and of the squared reference: `snr_db` is made of them.
    worst : tuple of int
        Index of the element that is furthest from its reference, by its tolerance.
    """

    failure: str | None
    close: bool = False
    same_best: bool | None = None
    margin: float = math.nan
    max_abs: float = math.nan
    max_rel: float = math.nan
    max_ulp: float = math.nan
    cosine: float = math.nan
    noise: float = math.nan
    signal: float = math.nan
    worst: tuple[int, ...] = ()

    @property
    def explained(self) -> bool:
        """Whether another best score is rounding's doing: close, and the margin at most twice the error."""
        return self.close and self.same_best is False and self.margin <= 2 * self.max_abs

    @property
    def agrees(self) -> bool:
        """Whether it is the reference's answer: the same best score where these are scores, else close."""
        return self.failure is None and (self.close if self.same_best is None else self.same_best)


def difference(
    found: NDArray[Any] | None, expected: NDArray[Any], tolerance: Tolerance, *, equal_nan: bool = False
) -> Difference:
    """Compare an output with its reference.

    Parameters
    ----------
    found : array or None
        An engine's; None where it gave none.
    expected : array
        The reference: any real dtype, any shape.
    tolerance : Tolerance
        For floating-point outputs.
    equal_nan : bool
        Whether the same non-finite value in the same place is an answer. It is for tests of operators; in a model's output
        it is a fault, whoever else has it.
    """
    if found is None:
        return Difference(MISSING)
    if equal_nan and found.shape == expected.shape and found.dtype == expected.dtype and expected.dtype.kind == "f":
        same = np.equal(found, expected) | (np.isnan(found) & np.isnan(expected))
        # What is equal anyhow says nothing about the rest.
        found, expected = (np.where(same & ~np.isfinite(expected), 0, array) for array in (found, expected))
    if failure := _failure(found, expected):
        return Difference(failure)
    if expected.dtype.kind not in "fiub":
        return Difference(None, close=bool(np.array_equal(found, expected)))
    return _measured(found, expected, tolerance)


def _failure(found: NDArray[Any], expected: NDArray[Any]) -> str | None:
    if found.dtype != expected.dtype:
        return WRONG_TYPE
    if found.shape != expected.shape:
        return WRONG_SHAPE
    if expected.dtype.kind == "f" and not np.isfinite(expected).all():
        return REFERENCE_NON_FINITE
    return NON_FINITE if expected.dtype.kind == "f" and not np.isfinite(found).all() else None


def _measured(found: NDArray[Any], expected: NDArray[Any], tolerance: Tolerance) -> Difference:
    if not expected.size:
        return Difference(None, close=True, max_abs=0.0, max_rel=0.0, max_ulp=0.0, cosine=1.0, noise=0.0, signal=0.0)
    a, b = found.astype(np.float64), expected.astype(np.float64)
    off = np.abs(a - b)
    # Whole numbers beyond 2**53 may differ where their float64 do not.
    off = np.where((off == 0) & (found != expected), 1.0, off)
    floating = expected.dtype.kind == "f"
    allowed = tolerance.atol + tolerance.rtol * np.abs(b) if floating else np.zeros_like(b)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        excess = np.where(off == 0, 0.0, off / np.where(allowed == 0, np.finfo(np.float64).tiny, allowed))
        relative = off[b != 0] / np.abs(b[b != 0])
    best = _best(found, expected) if is_scores(expected) else (None, math.nan)
    with np.errstate(over="ignore"):
        noise, signal = float(np.square(off).sum()), float(np.square(b).sum())
    return Difference(
        failure=None,
        close=bool((off <= allowed).all()),
        same_best=best[0],
        margin=best[1],
        max_abs=float(off.max()),
        max_rel=float(relative.max()) if relative.size else 0.0,
        max_ulp=_ulps(found, expected) if floating else math.nan,
        cosine=_cosine(a, b),
        noise=noise,
        signal=signal,
        worst=tuple(int(place) for place in np.unravel_index(int(excess.argmax()), expected.shape)),
    )


def is_scores(output: NDArray[Any]) -> bool:
    """Tell whether an output is one vector of scores, whose largest element is the answer: floats, [n] or [1,n], n from 2."""
    count = output.shape[-1] if output.ndim else 0
    return output.dtype.kind == "f" and output.ndim in (1, 2) and output.size == count and 2 <= count <= MAX_SCORES


def _best(found: NDArray[Any], expected: NDArray[Any]) -> tuple[bool, float]:
    ordered = np.partition(expected.ravel().astype(np.float64), -2)
    return bool(found.argmax() == expected.argmax()), float(ordered[-1] - ordered[-2])


def _ulps(found: NDArray[Any], expected: NDArray[Any]) -> float:
    a, b = _ordered(found), _ordered(expected)
    # Two numbers of opposite signs can be more than 2**63 apart; for others, floats would be too coarse.
    opposite = (a < 0) != (b < 0)
    apart = np.abs(a.astype(np.float64)) + np.abs(b.astype(np.float64))
    with np.errstate(over="ignore"):
        return float(np.where(opposite, apart, np.abs(a - b)).max())


def _ordered(array: NDArray[Any]) -> NDArray[np.int64]:
    """Return integers that count floats from the smallest to the largest; both zeros are 0."""
    kind, sign = BITS[array.dtype.itemsize]
    bits = np.ascontiguousarray(array).view(kind).astype(np.int64)
    lowest = np.int64(-(1 << sign))
    return np.where(bits < 0, lowest - bits, bits)


def _cosine(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    largest = [float(np.abs(array).max()) for array in (a, b)]
    if not all(largest):
        return 1.0 if largest[0] == largest[1] else 0.0
    # Squares of what is very large or small would leave the range of numbers.
    one, other = (array.ravel() / most for array, most in zip((a, b), largest, strict=True))
    return float(np.clip(np.dot(one, other) / (np.linalg.norm(one) * np.linalg.norm(other)), -1, 1))


@dataclass(frozen=True, slots=True)
class OutputAgreement:
    """One output in all cases.

    Attributes
    ----------
    output : str
        Its name.
    dtype : str
        The reference's.
    tolerance : Tolerance
        What was allowed.
    differences : sequence of Difference
        One a case.
    """

    output: str
    dtype: str
    tolerance: Tolerance
    differences: Sequence[Difference]

    @property
    def criterion(self) -> str:
        """What agreement means: ``argmax`` where every answer is a vector of scores, else ``close``."""
        answers = [one for one in self.differences if one.failure is None]
        return ARGMAX if answers and all(one.same_best is not None for one in answers) else CLOSE

    @property
    def failures(self) -> dict[int, str]:
        """Cases without an answer, and why."""
        return {case: one.failure for case, one in enumerate(self.differences) if one.failure}

    @property
    def agree(self) -> int:
        """In how many cases it agrees."""
        return sum(one.agrees for one in self.differences)

    @property
    def explained(self) -> list[int]:
        """Cases in which another score is the best, as rounding may have it."""
        return [case for case, one in enumerate(self.differences) if one.explained]

    @property
    def far(self) -> list[int]:
        """Cases with an answer that is not within the tolerance."""
        return [case for case, one in enumerate(self.differences) if one.failure is None and not one.close]

    @property
    def worst_case(self) -> int:
        """The case that is furthest from its reference; one without an answer before all others."""
        return max(range(len(self.differences)), key=lambda case: _badness(self.differences[case]))

    @property
    def snr_db(self) -> float:
        """Signal-to-noise ratio over all cases, in decibels; infinite where nothing differs, NaN where there is none."""
        answers = [one for one in self.differences if one.failure is None and not math.isnan(one.noise)]
        noise, signal = sum(one.noise for one in answers), sum(one.signal for one in answers)
        if not answers:
            return math.nan
        if not noise:
            return math.inf
        return 10 * math.log10(signal / noise) if 0 < signal / noise < math.inf else math.nan

    def most(self, number: str) -> float:
        """Return the largest `max_abs`, `max_rel` or `max_ulp` of all cases; NaN where none has it."""
        return max((getattr(one, number) for one in self.differences if not math.isnan(getattr(one, number))), default=math.nan)

    @property
    def cosine(self) -> float:
        """Smallest cosine of all cases; NaN where none has it."""
        return min((one.cosine for one in self.differences if not math.isnan(one.cosine)), default=math.nan)

    @property
    def problems(self) -> list[str]:
        """What is wrong, in words; empty where the output agrees."""
        cases = len(self.differences)
        found = []
        for name in sorted(set(self.failures.values())):
            where = [case for case, failure in self.failures.items() if failure == name]
            found.append(f"{self.output}: {len(where)} of {cases} answers are {name} (first: case {where[0]})")
        wrong = [case for case, one in enumerate(self.differences) if one.same_best is False and not one.explained]
        if wrong:
            found.append(f"{self.output}: another score is the best in {len(wrong)} of {cases} cases (first: case {wrong[0]})")
        if self.far:
            worst = max(self.far, key=lambda case: _badness(self.differences[case]))
            off = self.differences[worst]
            allowed = f"more than rtol {self.tolerance.rtol:g} and atol {self.tolerance.atol:g} allow"
            beyond = allowed if self.dtype.startswith("float") else "where it has to be equal"
            how = "" if math.isnan(off.max_abs) else f" by up to {off.max_abs:.3g}"
            found.append(
                f"{self.output} differs{how}, {beyond}, in {len(self.far)} of {cases} cases "
                f"(worst: case {worst}, element {list(off.worst)})"
            )
        return found


def _badness(one: Difference) -> tuple[bool, float]:
    return one.failure is not None, 0.0 if math.isnan(one.max_abs) else one.max_abs
