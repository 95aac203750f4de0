"""Reports leave the page and come back to it: files, the clipboard, paper, and two side by side."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from itertools import pairwise

import pytest
from selenium.webdriver.common.by import By

from pyapp.report import Failure, Report, parse_report
from pyapp.tables import report_markdown

from .test_pictures import overflow, set_look, take_picture
from .visit import wait_until

SETTINGS = "?runs=5&warmup=1&engines=wasm-1"
OWN = "this page's own results"
MARKUP = "<img src=x onerror=\"document.title = 'hacked'\">"


@pytest.fixture(scope="module")
def page(visit):
    with visit(SETTINGS) as page:
        yield page


@pytest.fixture(scope="module")
def downloads(page, tmp_path_factory):
    folder = tmp_path_factory.mktemp("downloads")
    page.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})
    return folder


@pytest.fixture(scope="module")
def saved(page, downloads):
    """Run a small check and download its report."""
    assert not any(
        button.is_enabled() for button in buttons(page, "Download JSON", "Download CSV", "Copy as Markdown", "Print")
    )
    page.check_by_click()
    return download(page, downloads, "Download JSON")


@pytest.fixture(scope="module")
def base(saved):
    return parse_report(saved.read_text())


@pytest.fixture(autouse=True)
def at_home(page):
    """Begin each test with the page's own results, on a wide screen."""
    set_look(page, 1280, "light")
    if page.text(".banner"):
        press(page, f"Back to {OWN}")
        wait_until(lambda: not page.text(".banner"), "the banner is gone", 5)


def buttons(page, *labels):
    found = {button.text: button for button in page.driver.find_elements(By.CSS_SELECTOR, "button") if button.is_displayed()}
    return [found[label] for label in labels]


def press(page, label):
    wait_until(lambda: any(button.text == label for button in page.driver.find_elements(By.CSS_SELECTOR, "button")), label, 5)
    buttons(page, label)[0].click()


def download(page, folder, label):
    before = set(folder.iterdir())
    press(page, label)
    [file] = wait_until(
        lambda: {file for file in folder.iterdir() if not file.name.endswith(".crdownload") and file.name[0] != "."} - before,
        "a file",
        10,
    )
    return file


def give(page, path):
    page.driver.find_element(By.ID, "report-file").send_keys(str(path))


def open_report(page, tmp_path, report, name="other.json"):
    """Open a report through the file input, and wait until it is shown."""
    path = tmp_path / name
    path.write_text(report.to_json() if isinstance(report, Report) else report)
    give(page, path)
    wait_until(lambda: f"{name} is open" in page.text("#report [role=status]") or page.text("#report .error"), "an answer", 20)


def opened(page, tmp_path, report):
    open_report(page, tmp_path, report)
    assert page.text("#report .error") == ""
    assert "Showing a saved report: other.json" in page.text(".banner")


def renamed(report, name):
    """Give the first engine another name, everywhere."""
    old = report.engines[0].name

    def change(entries, key):
        return [replace(entry, **{key: name}) if getattr(entry, key) == old else entry for entry in entries]

    ratios = change(change(report.ratios, "numerator"), "denominator")
    race, parity = change(report.race, "engine"), change(report.parity, "engine")
    return replace(report, engines=change(report.engines, "name"), race=race, parity=parity, ratios=ratios)


def raced(report, samples):
    """Give the first engine's race these samples."""
    count = len(samples)
    times = {"p50_ms": samples[count // 2], "p95_ms": samples[-1], "mean_ms": samples[0]} if samples else {}
    times = dict.fromkeys(("p50_ms", "p95_ms", "mean_ms", "min_ms", "max_ms"), samples[0] if samples else None) | times
    lane = replace(report.race[0], runs=count, samples_ms=samples, blocks=[count], **times)
    return replace(report, race=[lane, *report.race[1:]])


def results(page):
    return page.parities(), page.races(), page.text("#ran")


def test_what_is_downloaded_is_what_was_found(page, saved, base):
    assert saved.name == f"pyapp-report-{base.environment.created[:16].replace(':', '-')}.json"
    assert base == parse_report(json.dumps(page.page.get("report")))
    assert base.settings.runs == 5


def test_the_csv_holds_every_sample(page, downloads, base):
    file = download(page, downloads, "Download CSV")
    assert file.name.endswith(".csv")
    rows = list(csv.DictReader(io.StringIO(file.read_bytes().decode(), newline="")))
    samples = [float(row["value"]) for row in rows if row["name"] == "samples_ms"]
    assert samples == base.race[0].samples_ms


def test_a_saved_report_shows_the_same_numbers_and_the_page_finds_back(page, saved, base, tmp_path):
    before = results(page)
    opened(page, tmp_path, raced(base, [70.0, 80.0, 90.0]))
    assert page.races()["wasm-1"]["P50"] == "80.0 ms"
    press(page, f"Back to {OWN}")
    wait_until(lambda: not page.text(".banner"), "the banner is gone", 5)
    assert results(page) == before

    give(page, saved)
    wait_until(lambda: saved.name in page.text(".banner"), "the banner", 10)
    assert "Chrome" in page.text(".banner")
    assert base.environment.created[11:16] in page.text(".banner")
    assert results(page) == before


def test_another_visitor_can_open_it_before_any_check(visit, saved, base):
    with visit() as fresh:
        give(fresh, saved)
        wait_until(lambda: saved.name in fresh.text(".banner"), "the banner", 10)
        assert fresh.races()["wasm-1"]["n"] == "5"
        assert "choose" in fresh.text("#meaning")
        assert not [button for button in fresh.driver.find_elements(By.CSS_SELECTOR, ".banner button") if button.is_displayed()]
        assert all(button.is_enabled() for button in buttons(fresh, "Download JSON", "Print"))
        # The next check's results are the page's own again; the saved report is still there to be compared.
        fresh.page.check({"engines": ["wasm-1"], "runs": 3, "warmup": 0})
        assert fresh.text(".banner") == ""
        press(fresh, f"Compare with {saved.name}")
        assert fresh.table("Where and what, in two reports")["measured runs"] == {OWN: "3", saved.name: "5"}


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda data: data["race"][0].update(p50_ms="fast"), "$.race[0].p50_ms"),
        (lambda data: data["parity"][0]["action"].pop(), "59 values for 60 cases @ $.parity[0].action"),
        (lambda data: data["race"][0].update(samples_ms=["x"] * 5), "; and 2 more"),
        (lambda data: data.update(schema="pyapp-report/9"), "'pyapp-report/9'"),
    ],
    ids=["type", "length", "many", "version"],
)
def test_a_bad_report_is_refused_with_its_place_and_the_results_stay(page, base, tmp_path, spoil, said):
    before = results(page)
    data = json.loads(base.to_json())
    spoil(data)
    open_report(page, tmp_path, json.dumps(data), "bad.json")
    assert said in page.text("#report .error")
    assert results(page) == before


@pytest.mark.parametrize("text", ["", "\x00\x01", "[" * 100_000, '{"schema": 1e999}'], ids=["empty", "bytes", "deep", "huge"])
def test_what_is_no_report_is_refused(page, base, tmp_path, text):
    before = results(page)
    open_report(page, tmp_path, text, "none.json")
    assert "not a valid report" in page.text("#report .error")
    assert results(page) == before
    assert page.python("1 + 1") == "2", "Python has survived it"


def test_a_file_that_is_too_large_is_not_read(page, base, tmp_path):
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate(50_000_001)
    give(page, path)
    wait_until(lambda: "51 MB" in page.text("#report .error"), "a refusal", 5)


def test_a_dropped_report_is_opened(page, base):
    page.page.run(
        """
        const dataTransfer = new DataTransfer();
        dataTransfer.items.add(new File([argument], 'dropped.json'));
        const target = document.querySelector('#report');
        for (const name of ['dragover', 'drop']) target.dispatchEvent(new DragEvent(name, { dataTransfer, bubbles: true }));
        """,
        base.to_json(),
    )
    wait_until(lambda: "dropped.json" in page.text(".banner"), "the banner", 10)


def test_markup_in_a_report_is_text(page, base, tmp_path):
    entry = replace(base.engines[0], warnings=[MARKUP])
    spoilt = renamed(replace(base, engines=[entry, *base.engines[1:]]), MARKUP)
    spoilt = replace(spoilt, environment=replace(spoilt.environment, user_agent=MARKUP, created=MARKUP, platform=MARKUP))
    opened(page, tmp_path, spoilt)
    press(page, f"Compare with {OWN}")
    for css in ("#answers", "#faster", "#ran", "#meaning", "#report", ".banner"):
        assert MARKUP in page.text(css), css
    assert page.races().keys() == {MARKUP}
    assert not page.has("img")
    assert "hacked" not in page.driver.title


@pytest.mark.parametrize("name", ["n" * 120, "a long name " * 10])
def test_a_long_name_fits(page, base, tmp_path, name):
    opened(page, tmp_path, renamed(base, name))
    press(page, f"Compare with {OWN}")
    for width in (390, 1280):
        set_look(page, width, "light")
        take_picture(page, f"report-long-{name[:1]}-{width}")
        found = overflow(page)
        assert found["scrollWidth"] <= found["clientWidth"], found
        assert found["out"] == [], width
        # A name in a table takes more lines; in a chart it ends with an ellipsis, and is whole in its title.
        boxes = page.driver.execute_script("""
            const wide = (box) => box.querySelector('tbody th').offsetWidth > box.clientWidth;
            return [...document.querySelectorAll('.card .scroll')].filter(wide).map((box) => box.ariaLabel);
        """)
        assert boxes == [], width
        [label] = page.driver.find_elements(By.CSS_SELECTOR, "#faster .plot text:has(title)")
        drawn, whole = page.driver.execute_script("return [...arguments[0].childNodes].map((node) => node.textContent)", label)
        assert whole == name
        assert drawn == name.strip() or drawn.endswith("…"), drawn


@pytest.mark.parametrize(
    "samples",
    [[0.86], [3 + 0.001 * run for run in range(1000)], [0.0, 0.0, 0.1, 0.2], [1e-3, 1e9]],
    ids=["one", "many", "below the clock's step", "far apart"],
)
@pytest.mark.parametrize("width", [1280, 390])
def test_any_samples_are_drawn_on_an_axis_that_can_be_read(page, base, tmp_path, samples, width):
    set_look(page, width, "light")
    opened(page, tmp_path, raced(base, samples))
    assert page.races()["wasm-1"]["n"] == str(len(samples))
    axes = page.driver.execute_script("""
        const labels = (plot) => [...plot.querySelectorAll('[aria-label="x-axis tick label"] text')];
        const box = (label) => label.getBoundingClientRect().toJSON();
        return [...document.querySelectorAll('#faster .plot')].map((plot) => labels(plot).map(box));
    """)
    assert len(axes) == 2
    for labels in axes:
        assert len(labels) >= 2, "an axis without numbers"
        assert all(before["right"] < after["left"] for before, after in pairwise(labels)), "numbers run into each other"
    assert not any("NaN" in plot.get_attribute("outerHTML") for plot in page.driver.find_elements(By.CSS_SELECTOR, ".plot"))
    press(page, "Download CSV")
    wait_until(lambda: "Saved as" in page.text("#report [role=status]"), "the file", 10)


def test_an_engine_that_failed_half_way(page, base, tmp_path):
    error = Failure(name="EngineLost", message="the GPU was reset", remedy="Leave it out.")
    broken = replace(
        base.engines[0], name="webgpu-stock", error=error, valid=False, warnings=["the GPU was reset. Leave it out."]
    )
    unopened = replace(broken, name="wasm-2", actual=None, create_ms=None, first_run_ms=None)
    partial = raced(replace(base, race=[base.race[0]]), [4.0, 4.1]).race[0]
    partial = replace(partial, engine="webgpu-stock", valid=False, warnings=["it was not finished"])
    never = replace(raced(base, []).race[0], engine="wasm-3")
    report = replace(base, engines=[*base.engines, broken, unopened], race=[*base.race, partial, never])
    opened(page, tmp_path, report)
    assert page.races()["webgpu-stock"]["n"] == "2"
    assert page.races()["wasm-3"]["P50"] == "–"
    assert page.text("#ran").count("the GPU was reset") >= 2
    press(page, f"Compare with {OWN}")
    times = page.table("Times in two reports")
    assert times["webgpu-stock: P50"] == {OWN: "–", "other.json": "4.10 ms (not valid)", "change": "–"}
    assert times["wasm-2: P50"]["other.json"] == "–"
    assert times["wasm-1: P50"]["change"] == "1.00 ×"


def test_two_reports_side_by_side(page, base, tmp_path):
    elsewhere = replace(base.environment, cores=base.environment.cores + 60, user_agent="Firefox/150.0")
    slower = raced(base, [2 * base.race[0].p50_ms] * 5)
    opened(page, tmp_path, replace(slower, environment=elsewhere))
    press(page, f"Compare with {OWN}")
    where = page.table("Where and what, in two reports")
    assert where["processors"] == {OWN: str(base.environment.cores), "other.json": str(base.environment.cores + 60)}
    marked = {mark.text for mark in page.driver.find_elements(By.CSS_SELECTOR, ".compare mark")}
    assert {where["processors"]["other.json"], "Firefox/150.0"} <= marked
    assert page.table("Answers in two reports")["states on wasm-1: actions agree"]["other.json"] == "60 / 60"
    assert page.table("Times in two reports")["wasm-1: P50"]["change"] == "2.00 ×"
    assert "different machines or browsers (browser, processors)" in page.text(".compare")
    for width in (1280, 390):
        for scheme in ("light", "dark"):
            set_look(page, width, scheme)
            take_picture(page, f"report-compared-{width}-{scheme}")
    press(page, "Close the comparison")
    assert not page.has(".compare")


def test_copy_as_markdown(page, base, tmp_path):
    opened(page, tmp_path, base)
    allow = {
        "origin": page.driver.execute_script("return location.origin"),
        "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"],
    }
    page.driver.execute_cdp_cmd("Browser.grantPermissions", allow)
    press(page, "Copy as Markdown")
    assert wait_until(lambda: page.text("#report [role=status]"), "an answer", 5) == "Copied as Markdown."
    assert page.page.run("return navigator.clipboard.readText()") == report_markdown(base)


def test_without_a_clipboard_the_text_is_selected(page, base):
    page.driver.execute_script("navigator.clipboard.writeText = () => Promise.reject(new Error('denied'))")
    press(page, "Copy as Markdown")
    wait_until(lambda: "selected" in page.text("#report [role=status]"), "the text", 5)
    selected = page.driver.execute_script("""
        const { value, selectionStart, selectionEnd } = document.activeElement;
        return value.slice(selectionStart, selectionEnd);
    """)
    assert selected == report_markdown(base)


def test_on_paper_there_are_no_controls_and_no_table_is_cut(page, base, tmp_path):
    opened(page, tmp_path, base)
    press(page, f"Compare with {OWN}")
    set_look(page, 700, "dark")
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        take_picture(page, "report-print")
        shown = page.driver.execute_script("""
            const visible = (css) => [...document.querySelectorAll(css)].filter((element) => element.checkVisibility());
            return {
                controls: visible('button, input, select, textarea').map((element) => element.outerHTML),
                cut: visible('.scroll').filter((box) => box.scrollWidth > box.clientWidth + 1).map((box) => box.id),
                paper: getComputedStyle(document.body).backgroundColor,
            };
        """)
        assert shown == {"controls": [], "cut": [], "paper": "rgb(255, 255, 255)"}
        assert "This is state 1 of 60" in page.text("#answers .walk")
    finally:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_on_paper_all_states_that_disagree_are_listed(page, base, tmp_path):
    entry = base.parity[0]
    python = base.suites[0].action
    wrong = [2, 11, 59]
    action = [(python[state] + 1) % 4 if state in wrong else chosen for state, chosen in enumerate(entry.action)]
    entry = replace(entry, action=action, disagreements=wrong, agree=57, passed=False, warnings=["3 differ"])
    opened(page, tmp_path, replace(base, parity=[entry, *base.parity[1:]]))
    title = "Disagreements in states"
    assert title not in page.text("#answers"), "on the screen one walks through them"
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        take_picture(page, "report-print-disagreeing")
        assert title in page.text("#answers")
        assert not page.text("#answers .walk")
        names = ("NOOP", "FIRE", "RIGHT", "LEFT")
        assert {state: (row["Python"], row["wasm-1"]) for state, row in page.table(title).items()} == {
            str(state): (names[python[state]], names[action[state]]) for state in wrong
        }
    finally:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_a_running_check_is_left_alone_and_half_of_one_has_no_report(page, base):
    page.page.start("check", {"engines": ["wasm-1"], "runs": 9000, "warmup": 0})
    wait_until(lambda: (page.page.get("progress") or {}).get("stage") == "race", "a race", 30)
    assert not any(button.is_enabled() for button in buttons(page, "Download JSON", "Open a saved report…"))
    page.page.cancel()
    page.wait_for("ready", 10)
    assert [button.is_enabled() for button in buttons(page, "Download JSON", "Open a saved report…")] == [False, True]


def test_nothing_in_the_log_is_severe(page, base):
    assert [entry["message"] for entry in page.driver.get_log("browser") if entry["level"] == "SEVERE"] == []
