"""How far outputs are from their reference."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pyapp.agreement import ARGMAX, CLOSE, OutputAgreement, Tolerance, difference, is_scores
from pyapp.cases import CaseSet, split
from pyapp.parity import judged

ANY = Tolerance()
FLOATS = st.sampled_from([np.float16, np.float32, np.float64])


@given(
    FLOATS.flatmap(
        lambda kind: hnp.arrays(
            kind, hnp.array_shapes(min_dims=0, max_dims=3), elements={"allow_nan": False, "allow_infinity": False}
        )
    )
)
def test_what_is_equal_differs_in_nothing(array):
    found = difference(array.copy(), array, ANY)
    assert found.close
    assert (found.max_abs, found.max_rel, found.max_ulp, found.noise) == (0, 0, 0, 0)
    assert found.agrees


@given(FLOATS, st.floats(-1000, 1000, width=16), st.integers(1, 50))
def test_units_in_the_last_place_are_steps_to_the_neighbour(kind, start, steps):
    value = kind(start)
    for _ in range(steps):
        value = np.nextafter(value, kind(np.inf))
    found = difference(np.array([value]), np.array([kind(start)]), ANY)
    assert found.max_ulp == steps


@given(
    hnp.arrays(np.float32, 12, elements=st.floats(-100, 100, width=32)),
    hnp.arrays(np.float32, 12, elements=st.floats(-1, 1, width=32)),
)
def test_closeness_is_numpys(expected, noise):
    found = expected + noise
    assert difference(found, expected, Tolerance(1e-3, 1e-4)).close == np.allclose(
        found.astype(np.float64), expected.astype(np.float64), rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize(
    ("found", "expected", "failure"),
    [
        (None, np.zeros(3, np.float32), "missing"),
        (np.zeros(3, np.float64), np.zeros(3, np.float32), "wrong-type"),
        (np.zeros((3, 1), np.float32), np.zeros(3, np.float32), "wrong-shape"),
        (np.float32([0, np.nan]), np.float32([0, 1]), "non-finite"),
        (np.float32([0, np.inf]), np.float32([0, 1]), "non-finite"),
        (np.float32([0, np.nan]), np.float32([0, np.nan]), "reference-non-finite"),
    ],
)
def test_what_is_no_answer_is_named(found, expected, failure):
    one = difference(found, expected, ANY)
    assert one.failure == failure
    assert not one.agrees
    assert math.isnan(one.max_abs)


def test_the_same_non_finite_value_counts_only_where_that_is_wanted():
    array = np.float32([np.nan, np.inf, -np.inf, 1])
    assert difference(array, array, ANY, equal_nan=True).close
    assert difference(np.float32([np.nan, -np.inf, -np.inf, 1]), array, ANY, equal_nan=True).failure == "reference-non-finite"
    assert difference(np.float32([0, np.inf, -np.inf, 1]), array, ANY, equal_nan=True).failure == "reference-non-finite"


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (np.uint8([255]), np.uint8([0])),
        (np.int8([-128]), np.int8([127])),
        (np.array([2**53 + 1]), np.array([2**53])),
        (np.array([2**64 - 1], np.uint64), np.array([2**64 - 2], np.uint64)),
        (np.array([True]), np.array([False])),
    ],
)
def test_whole_numbers_have_to_be_equal(found, expected):
    assert difference(expected.copy(), expected, Tolerance(1, 1e6)).agrees
    one = difference(found, expected, Tolerance(1, 1e6))
    assert not one.agrees
    assert one.max_abs >= 1
    assert one.worst == (0,)


def test_the_worst_element_is_the_one_furthest_beyond_its_tolerance():
    expected = np.float32([[1000, 0], [0, 0]])
    found = np.float32([[1000.5, 0], [0.01, 0]])
    one = difference(found, expected, ANY)
    assert one.max_abs == 0.5
    assert one.worst == (1, 0)  # 0.5 of 1000 is within rtol, 0.01 of 0 is not within atol


def test_scores_are_one_vector_of_floats():
    assert is_scores(np.zeros((1, 4), np.float32))
    assert is_scores(np.zeros(4, np.float16))
    for other in (
        np.zeros((2, 4), np.float32),
        np.zeros((1, 4, 1), np.float32),
        np.zeros((1, 1), np.float32),
        np.zeros(4, np.int64),
    ):
        assert not is_scores(other)


def test_another_best_score_is_a_fault_unless_rounding_has_it():
    near, far = np.float32([[1.0, 1.00001]]), np.float32([[1.0, 1.01]])
    for expected, explained in ((near, True), (far, False)):
        found = expected.copy()
        found[0, 0] = expected[0, 1] + 2e-6
        output = OutputAgreement("y", "float32", ANY, [difference(found, expected, ANY)])
        assert output.criterion == ARGMAX
        assert output.agree == 0
        assert bool(output.explained) == explained
        assert bool(output.problems) == (not explained)


def test_signal_to_noise_and_cosine_are_those_of_the_textbook():
    expected, found = np.float64([3, 4]), np.float64([3, 4.5])
    output = OutputAgreement("y", "float64", ANY, [difference(found, expected, ANY)])
    assert output.snr_db == pytest.approx(10 * math.log10(25 / 0.25))
    assert output.cosine == pytest.approx(found @ expected / (np.linalg.norm(found) * 5))
    same = OutputAgreement("y", "float64", ANY, [difference(expected, expected, ANY)])
    assert same.snr_db == math.inf


@pytest.mark.parametrize(("rtol", "atol"), [(-1, 0), (2, 0), (0, -1e-9), (float("nan"), 0)])
def test_what_is_no_tolerance_is_refused(rtol, atol):
    with pytest.raises(ValueError, match=r"[ra]tol is"):
        Tolerance(rtol, atol)


def test_cases_are_judged_output_by_output():
    expected = [{"scores": np.float32([[0, 1]]), "mask": np.array([1, 0])} for _ in range(3)]
    cases = CaseSet("cases", [{"x": np.zeros(1)}] * 3, expected, "a test")
    answers = [dict(one) for one in expected]
    answers[1] = answers[1] | {"mask": np.array([1, 1])}
    answers[2] = {"scores": np.float32([[np.nan, 1]]), "mask": np.array([1, 0])}
    found = judged("wasm-1", cases, answers)
    assert (found.cases, found.agree, found.passed) == (3, 1, False)
    assert found.disagreements == [1, 2]
    assert found.failures == {2: "non-finite"}
    assert found.hardest == 2
    assert [output.criterion for output in found.outputs] == [ARGMAX, CLOSE]
    assert any("mask differs by up to 1, where it has to be equal" in problem for problem in found.problems)
    right = judged("wasm-1", cases, expected)
    assert right.passed
    assert right.max_abs_diff == 0


def test_a_batch_is_taken_apart_by_its_first_axis():
    parts = split({"y": np.arange(6).reshape(3, 2), "z": np.arange(2), "s": np.array(5)}, 3)
    assert [part["y"].tolist() for part in parts] == [[[0, 1]], [[2, 3]], [[4, 5]]]
    assert all(set(part) == {"y"} for part in parts)
