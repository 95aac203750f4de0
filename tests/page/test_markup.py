"""What comes from outside is data: markup and code in names, files, addresses and errors are shown as text, and never run."""

from __future__ import annotations

import json
import urllib.parse

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from selenium.webdriver import Keys
from selenium.webdriver.common.by import By

from .test_accessibility import unfold
from .test_model import bring
from .visit import wait_until

MARKUP = "<img src=x onerror=\"document.title='hacked'\"><script>document.title='hacked'</script>"
IN_A_FILE_NAME = MARKUP.replace("/", "\N{FRACTION SLASH}")
CODE = "javascript:document.title='hacked'"


@pytest.fixture(scope="module")
def page(visit):
    query = urllib.parse.urlencode({"runs": 3, "warmup": 0, "engines": "wasm-1", MARKUP: MARKUP, "code": CODE, "src": CODE})
    with visit(f"?{query}#{urllib.parse.quote(MARKUP)}&x={urllib.parse.quote(CODE)}") as page:
        yield page


@pytest.fixture(autouse=True)
def harmless(page):
    """See after each test that nothing became an element, and nothing ran."""
    yield
    unfold(page)
    assert page.driver.title == "WASM or WebGPU? – an ONNX model, checked on your machine"
    found = page.driver.execute_script("""
        const could = 'img, script:not([src^="app/"]), iframe, object, embed, [href^="javascript:"]';
        const wrong = document.querySelectorAll(could);
        const handles = (one) => [...one.attributes].some(({ name }) => name.startsWith('on'));
        const handled = [...document.querySelectorAll('*')].filter(handles);
        return [...wrong, ...handled].map((one) => one.outerHTML.slice(0, 200));
    """)
    assert found == []


def odd_model() -> onnx.ModelProto:
    """Give every name of a model markup."""
    names = [f"{MARKUP}{number}" for number in range(6)]
    inputs, hidden, output, first, second, weights = names
    nodes = [
        helper.make_node("MatMul", [inputs, weights], [hidden], name=first),
        helper.make_node("Relu", [hidden], [output], name=second),
    ]
    graph = helper.make_graph(
        nodes,
        MARKUP,
        [helper.make_tensor_value_info(inputs, TensorProto.FLOAT, [MARKUP, 4])],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, [MARKUP, 3])],
        [numpy_helper.from_array(np.ones((4, 3), np.float32), weights)],
        doc_string=MARKUP,
    )
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)], producer_name=MARKUP)
    helper.set_model_props(model, {MARKUP: MARKUP})
    return model


def test_an_address_s_settings_are_named_as_text(page):
    assert MARKUP in page.text("#error")


def test_a_value_of_an_address_is_quoted_as_text(page):
    page.page.start("check", {"engines": [MARKUP], "runs": 3})
    wait_until(lambda: "unknown engine" in page.text("#error"), "it is refused", 10)
    assert "<script>" in page.text("#error")


def test_a_model_s_names_are_text_in_every_view(page, tmp_path):
    path = tmp_path / f"{IN_A_FILE_NAME}.onnx"
    path.write_bytes(odd_model().SerializeToString())
    assert bring(page, path) == ""
    assert MARKUP in page.text("#own-model .own")
    assert IN_A_FILE_NAME in page.text("#own-model")
    page.page.ask("check", {"engines": ["wasm-1", "wasm-2"], "runs": 3, "warmup": 0})
    page.page.ask("placement", {"engines": ["wasm-1"]})
    page.page.ask("locate", {"engine": "wasm-2"})
    unfold(page)
    for css in ("#answers", "#placement", "#ran"):
        assert page.has(f"{css} table"), f"{css}: {page.text(css)}"
    assert "<script>" in page.text("#answers")
    assert "<script>" in page.text("#placement")


def test_a_file_that_is_no_model_is_told_as_text(page, tmp_path):
    path = tmp_path / f"{IN_A_FILE_NAME}.onnx"
    path.write_text(MARKUP)
    assert "no ONNX file" in bring(page, path)


def test_a_file_that_is_no_report_is_told_as_text(page, tmp_path):
    path = tmp_path / f"{IN_A_FILE_NAME}.json"
    path.write_text(json.dumps({"schema": MARKUP, MARKUP: MARKUP}))
    page.driver.find_element(By.ID, "report-file").send_keys(str(path))
    wait_until(lambda: "<script>" in page.text("#report .error"), f"it is refused: {page.text('#report .error')}", 10)


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("print(MARKUP)", "onerror"),
        ("raise ValueError(MARKUP)", "ValueError: <img"),
        ("MARKUP", "onerror"),
        ("import sys; print(MARKUP, file=sys.stderr)", "onerror"),
        ("pyapp.EngineSpec.parse(MARKUP)", "unknown engine"),
        ("exec(compile('1/0', MARKUP, 'exec'))", "ZeroDivisionError"),
        ("type(MARKUP, (), {'__repr__': lambda self: MARKUP})()", "onerror"),
    ],
)
def test_what_python_says_is_text(page, code, shown):
    page.driver.execute_script("document.querySelector('#console .log').replaceChildren()")
    prompt = page.driver.find_element(By.CSS_SELECTOR, "#console .line textarea")
    page.driver.execute_script("arguments[0].value = arguments[1]", prompt, f"MARKUP = {MARKUP!r}; {code}")
    prompt.send_keys(Keys.ENTER)
    wait_until(lambda: shown in page.text("#console .log"), page.text("#console .log"), 10)


def test_names_in_python_are_text(page):
    page.python(f"globals()[{MARKUP!r}] = {MARKUP!r}")
    page.python(f"open({IN_A_FILE_NAME!r}, 'w').write('x') and None")
    [found] = [one for one in page.driver.find_elements(By.CSS_SELECTOR, "#console button") if one.text == "Variables"]
    found.click()
    wait_until(lambda: page.has("#console table"), "they are shown", 10)
    assert "onerror" in page.text("#console table")


def test_no_module_of_ours_makes_elements_of_text(page, dist):
    """Nothing in the page's own modules parses HTML or evaluates text; what has to goes through the sanitiser."""
    sinks = (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "ContextualFragment",
        "DOMParser",
        "srcdoc",
        "setHTML",
    )
    code = ("eval(", "new Function", "Function(", "setTimeout('", 'setTimeout("', "javascript:")
    for path in dist.rglob("*.js"):
        if {"vendor", "runtime"} & set(path.relative_to(dist).parts):
            continue
        text = path.read_text()
        assert [word for word in (*sinks, *code) if word in text] == [], path
