"""A recipe that was exported runs in a page of its own, which knows nothing of this project, and gives Python's answers."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import models
from selenium import webdriver

from pyapp.cases import load_suite
from pyapp.chromium import BrowserOptions, launch
from pyapp.recipe import Recipe, module_text, template_path
from pyapp.serve import SiteServer
from pyapp.sitefolder import app_folder

ORDER = (0, 1, 0, 2)
"""States that are asked one after the other: a graph that replays an earlier answer is wrong at once."""

DQN = "fixtures/breakout_dqn.onnx"
OWN_PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>own</title><script type="module" src="own.js"></script></html>'
)
OWN_SCRIPT = """
const query = new URLSearchParams(location.search);
const base = new URL(query.get('ort'), location.href);
const ort = await import(new URL(query.get('entry'), base).href);
ort.env.wasm.wasmPaths = { mjs: new URL(query.get('glue'), base), wasm: new URL(query.get('wasm'), base) };
const { openModel, recipe } = await import(`./${query.get('module')}`);
const states = new Float32Array(await (await fetch('states.bin')).arrayBuffer());
const size = 4 * 84 * 84;

/** `{state}` is one of the states; others are `{name: {array, values, dims, type}}`. */
const toFeeds = (asked) => 'state' in asked
  ? { observation: { data: states.slice(asked.state * size, (asked.state + 1) * size), dims: [1, 4, 84, 84] } }
  : Object.fromEntries(Object.entries(asked).map(([name, { array, values, ...rest }]) =>
    [name, { data: globalThis[array].from(values, array === 'BigInt64Array' ? BigInt : Number), ...rest }]));

const toPlain = (answer) => Object.fromEntries(Object.entries(answer).map(([name, { data, ...rest }]) =>
  [name, { array: data.constructor.name, values: [...data].map(Number), ...rest }]));

/** Asks for all runs at once, which the module has to queue, of `copies` open models; `lose` gives up the GPU first. */
globalThis.ask = async ({ path, form, runs, copies, lose }) => {
  const url = new URL(path, location.href).href;
  const model = form === 'url' ? url : await (await fetch(url)).arrayBuffer();
  const open = () => openModel(ort, form === 'bytes' ? new Uint8Array(model) : model);
  const [opened, ...others] = await Promise.all(Array.from({ length: copies ?? 1 }, open));
  const answers = [];
  if (lose) {
    answers.push(toPlain(await opened.run(toFeeds(runs[0]))));
    (await ort.env.webgpu.device).destroy();
  }
  const ask = (one) => runs.map((asked) => one.run(toFeeds(asked)).then(toPlain, ({ message }) => message));
  answers.push(...await Promise.all([opened, ...others].flatMap(ask)));
  await Promise.all([opened, ...others].map((one) => one.close()));
  return { answers, recipe };
};
"""

BUILDS = {
    "wasm": ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm"),
    "jspi": ("ort.jspi.min.mjs", "ort-wasm-simd-threaded.jspi.mjs", "ort-wasm-simd-threaded.jspi.wasm"),
}
ENGINES = {
    "wasm-1": {"provider": "wasm", "build": "wasm", "runner": "stock", "threads": 1},
    "wasm-2": {"provider": "wasm", "build": "wasm", "runner": "stock", "threads": 2},
    "webgpu-stock": {"provider": "webgpu", "build": "jspi", "runner": "stock", "threads": 1},
    "webgpu-fast": {"provider": "webgpu", "build": "jspi", "runner": "fast: capture + nudge", "threads": 1, "capture": True},
    "webgpu-fast-nocapture": {"provider": "webgpu", "build": "jspi", "runner": "fast: nudge", "threads": 1},
}
FAST = [engine for engine in ENGINES if engine.startswith("webgpu-fast")]


def recipe_of(engine: str) -> Recipe:
    return Recipe(**{"engine": engine, "capture": False, "precision": "float32", "onnxruntime_web": "1.30.0"} | ENGINES[engine])


@pytest.fixture(scope="module")
def suite(dist: Path):
    return load_suite("states", (app_folder(dist) / "fixtures" / "states.npz").read_bytes())


@pytest.fixture(scope="module")
def site(dist: Path, suite, tmp_path_factory) -> Path:
    """Return a copy of the site with the page, all modules and small models."""
    copy = tmp_path_factory.mktemp("own")
    shutil.copytree(dist, copy, dirs_exist_ok=True)
    shutil.copytree(app_folder(dist) / "fixtures", copy / "fixtures")
    (copy / "own.html").write_text(OWN_PAGE)
    (copy / "own.js").write_text(OWN_SCRIPT)
    (copy / "states.bin").write_bytes(suite.observation[:3].astype(np.float32).tobytes())
    for engine in ENGINES:
        recipe = recipe_of(engine)
        (copy / f"{engine}.mjs").write_text(module_text(recipe, (app_folder(dist) / template_path(recipe)).read_text()))
    for small in (models.typed, models.copied, models.nameless):
        (copy / f"{small.__name__}.onnx").write_bytes(small())
    return copy


@dataclass
class Own:
    """A browser, and where the page is."""

    browser: webdriver.Chrome
    url: str
    ort: str

    def ask(self, engine: str, runs: list[dict[str, Any]], *, url: str = "", **asked: Any) -> dict[str, Any]:
        """Load the page anew, open a model with an engine's module and run it; the page's error is in ``error``."""
        entry, glue, wasm = BUILDS[ENGINES[engine]["build"]]
        self.browser.get(f"{url or self.url}own.html?module={engine}.mjs&ort={self.ort}/&entry={entry}&glue={glue}&wasm={wasm}")
        return self.browser.execute_async_script(
            """
            const [asked, done] = arguments;
            const ask = async () => {
              while (!globalThis.ask) await new Promise((resolve) => setTimeout(resolve, 20));
              return globalThis.ask(asked);
            };
            ask().then(done, (error) => done({ error: String(error) }));
            """,
            {"path": DQN, "form": "url", "runs": runs, **asked},
        )

    def warnings(self) -> list[str]:
        """Return what the module has warned of since this was last asked."""
        return [entry["message"] for entry in self.browser.get_log("browser") if "not captured" in entry["message"]]


@pytest.fixture(scope="module")
def own(site: Path):
    """Return the browser that all tests share; each loads the page anew."""
    browser = launch(BrowserOptions(), "software")
    browser.set_script_timeout(120)
    try:
        with SiteServer(site) as server:
            yield Own(browser, server.url, next(site.rglob("ort.wasm.min.mjs")).parent.relative_to(site).as_posix())
    finally:
        browser.quit()


def feed(array: np.ndarray, of: str = "", **more: object) -> dict[str, Any]:
    name = of or {"int64": "BigInt64Array"}.get(array.dtype.name, f"{array.dtype.name.capitalize()}Array")
    return {"array": name, "values": array.ravel().tolist(), "dims": list(array.shape), **more}


def assert_tensor(answer: dict[str, Any], dtype: str, expected: np.ndarray, atol: float = 1e-6) -> None:
    assert (answer["type"], answer["dims"]) == (dtype, list(expected.shape)), answer
    np.testing.assert_allclose(answer["values"], expected.ravel(), atol=atol)


FORMS = [(engine, "url") for engine in ENGINES] + [(e, form) for e in ("wasm-1", "webgpu-fast") for form in ("bytes", "buffer")]
"""Each engine once, and one of each template with a model in all its forms."""


@pytest.mark.parametrize(("engine", "form"), FORMS)
def test_an_exported_module_gives_pythons_answers(own, suite, engine, form):
    two = feed(np.zeros((2, 4, 84, 84), np.float32))
    found = own.ask(engine, [*({"state": index} for index in ORDER), {"observation": two}], form=form)
    assert "error" not in found, found
    assert found["recipe"]["engine"] == engine
    for index, answer in zip(ORDER, found["answers"], strict=False):
        assert_tensor(answer["q_values"], "float32", suite.q_values[index : index + 1], atol=1e-4)
    if engine in FAST:
        assert "open the model again for another shape" in found["answers"][-1]
    else:
        assert found["answers"][-1]["q_values"]["dims"] == [2, 4]
    assert not own.warnings(), "the graph was captured"


@pytest.mark.parametrize("engine", ["wasm-1", "webgpu-stock", *FAST])
def test_two_models_do_not_get_in_each_others_way(own, suite, engine):
    found = own.ask(engine, [{"state": 0}, {"state": 1}], copies=2)
    assert "error" not in found, found
    for index, answer in zip((0, 1, 0, 1), found["answers"], strict=True):
        assert_tensor(answer["q_values"], "float32", suite.q_values[index : index + 1], atol=1e-4)
    assert not own.warnings()


def test_threads_without_shared_memory_are_an_error_with_a_remedy(own, site):
    with SiteServer(site, isolated=False) as server:
        found = own.ask("wasm-2", [{"state": 0}], url=server.url)
        assert "Cross-Origin-Opener-Policy: same-origin" in found["error"]
        assert "Cross-Origin-Embedder-Policy: require-corp" in found["error"]
        for engine in ("wasm-1", "webgpu-fast"):
            assert "error" not in own.ask(engine, [{"state": 0}], url=server.url)


def typed_feeds(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    feeds = {
        "floats": feed(rng.random((3, 3), np.float32)),
        "integers": feed(rng.integers(-99, 99, (3, 3), np.int32)),
        "bytes": feed(rng.integers(0, 256, (3, 3), np.uint8), "Uint8ClampedArray" if seed == 1 else ""),
        "places": feed(rng.integers(0, 10, 3, np.int64), type="int64"),
    }
    # The order of the names is the caller's own affair.
    return dict(reversed(feeds.items())) if seed % 2 else feeds


@pytest.mark.parametrize("engine", ["wasm-1", "webgpu-stock", *FAST])
def test_several_outputs_of_several_types(own, engine):
    asked = [typed_feeds(seed) for seed in (0, 1, 2)]
    found = own.ask(engine, asked, path="typed.onnx")
    assert "error" not in found, found
    for feeds, answer in zip(asked, found["answers"], strict=True):
        values = {name: np.array(one["values"]).reshape(one["dims"]) for name, one in feeds.items()}
        assert_tensor(answer["sums"], "float32", 2 * values["floats"].sum(1))
        assert_tensor(answer["large"], "bool", values["floats"] > 0.5)
        assert_tensor(answer["squares"], "int32", values["integers"] ** 2)
        assert_tensor(answer["brighter"], "float32", 2 * values["bytes"])
        assert_tensor(answer["found"], "uint32", np.arange(20).reshape(10, 2)[values["places"]])
    assert not own.warnings()


def test_a_captured_graph_that_is_stale_is_left_even_if_the_first_input_is_all_zeros(own):
    # onnxruntime's capture really leaves out this model's only node.
    x = [np.zeros((1, 3), np.float32), np.array([[1, 2, 3]], np.float32), np.array([[0.5, 0.25, 4]], np.float32)]
    found = own.ask("webgpu-fast", [{"x": feed(one, "Float16Array")} for one in x], path="copied.onnx")
    assert "error" not in found, found
    for one, answer in zip(x, found["answers"], strict=True):
        assert_tensor(answer["y"], "float16", one)
    assert len(own.warnings()) == 1


@pytest.mark.parametrize("engine", FAST)
def test_an_output_without_elements(own, engine):
    x = np.zeros((0, 3), np.float32)
    found = own.ask(engine, [{"x": feed(x)}] * 2, path="nameless.onnx")
    assert "error" not in found, found
    for answer in found["answers"]:
        assert_tensor(answer["y"], "float32", x)


@pytest.mark.parametrize("engine", FAST)
def test_wrong_inputs_are_errors_that_say_what_is_wrong_and_the_module_goes_on(own, suite, engine):
    right = {"state": 0}
    wrong = {
        "input observation has 111552 bytes": {
            "observation": feed(np.zeros((1, 4, 84, 83), np.float32)) | {"dims": [1, 4, 84, 84]}
        },
        "input observation is Float64Array": {"observation": feed(np.zeros((1, 4, 84, 84), np.float64))},
        "uint8": {"observation": feed(np.zeros((1, 4, 84, 84), np.uint8))},
        "80": {"observation": feed(np.zeros((1, 4, 84, 80), np.float32))},
        "no input observations": {"observations": feed(np.zeros((1, 4, 84, 84), np.float32))},
        "input observation is missing": {},
    }
    own.warnings()  # those of the tests before
    found = own.ask(engine, [*wrong.values(), right, *wrong.values(), right])
    assert "error" not in found, found
    for answers in (found["answers"][: len(wrong) + 1], found["answers"][len(wrong) + 1 :]):
        *messages, answer = answers
        for said, message in zip(wrong, messages, strict=True):
            assert said in message, message
        assert isinstance(answer, dict), answer
        assert_tensor(answer["q_values"], "float32", suite.q_values[:1], atol=1e-4)
    assert not own.warnings()


@pytest.mark.parametrize("engine", FAST)
def test_a_lost_gpu_is_an_error_and_not_an_answer(own, engine):
    found = own.ask(engine, [{"state": 0}, {"state": 1}], lose=True)
    assert "error" not in found, found
    assert all("was lost" in answer for answer in found["answers"][1:]), found["answers"]
