"""Where one synthetic curve overtakes another."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyapp.crossover import ALREADY, CROSSES, NONE, NOT_WITHIN, UNDECIDED, Compared, find_crossover

BATCHES = [1, 2, 4, 8, 16, 32, 64, 128, 256]


def points(gpu, wasm, *, noise=0.0, rounds=8, seed=0, batches=BATCHES):
    rng = np.random.default_rng(seed)

    def blocks(ms):
        return [ms * np.exp(rng.normal(0, noise) + rng.normal(0, noise, size=3)) for _ in range(rounds)]

    return [Compared(batch, blocks(gpu(batch)), blocks(wasm(batch))) for batch in batches]


@settings(max_examples=60)
@given(
    place=st.floats(1.01, 255),
    gpu_power=st.floats(0, 0.9),
    gap=st.floats(0.05, 1),
    scale=st.floats(0.01, 100),
)
def test_curves_that_are_powers_cross_exactly_where_they_do(place, gpu_power, gap, scale):
    found = find_crossover(
        points(lambda n: scale * (n / place) ** gpu_power, lambda n: scale * (n / place) ** (gpu_power + gap)), seed=0
    )
    assert found.answer == CROSSES
    assert found.batch == pytest.approx(place, rel=1e-6)
    assert found.low == pytest.approx(place, rel=1e-6)
    assert found.high == pytest.approx(place, rel=1e-6)


@settings(max_examples=60)
@given(
    fixed=st.floats(0.5, 20),
    each=st.floats(0.001, 0.4),
    wasm=st.floats(0.5, 2),
    seed=st.integers(0, 1000),
)
def test_a_fixed_cost_is_overtaken_between_the_right_neighbours(fixed, each, wasm, seed):
    true = fixed / (wasm - each)
    found = find_crossover(points(lambda n: fixed + each * n, lambda n: wasm * n), seed=seed)
    if true <= 1:
        assert found.answer == ALREADY
    elif true > 256:
        assert found.answer == NOT_WITHIN
    else:
        assert found.answer == CROSSES
        below = 2.0 ** np.floor(np.log2(true))
        assert below * 0.999 <= found.batch <= below * 2.001
        assert found.batch == pytest.approx(true, rel=0.25)


def test_the_interval_holds_the_true_place_and_gets_wider_with_noise():
    widths = []
    for noise in (0.01, 0.05, 0.2):
        held = 0
        spans = []
        for seed in range(40):
            found = find_crossover(points(lambda n: 4.0, lambda n: n / 1.3, noise=noise, seed=seed), seed=seed)
            assert found.answer == CROSSES
            held += found.low <= 5.2 <= found.high
            spans.append(found.high / found.low)
        assert held >= 32, f"{held} of 40 at {noise}"
        widths.append(np.median(spans))
    assert widths[0] < widths[1] < widths[2]


def test_the_last_crossing_counts():
    ratios = {1: 0.5, 2: 2.0, 4: 0.5, 8: 2.0, 16: 0.5}
    found = find_crossover(points(lambda n: ratios[n], lambda n: 1.0, batches=list(ratios)), seed=0)
    assert found.batch == pytest.approx(np.sqrt(8 * 16))


@pytest.mark.parametrize(("ratio", "answer"), [(0.9, ALREADY), (1.1, NOT_WITHIN)])
@pytest.mark.parametrize("batches", [[1], BATCHES])
def test_one_that_is_always_ahead_or_behind_does_not_cross(ratio, answer, batches):
    found = find_crossover(points(lambda n: ratio * n, lambda n: n, noise=0.001, batches=batches), seed=0)
    assert (found.answer, found.batch, found.low, found.high) == (answer, None, None, None)


def test_equals_are_not_decided():
    found = find_crossover(points(lambda n: 1.0, lambda n: 1.0, noise=0.3), seed=0)
    assert found.answer == UNDECIDED
    assert found.batch is None


def test_a_bound_outside_of_what_was_measured_is_open():
    found = find_crossover(points(lambda n: 250.0, lambda n: n, noise=0.1, seed=3), seed=0)
    assert found.answer in (CROSSES, UNDECIDED)
    assert found.high is None
    assert found.low is None or 128 < found.low < 256


def test_nothing_measured_is_no_answer():
    assert find_crossover([], seed=0).answer == NONE


def test_the_same_seed_gives_the_same_interval():
    curves = points(lambda n: 4.0, lambda n: n, noise=0.1)
    assert find_crossover(curves, seed=5) == find_crossover(curves, seed=5)
