"""Every view in use, for those who do not see it or have no mouse: axe's rules, the Tab key, charts; and the policy's rules.

One browser walks through the page; what it has asked before stays, so that each look is at as much of the page as there can be.
"""

from __future__ import annotations

import base64
import json
import time
import zlib
from dataclasses import replace

import onnx
import pytest
from onnx import TensorProto, helper
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By

from pyapp.foreign import read_foreign
from pyapp.report import DepartureEntry, Failure, FaultEntry, FaultStep, HeatMap, Report, ReportError, parse_report
from pyapp.sitefolder import app_folder

from .conftest import ROOT
from .game import Game
from .test_model import bring, dense
from .test_pictures import set_look
from .visit import wait_until

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
ALL_LOOKS = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]
TWO_LOOKS = [ALL_LOOKS[0], ALL_LOOKS[-1]]
CODE = "for number in range(3):\n    print(number)"
MOST_STOPS = 250
"""Of the Tab key, more than the page has with everything open but the reference, which is a list of hundreds."""

QUESTIONS = {
    "explain": {"engines": ["wasm-1"], "runs": 4},
    "sweep": {"engines": ["wasm-1"], "batches": [1, 2], "widths": [1], "budget_s": 15},
    "tune": {"engines": ["wasm-1", "wasm-2"], "budget_s": 4, "batch": 2},
    "placement": {"engines": ["wasm-1"]},
    "locate": {"engine": "wasm-2"},
    "tournament": {"engines": ["wasm-1"], "seeds": [3]},
}

WATCH_POLICY = """
    globalThis.violations = [];
    addEventListener('securitypolicyviolation', ({ effectiveDirective, blockedURI, sourceFile, lineNumber, sample }) =>
        violations.push([effectiveDirective, blockedURI, sourceFile, lineNumber, sample].join(' ')));
"""

RUN_AXE = """
    const [done] = arguments;
    // A gradient behind a text keeps axe from judging its contrast; the shade beside a table says only that it scrolls.
    const sheet = new CSSStyleSheet();
    sheet.replaceSync('.scroll { background: none !important } * { transition: none !important }');
    document.adoptedStyleSheets = [sheet];
    const told = ({ id, impact, nodes }) => nodes.map(({ target, html, failureSummary }) =>
        [id, impact, target.flat().join(' >> '), html.slice(0, 200), failureSummary].join(' | '));
    axe.run({ resultTypes: ['violations'] }).then(
        ({ violations, passes }) => done([violations.flatMap(told), passes.length]),
        (error) => done([[String(error)], 0]),
    ).finally(() => (document.adoptedStyleSheets = []));
"""


@pytest.fixture(scope="module")
def page(visit):
    """Open the page at an address with code, and hear of everything that its policy refuses."""
    packed = base64.urlsafe_b64encode(zlib.compress(CODE.encode(), wbits=-15)).decode().rstrip("=")
    with visit(f"?engines=wasm-1&runs=5&warmup=1#code={packed}") as page:
        page.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH_POLICY})
        page.driver.refresh()
        page.page.wait_ready()
        yield page


@pytest.fixture(scope="module")
def answered(page):
    """Ask everything there is to ask, of the worked example, and hold the game in its middle."""
    page.check_by_click()
    for question, settings in QUESTIONS.items():
        page.page.ask(question, settings)
    game = Game(page)
    game.start()
    game.press("Show what it sees")
    wait_until(lambda: game.agent_frames > 30, "the agent plays", 10)
    game.pause()
    unfold(page)
    return page


@pytest.fixture(scope="module")
def talked(answered):
    """Use the console and its editor."""
    page = answered
    press(page, "#console", "Put it into the editor")
    wait_until(lambda: page.has("#console .editor"), "the editor opens", 10)
    press(page, "#console", "Variables")
    prompt = page.driver.find_element(By.CSS_SELECTOR, "#console .line textarea")
    for line in SAID:
        # Lines that belong together are pasted.
        page.driver.execute_script("arguments[0].value = arguments[1]", prompt, line)
        prompt.send_keys(Keys.ENTER)
        wait_until(lambda: not prompt.get_attribute("value"), f"{line} is run", 10)
    wait_until(lambda: page.text("#console .log").endswith("the end"), "all lines are run", 10)
    return page


HTML = '<style>b { color: red }</style><h1>A</h1><p style="color: red">b</p><table><tr><td>c</td></tr></table>'

SAID = (
    "print('a line')",
    "1 / 0",
    "states.observation[0, 0]",
    f"type('Html', (), {{'_repr_html_': lambda self: {HTML!r}}})()",
    "'x' * 5000",
    "print('the end')",
)


@pytest.fixture(scope="module")
def troubled(answered, tmp_path_factory):
    """Open a report in which something is wrong wherever a view can show it, beside the page's own."""
    page = answered
    path = tmp_path_factory.mktemp("reports") / "trouble.json"
    report = in_trouble(parse_report(json.dumps(page.page.get("report"))))
    path.write_text(report.to_json())
    page.driver.find_element(By.CSS_SELECTOR, "#report-file").send_keys(str(path))
    wait_until(lambda: path.name in page.text(".banner"), f"it is open: {page.text('#report .error')}", 15)
    page.page.start("check", {"runs": 0})
    wait_until(lambda: page.text("#error"), "the setting is refused", 5)
    press(page, ".banner", "Compare with")
    wait_until(lambda: len(page.driver.find_elements(By.CSS_SELECTOR, ".compare table")) == 5, "both verdicts", 10)
    unfold(page)
    return page


def in_trouble(report: Report) -> Report:
    parity = report.parity[0]
    wrong = [2, 11, 59]
    action = [(chosen + 1) % 4 if case in wrong else chosen for case, chosen in enumerate(parity.action)]
    parity = replace(
        parity, action=action, disagreements=wrong, agree=parity.cases - len(wrong), passed=False, warnings=["3 differ"]
    )
    broken = replace(
        report.engines[0],
        name="webgpu-fast",
        actual=None,
        valid=False,
        error=Failure(name="EngineLost", message="it was lost", remedy="Wait."),
    )
    frames = base64.b64encode(zlib.compress(bytes(4 * 84 * 84))).decode()
    scores = {"q_values": [1.0, 2.0, 3.0, 4.0], "reference_q_values": [1.0, 2.0, 4.0, 3.0]}
    departures = [
        DepartureEntry(decision=7, action=3, expected=2, margin=margin, error=0.1, explained=explained, state=frames, **scores)
        for margin, explained in ((0.1, True), (1.0, False))
    ]
    scored = report.tournament[0]
    played = [replace(scored.played[0], seed=seed, truncated=True, departure=one) for seed, one in enumerate(departures)]
    scored = replace(scored, played=played, games=2, truncated=2, compared=2, departures=2, unexplained=1)
    step = FaultStep(node="first", op="MatMul", output="h", shape=[1, 8], max_abs=1e-7, max_rel=1e-7, close=True, failure=None)
    far = replace(step, node="second", output="y", max_abs=0.1, max_rel=0.1, close=False)
    located = FaultEntry(
        engine="wasm-2",
        reference="wasm-1",
        suite="states",
        case=0,
        rtol=1e-4,
        atol=1e-5,
        kind="source",
        node="second",
        op="MatMul",
        compared=2,
        steps=[step, far],
        alone=far,
        map=HeatMap(height=2, width=3, values=[[0.0, 0.1, None], [0.2, 0.3, 1.0]]),
        warnings=["one case of many"],
    )
    placed = replace(report.placement[0], engine="wasm-2", strict=True, nodes=[], reason="a node has to run on the CPU")
    return replace(
        report,
        engines=[*report.engines, broken],
        parity=[parity, *report.parity[1:]],
        race=[replace(report.race[0], valid=False, warnings=["the tab was hidden"]), *report.race[1:]],
        tournament=[scored],
        faults=[located],
        placement=[*report.placement, placed],
    )


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Write two models: one with every kind of finding, and one that runs for all that is said of it."""
    folder = tmp_path_factory.mktemp("models")
    model = dense("my input")
    graph = model.graph
    graph.node.append(helper.make_node("NonZero", ["y"], ["places"], name="places"))
    graph.output.append(helper.make_tensor_value_info("places", TensorProto.INT64, [2, "K"]))
    onnx.save(model, folder / "runs.onnx")
    graph.node.append(helper.make_node("NoSuchThing", ["y"], ["nothing"], name="nothing", domain="mine"))
    model.opset_import.append(helper.make_opsetid("mine", 1))
    onnx.save(model, folder / "trouble.onnx")
    return folder


def unfold(page):
    page.driver.execute_script("for (const one of document.querySelectorAll('details:not(#licences)')) one.open = true")
    # Until everything is drawn that is drawn on demand.
    time.sleep(0.5)


def press(page, root, text):
    [found] = [
        button
        for button in page.driver.find_elements(By.CSS_SELECTOR, f"{root} button")
        if button.is_displayed() and button.text.startswith(text)
    ]
    found.click()


def findings(page) -> list[str]:
    """Return what axe finds in the page as it is now, of whatever impact."""
    if not page.driver.execute_script("return 'axe' in globalThis"):
        page.driver.execute_script(AXE.read_text())
    found, passes = page.driver.execute_async_script(RUN_AXE)
    assert found or passes > 15, f"axe has looked at next to nothing: {passes} rules"
    return found


def assert_accessible(page, looks=TWO_LOOKS):
    found = {}
    try:
        for width, scheme in looks:
            set_look(page, width, scheme)
            for line in findings(page):
                found.setdefault(line, f"{width} px, {scheme}")
    finally:
        set_look(page, 1280, "light")
    assert not found, "\n".join(f"{look}: {line}" for line, look in found.items())


def test_just_booted(page):
    assert "The address has brought code" in page.text("#console")
    assert_accessible(page, ALL_LOOKS)


def test_with_every_answer(answered):
    assert_accessible(answered, ALL_LOOKS)


def test_axe_finds_what_is_planted(answered):
    """What is faint, nameless or named where nothing is heard must not get past the way that the page is looked at here."""
    page = answered
    page.driver.execute_script("""
        const planted = document.createElement('div');
        planted.id = 'planted';
        planted.innerHTML = '<button></button><table class="scroll"><tr><td>faint</td></tr></table>';
        planted.querySelector('td').style.color = '#888';
        planted.querySelector('td').style.background = '#999';
        document.querySelector('#answers').append(planted);
    """)
    found = findings(page)
    page.driver.execute_script("document.querySelector('#planted').remove()")
    assert {line.partition(" | ")[0] for line in found} == {"button-name", "color-contrast"}


def test_every_chart_has_a_name_and_a_table(answered):
    charts = answered.driver.execute_script("""
        return [...document.querySelectorAll('main svg')].map((chart) => {
            const section = chart.closest('section');
            const cells = [...section.querySelectorAll('tbody td')];
            return {
                section: section.id || section.querySelector('h2').textContent,
                name: chart.getAttribute('role') === 'img' ? chart.ariaLabel : null,
                numbers: cells.filter((cell) => /\\d/.test(cell.textContent)).length,
            };
        });
    """)
    sections = [chart["section"] for chart in charts]
    assert {name: sections.count(name) for name in sections} == {
        "Which is faster?": 3,
        "explain-section": 1,
        "sweep-section": 1,
        "tournament-section": 2,
    }
    assert all(chart["name"] and chart["numbers"] for chart in charts), charts


def test_the_table_beside_a_chart_has_its_numbers(answered):
    """A mark's own title is what it stands for; the table must say the same."""
    missing, marks = answered.driver.execute_script("""
        const missing = [];
        let seen = 0;
        for (const chart of document.querySelectorAll('main svg')) {
            const section = chart.closest('section');
            const cells = [...section.querySelectorAll('td')];
            const numbers = cells.flatMap(({ textContent }) => textContent.match(/[\\d.]+/g) ?? []);
            const titles = [...chart.querySelectorAll(':is(circle, rect) > title')].map(({ textContent }) => textContent);
            for (const title of titles) {
                const shown = Number(title.match(/([\\d.]+)(?= (?:ms|points)|$)/)?.[1]);
                const said = numbers.some((one) => Math.abs(one - shown) <= 0.005 * shown);
                if (!said) missing.push(`${chart.ariaLabel}: ${title}`);
            }
            seen += titles.length;
        }
        return [missing, seen];
    """)
    assert missing == []
    assert marks > 8


CONTROLS = """
    // Of a group of radio buttons Tab reaches the chosen one, and the arrow keys the others.
    const can = 'a[href], button, input, select, summary, textarea, .editor, [tabindex="0"]';
    const shown = (element) => element.checkVisibility({ visibilityProperty: true }) && !element.matches(':disabled');
    return [...document.querySelectorAll(can)]
        .filter((element) => shown(element) && !(element.type === 'radio' && !element.checked))
        .map((element, place) => {
            element.dataset.place = place;
            return element.outerHTML.slice(0, 120);
        });
"""

FOCUSED = """
    const element = document.activeElement;
    const { outlineStyle, outlineWidth } = getComputedStyle(element);
    const { left, right, top, bottom } = element.getBoundingClientRect();
    // Something of it lies in the window, with nothing else on top.
    const inside = (low, high, end, share) => Math.max(low, 0) + share * (Math.min(high, end) - Math.max(low, 0));
    const shares = [0.02, 0.25, 0.5, 0.75, 0.98];
    const clear = shares.some((x) => shares.some((y) => {
        const hit = document.elementFromPoint(inside(left, right, innerWidth, x), inside(top, bottom, innerHeight, y));
        return hit && (element.contains(hit) || hit.contains(element) && hit.matches('label, .screen'));
    }));
    return {
        place: element.dataset.place === undefined ? null : Number(element.dataset.place),
        html: element === document.body ? '' : element.outerHTML.slice(0, 120),
        outlined: outlineStyle !== 'none' && parseFloat(outlineWidth) > 0,
        clear,
        editor: element.matches('.editor'),
    };
"""


def assert_reachable(page):
    """Press Tab from the top of the page to its end: each control gets the focus, in the page's order, and can be seen then."""
    controls = page.driver.execute_script(CONTROLS)
    page.driver.execute_script("document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute('tabindex')")
    places, stops, faint, hidden = [], [], [], []
    before = None
    for _ in range(MOST_STOPS):
        if before and before["editor"]:
            ActionChains(page.driver).send_keys(Keys.ESCAPE).perform()
        ActionChains(page.driver).send_keys(Keys.TAB).perform()
        now = page.driver.execute_script(FOCUSED)
        if not now["html"] or (places and now["place"] == places[0]):
            break
        assert now["html"] != (before or {}).get("html") or now["place"] != before["place"], f"Tab does not leave {now['html']}"
        before = now
        stops.append(now["html"])
        if now["place"] is not None:
            places.append(now["place"])
        if not now["outlined"]:
            faint.append(now["html"])
        if not now["clear"]:
            hidden.append(now["html"])
    else:
        pytest.fail(f"Tab does not come to the end of the page: {stops[-8:]}", pytrace=False)
    assert [controls[place] for place in range(len(controls)) if place not in places] == [], "never has the focus"
    assert places == sorted(places), "the order is not the page's"
    assert (faint, hidden) == ([], []), "the focus cannot be seen there"
    return len(places)


def test_tab_reaches_every_control_with_every_answer(talked):
    assert assert_reachable(talked) > 60


def test_while_games_are_played(talked):
    page = talked
    page.page.start("tournament", {"engines": ["wasm-1"], "seeds": [4, 5]})
    try:
        wait_until(lambda: page.text("#tournament-ask .progress"), "it begins", 20)
        assert_accessible(page)
    finally:
        page.page.cancel()
        page.wait_for("ready", 10)


def test_the_drawer_with_what_the_console_shows(talked):
    page = talked
    page.click("#python-drawer")
    try:
        assert page.text("#console .log .html").startswith("A")
        assert_accessible(page, ALL_LOOKS)
        press(page, "#console", "Reference")
        wait_until(lambda: page.has("#console .reference summary"), "the reference", 5)
        assert_accessible(page)
    finally:
        press(page, "#console", "Reference")
        page.click("#python-drawer")


def test_a_saved_report_with_all_that_can_go_wrong(troubled):
    for css in (".walk .bad", ".departure .bad", "#faults .heat", "#faster .warnings", "#placement .error", ".compare mark"):
        assert troubled.has(css), css
    assert_accessible(troubled, ALL_LOOKS)
    assert assert_reachable(troubled) > 60


def test_every_text_of_a_report_that_may_be_anything_is_shown_as_text(troubled, tmp_path):
    """Markup is put wherever a report is still valid with it; the views must make text of it, the banner and both sides too."""
    page = troubled
    markup = "<img src=x onerror=\"document.title='hacked'\">"
    report = in_trouble(parse_report(json.dumps(page.page.get("report")))).to_json()
    texts = {holder[key] for holder, key in texts_of(json.loads(report))}
    planted = {}
    for text in sorted(texts):
        # Everywhere at once: names refer to each other.
        wanted = planted | {text: markup + text}
        data = json.loads(report)
        for holder, key in texts_of(data):
            holder[key] = wanted.get(holder[key], holder[key])
        try:
            read_foreign(json.dumps(data))
        except ReportError:
            continue
        planted = wanted
    assert len(planted) > 30
    data = json.loads(report)
    for holder, key in texts_of(data):
        holder[key] = planted.get(holder[key], holder[key])
    path = tmp_path / "markup.json"
    path.write_text(json.dumps(data))
    page.driver.find_element(By.CSS_SELECTOR, "#report-file").send_keys(str(path))
    wait_until(lambda: path.name in page.text(".banner"), f"it is open: {page.text('#report .error')}", 15)
    press(page, ".banner", "Compare with")
    unfold(page)
    for css in ("#ran", "#faster", "#answers", "#placement", "#faults", ".compare"):
        assert markup in page.text(css), css
    assert not page.has("img")
    assert "hacked" not in page.driver.title


def texts_of(data):
    """Give every text within plain data, by what holds it and its key there."""
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        if isinstance(value, str):
            yield data, key
        elif isinstance(value, dict | list):
            yield from texts_of(value)


def test_a_model_of_ones_own_with_every_finding(answered, models):
    page = answered
    bring(page, models / "trouble.onnx")
    for css in (".findings .error", ".findings .warning", ".findings .note", ".findings .fix"):
        assert page.has(css), css
    assert_accessible(page, ALL_LOOKS)


def test_a_model_of_ones_own_with_answers(answered, models):
    page = answered
    assert bring(page, models / "runs.onnx") == ""
    page.check_by_click()
    unfold(page)
    assert page.table("Outputs against the reference")
    assert_accessible(page)
    assert assert_reachable(page) > 40


def test_the_licences_of_all_parts(answered):
    """A list of scores, so that it is not among what is walked through by keyboard above."""
    page = answered
    page.click("#licences summary")
    wait_until(lambda: page.has("#licences tbody tr"), "the list", 10)
    rows = page.table("Parts and their licences")
    assert {"pyapp and its page", "pyodide", "onnxruntime-web", "numpy", "@observablehq/plot"} <= rows.keys()
    assert rows["Arcade Learning Environment"]["Licence"] == "GPL-2.0-only"
    found = page.page.run("""
        const links = [...document.querySelectorAll('#licences td a')].filter(({ href }) => href.startsWith(location.origin));
        const texts = [...new Set(links.map(({ href }) => href))];
        const answers = await Promise.all(texts.map((text) => fetch(text, { method: 'HEAD' })));
        return { links: links.length, answers: answers.map(({ status }) => status) };
    """)
    assert found["links"] == len(rows)
    assert set(found["answers"]) == {200}
    assert_accessible(page, ALL_LOOKS)
    page.click("#licences summary")


def test_no_view_breaks_the_policy(answered):
    """Nothing that was done here until now, on the page or in a worker."""
    assert answered.driver.execute_script("return violations") == []
    assert in_log(answered) == []


def in_log(page) -> list[str]:
    """Return what the browser has logged of policies since this was last asked; workers tell it nowhere else."""
    return [entry["message"] for entry in page.driver.get_log("browser") if "Content Security Policy" in entry["message"]]


def test_a_breach_of_the_policy_is_seen(page):
    page.driver.execute_script("""
        const scratch = document.createElement('div');
        scratch.innerHTML = '<style>b { color: red }</style><b style="color: red">b</b>';
        document.body.append(scratch);
        scratch.remove();
    """)
    seen = wait_until(lambda: page.driver.execute_script("return violations.splice(0)"), "the page hears of it", 5)
    assert {line.split()[0] for line in seen} == {"style-src-elem", "style-src-attr"}
    in_log(page)
    page.page.run("""
        const source = URL.createObjectURL(new Blob(["fetch('http://127.0.0.1:9/').catch(() => postMessage('refused'))"]));
        const worker = new Worker(source);
        await new Promise((done) => (worker.onmessage = done));
        worker.terminate();
    """)
    assert wait_until(lambda: in_log(page), "the log has the worker's breach", 5)


def test_the_policy_allows_neither_inline_code_nor_eval(page, dist):
    """As served, for the page and for its workers' scripts, which have policies of their own."""
    app = app_folder(dist).relative_to(dist).as_posix()
    for path in (
        "",
        *(f"{app}/{name}" for name in ("main.js", "engine-worker.js", "python-worker.js", "play/visitor-worker.js")),
    ):
        script = "return (await fetch(argument)).headers.get('content-security-policy')"
        directives = {name: values for name, *values in map(str.split, page.page.run(script, f"./{path}").split(";"))}
        assert directives["default-src"] == ["'none'"]
        allowed = {value for values in directives.values() for value in values}
        assert not allowed & {"'unsafe-inline'", "'unsafe-eval'", "'unsafe-hashes'", "*", "http:"}, path
        assert "'wasm-unsafe-eval'" in directives["script-src"]
