import base64
import json
from collections import Counter

import numpy as np
import pytest

from pyapp.console import as_json, completions, refuse_input, status, user_traceback, variables
from pyapp.engine import EngineSpec
from pyapp.parity import judge
from pyapp.race import Lane
from pyapp.rich import KEPT, shown
from tests.unit.fakes import FakeEngine, make_suite


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("1 + 1", "complete"),
        ("", "complete"),
        ("a = 1\nb = 2\na + b", "complete"),
        ("await thing()", "complete"),
        ("async with a as b:\n    await b\n", "complete"),
        ("for i in range(3):", "incomplete"),
        ("for i in range(3):\n    print(i)", "incomplete"),
        ("for i in range(3):\n    print(i)\n", "complete"),
        ("def f():\n    return 1\nf()", "complete"),
        ("(1 +", "incomplete"),
        ("'''text", "incomplete"),
        ("x = 'ünï😀'", "complete"),
        ("1 +", "syntax-error"),
        ("return 5 5", "syntax-error"),
        ("\x00", "syntax-error"),
    ],
)
def test_whether_a_text_is_whole(source, expected):
    assert status(source) == expected


class Raises:
    @property
    def bad(self):
        raise ValueError("no")

    def __repr__(self):
        raise ValueError("no repr")


def test_completion_goes_on_from_what_there_is():
    namespace = {"states": np.zeros(3), "stress": 1, "__builtins__": {}}
    assert set(completions("x = st", namespace)[0]) >= {"states", "stress"}
    found, start = completions("print(states.sha", namespace)
    assert (found, start) == (["states.shape"], 6)
    assert completions("nothing.at.all", namespace)[0] == []
    assert completions("f(", namespace) == ([], 2)
    assert completions("x.bad.", {"x": Raises()})[0] == []


def test_variables_are_the_users_own():
    found = variables({"a": 1, "_b": 2, "np": np, "array": np.zeros((2, 3)), "page": 5, "odd": Raises()}, known={"page"})
    assert [(one.name, one.type) for one in found] == [("a", "int"), ("array", "ndarray"), ("odd", "Raises")]
    assert found[1].summary == "float64 [2, 3]"
    assert found[2].summary == "its repr raises ValueError"
    assert len(variables({"long": "x" * 10_000})[0].summary) < 100


def test_a_traceback_begins_with_the_users_own_code():
    source = "def f():\n    return 1 / 0\nf()"
    with pytest.raises(ZeroDivisionError) as caught:
        exec(compile(source, "<editor>", "exec"), {})
    text = user_traceback(caught.value)
    assert text.splitlines()[0] == "Traceback (most recent call last):"
    assert text.splitlines()[1].strip().startswith('File "<editor>", line 3')
    assert "test_console" not in text
    assert text.splitlines()[-1] == "ZeroDivisionError: division by zero"


def test_input_says_what_to_do_instead():
    with pytest.raises(RuntimeError, match="assign the value to a name"):
        refuse_input("name? ")


def test_nothing_is_shown_of_nothing():
    assert shown(None) is None


@pytest.mark.parametrize(
    ("array", "channels"),
    [(np.eye(84, dtype=np.uint8), 1), (np.zeros((210, 160, 3), np.uint8), 3), (np.linspace(-1, 1, 84 * 84).reshape(84, 84), 1)],
)
def test_frames_are_pictures(array, channels):
    found = shown(array)
    assert (found["kind"], found["channels"]) == ("picture", channels)
    assert len(base64.b64decode(found["data"])) == found["width"] * found["height"] * channels
    assert str(array.dtype) in found["label"]


def test_a_saliency_map_uses_all_greys():
    pixels = base64.b64decode(shown(np.linspace(-3, 5, 84 * 84).reshape(84, 84))["data"])
    assert (min(pixels), max(pixels)) == (0, 255)
    assert shown(np.full((84, 84), np.nan))["kind"] == "picture"


@pytest.mark.parametrize("array", [np.zeros((84, 85)), np.zeros((4, 84, 84)), np.zeros((84, 84), complex), np.zeros(3)])
def test_other_arrays_are_text(array):
    assert shown(array)["kind"] == "text"


def test_results_of_pyapp_are_tables():
    suite = make_suite()
    found = shown(judge("wasm-1", suite, list(suite.q_values)))
    assert found["kind"] == "table"
    assert found["rows"][0][:2] == ["states", "6 of 6"]
    lane = Lane(FakeEngine(EngineSpec.parse("wasm-1")), rounds=[np.array([1.0, 2.0])])
    found = shown([lane])
    assert found["rows"][0] == ["wasm-1", "1.500", "1.950", "2"]
    assert found["lanes"][0]["samples_ms"] == [1.0, 2.0]


class Framed:
    def _repr_html_(self):
        return "<table><tr><td>1</td></tr></table><script>bad()</script>"


def test_html_is_handed_on_as_html_to_be_made_safe():
    assert shown(Framed()) == {"kind": "html", "html": Framed()._repr_html_()}
    assert shown(Framed)["kind"] == "text", "a class is no frame"


def test_long_texts_are_cut_and_broken_reprs_are_told():
    found = shown("x" * (2 * KEPT))
    assert len(found["text"]) == KEPT
    assert found["length"] > KEPT
    assert "whose repr raises ValueError: no repr" in shown(Raises())["text"]
    assert shown(Counter("aab"))["text"] == "Counter({'a': 2, 'b': 1})"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (np.arange(3), [0, 1, 2]),
        (np.float32(0.5), 0.5),
        ({"a": (1, float("nan")), 2: {3}}, {"a": [1, None], "2": [3]}),
        (EngineSpec.parse("wasm-1").threads, 1),
        (Framed, repr(Framed)),
    ],
)
def test_any_value_is_json_in_the_end(value, expected):
    assert json.loads(as_json(value)) == expected


def test_dataclasses_are_objects():
    assert json.loads(as_json([EngineSpec.parse("wasm-1")]))[0]["provider"] == "wasm"
