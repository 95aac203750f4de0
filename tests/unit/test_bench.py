"""The benchmarks' own arithmetic, and the line that each ends with; what they measure needs a browser and is run by hand."""

import contextlib
import importlib
import importlib.util
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).parents[2]
BENCH = ROOT / "bench"
SCRIPTS = sorted(path.stem for path in BENCH.glob("*.py") if path.stem != "common")

RATIOS = st.lists(st.floats(0.01, 100), min_size=5, max_size=20)


@pytest.fixture(scope="module", autouse=True)
def bench_on_path():
    """Import the scripts as they import each other: by the names they have in their own folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCH))
        yield


@pytest.fixture(scope="module")
def common():
    return importlib.import_module("common")


@pytest.fixture(scope="module")
def peers():
    return importlib.import_module("peers")


def last_line(capsys):
    return json.loads(capsys.readouterr().out.splitlines()[-1], parse_constant=pytest.fail)


@pytest.mark.parametrize(("ratio", "ok", "code"), [(1.04, True, 0), (1.05, True, 0), (1.0501, False, 1), (math.nan, False, 1)])
def test_the_last_line_is_one_json_object_and_the_exit_code_is_its_verdict(common, capsys, ratio, ok, code):
    print("a table")
    assert common.finish("name", ratio=ratio, bound=1.05, n=40) == code
    line = last_line(capsys)
    assert list(line) == ["name", "ratio", "bound", "ok", "n", "machine"]
    assert line["ok"] is ok
    assert (line["name"], line["bound"], line["n"]) == ("name", 1.05, 40)
    assert "processors" in line["machine"]


def test_numpy_values_and_further_facts_go_into_the_last_line(common, capsys):
    common.finish("name", ratio=np.float64(1.23456), bound=1.3, n=8, stand_in=True, interval=[1.1, 1.3])
    line = last_line(capsys)
    assert line["ratio"] == 1.2346
    assert line["stand_in"] is True
    assert line["interval"] == [1.1, 1.3]


def test_a_further_condition_can_fail_a_benchmark_that_is_within_its_bound(common, capsys):
    assert common.finish("name", ratio=1.0, bound=1.3, n=8, condition=False) == 1
    assert last_line(capsys)["ok"] is False


def test_neither_contestant_always_comes_first(common):
    assert common.abba(3) == [(0, 1), (1, 0), (0, 1)]


def test_the_overlay_serves_the_site_and_the_bare_pages_from_one_copy(common, tmp_path, monkeypatch):
    (tmp_path / "index.html").write_text("site")
    (tmp_path / "app" / "0").mkdir(parents=True)
    (tmp_path / "app" / "0" / "site.json").write_text('{"ort_path": "../../runtime/ort/"}')
    monkeypatch.setenv("PYAPP_DIST", str(tmp_path))
    with common.overlay() as site:
        assert (site.folder / "index.html").read_text() == "site"
        assert (site.folder / "bench" / "bare.html").is_file()
        assert site.path("ort_path") == "/runtime/ort/"
        assert site.address("fixtures/x.onnx") == "/app/0/fixtures/x.onnx"
        assert site.page("bare.html", ort="/runtime/ort/") == f"{site.url}bench/bare.html?ort=%2Fruntime%2Fort%2F"
    assert not site.folder.exists()


@given(RATIOS)
def test_scatter_is_the_same_whichever_way_round_the_ratio_is_taken(peers, ratios):
    inverse = [1 / ratio for ratio in ratios]
    assert peers.log_scatter(inverse) == pytest.approx(peers.log_scatter(ratios), abs=1e-9)


@given(RATIOS, st.floats(0.1, 10))
def test_scatter_does_not_depend_on_the_size_of_the_ratio(peers, ratios, factor):
    scaled = [ratio * factor for ratio in ratios]
    assert peers.log_scatter(scaled) == pytest.approx(peers.log_scatter(ratios), abs=1e-9)
    assert peers.quartile_scatter(scaled) == pytest.approx(peers.quartile_scatter(ratios), rel=1e-6, abs=1e-9)


def test_small_scatter_is_about_the_relative_standard_deviation(peers):
    ratios = np.random.default_rng(0).normal(4.0, 0.04, 1000)
    assert peers.log_scatter(ratios) == pytest.approx(ratios.std(ddof=1) / ratios.mean(), rel=0.01)


def test_quartile_scatter_ignores_an_outlier_and_the_scatter_of_logarithms_does_not(peers):
    calm, jumpy = [1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.01, 0.99], [1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.01, 9.0]
    assert peers.quartile_scatter(jumpy) < 2 * peers.quartile_scatter(calm)
    assert peers.log_scatter(jumpy) > 10 * peers.log_scatter(calm)


@pytest.mark.parametrize("ratios", [[], [1.0], [1.0, 0.0], [1.0, -1.0], [1.0, math.nan]])
def test_scatter_refuses_what_has_none(peers, ratios):
    with pytest.raises(ValueError, match="scatter needs"):
        peers.log_scatter(ratios)


def test_the_interval_of_the_scatters_holds_their_ratio(peers):
    rng = np.random.default_rng(1)
    ours, peer = np.exp(rng.normal(0, 0.02, 20)), np.exp(rng.normal(0, 0.06, 20))
    low, high = peers.scatter_interval(ours, peer)
    assert low < peers.log_scatter(ours) / peers.log_scatter(peer) < high < 1


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_imports_without_a_browser_and_explains_itself(script):
    shown = subprocess.run(
        [sys.executable, BENCH / f"{script}.py", "--help"], capture_output=True, text=True, timeout=60, check=True
    )
    assert "usage:" in shown.stdout
    assert importlib.import_module(script).__doc__.splitlines()[0].split("?")[0] in " ".join(shown.stdout.split())
    assert shown.stderr == ""


def gpu_browser(fast_ms, way="fast: capture + nudge", *, software=False):
    engines = {"wasm-1": ("stock", 1.1), "webgpu-stock": ("stock", 4.0), "webgpu-fast": (way, fast_ms)}
    return {
        "threads": 8,
        "user_agent": "a test",
        "versions": {},
        "adapter": {"vendor": "nvidia", "software": software},
        "hidden": False,
        "halves": {"runner": way, "fallbacks": [], "error": 0.0, "failure": None},
        "engines": [
            {
                "name": name,
                "runner": runner,
                "fallbacks": [],
                "max_abs_diff": 1e-6,
                "bad": 0,
                "rounds_ms": [[ms, ms + 0.1]] * 10,
            }
            for name, (runner, ms) in engines.items()
        ],
    }


MEASURED = {
    "ale": [[[np.full(4, 1.0)] * 5] * 3] * 2,
    "boot": (
        {(side, cache): [[(9.0, {"packages": 8.0})] * 2] * 8 for side in ("ours", "bare") for cache in ("cold", "warm")},
        30,
    ),
    "gpu": [gpu_browser(0.8), gpu_browser(0.7)],
    "harness": [[np.full(5, 1.0)] * 4] * 2,
    "peers": {"ours": np.linspace(1.0, 1.1, 9).tolist(), "peer": np.linspace(1.0, 1.9, 9).tolist()},
    "spinning": {
        "victim": {"alone": [1.0], "spinning": [2.0], "blocking": [1.0]},
        "neighbour": {"spinning": [1.0], "blocking": [1.0]},
    },
}
"""What a script would have found in the browser."""


@pytest.mark.parametrize("script", MEASURED)
def test_every_script_ends_with_the_same_fields(script, common, monkeypatch, capsys):
    module = importlib.import_module(script)
    found = MEASURED[script]
    if script == "boot":
        found = (
            {key: [[module.Boot(*boot) for boot in boots] for boots in browsers] for key, browsers in found[0].items()},
            found[1],
        )
    if script == "ale":
        found = [module.Side(*side) for side in found]
    for name, value in {"measure": found, "run_inside": found, "has_gpu": False}.items():
        monkeypatch.setattr(module, name, lambda *_args, value=value, **_options: value, raising=False)
    for name in ("page", "overlay"):
        monkeypatch.setattr(module, name, lambda *_: contextlib.nullcontext(), raising=False)
    monkeypatch.setattr(sys, "argv", [script])
    assert module.main() == 0
    line = last_line(capsys)
    assert list(line)[:6] == ["name", "ratio", "bound", "ok", "n", "machine"]
    assert (line["name"], line["bound"], line["ok"]) == (script, module.BOUND, True)
    assert line["n"] > 0


@pytest.mark.parametrize(
    ("found", "judged"),
    [
        ([gpu_browser(0.8)] * 3, (True, 0.2)),
        ([gpu_browser(5.0)] * 3, (False, 1.25)),
        ([gpu_browser(0.8), gpu_browser(0.8, "fast: nudge")], (False, 0.2)),
        ([gpu_browser(5.0, software=True)], (True, 0.01)),
    ],
    ids=["faster", "slower", "without capture once", "a software adapter is judged by its answers"],
)
def test_the_fast_runner_is_judged(monkeypatch, capsys, tmp_path, found, judged):
    ok, ratio = judged
    gpu = importlib.import_module("gpu")
    monkeypatch.setattr(gpu, "measure", lambda *_args, **_options: found)
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--json", str(tmp_path / "gpu.json")])
    assert gpu.main() == (not ok)
    line = last_line(capsys)
    assert line["ok"] is ok
    assert line["ratio"] == pytest.approx(ratio, rel=0.05)
    stored = json.loads((tmp_path / "gpu.json").read_text())
    assert [row["name"] for row in stored["summary"]] == ["wasm-1", "webgpu-stock", "webgpu-fast"]
    assert stored["browsers"] == found
    assert {"date", "command", "machine", "adapter", "versions", "load"} <= stored.keys()


@pytest.fixture(scope="module")
def inside_gpu():
    spec = importlib.util.spec_from_file_location("inside_gpu", BENCH / "inside" / "gpu.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_model_of_halves_doubles_them(inside_gpu):
    model = inside_gpu.halves_model()
    onnx.checker.check_model(onnx.load_from_string(model))
    x = np.array([[0.5, 1, -3]], np.float16)
    [y] = onnxruntime.InferenceSession(model).run(None, {"x": x})
    assert y.dtype == np.float16
    np.testing.assert_array_equal(y, 2 * x)


def test_the_model_that_takes_bytes_gives_the_same_scores(inside_gpu):
    model = (ROOT / "fixtures" / "breakout_dqn.onnx").read_bytes()
    edited = inside_gpu.with_byte_input(model)
    onnx.checker.check_model(onnx.load_from_string(edited))
    inputs = {"observation": np.random.default_rng(0).integers(0, 256, (2, 4, 84, 84)).astype(np.float32)}
    [expected], [found] = (
        onnxruntime.InferenceSession(content).run(None, feeds)
        for content, feeds in ((model, inputs), (edited, inside_gpu.as_bytes(inputs)))
    )
    np.testing.assert_array_equal(found, expected)


def test_make_bench_runs_all_and_collects_their_last_lines(tmp_path):
    for name, body in {
        "good": "print('a table'); print('{\"name\": \"good\"}')",
        "slow": 'print(\'{"name": "slow"}\'); raise SystemExit(1)',
        "broken": "raise RuntimeError('no browser')",
    }.items():
        (tmp_path / f"{name}.py").write_text(body)
    scripts = [str(tmp_path / f"{name}.py") for name in ("broken", "slow", "good")]
    # What it needs is there, or these tests would not run.
    assume = ("--assume-old=.venv/.test-stamp", "--assume-old=chromium")
    command = ["make", "bench", f"BENCH={' '.join(scripts)}", f"BIN={Path(sys.executable).parent}", *assume]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    before, _, after = made.stdout.partition("== all\n")
    assert before.count("== ") == 3
    assert "a table" in before
    assert after.splitlines() == [f"{scripts[0]} ended without a result", '{"name": "slow"}', '{"name": "good"}']
    assert "no browser" in made.stderr
    assert made.returncode != 0


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_says_how_it_is_run_and_its_bound_is_documented(script):
    module = importlib.import_module(script)
    assert f"python bench/{script}.py" in module.__doc__
    assert module.BOUND >= 1.0
    rows = [
        line for line in (BENCH / "README.md").read_text(encoding="utf-8").splitlines() if line.startswith(f"| `{script}.py`")
    ]
    assert [row.rpartition(" | ")[2] for row in rows] == [f"{module.BOUND} |"]


def test_bare_pages_use_nothing_of_ours():
    """A bare page that borrowed code from web/ would be compared with itself."""
    for page in (BENCH / "pages").iterdir():
        text = page.read_text(encoding="utf-8")
        assert "../" not in text, page.name
        assert "pyappPage" not in text, page.name
