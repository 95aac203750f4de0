"""A run of half a minute on the CPU: it learns something, stops, goes on, and its weights can be exported."""

import itertools
import json
import math
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import onnxruntime
import pytest
import torch

from training import checkpoint, export_onnx, train
from training.config import TrainingConfig
from training.environments import Environments
from training.network import DQN, load_weights, weights_of
from training.replay import Replay

TINY = ["--environments", "8", "--threads", "2", "--capacity", "2048", "--warmup", "200", "--batch", "16", "--updates", "1"]
TINY += ["--target-every", "20", "--explore-until", "400", "--log-every", "1", "--save-every", "2", "--device", "cpu"]


@pytest.fixture(autouse=True)
def one_thread():
    """As quick for batches this small, and it leaves the games their processor."""
    torch.set_num_threads(1)


@pytest.fixture
def steady(monkeypatch):
    """A clock by which every step takes 0.1 s, so that a run's length does not hang on the machine."""
    ticks = itertools.count()
    monkeypatch.setattr(train, "time", SimpleNamespace(monotonic=lambda: next(ticks) / 10))


def run(folder, *options):
    assert train.main(["--out", str(folder), *options]) == 0
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def weights(folder):
    with np.load(folder / checkpoint.WEIGHTS) as archive:
        return dict(archive)


@pytest.mark.usefixtures("steady")
def test_a_run_learns_stops_and_goes_on(tmp_path):
    folder = tmp_path / "run"
    first = run(folder, *TINY, "--seconds", "8")
    last = first[-1]
    assert last["updates"] == 80 - 26  # the warm-up takes 26 steps
    assert math.isfinite(last["loss"])
    assert last["transitions"] == 8 * 80
    before = weights(folder)
    untrained = weights_of(DQN())
    assert {name: array.shape for name, array in before.items()} == {name: array.shape for name, array in untrained.items()}

    with pytest.raises(SystemExit):
        train.main(["--resume"])
    assert train.main(["--out", str(folder), *TINY]) == 2  # it would overwrite a run

    second = run(folder, "--resume", "--seconds", "14", "--device", "cpu")
    assert second[: len(first)] == first
    assert second[-1]["updates"] == last["updates"] + 60 - 26  # the replay begins empty
    assert second[-1]["transitions"] == 8 * 140
    assert second[len(first)]["seconds"] > last["seconds"]
    assert all(math.isfinite(line["loss"]) for line in second)
    after = weights(folder)
    assert any((after[name] != before[name]).any() for name in after)
    assert all(np.isfinite(array).all() for array in after.values())


@pytest.mark.usefixtures("steady")
def test_the_same_seed_is_the_same_run_where_time_is(tmp_path):
    logs = [
        run(tmp_path / name, *TINY, "--seconds", "4", "--seed", seed) for name, seed in (("a", "5"), ("b", "5"), ("c", "6"))
    ]
    assert logs[0][-1] == logs[1][-1] != logs[2][-1]
    for name, array in weights(tmp_path / "a").items():
        assert (array == weights(tmp_path / "b")[name]).all(), name


def test_the_exported_model_computes_what_the_network_does(tmp_path):
    network = DQN()
    weights_file, model_file = tmp_path / "w.npz", tmp_path / "m.onnx"
    np.savez(weights_file, **weights_of(network))
    assert export_onnx.main([str(weights_file), str(model_file)]) == 0
    observations = np.random.default_rng(1).integers(0, 256, (16, 4, 84, 84), dtype=np.uint8)
    session = onnxruntime.InferenceSession(model_file, providers=["CPUExecutionProvider"])
    (found,) = session.run(["q_values"], {"observation": observations.astype(np.float32)})
    with torch.no_grad():
        expected = network(torch.from_numpy(observations)).numpy()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def small_run(folder):
    config = TrainingConfig(environments=4, threads=1, capacity=400, warmup=100, batch=8, updates=1, seconds=60)
    return train.Run(config, folder, torch.device("cpu"))


def test_a_network_that_broke_leaves_the_checkpoint_before(tmp_path):
    run = small_run(tmp_path)
    run.save()
    kept = (tmp_path / checkpoint.STATE).read_bytes()
    run.learner._loss[0] = math.nan
    with pytest.raises(FloatingPointError, match="loss is nan"):
        run.save()
    assert (tmp_path / checkpoint.STATE).read_bytes() == kept
    assert sorted(path.name for path in tmp_path.iterdir()) == [checkpoint.STATE, checkpoint.WEIGHTS]


def test_exploration_falls_with_the_transitions_and_again_late(tmp_path):
    run = small_run(tmp_path)
    run.learner.greedy = lambda observation: np.full(4, -1)  # what is not -1 was explored

    def explored():
        return np.mean([run._actions(None) >= 0 for _ in range(2000)], axis=0)

    assert (explored() == 1).all()  # the floor, at the start
    run.transitions = run.config.explore_until
    early = explored()
    assert abs(early[0] - 0.4) < 0.05
    assert (np.diff(early[:3]) < 0).all()
    run.spent = 0.9 * run.config.seconds
    assert abs(explored()[0] - 0.3 * 0.4) < 0.03


def test_an_interrupted_run_is_saved(tmp_path, monkeypatch):
    run = small_run(tmp_path)
    step = run._step

    def interrupted(games):
        step(games)
        if run.transitions == 12:
            raise KeyboardInterrupt

    monkeypatch.setattr(run, "_step", interrupted)
    run.train()
    again = small_run(tmp_path)
    again.restore(checkpoint.load(tmp_path))
    assert again.transitions == 12
    assert (again._random.random(5) == run._random.random(5)).all()


def test_a_checkpoint_is_the_learner_s_whole_state(tmp_path):
    config = TrainingConfig(environments=4, threads=1, capacity=400, warmup=100, batch=8, updates=1, target_every=3)
    learner = train.Learner(config, torch.device("cpu"))
    replay = filled_replay(config)
    for _ in range(4):
        learner.learn(replay)
    twin = train.Learner(config, torch.device("cpu"))
    checkpoint.save(tmp_path, {"learner": learner.state()}, weights_of(learner.network))
    twin.restore(checkpoint.load(tmp_path)["learner"])
    for one in (learner, twin):
        torch.manual_seed(5)
        one.learn(replay)
    assert twin.updates == learner.updates == 5
    for name, array in weights_of(twin.network).items():
        assert (array == weights_of(learner.network)[name]).all(), name


def test_it_fits_what_it_is_shown():
    """The loss on a replay that does not change falls: the gradient points the right way."""
    config = TrainingConfig(
        environments=4, threads=1, capacity=400, warmup=100, batch=32, updates=1, target_every=10_000, learning_rate=1e-3
    )
    torch.manual_seed(1)
    learner = train.Learner(config, torch.device("cpu"))
    replay = filled_replay(config)
    losses = []
    for _ in range(60):
        learner.learn(replay)
        losses.append(learner.loss[0])
    assert np.mean(losses[-10:]) < 0.7 * np.mean(losses[:10]), losses


def filled_replay(config):
    replay = Replay(
        config.capacity // config.environments, config.environments, config.steps, config.gamma, torch.device("cpu")
    )
    random = torch.Generator().manual_seed(3)
    for _ in range(60):
        observation = torch.randint(0, 256, (4, 4, 84, 84), generator=random, dtype=torch.uint8)
        action = torch.randint(0, 4, (4,), generator=random)
        replay.add(
            observation, action, (action == 2).float() * 7, torch.zeros(4, dtype=torch.bool), torch.zeros(4, dtype=torch.bool)
        )
    return replay


# The replay: what may be learnt from what.


def numbered_replay(ends=(), void=()):
    """Each transition's observation and reward sign say which row it is in; row r has reward r + 1."""
    replay = Replay(40, 1, 3, 0.5, torch.device("cpu"))
    for row in range(30):
        flags = [torch.tensor([row in rows]) for rows in (ends, void)]
        replay.add(torch.full((1, 4, 84, 84), row, dtype=torch.uint8), torch.tensor([row % 4]), torch.tensor([1.0]), *flags)
    return replay


def by_row(batch):
    return {int(before[0, 0, 0]): index for index, before in enumerate(batch.before)}


def test_returns_are_discounted_signs_over_three_decisions():
    batch = numbered_replay().sample(500)
    assert torch.allclose(batch.returns, torch.full((500,), 1 + 0.5 + 0.25))
    assert (batch.after[:, 0, 0, 0].int() - batch.before[:, 0, 0, 0].int() == 3).all()
    assert (batch.action == batch.before[:, 0, 0, 0].long() % 4).all()
    assert (batch.going == 1).all()


def test_no_reward_counts_that_comes_after_an_end():
    batch = numbered_replay(ends=(10,)).sample(2000)
    rows = by_row(batch)
    assert [float(batch.returns[rows[row]]) for row in (7, 8, 9, 10, 11)] == [1.75, 1.75, 1.5, 1.0, 1.75]
    assert [float(batch.going[rows[row]]) for row in (7, 8, 9, 10, 11)] == [1, 0, 0, 0, 1]


def test_a_step_that_only_began_a_game_has_no_weight():
    batch = numbered_replay(void=(12,)).sample(2000)
    rows = by_row(batch)
    assert [float(batch.weight[rows[row]]) for row in (11, 12, 13)] == [1, 0, 1]


def test_only_rows_that_are_whole_are_sampled():
    rows = sorted(by_row(numbered_replay().sample(5000)))
    assert rows[-1] <= 30 - 1 - 3
    assert rows[0] >= 0
    assert len(rows) > 15


# The environments.


def test_the_step_after_a_game_is_void_and_a_lost_life_ends_only_the_bootstrap():
    games = Environments(2, 2, seed=1)
    over = np.zeros(2, bool)
    lives_lost = voids = ends = 0
    for _ in range(1200):
        games.send(np.array([0, 1]))  # noop and fire: both lose their lives soon
        step = games.receive()
        assert (step.void == over).all()
        assert not (step.ends & step.void).any()
        assert (step.ends | ~step.over | step.void).all()
        lives_lost += int((step.ends & ~step.over).sum())
        voids, ends, over = voids + int(step.void.sum()), ends + int(step.over.sum()), step.over
    games.close()
    assert ends >= 2
    assert voids >= ends - 2
    assert lives_lost >= 4 * (ends - 2)


def page_environment():
    """The page's environment on native ALE: Python 3.11 can read these modules of pyapp, though not the whole package."""
    if "pyapp" not in sys.modules:
        package = sys.modules["pyapp"] = ModuleType("pyapp")
        package.__path__ = [str(Path(__file__).resolve().parents[2] / "pyapp")]
    from pyapp.native.atari import NativeBreakout

    return NativeBreakout()


def test_the_games_are_the_page_s_bit_for_bit():
    """Observations, rewards and ends, each game from its start to the last life, with the training's own settings."""
    count = 4
    games = Environments(count, 2, seed=3)
    mirrors = []
    for lane in range(count):
        mirror = page_environment()
        starts = (mirror.reset(0, {"idle": idle})[0].tobytes() == games.observation[lane].tobytes() for idle in range(1, 30))
        assert any(starts)  # leaves the mirror at that start
        mirrors.append(mirror)
    random = np.random.default_rng(2)
    ended = np.zeros(count, bool)
    points = 0.0
    while not ended.all():
        actions = random.integers(0, 4, count)
        games.send(actions)
        step = games.receive()
        for lane in np.flatnonzero(~ended):
            observation, reward, terminated, truncated, _ = mirrors[lane].step(int(actions[lane]))
            assert (observation == step.observation[lane]).all()
            assert (reward, terminated or truncated) == (step.reward[lane], step.over[lane])
            points += reward
        ended |= step.over
    games.close()
    assert points > 0


# What is refused.


def test_bad_settings_and_files_are_named(tmp_path, capsys):
    def said(*options):
        assert train.main(["--out", str(tmp_path / "none"), *options]) == 2
        return capsys.readouterr().err

    assert "batch must be at least 1, got 0" in said("--batch", "0")
    assert "holds no run" in said("--resume")
    assert "device must be cpu or cuda, got 'tpu'" in said("--device", "tpu")
    assert "missing.npz cannot be read" in said(
        "--init", str(tmp_path / "missing.npz"), "--environments", "2", "--capacity", "100", "--warmup", "10"
    )
    assert not (tmp_path / "none").exists()


def test_a_damaged_checkpoint_is_named(tmp_path):
    (tmp_path / checkpoint.STATE).write_bytes(b"damaged")
    with pytest.raises(ValueError, match=r"checkpoint.pt cannot be read"):
        checkpoint.load(tmp_path)


def test_weights_of_another_network_are_refused():
    with pytest.raises(ValueError, match=r"c1\.weight"):
        load_weights(DQN(), {"c1.weight": np.zeros((1, 1), np.float32)})
