"""The Nature DQN, and its weights as NumPy arrays in the layout that `export_onnx.py` reads."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional


class DQN(nn.Module):
    """Convolutions 8x8/4 (32), 4x4/2 (64), 3x3/1 (64), a hidden layer of 512, four Q-values; ReLU between."""

    def __init__(self) -> None:
        super().__init__()
        self.c1 = nn.Conv2d(4, 32, 8, 4)
        self.c2 = nn.Conv2d(32, 64, 4, 2)
        self.c3 = nn.Conv2d(64, 64, 3, 1)
        self.f1 = nn.Linear(3136, 512)
        self.f2 = nn.Linear(512, 4)

    def forward(self, observations: Tensor) -> Tensor:
        """Return Q-values [N,4] of observations, uint8 [N,4,84,84]."""
        x = observations.to(torch.float32).mul_(1 / 255)
        x = functional.relu(self.c1(x))
        x = functional.relu(self.c2(x))
        x = functional.relu(self.c3(x))
        q_values: Tensor = self.f2(functional.relu(self.f1(x.flatten(1))))
        return q_values


def weights_of(network: nn.Module) -> dict[str, NDArray[np.float32]]:
    """Copy a network's weights to NumPy arrays by name."""
    return {name: value.detach().cpu().numpy() for name, value in network.state_dict().items()}


def load_weights(network: nn.Module, weights: dict[str, NDArray[np.float32]]) -> None:
    """Put NumPy arrays into a network.

    Raises
    ------
    ValueError
        A weight is missing, is not known, or has another shape.
    """
    try:
        network.load_state_dict({name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in weights.items()})
    except RuntimeError as error:
        raise ValueError(f"these are not this network's weights: {error}") from error
