"""What a training run is told; kept with its results as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True)
class TrainingConfig:
    """Settings of a run. The defaults made the weights in ``fixtures/``.

    Attributes
    ----------
    seconds
        Wall time of the whole run; learning rate and exploration are scheduled over it.
    environments, threads
        Games played side by side, and the threads that play them.
    capacity
        Transitions that the replay holds (28 kB each); rounded down to whole rows of `environments`.
    warmup
        Transitions to gather before the first update.
    batch, updates
        Transitions of an update, and updates for every step of all environments.
    learning_rate, final_rate
        Of Adam; falls linearly to `final_rate` times its start.
    gamma, steps
        Discount of a decision, and decisions until the estimate takes over (n-step returns).
    target_every
        Updates between two copies of the network to its target.
    exploration, exploration_power
        The environments' chances of a random action: the i-th of n has
        ``exploration ** (1 + exploration_power * i / (n - 1))``.
    late_exploration
        Factor on these chances in the last fifth of the run.
    explore_until
        Transitions over which every environment's chance falls from 1 to its own; 0 for weights that are good already.
    log_every, save_every
        Seconds between two lines of the log, and between two checkpoints.
    seed
        Of the network, the environments, exploration and sampling.
    """

    seconds: float = 1380.0
    environments: int = 256
    threads: int = 16
    capacity: int = 1 << 20
    warmup: int = 100_000
    batch: int = 512
    updates: int = 6
    learning_rate: float = 1.5e-4
    final_rate: float = 0.05
    gamma: float = 0.99
    steps: int = 3
    target_every: int = 2000
    exploration: float = 0.4
    exploration_power: float = 7.0
    late_exploration: float = 0.3
    explore_until: int = 1_000_000
    log_every: float = 20.0
    save_every: float = 120.0
    seed: int = 1

    def __post_init__(self) -> None:
        """Refuse settings that no run can have.

        Raises
        ------
        ValueError
            Naming the setting, its value and what is allowed.
        """
        for field in fields(self):
            value = getattr(self, field.name)
            wanted = (int,) if field.type == "int" else (int, float)
            if isinstance(value, bool) or not isinstance(value, wanted):
                raise ValueError(f"{field.name} must be {'a whole' if field.type == 'int' else 'a'} number, got {value!r}")
        for name in ("environments", "threads", "batch", "updates", "steps", "target_every"):
            self._check(name, getattr(self, name) >= 1, "at least 1")
        for name in ("gamma", "exploration", "late_exploration", "final_rate"):
            self._check(name, 0 <= getattr(self, name) <= 1, "in 0..1")
        for name in ("seconds", "learning_rate", "log_every", "save_every"):
            self._check(name, getattr(self, name) > 0, "more than 0")
        for name in ("warmup", "explore_until", "exploration_power", "seed"):
            self._check(name, getattr(self, name) >= 0, "at least 0")
        rows = self.capacity // self.environments
        self._check(
            "capacity",
            rows > 2 * (self.steps + 4),
            f"more than {2 * (self.steps + 4)} rows of {self.environments} environments",
        )
        self._check("warmup", self.warmup < rows * self.environments, f"less than the capacity, {rows * self.environments}")

    def _check(self, name: str, good: bool, rule: str) -> None:
        if not good:
            raise ValueError(f"{name} must be {rule}, got {getattr(self, name)!r}")

    def to_json(self) -> str:
        """Return the settings as JSON text."""
        return json.dumps(asdict(self), indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> TrainingConfig:
        """Read settings from JSON text.

        Raises
        ------
        ValueError
            A setting is not known, is missing or is out of its range.
        """
        data: dict[str, Any] = json.loads(text)
        known = {field.name for field in fields(cls)}
        if data.keys() != known:
            raise ValueError(f"unknown settings {sorted(data.keys() - known)}, missing settings {sorted(known - data.keys())}")
        return cls(**data)
