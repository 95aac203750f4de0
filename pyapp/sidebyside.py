"""Values within a model on two engines, side by side: asked for in groups that memory can hold, and judged one by one."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyapp import report as r
from pyapp.agreement import Difference, Tolerance, difference
from pyapp.engine import EngineError, EngineSpec, OpenEngine, Tensors
from pyapp.graphedit import SHAPE_OF, Value, exposed, folded, shapes, values_of
from pyapp.opening import FIRST_RUN_LIMIT_S

MOST_VALUES = 64
MOST_BYTES = 256 << 20
"""Of values that are asked for at once: they lie in the engine's memory and in Python's."""

NUMBER_BYTES = 4
"""Taken for a value's element: its shape can be asked for without it, its type cannot."""

MOST_REFUSED = 32
"""Values that cannot be asked for, until the engine itself is taken to be at fault."""

FATAL = frozenset({"EngineTimeout", "WebGpuUnavailable"})
"""Errors that asking for less does not cure, and that take minutes each."""

MOST_CELLS = 48
CHUNK = 1 << 20
"""Elements that are compared at once: it takes some ten times the memory of a tensor, which a large one need not have."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A value on one engine beside the reference's: `shape` is the reference's, `off` the difference."""

    value: Value
    shape: tuple[int, ...]
    off: Difference

    @property
    def far(self) -> bool:
        """Whether it is beyond the tolerance, or no answer."""
        return not self.off.close

    @property
    def step(self) -> r.FaultStep:
        """Its entry in a report."""
        return r.FaultStep(
            node=self.value.node or self.value.name,
            op=self.value.op,
            output=self.value.name,
            shape=list(self.shape),
            max_abs=self.off.max_abs if math.isfinite(self.off.max_abs) else None,
            max_rel=self.off.max_rel if math.isfinite(self.off.max_rel) else None,
            close=self.off.close,
            failure=self.off.failure,
        )


@dataclass(frozen=True, slots=True)
class Compared:
    """Values side by side, and a picture of the first that is too far, where there can be one."""

    seen: list[Seen]
    map: r.HeatMap | None = None

    @property
    def far(self) -> list[Seen]:
        """Those beyond the tolerance."""
        return [one for one in self.seen if one.far]


@dataclass
class SideBySide:
    """A model on the reference and on the engine to look into; every run has a session of its own, and ends it.

    Attributes
    ----------
    model : bytes
        An ONNX file.
    open_engine : OpenEngine
        Opens engines.
    tolerance : Tolerance
        How far a value may be from the reference's.
    reference, engine : EngineSpec
        The two, as soon as they are known.
    asked : EngineSpec
        Whom the last run was asked of: whose doing an `EngineError` is.
    values : dict of str to Value
        The values to compare by name, in the model's order; those that hang on constants alone (`pyapp.graphedit.folded`) are
        left out, for neither engine works them out.
    skipped : dict of str to str
        Values that could not be had from both, and why.
    together : list of str
        Values that were asked for in the same run as the first one.
    """

    model: bytes
    open_engine: OpenEngine
    tolerance: Tolerance
    reference: EngineSpec
    engine: EngineSpec
    asked: EngineSpec = field(init=False)
    values: dict[str, Value] = field(init=False)
    skipped: dict[str, str] = field(default_factory=dict, init=False)
    together: list[str] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        """Read the model; raises `ModelError` where it is none."""
        self.asked = self.reference
        constant = folded(self.model)
        self.values = {value.name: value for value in values_of(self.model) if value.name not in constant}

    async def once(self, spec: EngineSpec, model: bytes, inputs: Tensors) -> dict[str, NDArray[Any]]:
        """Open a model, run it once and close it; raises `EngineError`."""
        self.asked = spec
        engine = await self.open_engine(spec, model)
        try:
            return await engine.run(inputs, limit_s=FIRST_RUN_LIMIT_S)
        finally:
            await engine.close()

    async def both(self, names: Sequence[str], inputs: Tensors) -> Compared:
        """Compare some values, in one session of each; raises `EngineError`."""
        model = exposed(self.model, names)
        expected = await self.once(self.reference, model, inputs)
        return self.compare(names, await self.once(self.engine, model, inputs), expected)

    async def within(self, inputs: Tensors, progress: Callable[[str, int, int], None]) -> Compared:
        """Compare every value of the main graph.

        A group that cannot be had is halved, until what is left out is one value.

        Parameters
        ----------
        inputs : mapping of str to array
            The model's inputs.
        progress : callable
            Hears of a stage, and how many of how many values are done.

        Raises
        ------
        EngineError
            Where more than `MOST_REFUSED` values cannot be had.
        """
        found: list[Compared] = []
        names, done = list(self.values), 0

        async def ask(part: Sequence[str]) -> None:
            nonlocal done
            progress("comparing values", done, len(names))
            found.append(await self.both(part, inputs))
            self.together = self.together or list(part)
            done += len(part)

        for group in groups(names, await self._sizes(inputs, progress), MOST_VALUES, MOST_BYTES):
            await _halving(group, ask, self._skip)
        picture = next((one.map for one in found if one.far), None)
        return Compared([one for part in found for one in part.seen], picture)

    async def _sizes(self, inputs: Tensors, progress: Callable[[str, int, int], None]) -> dict[str, int]:
        """Ask the reference how many bytes values take, about; those that are no tensors are left out."""
        sizes: dict[str, int] = {}
        refused = 0

        async def ask(part: Sequence[str]) -> None:
            progress("measuring values", len(sizes), len(self.values))
            answer = await self.once(self.reference, shapes(self.model, part), inputs)
            sizes.update((name, NUMBER_BYTES * math.prod(answer[SHAPE_OF + name].tolist())) for name in part)

        def skip(_: str, error: Exception) -> None:
            nonlocal refused
            refused += 1
            if refused > MOST_REFUSED:
                raise error

        with suppress(EngineError, MemoryError):
            await _halving(list(self.values), ask, skip)
        return sizes

    def _skip(self, name: str, error: Exception) -> None:
        self.skipped[name] = error.message if isinstance(error, EngineError) else "there is not enough memory"
        if len(self.skipped) > MOST_REFUSED:
            raise error

    def compare(self, names: Sequence[str], found: Tensors, expected: Tensors) -> Compared:
        """Judge values by name; those that are no tensors are left out, and `skipped` says so."""
        seen: list[Seen] = []
        picture = None
        for name in names:
            wanted, got = expected.get(name), found.get(name)
            if not isinstance(wanted, np.ndarray):
                self.skipped[name] = "it is no tensor"
                continue
            got = got if isinstance(got, np.ndarray) else None
            off = _difference(got, wanted, self.tolerance)
            if not off.close and got is not None and not any(one.far for one in seen):
                picture = picture_of(got, wanted)
            seen.append(Seen(self.values.get(name, Value(name, "", "", -1)), wanted.shape, off))
        return Compared(seen, picture)


def _difference(found: NDArray[Any] | None, expected: NDArray[Any], tolerance: Tolerance) -> Difference:
    """Compare as `difference` does, a large tensor bit by bit: then all is there but what only the whole has."""
    if found is None or found.shape != expected.shape or expected.size <= CHUNK:
        return difference(found, expected, tolerance, equal_nan=True)
    a, b = found.ravel(), expected.ravel()
    parts = [
        difference(a[start : start + CHUNK], b[start : start + CHUNK], tolerance, equal_nan=True)
        for start in range(0, b.size, CHUNK)
    ]
    if failed := next((part for part in parts if part.failure), None):
        return failed
    most = {name: max(getattr(part, name) for part in parts) for name in ("max_abs", "max_rel", "max_ulp")}
    sums = {name: sum(getattr(part, name) for part in parts) for name in ("noise", "signal")}
    return replace(Difference(None), close=all(part.close for part in parts), **most, **sums)


async def _halving(
    names: Sequence[str], ask: Callable[[Sequence[str]], Awaitable[None]], skip: Callable[[str, Exception], None]
) -> None:
    """Ask for values together; where that fails, in halves, in their order; one that cannot be had is skipped."""
    left = [names] if names else []
    while left:
        part = left.pop()
        try:
            await ask(part)
        except (EngineError, MemoryError) as error:
            if isinstance(error, EngineError) and error.kind in FATAL:
                raise
            if len(part) == 1:
                skip(part[0], error)
            else:
                left += [part[len(part) // 2 :], part[: len(part) // 2]]


def groups(
    names: Sequence[str], sizes: Mapping[str, int], most: int = MOST_VALUES, most_bytes: int = MOST_BYTES
) -> Iterator[list[str]]:
    """Cut values into groups of at most `most`, and of at most `most_bytes` unless a single one has more.

    One without a size is in a group by itself, for it may be anything; unless none has one.
    """
    group: list[str] = []
    held = 0
    for name in names:
        size = sizes.get(name, most_bytes if sizes else 0)
        if group and (len(group) == most or held + size > most_bytes):
            yield group
            group, held = [], 0
        group.append(name)
        held += size
    if group:
        yield group


def picture_of(found: NDArray[Any], expected: NDArray[Any]) -> r.HeatMap | None:
    """Make the `heat_map` of two tensors; None where they have no differences element by element."""
    if found.shape != expected.shape or not expected.size or not {found.dtype.kind, expected.dtype.kind} <= set("fiub"):
        return None
    return heat_map(found, expected)


def heat_map(found: NDArray[Any], expected: NDArray[Any], most: int = MOST_CELLS) -> r.HeatMap:
    """Show how far a tensor is from its reference.

    Parameters
    ----------
    found, expected : array
        Real numbers of one shape, at least one. The last axis are the columns of a matrix, all others its rows; a vector is
        folded to be nearly square.
    most : int
        Most rows and columns of the picture. Of equal parts of the matrix, each shows its largest absolute difference: none
        where it has a difference that is no number, or lies behind the end of a vector.
    """
    size = expected.size
    columns = expected.shape[-1] if expected.ndim else 1
    if columns == size:
        columns = math.ceil(math.sqrt(size))
    rows = -(-size // columns)
    # What fills a folded vector's last row must not hide a number.
    cells = np.full(rows * columns, -np.inf, np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        for start in range(0, size, CHUNK):
            a, b = (array.ravel()[start : start + CHUNK].astype(np.float64) for array in (found, expected))
            off = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
            cells[start : start + len(off)] = np.where(np.isfinite(off), off, np.nan)
    matrix: NDArray[np.float32] = cells.reshape(rows, columns)
    for axis, length in enumerate(matrix.shape):
        parts = min(most, length)
        matrix = np.maximum.reduceat(matrix, np.arange(parts) * length // parts, axis=axis)
    values = [[float(f"{cell:.4g}") if math.isfinite(cell) else None for cell in row] for row in matrix.tolist()]
    return r.HeatMap(height=rows, width=columns, values=values)
