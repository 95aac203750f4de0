"""A run's state on disk: written whole or not at all."""

from __future__ import annotations

import os
import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

STATE = "checkpoint.pt"
WEIGHTS = "weights.npz"


def save(folder: Path, state: dict[str, Any], weights: dict[str, NDArray[np.float32]]) -> None:
    """Write the state that a run goes on from, and its weights for `export_onnx.py`, each in one piece."""
    _replace(folder / STATE, lambda path: torch.save(state, path))
    _replace(folder / WEIGHTS, lambda path: np.savez(path, allow_pickle=False, **weights))


def load(folder: Path) -> dict[str, Any]:
    """Read the state.

    Raises
    ------
    ValueError
        There is none, or it is damaged.
    """
    path = folder / STATE
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, ValueError, pickle.UnpicklingError) as error:
        raise ValueError(f"{path} cannot be read ({error}); start without --resume") from error
    return state


def _replace(path: Path, write: Any) -> None:  # noqa: ANN401 - a writer of any kind
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=path.suffix)
    os.close(handle)
    try:
        write(Path(name))
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
