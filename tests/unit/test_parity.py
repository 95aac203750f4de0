import asyncio

import numpy as np
import pytest

from pyapp.cases import Suite, load_suite
from pyapp.engine import EngineSpec
from pyapp.parity import TOLERANCE, parity
from tests.unit.fakes import FakeEngine, linear_scores, make_suite

SPEC = EngineSpec.parse("wasm-1")


def ask(scores, suite=None):
    return asyncio.run(parity(FakeEngine(SPEC, scores=scores), suite or make_suite()))


def near_tie(margin):
    """One case whose two best scores are `margin` apart."""
    scores = np.array([[1.0, 1.0 + margin, 0.5, 0.2]], dtype=np.float32)
    return Suite("stress", np.zeros((1, 4, 84, 84), np.uint8), scores, np.array([1]))


def test_the_same_scores_agree_everywhere():
    result = ask(linear_scores)
    assert (result.agree, result.cases) == (6, 6)
    assert result.max_abs_diff == result.mean_abs_diff == 0
    assert result.passed
    assert not result.problems
    assert not result.could_flip


def test_cases_are_asked_one_at_a_time_and_reported():
    seen = []
    asyncio.run(parity(FakeEngine(SPEC), make_suite(), on_case=lambda done, total: seen.append((done, total))))
    assert seen == [(index + 1, 6) for index in range(6)]


def test_one_differing_action_is_named():
    suite = make_suite()

    def scores(observation):
        q = linear_scores(observation)
        return q[:, ::-1] * 1.0 if np.array_equal(observation[0], suite.observation[3].astype(np.float32)) else q

    result = ask(scores, suite)
    assert result.disagreements == [3]
    assert not result.passed
    assert "1 of 6 actions differ from Python's (first: case 3)" in result.problems


def test_scores_that_drift_fail_even_where_every_action_agrees():
    result = ask(lambda observation: linear_scores(observation) + np.float32(0.01))
    assert result.agree == result.cases
    assert not result.passed
    assert "more than rounding explains" in result.problems[0]


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        ([1.0, np.nan, 0.0, 0.0], "non-finite"),
        ([np.inf, 0.0, 0.0, 0.0], "non-finite"),
        ([0.0, 0.0, 0.0, 0.0], "all-zero"),
        ([1.0, 2.0], "wrong-shape"),
        ([], "wrong-shape"),
    ],
)
def test_scores_that_are_no_answer_fail_by_name_and_are_no_action(answer, failure):
    result = ask(lambda observation: np.array([answer], dtype=np.float32))
    assert set(result.failures.values()) == {failure}
    assert result.agree == 0
    assert set(result.action) == {-1}
    assert not result.passed
    assert failure in result.problems[0]
    assert np.isnan(result.max_abs_diff)


def test_a_missing_output_is_a_failure_not_a_crash():
    engine = FakeEngine(SPEC)

    async def run(inputs, *, limit_s=60.0):
        return {"scores": np.ones((1, 4))}

    engine.run = run
    assert set(asyncio.run(parity(engine, make_suite())).failures.values()) == {"wrong-shape"}


def test_the_first_of_equal_scores_wins():
    suite = Suite("states", np.zeros((1, 4, 84, 84), np.uint8), np.array([[2, 5, 5, 1]], np.float32), np.array([1]))
    assert ask(lambda _: np.array([[2, 5, 5, 1]], np.float32), suite).agree == 1


def test_an_error_of_half_the_margin_could_flip_the_action():
    margin = 2e-5
    within = ask(lambda _: near_tie(margin).q_values + np.float32(margin / 4), near_tie(margin))
    beyond = ask(lambda _: near_tie(margin).q_values + np.float32(margin), near_tie(margin))
    assert within.could_flip == []
    assert beyond.could_flip == [0]


def test_a_flip_within_rounding_is_explained_and_shown():
    flipped = np.array([[1.0 + 4e-6, 1.0, 0.5, 0.2]], dtype=np.float32)
    result = ask(lambda _: flipped, near_tie(2e-6))
    assert result.disagreements == result.explained == [0]
    assert result.agree == 0
    assert result.passed


def test_a_flip_beyond_rounding_is_not_explained():
    flipped = np.array([[1.0 + 2 * TOLERANCE, 1.0, 0.5, 0.2]], dtype=np.float32)
    result = ask(lambda _: flipped, near_tie(TOLERANCE))
    assert result.disagreements == [0]
    assert result.explained == []
    assert not result.passed


def npz(tmp_path, **arrays):
    path = tmp_path / "suite.npz"
    np.savez(path, **arrays)
    return path.read_bytes()


def test_suite_round_trip(tmp_path):
    suite = make_suite()
    loaded = load_suite("x", npz(tmp_path, observation=suite.observation, q_values=suite.q_values, action=suite.action))
    np.testing.assert_array_equal(loaded.observation, suite.observation)
    assert loaded.inputs(2)["observation"].shape == (1, 4, 84, 84)
    assert loaded.inputs(2)["observation"].dtype == np.float32
    assert len(loaded.first(2)) == 2


def test_suite_refuses_a_missing_or_wrong_array(tmp_path):
    suite = make_suite()
    with pytest.raises(ValueError, match=r"suite 'x' lacks an array.*q_values"):
        load_suite("x", npz(tmp_path, observation=suite.observation, action=suite.action))
    wrong = npz(tmp_path, observation=suite.observation.astype(np.float32), q_values=suite.q_values, action=suite.action)
    with pytest.raises(ValueError, match=r"observation is float32 .*expected uint8"):
        load_suite("x", wrong)
    with pytest.raises(ValueError, match="not an npz archive"):
        load_suite("x", b"garbage")
