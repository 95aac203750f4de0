import hashlib
import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("ale_py")

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
SUITES = {"states": 60, "stress": 600}


def load_script(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make = load_script("make_fixtures", FIXTURES / "make.py")
FEW = make.Rules(lanes=2, distinct=60, states_per_action=1, states_margin=0.0, stress_cases=5)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


@pytest.fixture(scope="module")
def model():
    return onnx.load(FIXTURES / "breakout_dqn.onnx")


@pytest.fixture(scope="module")
def suites():
    loaded = {}
    for name in SUITES:
        with np.load(FIXTURES / f"{name}.npz", allow_pickle=False) as archive:
            loaded[name] = dict(archive)
    return loaded


@pytest.fixture(scope="module")
def float64_q(model, suites):
    policy = make.Float64Model(model)
    return {
        name: np.concatenate([policy(part) for part in np.array_split(suite["observation"], len(suite["action"]) // 30)])
        for name, suite in suites.items()
    }


@pytest.fixture(scope="module")
def provenance():
    return json.loads((FIXTURES / "provenance.json").read_text(encoding="utf-8"))


# The model.


def test_the_model_s_signature(model):
    def signature(value):
        dims = value.type.tensor_type.shape.dim
        return value.name, value.type.tensor_type.elem_type, [dim.dim_param or dim.dim_value for dim in dims]

    assert [signature(v) for v in model.graph.input] == [("observation", onnx.TensorProto.FLOAT, ["N", 4, 84, 84])]
    assert [signature(v) for v in model.graph.output] == [("q_values", onnx.TensorProto.FLOAT, ["N", 4])]
    assert model.ir_version <= 10
    onnx.checker.check_model(model, full_check=True)


def test_every_conv_spells_its_attributes_out(model):
    convolutions = [node for node in model.graph.node if node.op_type == "Conv"]
    assert len(convolutions) == 3
    for node in convolutions:
        names = {attribute.name for attribute in node.attribute}
        assert names == {"dilations", "group", "kernel_shape", "pads", "strides"}
    assert {node.op_type for node in model.graph.node} == {"Conv", "Relu", "Flatten", "Gemm"}


# The suites.


@pytest.mark.parametrize(("name", "cases"), SUITES.items())
def test_counts_shapes_and_types(suites, name, cases):
    expected = {
        "observation": (np.uint8, (cases, 4, 84, 84)),
        "q_values": (np.float32, (cases, 4)),
        "action": (np.int64, (cases,)),
        "game_seed": (np.int64, (cases,)),
        "decision": (np.int64, (cases,)),
    }
    assert {key: (array.dtype, array.shape) for key, array in suites[name].items()} == expected


@pytest.mark.parametrize("name", SUITES)
def test_every_action_is_right_somewhere_and_no_state_is_there_twice(suites, name):
    suite = suites[name]
    assert np.bincount(suite["action"], minlength=4).min() >= 3
    assert len({observation.tobytes() for observation in suite["observation"]}) == len(suite["action"])
    assert len(np.unique(suite["game_seed"])) >= 5
    assert (suite["action"] == suite["q_values"].argmax(1)).all()


@pytest.mark.parametrize("name", SUITES)
def test_python_still_gives_these_answers(suites, name):
    reference = make.Float32Model((FIXTURES / "breakout_dqn.onnx").read_bytes())
    q_values = reference(suites[name]["observation"])
    assert np.abs(q_values - suites[name]["q_values"]).max() <= make.TOLERANCE


def margins(q_values):
    second, first = np.sort(q_values, axis=1)[:, -2:].T
    return first - second


def test_float64_agrees_and_orders_the_stress_set(suites, float64_q):
    for name, suite in suites.items():
        assert np.abs(float64_q[name] - suite["q_values"]).max() <= make.TOLERANCE
        assert (float64_q[name].argmax(1) == suite["action"]).all()
    ordered = margins(float64_q["stress"])
    assert (np.diff(ordered) > 1e-10).all()  # far above float64's error: the order is no accident of this machine
    assert ordered[-1] < margins(float64_q["states"]).min()


def test_the_states_spread_over_the_games(suites):
    decisions = suites["states"]["decision"]
    assert decisions.min() < 200
    assert decisions.max() > 1500
    pairs = list(zip(suites["states"]["game_seed"], decisions, strict=True))
    assert sorted(pairs) == pairs


# The provenance.


def test_provenance_names_the_committed_files(provenance, suites):
    assert provenance["model"]["sha256"] == sha256((FIXTURES / "breakout_dqn.onnx").read_bytes())
    for name, cases in SUITES.items():
        said = provenance["suites"][name]
        assert said["sha256"] == sha256((FIXTURES / said["file"]).read_bytes())
        assert said["cases"] == cases
        assert list(said["actions"].values()) == np.bincount(suites[name]["action"], minlength=4).tolist()
        assert {k: a["sha256"] for k, a in said["arrays"].items()} == {
            k: sha256(array.tobytes()) for k, array in suites[name].items()
        }
    assert provenance["visited"]["distinct"] >= 20_000


def test_provenance_holds_the_smallest_margins(provenance, float64_q):
    for name, q_values in float64_q.items():
        smallest = np.sort(margins(q_values))[:5]
        np.testing.assert_allclose(provenance["suites"][name]["smallest_margins"], smallest, rtol=1e-5)


# The script.


def test_made_twice_the_bytes_are_the_same(tmp_path):
    for folder in ("a", "b"):
        make.make(tmp_path / folder, FEW)
    assert all("same bytes" in line for line in make.check(tmp_path / "a", tmp_path / "b"))
    with np.load(tmp_path / "a" / "states.npz") as archive:
        assert sorted(archive["action"].tolist()) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("array", "place", "change", "said"),
    [
        ("observation", (5, 1, 40, 7), 1, r"case 5 \(committed: game \d+, decision \d+\): observation\[5, 1, 40, 7\]"),
        ("action", (2,), 1, r"case 2 .*: action\[2\] committed \d, now \d"),
        ("q_values", (3, 1), 2e-5, r"case 3 .*: q_values\[3, 1\]"),
        ("game_seed", (0,), 100, r"case 0 .*: game_seed\[0\]"),
    ],
)
def test_a_difference_is_found_and_placed(suites, array, place, change, said):
    other = {name: values.copy() for name, values in suites["states"].items()}
    other[array][place] += np.array(change).astype(other[array].dtype)
    assert make.compare_suites(suites["states"], suites["states"]) is None
    with pytest.raises(AssertionError, match=said):
        raise AssertionError(make.compare_suites(suites["states"], other))


def test_a_small_difference_in_scores_is_no_difference(suites):
    nudged = suites["states"] | {"q_values": suites["states"]["q_values"] + np.float32(5e-6)}
    assert make.compare_suites(suites["states"], nudged) is None


@pytest.fixture
def replay():
    with np.load(FIXTURES / "replay.npz", allow_pickle=False) as archive:
        return dict(archive)


def test_the_replay_reaches_every_state(suites, provenance, replay):
    assert provenance["replay"]["sha256"] == sha256((FIXTURES / "replay.npz").read_bytes())
    states = suites["states"]
    last = [states["decision"][states["game_seed"] == seed].max() for seed in replay["game_seed"]]
    assert replay["game_seed"].tolist() == np.unique(states["game_seed"]).tolist()
    assert replay["decisions"].tolist() == last
    assert len(replay["action"]) == sum(last)
    assert replay["action"].max() == 3


def test_another_action_on_the_way_is_found_and_placed(replay):
    other = {name: values.copy() for name, values in replay.items()}
    other["action"][7] ^= 1
    assert make.compare_replays(replay, replay) is None
    assert f"action[7] committed {replay['action'][7]}, now {other['action'][7]}" in make.compare_replays(replay, other)
    assert "action: committed" in make.compare_replays(replay, replay | {"action": replay["action"][1:]})


def test_nan_is_a_difference(suites):
    broken = suites["states"] | {"q_values": np.full_like(suites["states"]["q_values"], np.nan)}
    assert "now nan" in make.compare_suites(suites["states"], broken)


def test_another_count_is_a_difference(suites):
    fewer = {name: values[:59] for name, values in suites["states"].items()}
    assert "committed int64 (60,), now int64 (59,)" in make.compare_suites(suites["states"], fewer)


def test_too_few_clear_states_say_so(tmp_path):
    rules = make.Rules(lanes=1, distinct=5, states_margin=1e9)
    with pytest.raises(make.FixtureError, match=r"NOOP is clearly the best in 0 states only.*states_margin"):
        make.make(tmp_path, rules)


def test_check_finds_a_damaged_file(tmp_path, monkeypatch, capsys):
    for name in ("states.npz", "stress.npz", "replay.npz", "provenance.json"):
        (tmp_path / name).write_bytes(b"damaged")
    monkeypatch.setattr(make, "make", lambda *_: None)
    assert make.main(["--check", "--out", str(tmp_path)]) == 1
    assert f"cannot read {tmp_path / 'states.npz'}" in capsys.readouterr().err


def test_check_against_an_empty_folder_exits_1_with_the_remedy(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(make, "make", lambda *_: pytest.fail("played before it looked"))
    assert make.main(["--check", "--out", str(tmp_path)]) == 1
    assert "Make it with fixtures/make.py" in capsys.readouterr().err
