import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pyapp.breakout import ACTIONS, ALE_ACTIONS
from pyapp.breakout.preprocess import FRAME_SHAPE, SCREEN_SHAPE, FrameStack, area_resize, max_pool

seeds = st.integers(0, 2**32 - 1)


def noise(seed, shape=SCREEN_SHAPE):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def overlap(size_in, size_out):
    """Return how much of every input each output covers, int [size_out,size_in]; rows add up to size_in."""
    low_in, low_out = np.arange(size_in) * size_out, np.arange(size_out)[:, None] * size_in
    high = np.minimum(low_in + size_out, low_out + size_in)
    return np.maximum(high - np.maximum(low_in, low_out), 0)


ROWS, COLUMNS = (overlap(a, b) for a, b in zip(SCREEN_SHAPE, FRAME_SHAPE, strict=True))


def exact_average(frame):
    """Dense reference in float64; sums of integers, so exact up to the one division."""
    return (ROWS @ frame.astype(np.float64) @ COLUMNS.T) / (SCREEN_SHAPE[0] * SCREEN_SHAPE[1])


@given(st.integers(0, 255))
def test_a_constant_frame_stays_constant(value):
    assert (area_resize(np.full(SCREEN_SHAPE, value, np.uint8)) == value).all()


@given(seeds)
@settings(max_examples=50)
def test_the_mean_is_kept_within_rounding(seed):
    frame = noise(seed)
    assert abs(area_resize(frame).mean() - frame.mean()) < 0.1  # 7,056 roundings of at most 1/2, evenly up and down


@given(seeds)
@settings(max_examples=50)
def test_resize_is_the_exact_average_rounded_half_to_either_side(seed):
    frame = noise(seed)
    exact = exact_average(frame)
    assert np.abs(area_resize(frame) - exact).max() <= 0.5 + 1e-9
    clear = np.abs(exact % 1 - 0.5) > 1e-9
    assert (area_resize(frame) == np.rint(exact))[clear].all()


@given(arrays(np.uint8, SCREEN_SHAPE, elements=st.integers(0, 255), fill=st.integers(0, 255)))
@settings(max_examples=30)
def test_resize_stays_within_the_range_of_its_input(frame):
    small = area_resize(frame)
    assert small.shape == FRAME_SHAPE
    assert small.dtype == np.uint8
    assert frame.min() <= small.min()
    assert small.max() <= frame.max()


def test_resize_reads_views_and_leaves_its_input_alone():
    frame = noise(1)
    before = frame.copy()
    assert (area_resize(frame[:, ::-1]) == area_resize(np.ascontiguousarray(frame[:, ::-1]))).all()
    assert (frame == before).all()


def test_a_single_bright_pixel_is_not_lost():
    frame = np.zeros(SCREEN_SHAPE, np.uint8)
    frame[100, 80] = 200
    assert area_resize(frame).max() >= 20


@given(seeds, seeds)
@settings(max_examples=20)
def test_max_pool(a, b):
    first, second = noise(a), noise(b)
    pooled = max_pool(first, second)
    assert (pooled == np.where(first > second, first, second)).all()
    assert not np.shares_memory(pooled, first)


@pytest.mark.parametrize(
    ("frame", "got"),
    [
        (np.zeros((160, 210), np.uint8), "uint8 [160, 210]"),
        (np.zeros(SCREEN_SHAPE, np.float32), "float32 [210, 160]"),
        (np.zeros((*SCREEN_SHAPE, 1), np.uint8), "uint8 [210, 160, 1]"),
    ],
)
def test_a_wrong_frame_is_named(frame, got):
    with pytest.raises(ValueError, match=r"frame must be uint8 \[210, 160\]") as error:
        area_resize(frame)
    assert got in str(error.value)
    with pytest.raises(ValueError, match="frame_b must be"):
        max_pool(np.zeros(SCREEN_SHAPE, np.uint8), frame)


def small(value):
    return np.full(FRAME_SHAPE, value, np.uint8)


def test_the_stack_holds_the_oldest_frame_first():
    stack = FrameStack()
    assert stack.reset(small(1))[:, 0, 0].tolist() == [0, 0, 0, 1]
    for value in range(2, 7):
        stack.push(small(value))
    assert stack.observation[:, 5, 7].tolist() == [3, 4, 5, 6]
    assert stack.reset(small(9))[:, 0, 0].tolist() == [0, 0, 0, 9]


def test_an_observation_outlives_the_next_and_cannot_be_changed():
    stack = FrameStack()
    frame = small(1)
    first = stack.reset(frame)
    frame[:] = 77  # the caller's own array is not part of the stack
    stack.push(small(2))
    assert first[:, 0, 0].tolist() == [0, 0, 0, 1]
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 0


def test_the_stack_refuses_a_screen():
    with pytest.raises(ValueError, match=r"uint8 \[84, 84\], got uint8 \[210, 160\]"):
        FrameStack().push(np.zeros(SCREEN_SHAPE, np.uint8))


def test_actions_are_ale_s_in_the_order_of_the_outputs():
    ale_py = pytest.importorskip("ale_py")
    assert tuple(ale_py.Action(number).name for number in ALE_ACTIONS) == ACTIONS
