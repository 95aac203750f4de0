"""Train the DQN: double DQN, n-step returns, a uniform replay on the device, a ladder of exploration over the environments.

Usage::

    python -m training.train --out DIR [--seconds 1380] [--updates 6] [--init WEIGHTS.npz] [--device cuda]
    python -m training.train --out DIR --resume

Every setting of `training.config.TrainingConfig` is an option. DIR gets ``config.json``, ``log.jsonl``, ``checkpoint.pt`` and
``weights.npz``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from training import checkpoint
from training.config import TrainingConfig
from training.environments import Environments
from training.network import DQN, load_weights, weights_of
from training.replay import Replay

RECENT = 200
"""Finished games whose mean score the log states, of the half of the environments that explores least."""

LATE = 0.8
"""Share of the run's time after which `late_exploration` holds."""


class Learner:
    """The network, its target and its optimiser.

    Parameters
    ----------
    config
        Of the run.
    device
        Where the arithmetic is done; on a GPU an update is captured once as a CUDA graph.
    """

    def __init__(self, config: TrainingConfig, device: torch.device) -> None:
        self._config = config
        self._gpu = device.type == "cuda"
        self.network = DQN().to(device)
        self.target = DQN().to(device)
        self.target.load_state_dict(self.network.state_dict())
        self._rate = torch.tensor(config.learning_rate, device=device)
        rate = self._rate if self._gpu else config.learning_rate
        self.optimiser = torch.optim.Adam(self.network.parameters(), lr=rate, eps=1.5e-4, fused=self._gpu, capturable=self._gpu)
        self.updates = 0
        self._loss = torch.zeros(2, device=device)
        self._graph: Callable[[], None] | None = None

    def greedy(self, observation: Tensor) -> NDArray[np.int64]:
        """Return the best actions, int64 [N]."""
        with torch.no_grad():
            actions: NDArray[np.int64] = self.network(observation).argmax(1).cpu().numpy()
        return actions

    @property
    def loss(self) -> tuple[float, float]:
        """The last update's loss, and the mean Q-value of its actions."""
        loss, value = self._loss.tolist()
        return loss, value

    def set_rate(self, rate: float) -> None:
        """Set the learning rate."""
        self._rate.fill_(rate)
        if not self._gpu:
            for group in self.optimiser.param_groups:
                group["lr"] = rate

    def learn(self, replay: Replay) -> None:
        """Do one update."""
        if self._graph is None:
            self._graph = _captured(lambda: self._update(replay)) if self._gpu else lambda: self._update(replay)
        self._graph()
        self.updates += 1
        if self.updates % self._config.target_every == 0:
            self.target.load_state_dict(self.network.state_dict())

    def _update(self, replay: Replay) -> None:
        batch = replay.sample(self._config.batch)
        with torch.no_grad():
            best = self.network(batch.after).argmax(1, keepdim=True)
            value = self.target(batch.after).gather(1, best).squeeze(1)
            wanted = batch.returns + self._config.gamma**self._config.steps * batch.going * value
        found = self.network(batch.before).gather(1, batch.action[:, None]).squeeze(1)
        loss = (nn.functional.smooth_l1_loss(found, wanted, reduction="none") * batch.weight).mean()
        self.optimiser.zero_grad(set_to_none=False)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.network.parameters(), 10.0)
        self.optimiser.step()
        self._loss[0] = loss.detach()
        self._loss[1] = found.detach().mean()

    @property
    def _parts(self) -> dict[str, nn.Module | torch.optim.Optimizer]:
        return {"network": self.network, "target": self.target, "optimiser": self.optimiser}

    def state(self) -> dict[str, Any]:
        """Return all that `restore` needs."""
        return {name: part.state_dict() for name, part in self._parts.items()} | {"updates": self.updates}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        for name, part in self._parts.items():
            part.load_state_dict(state[name])
        self.updates = state["updates"]


def _captured(update: Callable[[], None]) -> Callable[[], None]:
    """Capture an update as a CUDA graph: launching its kernels one by one takes longer than running them."""
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(5):
            update()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        update()
    return graph.replay


class Run:
    """One training run: plays, learns, logs and saves until its time is over.

    Parameters
    ----------
    config
        Its settings.
    folder
        Where log and checkpoints go; exists.
    device
        Where the network is.
    """

    def __init__(self, config: TrainingConfig, folder: Path, device: torch.device) -> None:
        torch.manual_seed(config.seed)
        self.config, self._folder, self._device = config, folder, device
        self.learner = Learner(config, device)
        rows = config.capacity // config.environments
        self._replay = Replay(rows, config.environments, config.steps, config.gamma, device)
        self._random = np.random.default_rng(config.seed)
        ladder = config.exploration_power * np.arange(config.environments) / max(1, config.environments - 1)
        self._epsilon = config.exploration ** (1 + ladder)
        self.transitions = 0
        self.spent = 0.0
        self._scores = np.zeros(config.environments)
        self._recent: deque[float] = deque(maxlen=RECENT)

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint. Games begin anew and the replay fills again before the next update."""
        self.learner.restore(state["learner"])
        self.transitions, self.spent = state["transitions"], state["spent"]
        self._recent.extend(state["recent"])
        self._random.bit_generator.state = state["random"]
        torch.set_rng_state(state["torch_random"])
        if self._device.type == "cuda":  # its generator is not saved; as it is now, it would draw the run's first samples again
            torch.cuda.manual_seed(self.config.seed + self.learner.updates)

    def save(self) -> None:
        """Write a checkpoint.

        Raises
        ------
        FloatingPointError
            The network is broken; the checkpoint before is kept.
        """
        self._check()
        state = {
            "learner": self.learner.state(),
            "transitions": self.transitions,
            "spent": self.spent,
            "recent": list(self._recent),
            "random": self._random.bit_generator.state,
            "torch_random": torch.get_rng_state(),
        }
        checkpoint.save(self._folder, state, weights_of(self.learner.network))

    def train(self) -> None:
        """Play and learn until the run's time is over, or until Ctrl-C, after which `--resume` goes on."""
        config = self.config
        # Another seed after a resume: the same games again would teach nothing new.
        games = Environments(config.environments, config.threads, config.seed + self.learner.updates)
        begun, before = time.monotonic(), self.spent
        logged = saved = self.spent
        try:
            while self.spent < config.seconds:
                self._step(games)
                self.spent = before + time.monotonic() - begun
                if self.spent - logged >= config.log_every:
                    logged = self.spent
                    self._log()
                if self.spent - saved >= config.save_every:
                    saved = self.spent
                    self.save()
        except KeyboardInterrupt:
            print("stopped; --resume goes on", file=sys.stderr)
        finally:
            games.close()
        if logged < self.spent:
            self._log()
        self.save()

    def _step(self, games: Environments) -> None:
        observation = torch.from_numpy(games.observation).to(self._device)
        actions = self._actions(observation)
        games.send(actions)
        if self._replay.count > self.config.warmup:
            share = self.spent / self.config.seconds
            self.learner.set_rate(self.config.learning_rate * max(self.config.final_rate, 1 - share))
            for _ in range(self.config.updates):
                self.learner.learn(self._replay)
        step = games.receive()
        arrays = (actions, step.reward, step.ends, step.void)
        self._replay.add(observation, *(torch.from_numpy(array).to(self._device) for array in arrays))
        self.transitions += self.config.environments
        self._scores += step.reward
        for lane in np.flatnonzero(step.over):
            if 2 * lane >= self.config.environments:
                self._recent.append(float(self._scores[lane]))
            self._scores[lane] = 0

    def _actions(self, observation: Tensor) -> NDArray[np.int64]:
        count = self.config.environments
        floor = max(0.0, 1 - self.transitions / self.config.explore_until) if self.config.explore_until else 0.0
        late = self.spent > LATE * self.config.seconds
        chances = np.maximum(self._epsilon * (self.config.late_exploration if late else 1), floor)
        explore = self._random.random(count) < chances
        return np.where(explore, self._random.integers(0, 4, count), self.learner.greedy(observation)).astype(np.int64)

    def _log(self) -> None:
        loss, value = self.learner.loss
        line = {
            "seconds": round(self.spent, 1),
            "transitions": self.transitions,
            "updates": self.learner.updates,
            "score": round(float(np.mean(self._recent)), 1) if self._recent else None,
            "games": len(self._recent),
            "loss": round(loss, 5),
            "q": round(value, 4),
        }
        text = json.dumps(line)
        self._check()
        print(text, flush=True)
        with (self._folder / "log.jsonl").open("a", encoding="utf-8") as stream:
            stream.write(text + "\n")

    def _check(self) -> None:
        loss, _ = self.learner.loss
        if not np.isfinite(loss):
            raise FloatingPointError(f"the loss is {loss} after {self.learner.updates} updates; lower the learning rate")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 2 with the reason on stderr."""
    parser = argparse.ArgumentParser(description="Train the DQN.")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the run")
    parser.add_argument("--resume", action="store_true", help="go on from DIR's checkpoint, with its settings")
    parser.add_argument("--init", type=Path, metavar="WEIGHTS.npz", help="begin with these weights")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    for field in fields(TrainingConfig):
        kind = int if field.type == "int" else float
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=kind, default=None, metavar=str(field.default))
    options = parser.parse_args(arguments)
    try:
        _check_device(options.device)
        run = _resumed(options) if options.resume else _begun(options)
        run.train()
    except (ValueError, FloatingPointError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _check_device(name: str) -> None:
    if name not in ("cpu", "cuda"):
        raise ValueError(f"device must be cpu or cuda, got {name!r}")
    if name == "cuda" and not torch.cuda.is_available():
        raise ValueError("this PyTorch finds no GPU: give --device cpu, or install the build that fits the GPU")


def _given(options: argparse.Namespace) -> dict[str, Any]:
    given = {field.name: getattr(options, field.name) for field in fields(TrainingConfig)}
    return {name: value for name, value in given.items() if value is not None}


def _begun(options: argparse.Namespace) -> Run:
    folder: Path = options.out
    if (folder / checkpoint.STATE).exists():
        raise ValueError(f"{folder} holds a run already; go on with --resume, or name another folder")
    config = TrainingConfig(**_given(options))
    weights = _weights(options.init) if options.init else None
    run = Run(config, folder, torch.device(options.device))
    if weights:
        for network in (run.learner.network, run.learner.target):
            load_weights(network, weights)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(config.to_json(), encoding="utf-8")
    return run


def _resumed(options: argparse.Namespace) -> Run:
    folder: Path = options.out
    try:
        text = (folder / "config.json").read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{folder} holds no run ({error.strerror}); start one without --resume") from error
    # More time is the one thing that a run can be given later.
    kept = json.loads(text) | {name: value for name, value in _given(options).items() if name == "seconds"}
    config = TrainingConfig.from_json(json.dumps(kept))
    state = checkpoint.load(folder)
    run = Run(config, folder, torch.device(options.device))
    run.restore(state)
    return run


def _weights(path: Path) -> dict[str, NDArray[np.float32]]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read ({error}); give weights in the layout of training/README.md") from error


if __name__ == "__main__":
    sys.exit(main())
