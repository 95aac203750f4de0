"""Cases: inputs with the reference answers that every engine has to give."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


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

    def first(self, count: int) -> Suite:
        """Return the first `count` cases; in the stress set these are the hardest."""
        return Suite(self.name, self.observation[:count], self.q_values[:count], self.action[:count])

    @property
    def margin(self) -> NDArray[np.float32]:
        """Best minus second-best reference score of each case: float32 [n]."""
        ordered = np.sort(self.q_values, axis=1)
        return np.asarray(ordered[:, -1] - ordered[:, -2])


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
