"""Python in the page, typed by a person: what it shows, how it is stopped, and that nothing is lost."""

from __future__ import annotations

import time
import zipfile
from pathlib import Path

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from .visit import Visit, wait_until

EXAMPLES = sorted(path.name for path in (Path(__file__).parents[2] / "web" / "examples").glob("*.py"))


@pytest.fixture(scope="module")
def page(visit):
    with visit() as page:
        yield page


def prompt(page: Visit):
    return page.driver.find_element(By.CSS_SELECTOR, "#console textarea")


def log(page: Visit) -> str:
    return page.driver.execute_script("return document.querySelector('#console .log').textContent")


def type_in(page: Visit, *keys: str) -> None:
    prompt(page).send_keys(*keys)


def wait_log(page: Visit, text: str, limit_s: float = 15) -> None:
    wait_until(lambda: text in log(page), f"{text!r} is in the log: {log(page)[-300:]!r}", limit_s)


def click(page: Visit, label: str) -> None:
    page.driver.find_element(By.XPATH, f"//*[@id='console']//button[.='{label}']").click()


def clear(page: Visit) -> None:
    click(page, "Clear")
    assert log(page) == ""


def settle(page: Visit, code: str) -> None:
    """Paste into the prompt, as a person does: all at once."""
    page.driver.execute_script(
        "const [field, text] = arguments; field.value = text; field.dispatchEvent(new Event('input'))", prompt(page), code
    )


def test_a_block_goes_on_until_an_empty_line(page):
    clear(page)
    type_in(page, "for i in range(3):", Keys.ENTER)
    wait_until(lambda: prompt(page).get_property("value").endswith("\n    "), "it goes on, indented", 5)
    type_in(page, "print('row', i)", Keys.ENTER)
    wait_until(lambda: prompt(page).get_property("value").count("\n") == 2, "it goes on", 5)
    page.driver.execute_script("const f = arguments[0]; f.value = f.value.trimEnd() + '\\n'", prompt(page))
    type_in(page, Keys.ENTER)
    wait_log(page, "row 2")


def test_a_pasted_text_of_several_lines_and_unicode_runs(page):
    clear(page)
    settle(page, "a = 'ünï😀'\nb = 2\nawait __import__('asyncio').sleep(0)\na * b")
    type_in(page, Keys.ENTER)
    wait_log(page, "'ünï😀ünï😀'")


def test_a_traceback_shows_the_users_own_lines(page):
    clear(page)
    settle(page, "def f():\n    return 1 / 0\nf()")
    click(page, "Run")
    wait_log(page, "ZeroDivisionError")
    assert 'File "<console>", line 3' in log(page)
    assert "return 1 / 0" in log(page)
    assert "pyodide" not in log(page)


def test_input_says_what_to_do_instead(page):
    clear(page)
    type_in(page, "input('name? ')", Keys.ENTER)
    wait_log(page, "assign the value to a name")


def test_names_are_completed(page):
    type_in(page, "observatory = 5", Keys.ENTER)
    wait_until(lambda: not prompt(page).get_property("value"), "it ran", 5)
    type_in(page, "observat", Keys.TAB)
    wait_until(lambda: prompt(page).get_property("value") == "observatory", "it is completed", 5)
    settle(page, "")
    type_in(page, "states.", Keys.TAB)
    wait_until(lambda: "states.observation" in page.text("#console .words"), "the choices are shown", 5)
    settle(page, "")


def test_what_was_typed_is_searched(page):
    for line in ("alpha = 1", "beta = 2", "alpha = 3"):
        type_in(page, line, Keys.ENTER)
        wait_until(lambda: not prompt(page).get_property("value"), "it ran", 5)
    type_in(page, "alph", Keys.CONTROL + "r")
    assert prompt(page).get_property("value") == "alpha = 3"
    type_in(page, Keys.CONTROL + "r")
    assert prompt(page).get_property("value") == "alpha = 1"
    type_in(page, Keys.CONTROL + "r")
    wait_until(lambda: "nothing earlier holds alph" in page.text("#console .words"), "it is said", 5)
    settle(page, "")


def test_it_is_drawn_over_the_page_and_put_back(page):
    handle = page.driver.find_element(By.ID, "python-drawer")
    handle.click()
    drawn = page.driver.execute_script("return getComputedStyle(document.getElementById('python-section')).position")
    assert drawn == "fixed"
    assert handle.get_attribute("aria-expanded") == "true"
    ActionChains(page.driver).send_keys(Keys.ESCAPE).perform()
    assert handle.get_attribute("aria-expanded") == "false"
    assert page.python("engines[0]") == "'wasm-1'"


def test_arrays_are_pictures_and_results_are_tables(page):
    clear(page)
    type_in(page, "states.observation[0, -1]", Keys.ENTER)
    wait_until(lambda: page.has("#console .picture canvas"), "a picture", 5)
    assert "uint8 [84, 84]" in log(page)


def test_html_is_shown_and_not_executed(page):
    clear(page)
    script = "globalThis.hacked = 1"
    hostile = f"<b>bold</b><script>{script}</script><img src=x onerror='{script}'><a href='javascript:1'>x</a>"
    settle(page, f'class F:\n    def _repr_html_(self):\n        return """{hostile}"""\nF()')
    click(page, "Run")
    wait_until(lambda: page.has("#console .html b"), "it is shown", 10)
    found = page.driver.execute_script("""
        const html = document.querySelector('#console .html');
        return [globalThis.hacked ?? null, html.querySelectorAll('script').length, html.innerHTML];
    """)
    assert found[:2] == [None, 0]
    assert "onerror" not in found[2]
    assert "javascript:" not in found[2]


def test_printing_without_end_does_not_freeze_the_page_and_is_cut(page):
    clear(page)
    settle(page, "for i in range(100_000): print('line', i)")
    click(page, "Run")
    longest = page.page.run("""
        let longest = 0;
        let last = performance.now();
        const end = last + 4000;
        while (performance.now() < end) {
            await new Promise((done) => setTimeout(done, 10));
            longest = Math.max(longest, performance.now() - last);
            last = performance.now();
        }
        return longest;
    """)
    wait_log(page, "line 99999", 30)
    assert longest < 1_000, f"the page stood still for {longest:.0f} ms"
    shown = log(page)
    assert "Show all 100,000 lines" in shown
    assert shown.count("line ") < 1_000
    page.driver.execute_script("document.querySelector('#console .log button').click()")
    assert log(page).count("\n") >= 99_000
    clear(page)


@pytest.mark.parametrize(
    ("code", "ended"),
    [
        ("while True: pass", "KeyboardInterrupt"),
        ("await __import__('asyncio').sleep(1000)", "CancelledError"),
        ("import signal\nsignal.signal(signal.SIGINT, lambda *_: None)\nwhile True: pass", "restarts"),
    ],
    ids=["computes", "waits", "heeds nothing"],
)
def test_whatever_runs_is_stopped_within_two_seconds(page, code, ended):
    clear(page)
    settle(page, code)
    click(page, "Run")
    time.sleep(0.5)
    start = time.monotonic()
    click(page, "Stop")
    wait_until(lambda: ended in log(page), f"{ended} in {log(page)!r}", 5)
    assert time.monotonic() - start < 3, "two seconds, and the time that the driver takes"
    page.wait_for("ready", 60)
    type_in(page, "6 * 7", Keys.ENTER)
    wait_log(page, "42")


def test_a_stop_that_comes_before_what_it_stops_has_begun(page):
    clear(page)
    settle(
        page, "import time\nclass Slow:\n    def __repr__(self):\n        time.sleep(0.7)\n        return 'slow'\nkept = Slow()"
    )
    click(page, "Run")
    wait_until(lambda: "kept" in page.python("repr(dir())"), "it ran", 10)
    settle(page, "while True: pass")
    page.driver.execute_script("""
        const button = (label) => [...document.querySelectorAll('#console button')].find((one) => one.textContent === label);
        for (const label of ['Variables', 'Run', 'Stop']) button(label).click();
    """)
    wait_log(page, "KeyboardInterrupt", 5)
    assert page.python("repr(kept)") == "'slow'", "and Python was not started anew"
    click(page, "Variables")


def test_a_stop_while_an_engine_is_awaited(page):
    clear(page)
    settle(page, "e = await open_engine('wasm-1')\nwhile True: await e.run(states.inputs(0))\n")
    click(page, "Run")
    wait_until(page.engines, "an engine is open", 20)
    click(page, "Stop")
    wait_log(page, "CancelledError", 5)
    type_in(page, "await e.close()", Keys.ENTER)
    page.assert_no_engines()


def test_two_restarts_in_a_row_leave_a_page_that_works_and_keep_its_report(page):
    report = page.page.check({"engines": ["wasm-1"], "runs": 3, "warmup": 1})
    type_in(page, "gone = 1", Keys.ENTER)
    for _ in range(2):
        click(page, "Restart Python")
        wait_until(lambda: page.page.get("state") == "booting", "it boots", 5)
        page.wait_for("ready", 60)
    assert page.page.get("report") == report
    explained = page.page.ask("explain", {"engines": ["wasm-1"], "runs": 3})
    assert explained["race"] == report["race"], "what was found before stays"
    clear(page)
    type_in(page, "gone", Keys.ENTER)
    wait_log(page, "NameError")
    page.assert_no_engines()


def test_variables_are_listed_and_the_list_follows_what_is_typed(page):
    def shows(name, **wanted):
        wait_until(lambda: page.has("#console table") and page.table("Variables").get(name) == wanted, f"{name} is shown", 5)

    type_in(page, "mine = np.zeros((2, 3))", Keys.ENTER)
    click(page, "Variables")
    shows("mine", type="ndarray", value="float64 [2, 3]")
    type_in(page, "mine = np.ones(4, np.float32)", Keys.ENTER)
    shows("mine", type="ndarray", value="float32 [4]")
    click(page, "Variables")


def test_the_reference_is_searched(page):
    click(page, "Reference")
    wait_until(lambda: page.has("#console .reference details"), "it is there", 10)
    page.driver.find_element(By.CSS_SELECTOR, "#console .reference input").send_keys("ask an engine all cases")
    shown = [one for one in page.driver.find_elements(By.CSS_SELECTOR, "#console .reference details") if one.is_displayed()]
    assert [one.text for one in shown] == ["pyapp.parity"]
    shown[0].find_element(By.TAG_NAME, "summary").click()
    assert "EngineError" in shown[0].text
    click(page, "Reference")


def test_the_editor_runs_all_the_selection_and_the_line(page):
    clear(page)
    click(page, "Open the editor")
    wait_until(lambda: page.has("#console .editor"), "the editor is there", 20)
    ActionChains(page.driver).send_keys("x = 20\ny = 22\nx + y").perform()
    ActionChains(page.driver).key_down(Keys.CONTROL).send_keys(Keys.ENTER).key_up(Keys.CONTROL).perform()
    wait_log(page, "42")
    ActionChains(page.driver).send_keys("\nx * 100").perform()
    ActionChains(page.driver).key_down(Keys.SHIFT).send_keys(Keys.ENTER).key_up(Keys.SHIFT).perform()
    wait_log(page, "2000")


def test_text_and_history_outlive_the_page_and_can_be_forgotten(page):
    time.sleep(0.6)
    page.driver.refresh()
    page.page.wait_ready()
    wait_until(lambda: page.has("#console .editor"), "the editor comes back", 20)
    text = "return document.querySelector('.editor').shadowRoot.querySelector('.cm-content').innerText"
    assert "x * 100" in page.driver.execute_script(text)
    type_in(page, Keys.ARROW_UP)
    wait_until(lambda: "mine = np.ones" in prompt(page).get_property("value"), "the history is there", 5)
    click(page, "Forget all that is kept")
    wait_until(lambda: "are forgotten" in page.text("#console"), "it is said", 5)
    page.driver.refresh()
    page.page.wait_ready()
    time.sleep(0.5)
    assert not page.has("#console .editor")
    assert not page.driver.find_elements(By.XPATH, "//button[.='Show the last results']")


def test_the_last_results_outlive_the_page(page):
    report = page.page.check({"engines": ["wasm-1"], "runs": 3, "warmup": 1})
    time.sleep(0.5)
    page.driver.refresh()
    page.page.wait_ready()
    assert page.page.get("report") is None, "nothing is shown that was not asked for"
    wait_until(lambda: page.driver.find_elements(By.XPATH, "//button[.='Show the last results']"), "they are offered", 10)
    page.driver.find_element(By.XPATH, "//button[.='Show the last results']").click()
    wait_until(lambda: page.page.get("report"), "they are there", 20)
    assert page.page.get("report") == report
    assert page.races().keys() == {"wasm-1"}


def test_files_come_and_go(page, tmp_path):
    mine = tmp_path / "mine.txt"
    mine.write_text("seen", encoding="utf-8")
    page.driver.find_element(By.CSS_SELECTOR, "#console input[type=file]").send_keys(str(mine))
    wait_log(page, "mine.txt is here")
    assert page.python("open('mine.txt').read()") == "'seen'"
    page.python("open('made.txt', 'w').write('made')")
    click(page, "Take a file")
    wait_until(lambda: page.has("#console select[aria-label='File to save']"), "files are listed", 5)
    listed = page.text("#console select[aria-label='File to save']")
    assert listed.split()[0] == "made.txt"
    page.driver.execute_script("""
        globalThis.saved = [];
        URL.createObjectURL = (blob) => (globalThis.saved.push(blob), 'blob:none');
        HTMLAnchorElement.prototype.click = function () {};
    """)
    click(page, "Save it")
    wait_until(lambda: "Saved made.txt" in page.text("#console"), "it is saved", 5)
    assert page.page.run("return saved[0].text()") == "made"


def test_a_wheel_is_installed_and_what_cannot_be_installed_is_told(page, tmp_path):
    wheel = tmp_path / "tiny_thing-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny_thing.py", "ANSWER = 42\n")
        about = "tiny_thing-1.0.dist-info"
        archive.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: tiny-thing\nVersion: 1.0\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    page.driver.find_element(By.CSS_SELECTOR, "#console input[type=file]").send_keys(str(wheel))
    wait_log(page, "micropip.install")
    page.python(f"import micropip\nawait micropip.install('emfs:{wheel.name}')")
    assert page.python("import tiny_thing; tiny_thing.ANSWER") == "42"
    native = page.page.evaluate("await micropip.install('emfs:thing-1.0-cp312-cp312-manylinux_2_17_x86_64.whl')")["traceback"]
    assert "thing" in native
    assert "wheel" in native.lower()


def test_two_hundred_values_of_a_megabyte_leave_the_memory_as_it_was(page):
    heap = "import pyodide_js; pyodide_js._module.HEAPU8.length"
    page.python("np.ones(131_072)")
    for _ in range(20):
        page.python("np.ones(131_072)")
    before = int(page.python(heap))
    for _ in range(200):
        page.page.evaluate("np.ones(131_072)")
    assert int(page.python(heap)) <= before + 4 * 2**20


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_runs(page, name):
    source = (Path(__file__).parents[2] / "web" / "examples" / name).read_text()
    answer = page.page.run(
        "return (await import(document.querySelector('script[src$=\"main.js\"]').src)) && pyappPage.evaluate(argument)", source
    )
    assert "traceback" not in answer, answer["traceback"]
    page.assert_no_engines()


def test_code_in_an_address_is_shown_and_not_run(visit):
    with visit() as page:
        address = page.page.run("""
            const app = document.querySelector('script[src]').src;
            const { toHash } = await import(new URL('permalink.js', app));
            return new URL(await toHash("import js; js.globalThis.brought = 1\\nprint('ran')"), location.href).href;
        """)
        page.driver.get("about:blank")
        page.driver.get(address)
        page.page.wait_ready()
        wait_until(lambda: page.has("#console .brought:not([hidden])"), "it is shown", 10)
        assert "has not been run" in page.text("#console .brought")
        assert "js.globalThis.brought" in page.text("#console .brought pre")
        assert log(page) == ""
        page.driver.find_element(By.XPATH, "//button[.='Put it into the editor']").click()
        wait_until(lambda: not page.has("#console .brought:not([hidden])"), "it is in the editor", 20)
        assert "#code=" not in page.driver.current_url
        assert log(page) == "", "still not run"
        page.driver.get("about:blank")
        page.driver.get(address[:-6])
        page.page.wait_ready()
        wait_until(lambda: "cannot be read" in page.text("#console .error"), "a link that was cut off is told", 10)
        loud = [entry for entry in page.driver.get_log("browser") if "Content Security Policy" in entry["message"]]
        assert loud == []
