"""Whether an engine gives the same answers as Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyapp.agreement import OutputAgreement, difference
from pyapp.cases import Cases, CaseSet, Suite
from pyapp.engine import Engine, Tensors

TOLERANCE = 1e-4
"""Largest |dQ| that different orders of float32 summation explain; engines that compute the same model stay under 1e-5."""

FAILURE_NON_FINITE = "non-finite"
FAILURE_ALL_ZERO = "all-zero"
FAILURE_WRONG_SHAPE = "wrong-shape"


@dataclass(frozen=True)
class Parity:
    """One engine's answers to one suite.

    Attributes
    ----------
    engine, suite : str
        Their names.
    q_values : float32 [n, 4]
        The engine's scores; NaN rows where it gave none of the right shape.
    action : int64 [n]
        Index of the best score, the first on a tie; -1 where the scores are no answer.
    diff : float64 [n]
        Largest |dQ| of each case; infinite where the scores are no answer.
    failures : dict of int to str
        Cases whose scores are no answer, and why: ``non-finite``, ``all-zero`` or ``wrong-shape``.
    reference : Suite
        The cases with Python's answers.
    """

    engine: str
    suite: str
    q_values: NDArray[np.float32]
    action: NDArray[np.int64]
    diff: NDArray[np.float64]
    failures: dict[int, str]
    reference: Suite

    @property
    def cases(self) -> int:
        """How many cases were asked."""
        return len(self.action)

    @property
    def agree(self) -> int:
        """In how many cases the engine chose Python's action."""
        return int((self.action == self.reference.action).sum())

    @property
    def disagreements(self) -> list[int]:
        """Indices of the cases in which it chose another, or gave no answer."""
        return [int(index) for index in np.flatnonzero(self.action != self.reference.action)]

    @property
    def max_abs_diff(self) -> float:
        """Largest |dQ| over the cases that have scores; NaN where none has."""
        return float(self._finite_diff.max()) if self._finite_diff.size else float("nan")

    @property
    def mean_abs_diff(self) -> float:
        """Mean of the cases' largest |dQ|; NaN where none has scores."""
        return float(self._finite_diff.mean()) if self._finite_diff.size else float("nan")

    @property
    def min_margin(self) -> float:
        """Smallest margin among Python's answers."""
        return float(self.reference.margin.min())

    @property
    def hardest(self) -> int:
        """Index of the case with the smallest margin."""
        return int(self.reference.margin.argmin())

    @property
    def could_flip(self) -> list[int]:
        """Cases whose margin is at most twice the error there: the error alone could turn their action."""
        return [int(index) for index in np.flatnonzero(self.reference.margin <= 2 * self.diff)]

    @property
    def explained(self) -> list[int]:
        """Disagreements that rounding explains: usable scores, |dQ| within `TOLERANCE`, margin at most twice |dQ|."""
        within = [index for index in self.could_flip if self.diff[index] <= TOLERANCE]
        return [index for index in self.disagreements if index in within]

    @property
    def _finite_diff(self) -> NDArray[np.float64]:
        return self.diff[np.isfinite(self.diff)]

    @property
    def problems(self) -> list[str]:
        """What is wrong, in words; empty where the engine gives Python's answers."""
        found = []
        for name in sorted(set(self.failures.values())):
            where = [index for index, failure in self.failures.items() if failure == name]
            found.append(f"{len(where)} of {self.cases} answers are {name} (first: case {where[0]})")
        wrong = [index for index in self.disagreements if index not in self.failures and index not in self.explained]
        if wrong:
            found.append(f"{len(wrong)} of {self.cases} actions differ from Python's (first: case {wrong[0]})")
        if self.max_abs_diff > TOLERANCE:
            found.append(f"scores differ by up to {self.max_abs_diff:.3g}, more than rounding explains ({TOLERANCE:g})")
        return found

    @property
    def passed(self) -> bool:
        """Whether the scores differ by rounding only, and every action agrees but where rounding explains that it does not."""
        return not self.problems


@dataclass(frozen=True)
class CaseParity:
    """One engine's answers to cases of any model, judged output by output.

    Attributes
    ----------
    engine, suite : str
        Their names.
    cases : int
        How many were asked.
    outputs : list of OutputAgreement
        One for each output that the reference has, in its order.
    """

    engine: str
    suite: str
    cases: int
    outputs: list[OutputAgreement]

    @property
    def disagreements(self) -> list[int]:
        """Indices of the cases in which an output is not the reference's."""
        return [case for case in range(self.cases) if not all(output.differences[case].agrees for output in self.outputs)]

    @property
    def explained(self) -> list[int]:
        """Disagreements that rounding explains: scores that are close, and closer to each other than twice the error."""
        return [
            case
            for case in self.disagreements
            if all(one.agrees or one.explained for one in (output.differences[case] for output in self.outputs))
        ]

    @property
    def agree(self) -> int:
        """In how many cases every output is the reference's."""
        return self.cases - len(self.disagreements)

    @property
    def failures(self) -> dict[int, str]:
        """Cases without an answer, and why."""
        return {case: failure for output in reversed(self.outputs) for case, failure in output.failures.items()}

    @property
    def max_abs_diff(self) -> float:
        """Largest difference of all outputs; NaN where there is no answer."""
        return max((most for output in self.outputs if not math.isnan(most := output.most("max_abs"))), default=math.nan)

    @property
    def mean_abs_diff(self) -> float:
        """Mean of the cases' largest differences; NaN where there is no answer."""
        largest = [
            max(found)
            for case in range(self.cases)
            if (found := [most for output in self.outputs if not math.isnan(most := output.differences[case].max_abs)])
        ]
        return sum(largest) / len(largest) if largest else math.nan

    @property
    def hardest(self) -> int:
        """The case that is furthest from its reference."""
        worst = max(self.outputs, key=lambda output: (bool(output.failures), output.most("max_abs")), default=None)
        return worst.worst_case if worst else 0

    @property
    def could_flip(self) -> list[int]:
        """Cases whose largest score the error alone could turn: the margin is at most twice the error."""
        return sorted(
            {
                case
                for output in self.outputs
                for case, one in enumerate(output.differences)
                if one.same_best is not None and one.margin <= 2 * one.max_abs
            }
        )

    @property
    def problems(self) -> list[str]:
        """What is wrong, in words; empty where the engine gives the reference's answers."""
        return [problem for output in self.outputs for problem in output.problems]

    @property
    def passed(self) -> bool:
        """Whether every output of every case is within the tolerance, and no best score differs but where rounding has it."""
        return not self.problems


type Answers = Parity | CaseParity


async def parity(engine: Engine, suite: Cases, *, on_case: Callable[[int, int], None] = lambda done, total: None) -> Answers:
    """Ask an engine all cases, one at a time.

    Parameters
    ----------
    engine : Engine
        The model that they are for.
    suite : Cases
        Cases with the reference's answers.
    on_case : callable
        Called after each case with the numbers done and in all.

    Raises
    ------
    EngineError
        If the engine stops; answers that are wrong or useless are results and raise nothing.
    """
    answers = []
    for index in range(len(suite)):
        outputs = await engine.run(suite.inputs(index))
        answers.append(outputs)
        on_case(index + 1, len(suite))
    return judged(engine.spec.name, suite, answers)


def judged(engine: str, suite: Cases, answers: Sequence[Tensors]) -> Answers:
    """Compare an engine's answers with the reference's.

    Parameters
    ----------
    engine : str
        Its name.
    suite : Suite or CaseSet
        Cases with the reference's answers.
    answers : sequence of Tensors
        The engine's outputs, one a case.
    """
    if isinstance(suite, Suite):
        return judge(engine, suite, [np.asarray(one.get("q_values", ()), np.float32).reshape(-1) for one in answers])
    if not isinstance(suite, CaseSet):
        raise TypeError(f"cases are a Suite or a CaseSet, not {type(suite).__name__}")
    return CaseParity(engine, suite.name, len(suite), _agreements(suite, answers))


def _agreements(suite: CaseSet, answers: Sequence[Tensors]) -> list[OutputAgreement]:
    names = dict.fromkeys(name for expected in suite.answers for name in expected)
    found = []
    for name in names:
        pairs = [(one.get(name), expected[name]) for one, expected in zip(answers, suite.answers, strict=True)]
        differences = [difference(one, expected, suite.tolerance) for one, expected in pairs]
        found.append(OutputAgreement(name, pairs[0][1].dtype.name, suite.tolerance, differences))
    return found


def judge(engine: str, suite: Suite, answers: Sequence[NDArray[np.float32]]) -> Parity:
    """Compare an engine's answers with Python's.

    Parameters
    ----------
    engine : str
        Its name.
    suite : Suite
        Cases with Python's answers.
    answers : sequence of float32 [4]
        One for each case; of another length where the engine gave something else.
    """
    q_values = np.full_like(suite.q_values, np.nan)
    action = np.full(len(suite), -1, dtype=np.int64)
    diff = np.full(len(suite), np.inf)
    failures: dict[int, str] = {}
    for index, scores in enumerate(answers):
        failure = _failure(scores, expected=suite.q_values.shape[1])
        if failure != FAILURE_WRONG_SHAPE:
            q_values[index] = scores
        if failure:
            failures[index] = failure
        else:
            action[index] = int(scores.argmax())
            diff[index] = np.abs(scores.astype(np.float64) - suite.q_values[index]).max()
    return Parity(engine, suite.name, q_values, action, diff, failures, suite)


def _failure(scores: NDArray[np.float32], *, expected: int) -> str | None:
    if scores.size != expected:
        return FAILURE_WRONG_SHAPE
    if not np.isfinite(scores).all():
        return FAILURE_NON_FINITE
    if not scores.any():
        return FAILURE_ALL_ZERO
    return None
