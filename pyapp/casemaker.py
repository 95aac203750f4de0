"""Inputs made from a model's signature, for a visitor who has no file of cases.

They show whether engines agree, not whether a model is any good: nothing here knows what a model is for. What is guessed, sizes
and ranges, is guessed from names and shapes by two tables, `SIZES` and `RANGES`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyapp.arrayfile import MAX_BYTES, CaseError
from pyapp.casefile import described, dtype_of, is_free, spelled
from pyapp.onnxfile import ModelInfo, TensorInfo

MAX_COUNT = 256
MAX_SIZE = 1 << 31
IMAGE_CHANNELS = (1, 3, 4)


def _called(value: TensorInfo, axis: int) -> str:
    """Return the name of a dimension, by its place where it has none."""
    size = (value.dims or ())[axis]
    return (size if isinstance(size, str) else "") or f"{value.name}[{axis}]"


# --- sizes ---


@dataclass(frozen=True)
class SizeRule:
    """A guess for a free dimension: by its name, or by its place.

    Attributes
    ----------
    size : int
        The guess.
    why : str
        What it stands for.
    name : str
        Pattern to be found in the dimension's name, as `pyapp.casefile.spelled`; empty for none.
    place : function or None
        Whether the axis of that number in that tensor is meant.
    """

    size: int
    why: str
    name: str = ""
    place: Callable[[TensorInfo, int], bool] | None = None

    def fits(self, value: TensorInfo, axis: int, name: str) -> bool:
        """Return whether the guess is for this axis; `name` is empty where it has none."""
        named = bool(self.name) and re.search(self.name, spelled(name)) is not None
        return named or (self.place is not None and self.place(value, axis))


def _image_axes(dims: Sequence[int | str | None]) -> tuple[int, ...]:
    """Return the axes of height and width, if these are an image's: channels first, else channels last."""
    if len(dims) != 4:
        return ()
    return (2, 3) if dims[1] in IMAGE_CHANNELS else (1, 2) if dims[3] in IMAGE_CHANNELS else ()


def _is_sound(value: TensorInfo, axis: int) -> bool:
    """Return whether the axis is the only free one, but for a batch, and the last of one or two of a tensor of floats."""
    dims = value.dims or ()
    return value.dtype.startswith("float") and axis == len(dims) - 1 and len(dims) <= 2


SIZES: tuple[SizeRule, ...] = (
    SizeRule(1, "what a decoder has seen already", r"_past_"),
    SizeRule(1, "one case at a time, as an application does", r"^_(n|bs?)_$|_batch[a-z]*_"),
    SizeRule(16000, "a second of speech at its usual rate", r"_([a-z]*samples|audio|wave[a-z]*)_"),
    SizeRule(16, "a short sentence", r"_(seq[a-z]*|lengths?|len|tokens?|time[a-z]*)_"),
    SizeRule(224, "what most image classifiers were trained on", r"_(h|w|height|width|rows|cols)_"),
    SizeRule(3, "red, green and blue", r"_channels?_"),
    SizeRule(224, "as above, by place", place=lambda value, axis: axis in _image_axes(value.dims or ())),
    SizeRule(16000, "as above, by place", place=_is_sound),
    SizeRule(1, "most often the batch", place=lambda _, axis: axis == 0),
    SizeRule(1, "nothing is known, and small is quick", place=lambda *_: True),
)
"""The first rule that fits counts, so names go before places."""


def free_sizes(info: ModelInfo) -> dict[str, int]:
    """Guess a size for every free dimension of a model's inputs, by name, in their order.

    A dimension without a name is called after its place, as ``x[2]``. A name that is a sum of others, such as
    ``past_length + length``, gets their guesses' sum.
    """
    sizes: dict[str, int] = {}
    for value in info.inputs:
        for axis, size in enumerate(value.dims or ()):
            if is_free(size):
                name = size if isinstance(size, str) else ""
                rule = next(rule for rule in SIZES if rule.fits(value, axis, name))
                sizes.setdefault(_called(value, axis), rule.size)
    for name in sizes:
        parts = [part.strip() for part in name.split("+")]
        if len(parts) > 1 and all(part in sizes or re.fullmatch(r"[0-9]{1,9}", part) for part in parts):
            sizes[name] = sum(sizes[part] if part in sizes else int(part) for part in parts)
    return sizes


def shape_of(value: TensorInfo, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Return a tensor's shape with the given sizes of its free dimensions, named as by `free_sizes`.

    Raises
    ------
    CaseError
        ``FreeRank`` if not even the number of dimensions is known; ``BadSize`` if a size is missing, no whole number, or not
        within 0..`MAX_SIZE`.
    """
    if value.dims is None:
        what = f"input {value.name!r} has a free rank, so its shape cannot be made up"
        raise CaseError("FreeRank", what, "Give cases in a file.")
    shape = []
    for axis, size in enumerate(value.dims):
        name = _called(value, axis)
        found = sizes.get(name) if is_free(size) else size
        if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= MAX_SIZE:
            what = f"the dimension {name!r} of input {value.name!r} has " + (
                "no size" if found is None else f"the size {found!r}"
            )
            raise CaseError("BadSize", what, f"Give a whole number from 0 to {MAX_SIZE:,}.")
        shape.append(found)
    return tuple(shape)


# --- values ---


@dataclass(frozen=True)
class Draw:
    """What the values of an array may depend on.

    Attributes
    ----------
    random : numpy.random.Generator
        Source of chance, of this case.
    shape : tuple of int
        Shape of the array.
    first_half : bool
        Whether the case is in the first half of them, rounded up.
    length : int
        Size that an input with this one's name tells the length of; 1 where there is none.
    """

    random: np.random.Generator
    shape: tuple[int, ...]
    first_half: bool
    length: int


@dataclass(frozen=True)
class RangeRule:
    """How to fill the inputs whose dtype's kind, name and shape fit.

    Attributes
    ----------
    kinds : str
        Kinds of dtypes, as numpy's: ``b``, ``i``, ``u``, ``f``.
    make : function
        Makes the array from a `Draw`; it is cast afterwards, and cut at the most that an integer type has room for.
    why : str
        Why these values.
    name : str
        Pattern to be found in the input's name, as `pyapp.casefile.spelled`; empty where any name will do.
    only : function
        Whether a dtype and shape are meant.
    """

    kinds: str
    make: Callable[[Draw], NDArray[Any]]
    why: str
    name: str = ""
    only: Callable[[np.dtype[Any], tuple[int, ...]], bool] = lambda *_: True


def _mask(draw: Draw) -> NDArray[Any]:
    made = np.ones(draw.shape, np.uint8)
    if not draw.first_half:
        made = draw.random.integers(0, 2, draw.shape, np.uint8)
        np.atleast_1d(made)[..., :1] = 1
    return made


def _positions(draw: Draw) -> NDArray[Any]:
    return np.broadcast_to(np.arange(draw.shape[-1]) if draw.shape else np.int64(0), draw.shape)


def _between(low: int, high: int) -> Callable[[Draw], NDArray[Any]]:
    return lambda draw: np.asarray(draw.random.integers(low, high, draw.shape, np.uint8, endpoint=True))


def _constant(number: int) -> Callable[[Draw], NDArray[Any]]:
    return lambda draw: np.full(draw.shape, number)


RANGES: tuple[RangeRule, ...] = (
    RangeRule("biuf", _mask, "in half of the cases everything counts; then some does not, but the first always", r"_masks?_"),
    RangeRule("iu", _positions, "places are counted from 0 along the last axis", r"_positions?_"),
    RangeRule("iu", _constant(0), "one sentence, the first", r"_(token_type|segment)"),
    RangeRule("iuf", _constant(16000), "the usual rate of speech; others are often refused", r"_(sr|(sample|sampling)_rate)_"),
    RangeRule(
        "iuf",
        lambda draw: np.full(draw.shape, draw.length),
        "as long as what it tells the length of",
        r"_(lengths?|lens?|sizes?)_",
    ),
    RangeRule("iu", _between(1, 99), "words of any vocabulary; 0 is often padding", r"_(ids?|inputids|tokens?)_"),
    RangeRule("b", lambda draw: np.asarray(draw.random.random(draw.shape) < 0.8), "what is switched off shows nothing"),
    RangeRule("u", _between(0, 255), "bytes are most often pixels", only=lambda dtype, _: dtype == np.uint8),
    RangeRule("iu", _between(0, 9), "classes or indices: small ones are valid most often"),
    RangeRule(
        "f",
        lambda draw: np.asarray(draw.random.random(draw.shape, np.float32)),
        "pixels from 0 to 1",
        only=lambda _, shape: bool(_image_axes(shape)),
    ),
    RangeRule(
        "f",
        lambda draw: np.asarray(draw.random.standard_normal(draw.shape, np.float32)),
        "networks are trained on inputs of mean 0 and deviation 1, or near it",
    ),
)
"""The first rule that fits counts."""


def make_cases(info: ModelInfo, sizes: Mapping[str, int], *, count: int = 8, seed: int = 0) -> list[dict[str, NDArray[Any]]]:
    """Make inputs for a model, by `RANGES`.

    A case depends on `seed` and its number, and on `count` only as far as masks do. Cases differ in everything that is drawn by
    chance; where nothing is, or too few values are there to draw, they may be equal.

    Parameters
    ----------
    info : ModelInfo
        The model's inputs.
    sizes : mapping of str to int
        Sizes of the free dimensions, as of `free_sizes`.
    count : int
        Cases to make, 1..`MAX_COUNT`.
    seed : int
        Of the random numbers, 0 or more. The same one gives the same cases.

    Returns
    -------
    list of dict of str to array
        For each case the inputs by name, in the model's dtypes and the shapes of `shape_of`.

    Raises
    ------
    CaseError
        ``BadCount``, ``BadSeed``; ``FreeRank`` and ``BadSize`` (see `shape_of`); ``UnsupportedType`` for an input that is not
        of numbers; ``CasesTooLarge`` if all cases together have more than `MAX_BYTES` bytes.
    """
    if not 1 <= count <= MAX_COUNT:
        raise CaseError("BadCount", f"{count} cases are asked for", f"Ask for 1 to {MAX_COUNT}.")
    if seed < 0:
        raise CaseError("BadSeed", f"the seed is {seed}", "Give 0 or more.")
    planned = [(value, dtype_of(value), shape_of(value, sizes)) for value in info.inputs]
    total = count * sum(math.prod(shape) * dtype.itemsize for _, dtype, shape in planned)
    if total > MAX_BYTES:
        parts = "; ".join(f"{value.name!r} is {described(value)} as {list(shape)}" for value, _, shape in planned[:4])
        what = f"{count} cases would have {total:,} bytes, at most {MAX_BYTES:,} can be used ({parts})"
        raise CaseError("CasesTooLarge", what, "Choose smaller sizes or fewer cases.")
    cases = []
    for number in range(count):
        random = np.random.default_rng((seed, number))
        case = {}
        for value, dtype, shape in planned:
            draw = Draw(random, shape, number < (count + 1) // 2, _length(value, info, sizes))
            made = _rule(value, dtype, shape).make(draw)
            if dtype.kind in "iu" and not np.can_cast(made.dtype, dtype, "safe"):
                made = np.minimum(made, min(np.iinfo(dtype).max, np.iinfo(made.dtype).max))
            case[value.name] = np.array(made, dtype, order="C")
        cases.append(case)
    return cases


def _rule(value: TensorInfo, dtype: np.dtype[Any], shape: tuple[int, ...]) -> RangeRule:
    name = spelled(value.name)
    return next(rule for rule in RANGES if dtype.kind in rule.kinds and re.search(rule.name, name) and rule.only(dtype, shape))


def _length(value: TensorInfo, info: ModelInfo, sizes: Mapping[str, int]) -> int:
    """Return the size that an input such as ``speech_lengths`` tells: the one of its name, or that of the input ``speech``."""
    if value.name in free_sizes(info):
        return sizes[value.name]
    stem = re.sub(r"(?<=_)(lengths?|lens?|sizes?)_", "", spelled(value.name))
    found = set()
    for other in info.inputs:
        if other.name != value.name and (stem == "_" or stem in spelled(other.name)):
            later = [axis for axis, size in enumerate(other.dims or ()) if axis and is_free(size)]
            found |= {sizes[_called(other, axis)] for axis in later[:1]}
    return found.pop() if len(found) == 1 else 1
