"""The fast runner's parts in JavaScript, by themselves: how a wrong answer is told, how a way is left, how waiting ends."""

import pytest

FAKES = """
const app = document.querySelector('script[src]').src;
const { verify, difference, trials } = await import(new URL('runners/verify.js', app));
const { climb } = await import(new URL('runners/ladder.js', app));
const { Nudger } = await import(new URL('runners/readback.js', app));
const shapes = [{ name: 'x', type: 'float32', dims: [1, 3] }];
const cases = trials(shapes);
const doubled = ({ x }) => ({ y: { type: 'float32', dims: [1, 3], data: x.data.map((value) => 2 * value) } });
const reference = async () => cases.map(doubled);
const honest = async (feeds) => doubled(feeds);
/** What a captured graph does that reads a buffer of its first run. */
const stale = () => {
  let first;
  return async (feeds) => (first ??= doubled(feeds));
};
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
/** A queue that counts how often it is asked. */
const queueOf = (answer = () => Promise.resolve()) => ({ asked: 0, onSubmittedWorkDone() { this.asked++; return answer(); } });
"""


@pytest.fixture
def js(inside):
    return lambda body: inside.javascript(FAKES + body)


def test_a_way_that_gives_the_answers_passes(js):
    assert js("return verify(honest, cases, reference, { changing: true })") is None


def test_a_captured_graph_that_replays_its_first_answer_is_caught(js):
    assert "the answer to an earlier input" in js("return verify(stale(), cases, reference, { changing: true })")


def test_a_captured_graph_that_is_one_run_late_is_caught(js):
    found = js("""
        let before = doubled(cases[0]);
        const late = async (feeds) => { const answer = before; before = doubled(feeds); return answer; };
        return verify(late, cases, reference, { changing: true });
    """)
    assert "the answer to an earlier input" in found


def test_answers_that_never_change_show_nothing_of_a_captured_graph(js):
    body = """
        const constant = async () => ({ y: { type: 'float32', dims: [1], data: new Float32Array([7]) } });
        const answers = async () => [await constant(), await constant()];
        return Promise.all([true, false].map((changing) => verify(constant, cases, answers, { changing })));
    """
    captured, uncaptured = js(body)
    assert "the same answer" in captured
    assert uncaptured is None, "a way that captures nothing need not show that it is fresh"


def test_a_wrong_answer_is_named_with_its_place(js):
    found = js("""
        const wrong = async (feeds) => { const answer = doubled(feeds); answer.y.data[2] += 0.25; return answer; };
        return verify(wrong, cases, reference, { changing: true });
    """)
    assert "y[2] is" in found, found


@pytest.mark.parametrize(
    ("found", "expected", "differ"),
    [
        ("'float32', [2], Float32Array.of(1, NaN)", "'float32', [2], Float32Array.of(1.000001, NaN)", None),
        ("'float32', [2], Float32Array.of(1, 2)", "'float32', [2], Float32Array.of(1, NaN)", "y[1] is 2, not NaN"),
        ("'float32', [1], Float32Array.of(1e6)", "'float32', [1], Float32Array.of(1e6 + 1)", None),
        ("'float32', [2], Float32Array.of(1, 2)", "'float32', [1, 2], Float32Array.of(1, 2)", "float32[2], not float32[1,2]"),
        ("'int32', [1], Int32Array.of(1)", "'uint32', [1], Uint32Array.of(1)", "int32[1], not uint32[1]"),
        ("'int32', [1], Int32Array.of(1)", "'int32', [1], Int32Array.of(2)", "y[0] is 1, not 2"),
        ("'int64', [1], BigInt64Array.of(1n)", "'int64', [1], BigInt64Array.of(2n)", "y[0] is 1, not 2"),
        ("'int64', [1], BigInt64Array.of(3n)", "'int64', [1], BigInt64Array.of(3n)", None),
        ("'float16', [1], Uint16Array.of(1)", "'float16', [1], Uint16Array.of(2)", "y[0] is 1, not 2"),
        ("'bool', [1], Uint8Array.of(0)", "'bool', [1], Uint8Array.of(1)", "y[0] is 0, not 1"),
    ],
)
def test_difference(js, found, expected, differ):
    said = js(f"""
        const tensor = (type, dims, data) => ({{ y: {{ type, dims, data }} }});
        return difference(tensor({found}), tensor({expected}));
    """)
    assert (said is None) if differ is None else (differ in said), said


def test_every_value_of_the_two_trials_differs(js):
    types = ["float32", "float16", "int32", "uint32", "int64", "uint8", "bool"]
    body = f"""
        return {types}.map((type) => {{
            const [a, b] = trials([{{ name: 'x', type, dims: [50] }}]).map(({{ x }}) => [...x.data]);
            return a.length === 50 && a.every((value, index) => value !== b[index]);
        }});
    """
    assert js(body) == [True] * len(types)


def test_a_stale_capture_is_left_with_its_reason(js):
    way = js("""
        const tried = (infer, changing) => async () => {
          const wrong = await verify(infer, cases, reference, { changing });
          if (wrong) throw new Error(wrong);
          return infer;
        };
        const { label, fallbacks, way } = await climb([
          { label: 'capture', open: tried(stale(), true) },
          { label: 'no capture', open: tried(honest, false) },
          { label: 'stock', open: async () => { throw new Error('nobody should try this'); } },
        ]);
        return { label, fallbacks, honest: way === honest };
    """)
    assert way["label"] == "no capture"
    assert way["honest"]
    [reason] = way["fallbacks"]
    assert reason.startswith("capture: it gave the answer to an earlier input")


def test_the_last_rungs_error_is_everybodys_and_a_hopeless_one_ends_the_climb(js):
    errors = js("""
        const failing = ['a', 'b'].map((label) => ({ label, open: async () => { throw new Error(`${label} failed`); } }));
        const errors = [() => false, () => true].map((hopeless) => climb(failing, hopeless).catch((error) => error.message));
        return Promise.all(errors);
    """)
    assert errors == ["b failed", "a failed"]


def test_nudging_ends_when_the_map_is_there(js):
    asked, later, value = js("""
        const queue = queueOf();
        const value = await new Nudger(queue).settle(pause(20).then(() => 'mapped'));
        const { asked } = queue;
        await pause(50);
        return [asked, queue.asked, value];
    """)
    assert value == "mapped"
    assert asked > 20, "less than a nudge a millisecond"
    assert asked == later, "it went on nudging"


@pytest.mark.parametrize(
    ("limits", "most"),
    [
        ("{ hotMs: 1e9, limitMs: 1e9, count: 100 }", 100),
        ("{ hotMs: 1e9, limitMs: 30, count: 1e9 }", 1_000_000),
        ("{ hotMs: 0, limitMs: 100, count: 1e9 }", 100),
    ],
)
def test_nudging_a_map_that_does_not_come_has_an_end_and_the_map_may_still_come(js, limits, most):
    asked, later, value = js(f"""
        const queue = queueOf();
        let mapped;
        const settled = new Nudger(queue, {limits}).settle(new Promise((resolve) => {{ mapped = resolve; }}));
        await pause(300);
        const {{ asked }} = queue;
        await pause(50);
        mapped('late');
        return [asked, queue.asked, await settled];
    """)
    assert 0 < asked <= most
    assert asked == later, "it went on nudging"
    assert value == "late"


def test_a_lost_device_leaves_no_promise_behind(js):
    error, unhandled = js("""
        let unhandled = 0;
        addEventListener('unhandledrejection', () => unhandled++);
        const lost = () => Promise.reject(new Error('lost'));
        const settled = new Nudger(queueOf(lost)).settle(pause(20).then(lost));
        const error = await settled.catch((error) => error.message);
        await pause(50);
        return [error, unhandled];
    """)
    assert (error, unhandled) == ("lost", 0)
