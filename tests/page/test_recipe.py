"""A recipe that was exported runs in a page of its own, which knows nothing of this project, and gives Python's answers."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from pyapp.cases import load_suite
from pyapp.chromium import BrowserOptions, launch
from pyapp.recipe import Recipe, module_text, template_path
from pyapp.serve import SiteServer

ORDER = (0, 1, 0, 2)
"""States that are asked one after the other: a graph that replays an earlier answer is wrong at once."""

OWN_PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>own</title><script type="module" src="own.js"></script></html>'
)
OWN_SCRIPT = """
const query = new URLSearchParams(location.search);
const base = new URL(query.get('ort'), location.href);
const ort = await import(new URL(query.get('entry'), base).href);
ort.env.wasm.wasmPaths = { mjs: new URL(query.get('glue'), base), wasm: new URL(query.get('wasm'), base) };
const { openModel, recipe } = await import(`./${query.get('module')}`);
const pixels = new Float32Array(await (await fetch('states.bin')).arrayBuffer());
const size = 4 * 84 * 84;
const state = (index) => ({ observation: { data: pixels.slice(index * size, (index + 1) * size), dims: [1, 4, 84, 84] } });
globalThis.ask = async (order) => {
  const model = await openModel(ort, new URL('fixtures/breakout_dqn.onnx', location.href).href);
  // All at once: the module has to queue them.
  const answers = await Promise.all(order.map((index) => model.run(state(index))));
  let refused = null;
  try {
    await model.run({ observation: { data: pixels.slice(0, 2 * size), dims: [2, 4, 84, 84] } });
  } catch (error) {
    refused = error.message;
  }
  await model.close();
  return { answers: answers.map(({ q_values }) => ({ ...q_values, data: [...q_values.data] })), recipe, refused };
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


def recipe_of(engine: str) -> Recipe:
    return Recipe(**{"engine": engine, "capture": False, "precision": "float32", "onnxruntime_web": "1.30.0"} | ENGINES[engine])


@pytest.fixture(scope="module")
def suite(dist: Path):
    return load_suite("states", (dist / "fixtures" / "states.npz").read_bytes())


@pytest.fixture(scope="module")
def driver(dist: Path, suite, tmp_path_factory):
    """Return a browser and the address of a site with the page and all modules."""
    site = tmp_path_factory.mktemp("own")
    shutil.copytree(dist, site, dirs_exist_ok=True)
    (site / "own.html").write_text(OWN_PAGE)
    (site / "own.js").write_text(OWN_SCRIPT)
    (site / "states.bin").write_bytes(suite.observation[:3].astype(np.float32).tobytes())
    for engine in ENGINES:
        recipe = recipe_of(engine)
        (site / f"{engine}.js").write_text(module_text(recipe, (dist / template_path(recipe)).read_text()))
    browser = launch(BrowserOptions(), "software")
    browser.set_script_timeout(120)
    try:
        with SiteServer(site) as server:
            yield browser, server.url, next(site.rglob("ort.wasm.min.mjs")).parent.relative_to(site).as_posix()
    finally:
        browser.quit()


@pytest.mark.parametrize("engine", ENGINES)
def test_an_exported_module_gives_pythons_answers(driver, suite, engine):
    browser, url, ort = driver
    entry, glue, wasm = BUILDS[ENGINES[engine]["build"]]
    browser.get(f"{url}own.html?module={engine}.js&ort={ort}/&entry={entry}&glue={glue}&wasm={wasm}")
    found = browser.execute_async_script(
        """
        const [order, done] = arguments;
        const ask = async () => {
          while (!globalThis.ask) await new Promise((resolve) => setTimeout(resolve, 20));
          return globalThis.ask(order);
        };
        ask().then(done, (error) => done({ error: String(error) }));
        """,
        ORDER,
    )
    assert "error" not in found, found
    assert found["recipe"]["engine"] == engine
    for index, answer in zip(ORDER, found["answers"], strict=True):
        assert (answer["type"], answer["dims"]) == ("float32", [1, 4])
        np.testing.assert_allclose(answer["data"], suite.q_values[index], atol=1e-4)
    if engine.startswith("webgpu-fast"):
        assert "open the model again for another shape" in found["refused"]
    else:
        assert found["refused"] is None
    warnings = [entry["message"] for entry in browser.get_log("browser") if "not captured" in entry["message"]]
    assert not warnings, "the graph was captured"
