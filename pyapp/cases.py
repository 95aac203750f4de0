"""Cases: inputs with the reference answers that every engine has to give."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from pyapp.agreement import Tolerance
from pyapp.engine import EngineError, Tensors

PYTHON = "onnxruntime on CPython, CPU provider, one state at a time"
"""Who answered the worked example's cases."""


class Cases(Protocol):
    """A named set of cases with the reference's answers.

    `source` says whose answers they are, `batchable` whether several cases can be one input.
    """

    @property
    def name(self) -> str:
        """What they are called."""

    @property
    def source(self) -> str:
        """Say whose answers they are."""

    @property
    def batchable(self) -> bool:
        """Whether several cases can be asked as one."""

    def __len__(self) -> int:
        """Return how many cases there are."""

    def inputs(self, index: int) -> dict[str, NDArray[Any]]:
        """Return the model's inputs of one case."""

    def taken(self, places: NDArray[np.intp]) -> Self:
        """Return the cases at these places, in this order, some perhaps more than once."""

    def first(self, count: int) -> Self:
        """Return the first cases, at most so many."""

    def hardest(self, count: int) -> Self:
        """Return the cases, at most so many, which an error would turn first."""

    def stacked(self) -> dict[str, NDArray[Any]]:
        """Return the model's inputs of all cases as one batch."""


@dataclass(frozen=True)
class Suite:
    """A named set of cases for a model with one image-like input and one vector of scores.

    Attributes
    ----------
    name : str
        ``states`` or ``stress``.
    observation : uint8 [n, 4, 84, 84]
        Four grey frames, oldest first, 0..255.
    q_values : float32 [n, 4]
        Python's scores (onnxruntime on the CPU, one state at a time).
    action : int64 [n]
        Index of the best score; the first one on a tie.
    """

    name: str
    observation: NDArray[np.uint8]
    q_values: NDArray[np.float32]
    action: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.action)

    def inputs(self, index: int) -> dict[str, NDArray[Any]]:
        """Model inputs of one case: `observation` float32 [1, 4, 84, 84] in 0..255."""
        return {"observation": self.observation[index : index + 1].astype(np.float32)}

    @property
    def source(self) -> str:
        """Python's."""
        return PYTHON

    @property
    def batchable(self) -> bool:
        """States are stacked along the first axis."""
        return True

    def taken(self, places: NDArray[np.intp]) -> Suite:
        """Return the cases at these places; see `Cases.taken`."""
        return Suite(self.name, self.observation[places], self.q_values[places], self.action[places])

    def first(self, count: int) -> Suite:
        """Return the first cases; in the stress set these are the hardest."""
        return self.taken(np.arange(min(count, len(self))))

    def hardest(self, count: int) -> Suite:
        """Return the cases with the smallest margins."""
        return self.taken(np.argsort(self.margin, kind="stable")[:count])

    def stacked(self) -> dict[str, NDArray[Any]]:
        """Return all states as one batch: `observation` float32 [n, 4, 84, 84] in 0..255."""
        return {"observation": self.observation.astype(np.float32)}

    @property
    def margin(self) -> NDArray[np.float32]:
        """Best minus second-best reference score of each case: float32 [n]."""
        ordered = np.sort(self.q_values, axis=1)
        return np.asarray(ordered[:, -1] - ordered[:, -2])


@dataclass(frozen=True)
class CaseSet:
    """A named set of cases for any model.

    Attributes
    ----------
    name : str
        What it is called in the report.
    given : sequence of Tensors
        The model's inputs, one a case.
    expected : sequence of Tensors or None
        The reference's outputs, one a case; None where nobody has answered yet. Outputs that it does not have are not judged.
    source : str
        Whose answers they are.
    tolerance : Tolerance
        How far from the reference an output may be.
    batchable : bool
        Whether the model's first dimensions are free, and cases therefore can be stacked.
    """

    name: str
    given: Sequence[Tensors]
    expected: Sequence[Tensors] | None
    source: str
    tolerance: Tolerance = Tolerance()  # noqa: RUF009 - it is frozen
    batchable: bool = False

    def __len__(self) -> int:
        return len(self.given)

    def inputs(self, index: int) -> dict[str, NDArray[Any]]:
        """Model inputs of one case."""
        return dict(self.given[index])

    @property
    def answers(self) -> Sequence[Tensors]:
        """The reference's outputs; raises `EngineError` where nobody has answered yet."""
        if self.expected is None:
            raise EngineError("NoReference", f"the cases of {self.name!r} have no reference answers", "Ask a reference first.")
        return self.expected

    def taken(self, places: NDArray[np.intp]) -> CaseSet:
        """Return the cases at these places; see `Cases.taken`."""
        expected = self.expected and [self.expected[place] for place in places]
        return replace(self, given=[self.given[place] for place in places], expected=expected)

    def first(self, count: int) -> CaseSet:
        """Return the first cases, at most so many."""
        return self.taken(np.arange(min(count, len(self))))

    def hardest(self, count: int) -> CaseSet:
        """Return the first cases: nothing says which are hard."""
        return self.first(count)

    def stacked(self) -> dict[str, NDArray[Any]]:
        """Return the cases as one batch; raises `EngineError` where the model takes one case at a time."""
        if not self.batchable:
            what = "this model takes one case at a time: its inputs and outputs have no free first dimension in common"
            raise EngineError("NoBatch", what, "Export it with a free batch dimension.")
        return {name: np.concatenate([case[name] for case in self.given]) for name in self.given[0]}


def split(outputs: Tensors, count: int) -> list[dict[str, NDArray[Any]]]:
    """Take a batch's outputs apart into those of its `count` cases; an output of another length is in none of them."""
    parts: list[dict[str, NDArray[Any]]] = [{} for _ in range(count)]
    for name, array in outputs.items():
        if array.ndim and len(array) == count:
            for index, part in enumerate(parts):
                part[name] = array[index : index + 1]
    return parts


def load_suite(name: str, npz: bytes) -> Suite:
    """Read a suite from an ``.npz`` file with the arrays `observation`, `q_values` and `action`.

    Raises
    ------
    ValueError
        If the file is no npz archive, or an array is missing or has another shape or dtype; the message names it.
    """
    try:
        with np.load(io.BytesIO(npz), allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in ("observation", "q_values", "action")}
    except KeyError as error:
        raise ValueError(f"suite {name!r} lacks an array: {error.args[0]}") from error
    except (OSError, ValueError) as error:
        raise ValueError(f"suite {name!r} is not an npz archive of plain arrays: {error}") from error
    count = len(arrays["action"])
    expected = {
        "observation": (np.uint8, (count, 4, 84, 84)),
        "q_values": (np.float32, (count, 4)),
        "action": (np.int64, (count,)),
    }
    for key, (dtype, shape) in expected.items():
        array = arrays[key]
        if array.dtype != dtype or array.shape != shape:
            raise ValueError(f"suite {name!r}: {key} is {array.dtype} {array.shape}, expected {np.dtype(dtype)} {shape}")
    return Suite(name=name, **arrays)
