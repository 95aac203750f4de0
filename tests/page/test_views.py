"""The page's own controls: settings in the form and the address, the walk through the states, the charts, the keyboard."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from .visit import section, wait_until


@pytest.fixture(scope="module")
def page(visit):
    with visit("?runs=12&warmup=2&seed=7&threads=1,2&engines=webgpu-stock") as page:
        yield page


@pytest.fixture(scope="module")
def report(page):
    page.driver.find_element(By.CSS_SELECTOR, ".settings summary").click()
    uncheck(page)
    return page.check_by_click()


def uncheck(page):
    box = field(page, "webgpu-stock")
    if box.is_selected():
        box.click()


def field(page, name):
    return page.driver.find_element(By.NAME, name)


def fill(page, name, text):
    """Type into a field as a person does, and leave it."""
    found = field(page, name)
    found.send_keys(Keys.CONTROL, "a")
    found.send_keys(text, Keys.TAB)


def query(page):
    return page.driver.execute_script("return decodeURIComponent(location.search)")


def test_the_address_fills_the_form_and_the_form_is_what_runs(page, report):
    assert report["settings"] == {"engines": ["wasm-1", "wasm-2"], "runs": 12, "warmup": 2, "seed": 7}
    assert field(page, "threads").get_attribute("value") == "1, 2"


def test_the_form_writes_the_address(page, report):
    fill(page, "runs", "15")
    fill(page, "threads", "1, N")
    assert query(page) == "?runs=15&warmup=2&seed=7&engines=wasm-1,wasm-N"
    page.driver.find_element(By.CSS_SELECTOR, ".fields button").click()
    assert query(page) == ""
    assert field(page, "webgpu-stock").is_selected()
    assert field(page, "webgpu-fast").is_selected()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [("runs", "0", "runs is 0"), ("threads", "1, two", "unknown engine 'wasm-two'"), ("threads", "1, 1", "named twice")],
)
def test_a_bad_setting_is_named_and_the_results_stay(page, report, name, value, said):
    before = page.parities()
    fill(page, name, value)
    page.click("#run")
    page.wait_for("ready", 10)
    assert said in page.text("#error")
    assert page.parities() == before
    page.driver.find_element(By.CSS_SELECTOR, ".fields button").click()


def test_the_walk_goes_from_the_smallest_margin_up(page, report):
    choose(page, "order", "margin")
    margins = section_margins(report)
    assert [state["index"] for state in page.walk()] == sorted(range(60), key=margins.__getitem__)
    choose(page, "order", "disagree")
    assert "No engine disagrees" in page.text(".walk")
    choose(page, "order", "all")
    assert [state["index"] for state in page.walk()] == list(range(60))


def section_margins(report):
    return next(entry["margin"] for entry in report["suites"] if entry["suite"] == "states")


def choose(page, name, value):
    Select(field(page, name)).select_by_value(value)


def test_a_state_shows_every_engines_scores(page, report):
    table = page.table(page.driver.execute_script("return document.querySelector('.walk caption').textContent"))
    assert table.keys() == {"Python", "wasm-1", "wasm-2"}
    index = page.walk()[-1]["index"]
    scores = section(report, "parity", "states on wasm-2")["q_values"][index]
    table = page.table(f"Q-values of state {index} of states")
    assert [table["wasm-2"][action] for action in ("NOOP", "FIRE", "RIGHT", "LEFT")] == [f"{score:.4f}" for score in scores]
    assert table["Python"]["chosen"] == table["wasm-2"]["chosen"]


def test_the_arrow_keys_walk(page, report):
    slider = page.driver.find_element(By.CSS_SELECTOR, ".walk input[type=range]")
    slider.send_keys(Keys.HOME)
    assert slider.get_attribute("aria-valuetext") == "state 0 of states"
    slider.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert slider.get_attribute("aria-valuetext") == "state 2 of states"


def test_the_charts_hold_every_sample(page, report):
    marks = page.driver.find_elements(By.CSS_SELECTOR, ".charts .plot circle")
    assert len(marks) == 2 * len(report["race"]), "P50 and P95 of each engine"
    assert not page.has(".plot style"), "the content security policy refuses styles"
    page.click("#faster details summary")
    dots = wait_until(
        lambda: page.driver.find_elements(By.CSS_SELECTOR, "#faster details .plot circle"), "every run in order", 5
    )
    assert len(dots) == sum(entry["runs"] for entry in report["race"])


def test_what_it_means_is_said_in_sentences(page, report):
    assert "choose Python's action in all 60 cases of states" in page.text("#meaning")
    assert "decisions a second" in page.text("#meaning")
    assert "wasm-2 takes" in page.text("#faster .sentence.ratio:last-of-type")


def test_what_is_said_late_of_an_earlier_report_is_dropped(page, report):
    said = page.page.run(
        """
        const { Results } = await import(new URL('results.js', document.querySelector('script[src]').src));
        const told = Promise.withResolvers(), asked = Promise.withResolvers();
        const verdict = async () => ({ engine: null, decided: false, sentence: '', lines: [], next_steps: [] });
        const python = { picture: async () => new Uint8Array(7056), summarize: () => (asked.resolve(), told.promise), verdict };
        const results = new Results(python);
        const late = results.show(argument);
        await asked.promise;
        results.clear(); // a newer check has begun
        for (const lane of argument.race) results.add('race', lane);
        told.resolve(['answers', 'ratio'].map((topic) => ({ topic, tone: 'plain', text: 'too late' })));
        await late;
        const said = ['meaning', 'faster'].map((id) => document.getElementById(id).textContent).join();
        python.summarize = async () => [{ topic: 'answers', tone: 'good', text: 'in time' }];
        await results.show(argument);
        return [said.includes('too late'), document.getElementById('meaning').textContent];
        """,
        report,
    )
    assert said == [False, "in time"]


def test_every_control_can_be_reached_and_worked_by_keyboard(page, report):
    """From the top of the page with Tab alone: each control that can be seen gets the focus, in the page's order."""
    page.driver.execute_script("document.body.tabIndex = -1; document.body.focus()")
    controls = page.driver.execute_script("""
        return [...document.querySelectorAll('a[href], button, input, select, summary, [tabindex="0"]')]
            .filter((element) => !element.disabled && element.checkVisibility())
            .map((element, i) => (element.dataset.seen = i));
    """)
    page.driver.switch_to.active_element.send_keys(Keys.TAB)
    seen = []
    for _ in range(len(controls) + 5):
        focused = page.driver.switch_to.active_element
        outline = page.driver.execute_script("return getComputedStyle(arguments[0]).outlineStyle", focused)
        if (number := focused.get_attribute("data-seen")) is not None:
            seen.append(int(number))
            assert outline != "none", f"the focus cannot be seen on {focused.get_attribute('outerHTML')[:80]}"
        focused.send_keys(Keys.TAB)
    assert set(controls) <= set(seen), [number for number in controls if number not in seen]


def test_enter_on_the_button_runs_the_check(page, report):
    fill(page, "runs", "3")
    uncheck(page)
    page.driver.find_element(By.ID, "run").send_keys(Keys.ENTER)
    page.wait_for("ready", 60)
    assert all(entry["runs"] == 3 for entry in page.page.get("report")["race"])


def test_nothing_in_the_log_is_severe(page):
    log = [entry["message"] for entry in page.driver.get_log("browser") if entry["level"] == "SEVERE"]
    assert log == []
