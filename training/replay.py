"""The replay: the newest transitions of all environments on the training device, sampled uniformly with n-step returns."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

SAFE_ROWS = 4
"""Rows next to the one that is written which are never sampled."""


@dataclass(frozen=True)
class Batch:
    """Sampled transitions.

    Attributes
    ----------
    before, after
        Observations, uint8 [B,4,84,84], `steps` decisions apart.
    action
        int64 [B].
    returns
        float32 [B]: discounted rewards of these decisions, up to the first end.
    going
        float32 [B]: 1 where no end came between, so that the estimate of `after` counts, else 0.
    weight
        float32 [B]: 0 for a transition that was no decision, else 1.
    """

    before: Tensor
    after: Tensor
    action: Tensor
    returns: Tensor
    going: Tensor
    weight: Tensor


class Replay:
    """A ring of rows, one transition of every environment each.

    Parameters
    ----------
    rows, environments
        Its shape.
    steps, gamma
        Of the returns.
    device
        Where it lies.
    """

    def __init__(self, rows: int, environments: int, steps: int, gamma: float, device: torch.device) -> None:
        self._observation = torch.zeros((rows, environments, 4, 84, 84), dtype=torch.uint8, device=device)
        self._action = torch.zeros((rows, environments), dtype=torch.long, device=device)
        self._reward = torch.zeros((rows, environments), device=device)
        self._ends = torch.zeros((rows, environments), dtype=torch.bool, device=device)
        self._void = torch.zeros((rows, environments), dtype=torch.bool, device=device)
        self._discount = gamma ** torch.arange(steps, device=device, dtype=torch.float32)
        self._offsets = torch.arange(steps, device=device)
        self._rows, self._environments, self._steps, self._device = rows, environments, steps, device
        # Tensors, not numbers: a captured CUDA graph reads them anew at every replay.
        self._next = torch.zeros((), dtype=torch.long, device=device)
        self._filled = torch.zeros((), device=device)
        self.row = 0
        self.count = 0

    def add(self, observation: Tensor, action: Tensor, reward: Tensor, ends: Tensor, void: Tensor) -> None:
        """Add one step of all environments; rewards become their signs."""
        row = self.row
        self._observation[row].copy_(observation)
        self._action[row].copy_(action)
        self._reward[row].copy_(reward.sign())
        self._ends[row].copy_(ends)
        self._void[row].copy_(void)
        self.row = (row + 1) % self._rows
        self.count += self._environments
        self._next.fill_(self.row)
        self._filled.fill_(min(self.count // self._environments, self._rows))

    def sample(self, size: int) -> Batch:
        """Draw transitions, each as likely."""
        random = torch.rand((2, size), device=self._device)
        newest = self._steps + 1
        back = (random[0] * (self._filled - newest - SAFE_ROWS + 1)).long() + newest
        row = (self._next - back) % self._rows
        lane = (random[1] * self._environments).long().clamp_(max=self._environments - 1)
        rows = (row[:, None] + self._offsets) % self._rows
        reward, ends = self._reward[rows, lane[:, None]], self._ends[rows, lane[:, None]]
        # A reward counts as long as no end came before it.
        alive = torch.cumprod(1 - torch.nn.functional.pad(ends.float(), (1, 0))[:, :-1], 1)
        return Batch(
            before=self._observation[row, lane],
            after=self._observation[(row + self._steps) % self._rows, lane],
            action=self._action[row, lane],
            returns=(reward * alive * self._discount).sum(1),
            going=(~ends.any(1)).float(),
            weight=(~self._void[row, lane]).float(),
        )
