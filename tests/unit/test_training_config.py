import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from training.config import TrainingConfig
from training.evaluate import Played, main, summarize


def test_settings_come_back_from_json():
    config = TrainingConfig(seconds=3.5, seed=9)
    assert TrainingConfig.from_json(config.to_json()) == config


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("environments", 0),
        ("environments", 2.5),
        ("batch", True),
        ("gamma", 1.5),
        ("learning_rate", 0),
        ("seconds", -1),
        ("capacity", 256),
        ("warmup", 1 << 20),
        ("seed", -1),
        ("gamma", float("nan")),
    ],
)
def test_a_bad_setting_is_named_and_quoted(name, value):
    with pytest.raises(ValueError, match=name) as error:
        replace(TrainingConfig(), **{name: value})
    assert str(error.value).endswith(f"got {value!r}")


@pytest.mark.parametrize("change", [lambda d: d | {"speed": 3}, lambda d: {k: v for k, v in d.items() if k != "batch"}])
def test_settings_of_another_version_are_refused(change):
    with pytest.raises(ValueError, match=r"'speed'|'batch'"):
        TrainingConfig.from_json(json.dumps(change(asdict(TrainingConfig()))))


def games(*scores, truncated=()):
    return [Played(seed, float(score), 100, seed in truncated) for seed, score in enumerate(scores)]


def test_an_evaluation_is_numpy_s():
    found = summarize(games(10, 20, 30, 400, truncated=(1, 3)))
    assert (found.games, found.truncated, found.decisions) == (4, 2, 400)
    assert (found.mean, found.median, found.min, found.max) == (115, 25, 10, 400)
    assert found.low < found.mean < found.high


def test_the_interval_holds_the_mean_19_times_of_20():
    random = np.random.default_rng(0)
    hits = 0
    for trial in range(100):
        found = summarize(games(*random.normal(300, 60, 40)), seed=trial)
        hits += found.low <= 300 <= found.high
    assert 87 <= hits <= 100


def test_no_games_are_no_evaluation():
    with pytest.raises(ValueError, match="at least one"):
        summarize([])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.onnx"], "no model missing.onnx"),
        ([__file__, "--epsilon", "2"], "epsilon must be in 0..1, got 2.0"),
        ([__file__, "--games", "0"], "got 0"),
        ([__file__], "is no model of this game"),
        ([__file__, "--epsilon", "0", "--games", "30"], "29 different games, got --games 30"),
    ],
)
def test_what_cannot_be_played_is_refused(arguments, said, capsys):
    assert main(arguments) == 2
    assert said in capsys.readouterr().err
