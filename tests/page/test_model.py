"""A visitor's own model: brought, examined, asked, mended, looked into, and left again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from selenium.webdriver.common.by import By

from pyapp.sitefolder import app_folder

from .test_pictures import assert_fits, set_look
from .visit import wait_until

MARKUP = "<img src=x onerror=\"document.title = 'hacked'\">"
ENGINES = ["wasm-1", "webgpu-stock", "webgpu-fast"]
FIXTURES = Path(__file__).parents[2] / "fixtures"
RNG = np.random.default_rng(7)


def dense(name: str = "x", *, first: int | str = "N", hidden: int = 5) -> onnx.ModelProto:
    """Two layers, 8 to `hidden` to 3, whose input has a name of one's own."""
    weights = [RNG.standard_normal(shape).astype(np.float32) for shape in ((8, hidden), (hidden, 3))]
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", [name, "w1"], ["h"], name="first"),
            helper.make_node("Relu", ["h"], ["r"], name="middle"),
            helper.make_node("MatMul", ["r", "w2"], ["y"], name="second"),
        ],
        "dense",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [first, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [first, 3])],
        [numpy_helper.from_array(array, f"w{number}") for number, array in enumerate(weights, 1)],
    )
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def page(visit):
    with visit("?runs=5&warmup=1&engines=wasm-1,webgpu-stock", gpu="software") as page:
        yield page


def bring(page, *files) -> str:
    """Choose files as a visitor does; returns what the page says is wrong."""
    field = page.driver.find_element(By.CSS_SELECTOR, "#model-file")
    return changed(page, lambda: field.send_keys("\n".join(map(str, files))))


def changed(page, act) -> str:
    changes = page.page.get("changes")
    act()
    wait_until(lambda: page.page.get("changes") > changes, "the model is changed, or is not", 60)
    return page.text("#own-model .error[role=alert]")


def clicked(page, css) -> str:
    return changed(page, lambda: page.click(css))


def saved(model, folder, name="model.onnx"):
    path = folder / name
    path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
    return path


def said(page) -> str:
    return page.text("#own-model > .note")


def outputs(page):
    return page.table("Outputs against the reference")


def test_the_worked_example_brought_as_a_file_gives_pythons_answers(page, folder):
    """The whole way with a reference: model and cases in one drop, WASM and WebGPU."""
    with np.load(FIXTURES / "states.npz") as states:
        np.savez(folder / "states.npz", observation=states["observation"][:12], q_values=states["q_values"][:12])
    assert bring(page, FIXTURES / "breakout_dqn.onnx", folder / "states.npz") == ""
    facts = page.text("#own-model .own")
    assert "observation: float32[N, 4, 84, 84]" in facts
    assert "1,686,180" in facts
    assert "12 cases, states.npz. The reference: the file with the cases." in facts
    assert not page.driver.find_element(By.ID, "example").is_displayed()
    report = page.check_by_click(240)
    assert report["model"]["name"] == "breakout_dqn.onnx"
    assert {entry["engine"]: (entry["agree"], entry["passed"]) for entry in report["agreement"]} == dict.fromkeys(
        ENGINES[:2], (12, True)
    )
    assert all(entry["criterion"] == "argmax" for entry in report["agreement"])
    assert [row["agree"] for row in outputs(page).values()] == ["✓ 12 / 12"] * 2
    assert "give the reference's outputs in all 12 cases" in page.text("#meaning")


def test_a_model_with_weights_beside_it_and_cases_made_for_it(page, folder):
    path = folder / "external.onnx"
    onnx.save(dense(), path, save_as_external_data=True, location="external.data", size_threshold=0)
    assert "external.data" in bring(page, path)
    assert page.page.get("model")["model"]["name"] == "breakout_dqn.onnx", "the former one stays"
    assert bring(page, path, folder / "external.data") == ""
    assert "8 cases, made from the model's signature (8, seed 0)" in page.text("#own-model .cases")
    report = page.check_by_click(120)
    assert report["model"]["reference"].startswith("wasm-1 in this browser")
    assert all(entry["passed"] for entry in report["agreement"])
    assert report["parity"][1]["engine"] == "webgpu-stock"


def test_sizes_cases_and_tolerance_are_the_visitors(page, folder):
    assert bring(page, saved(dense(), folder)) == ""
    page.page.change_model("make_cases", {"sizes": {"N": 3}, "count": 2, "seed": 5})
    assert page.page.get("model")["model"]["sizes"] == {"N": 3}
    page.page.change_model("allow", {"rtol": 0, "atol": 0})
    report = page.check_by_click(120)
    gpu = next(entry for entry in report["agreement"] if entry["engine"] == "webgpu-stock")
    assert (gpu["rtol"], gpu["atol"], gpu["cases"]) == (0, 0, 2)
    assert gpu["passed"] == (gpu["max_abs"] == 0)
    for verb, settings, fault in (
        ("allow", {"rtol": "many", "atol": 0}, "many"),
        ("allow", {"rtol": -1, "atol": 0}, "rtol is -1"),
        ("make_cases", {"sizes": {"N": 0.5}}, "0.5"),
        ("make_cases", {"sizes": {"M": 2}}, "no free dimension 'M'"),
        ("make_cases", {"count": 0}, "0"),
        ("fix", "luck", "unknown fix 'luck'; known are explicit-attributes"),
    ):
        script = "globalThis.pyappPage.changeModel(...arguments)"
        assert fault in changed(page, lambda: page.driver.execute_script(script, verb, settings))  # noqa: B023
        assert page.page.get("model")["model"]["sizes"] == {"N": 3}


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("text.onnx", b"this is no model", "no ONNX file"),
        ("empty.onnx", b"", "empty"),
        ("cut.onnx", dense().SerializeToString()[:200], "ends within"),
        ("opset.onnx", None, "cycl"),
        ("cases.npz", {"x": np.zeros((1, 9), np.float32)}, "float32[N,8]"),
        ("cases.npz", {"y": np.zeros((1, 3), np.float32)}, "x"),
        ("cases.npz", {"x": np.array([{}], object)}, "Python objects"),
        ("cases.json", b"{", "cases.json"),
    ],
    ids=["text", "empty", "cut", "cyclic", "shape", "missing", "pickle", "json"],
)
def test_what_cannot_be_used_is_told_and_the_former_model_stays(page, folder, name, content, fault):
    if (page.page.get("model") or {}).get("model", {}).get("name") != "model.onnx":
        bring(page, saved(dense(), folder))
    if content is None:
        model = dense()
        model.graph.node[0].input[0] = "r"
        content = model.SerializeToString()
    path = folder / name
    if isinstance(content, dict):
        np.savez(path, **content)
    else:
        path.write_bytes(content)
    assert fault in bring(page, path)
    assert page.page.get("model")["model"]["name"] == "model.onnx"
    assert page.driver.find_element(By.ID, "run").is_enabled()


def test_several_models_at_once_are_refused(page, folder):
    assert "2 of these files" in bring(page, saved(dense(), folder), saved(dense(), folder, "other.onnx"))


def test_names_are_text_whatever_they_hold(page, folder):
    assert bring(page, saved(dense(MARKUP), folder, "odd.onnx")) == ""
    assert MARKUP in page.text("#own-model .own")
    assert page.driver.title != "hacked"
    assert not page.has("#own-model img")


def test_a_fix_is_applied_by_a_click_and_proven(page, folder):
    bring(page, saved(dense("my input"), folder, "odd.onnx"))
    assert clicked(page, "[data-code='odd-name'] .fix") == ""
    assert "Proven on 8 cases: 24 numbers are the same, to the bit." in said(page)
    assert not page.has("[data-code='odd-name'] .fix")
    assert "my input" not in page.text("#own-model .own tr:first-child")
    assert clicked(page, "[data-code='free-dimensions'] .fix") == ""
    assert "Proven on 8 cases" in said(page)
    assert "float32[1, 8]" in page.text("#own-model .own")
    assert len(page.page.get("model")["model"]["fixes"]) >= 2


def test_a_drop_brings_it(page, folder):
    content = list(dense().SerializeToString())
    script = """
        const transfer = new DataTransfer();
        transfer.items.add(new File([new Uint8Array(arguments[0])], 'dropped.onnx'));
        const drop = new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true });
        document.getElementById('check').dispatchEvent(drop);
    """
    assert changed(page, lambda: page.driver.execute_script(script, content)) == ""
    assert page.page.get("model")["model"]["name"] == "dropped.onnx"


def test_every_other_question_and_the_console_are_about_it(page, folder):
    # Large enough for the clock: what takes less than its step is not compared.
    assert bring(page, saved(dense(hidden=50_000), folder)) == ""
    report = page.page.ask("explain", {"engines": ["wasm-1"], "runs": 10})
    assert [entry["engine"] for entry in report["stages"]] == ["wasm-1"]
    report = page.page.ask(
        "sweep", {"engines": ["wasm-1"], "batches": [1, 4], "widths": [1], "budget_s": 20, "precision": False}
    )
    assert [(entry["batch"], entry["passed"]) for entry in report["sweep"]] == [(1, True), (4, True)]
    report = page.page.ask("tune", {"engines": ["wasm-1"], "budget_s": 20, "batch": 4})
    assert {choice["purpose"] for choice in report["tune"]["recipe"]} == {"single", "tail", "batch"}
    assert report["model"]["name"] == "model.onnx"
    assert report["stages"], "what was asked before stays"
    assert page.python("engine = await open_engine('wasm-1', model)\n(await pyapp.parity(engine, cases)).passed") == "True"
    page.python("await engine.close()")
    page.driver.execute_script("globalThis.pyappPage.ask('tournament', {games: 1})")
    page.wait_for("ready", 20)
    assert page.page.get("error")["name"] == "NotBreakout"
    assert not page.driver.find_element(By.ID, "tournament-section").is_displayed()


def test_a_convolution_that_webgpu_computes_wrongly_is_warned_of_found_and_mended(page, folder):
    """As measured on this version of onnxruntime-web; where this fails, it may have been mended upstream."""
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], name="conv", kernel_shape=[3], pads=[1, 1], strides=[1], dilations=[1])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 9, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8, 16])],
        [numpy_helper.from_array(RNG.standard_normal((8, 9, 3)).astype(np.float32), "w")],
    )
    assert bring(page, saved(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), folder)) == ""
    assert "wrongly on WebGPU" in page.text("[data-code='conv-channels']")
    report = page.check_by_click(120)
    assert {entry["engine"]: entry["passed"] for entry in report["agreement"]} == {"wasm-1": True, "webgpu-stock": False}
    [fault] = page.page.ask("locate", {"engine": "webgpu-stock"})["faults"]
    assert (fault["kind"], fault["node"]) == ("source", "conv")
    assert clicked(page, "[data-code='conv-channels'] .fix") == ""
    assert "Proven on 8 cases: 1,024 numbers are the same, to the bit." in said(page)
    report = page.check_by_click(120)
    assert all(entry["passed"] for entry in report["agreement"])


def test_an_output_that_is_no_tensor_does_not_hide_the_others(page, folder):
    model = dense()
    model.graph.node.append(helper.make_node("SequenceConstruct", ["y"], ["s"], name="list"))
    model.graph.output.append(helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, ["N", 3]))
    assert bring(page, saved(model, folder)) == ""
    assert "no tensors" in page.text("[data-code='not-tensor']")
    report = page.page.check({"engines": ["wasm-1"], "runs": 5})
    assert [(entry["output"], entry["passed"]) for entry in report["agreement"]] == [("y", True)]


def test_where_the_nodes_ran_and_the_strict_mode(page, folder):
    model = dense()
    # A size is a number of the CPU's, and what is made of it has to cross.
    model.graph.node.append(helper.make_node("NonZero", ["y"], ["z"], name="places"))
    model.graph.output.append(helper.make_tensor_value_info("z", TensorProto.INT64, [2, "K"]))
    assert bring(page, saved(model, folder, "mixed.onnx")) == ""
    assert "NonZero" in page.text("[data-code='operator-on-cpu']")
    report = page.page.ask("placement", {"engines": ["wasm-1", "webgpu-stock"]})
    cpu, gpu = report["placement"]
    assert {node["provider"] for node in cpu["nodes"]} == {"CPUExecutionProvider"}
    by_op = {node["op"]: node["provider"] for node in gpu["nodes"]}
    assert (by_op["MatMul"], by_op["NonZero"]) == ("WebGpuExecutionProvider", "CPUExecutionProvider")
    assert gpu["copies"] >= 1
    assert not gpu["valid"]
    assert page.table("Nodes of webgpu-stock")["places"]["provider"] == "CPU"
    assert "NonZero (1)" in page.text("#placement")
    [strict] = page.page.ask("placement", {"engines": ["webgpu-stock"], "strict": True})["placement"]
    assert strict["reason"]
    assert "not without the CPU" in page.text("#placement")


def test_a_node_that_errs_is_found_and_saved(page, folder):
    """An engine is made to err in one weight; everything else is as it is."""
    assert bring(page, saved(dense(), folder)) == ""
    page.python(
        "from pyapp.onnxfile import parse_model, array_of, make_tensor\n"
        "class Erring:\n"
        "    def __init__(self, inner): self.inner = inner\n"
        "    async def __call__(self, spec, model):\n"
        "        if spec.name == 'webgpu-stock':\n"
        "            parsed = parse_model(model)\n"
        "            for entry in parsed.graph.initializer:\n"
        "                if entry.name == 'w2': entry.CopyFrom(make_tensor('w2', array_of(entry) * np.float32(1.05)))\n"
        "            model = parsed.SerializeToString()\n"
        "        return await self.inner(spec, model)\n"
        "right_engines = page.open_variants\n"
        "page.open_variants = Erring(right_engines)\n"
    )
    try:
        report = page.page.ask("locate", {"engine": "webgpu-stock"})
        [fault] = report["faults"]
        assert (fault["kind"], fault["node"], fault["op"]) == ("source", "second", "MatMul")
        assert [step["node"] for step in fault["steps"] if step["close"]] == ["first", "middle"]
        assert fault["alone"]["max_abs"] > 1e-3
        assert "MatMul “second” is where it goes wrong" in page.text("#faults")
        assert page.driver.execute_script(
            "return document.querySelector('.heat').getContext('2d').getImageData(0, 0, 3, 1).data.some((byte) => byte > 100)"
        )
        found = page.page.reproducer()
        assert found
        (folder / "alone.npz").write_bytes(found[1])
        alone = onnx.load_from_string(found[0])
        assert [node.op_type for node in alone.graph.node] == ["MatMul"]
        with np.load(folder / "alone.npz") as arrays:
            assert {"inputs.r", "outputs.y"} <= set(arrays)
        # What was saved is a model with cases that anybody can bring here.
        assert bring(page, saved(found[0], folder, "alone.onnx"), folder / "alone.npz") == ""
        report = page.check_by_click(120)
        assert {entry["engine"]: entry["passed"] for entry in report["agreement"]} == {"wasm-1": True, "webgpu-stock": False}
    finally:
        page.python("page.open_variants = right_engines")
    bring(page, saved(dense(), folder))
    [fault] = page.page.ask("locate", {"engine": "webgpu-stock"})["faults"]
    assert fault["kind"] == "none"


def test_an_address_is_loaded_or_told(page, dist):
    def load(address):
        field = page.driver.find_element(By.ID, "model-address")
        field.clear()
        field.send_keys(address)
        return changed(page, field.submit)

    site = page.driver.current_url.partition("?")[0]
    base = site + app_folder(dist).relative_to(dist).as_posix() + "/"
    assert load(f"{base}fixtures/breakout_dqn.onnx") == ""
    assert page.page.get("model")["model"]["name"] == "breakout_dqn.onnx"
    for address, fault in (
        (f"{base}nothing.onnx", "404"),
        ("http://example.org/a.onnx", "no address that this page may load"),
        ("https://127.0.0.1:9/a.onnx", "could not be loaded"),
    ):
        assert fault in load(address)
        assert page.page.get("model")["model"]["name"] == "breakout_dqn.onnx"


def test_a_restart_of_python_keeps_the_model(page, folder):
    bring(page, saved(dense("my input"), folder, "odd.onnx"))
    assert clicked(page, "[data-code='odd-name'] .fix") == ""
    report = page.check_by_click(120)
    shown = outputs(page)
    before = page.page.get("model")
    page.page.run("await globalThis.pyappPage.restart()")
    page.wait_for("ready", 60)
    assert json.dumps(page.page.get("model")["model"]) == json.dumps(
        before["model"] | {"reference": page.page.get("model")["model"]["reference"]}
    )
    assert page.page.get("report") == report, "what was found stays"
    assert outputs(page) == shown
    further = page.page.ask("placement", {"engines": ["wasm-1"]})
    assert (further["parity"], further["model"]["name"]) == (report["parity"], "odd.onnx"), "and is added to"


def test_its_card_fits(page, folder):
    if not page.has("#own-model .own h3"):
        bring(page, saved(dense(), folder))
    assert_fits(page, "own-model")
    set_look(page, 1280, "light")


def test_the_worked_example_comes_back(page):
    [back] = [one for one in page.driver.find_elements(By.CSS_SELECTOR, "#own-model button") if "worked example" in one.text]
    assert changed(page, back.click) == ""
    assert page.page.get("model") is None
    assert page.driver.find_element(By.ID, "example").is_displayed()
    report = page.page.check({"engines": ["wasm-1"], "runs": 5})
    assert report["model"] is None
    assert report["parity"][0]["agree"] == 60
