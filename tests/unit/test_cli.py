import contextlib
import json
import subprocess
import sys
import threading
from dataclasses import replace

import pytest
from selenium.common.exceptions import WebDriverException

from pyapp import chromium, cli, headless
from pyapp.breakout.scores import tournament_entry
from pyapp.report import Failure, PlayedGame, parse_report
from tests.unit.test_report_csv import REPORT

CHECKED = replace(REPORT, loop=[])


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["--runs", "0"], "runs is 0"),
        (["--engines", "cuda"], "unknown engine 'cuda'"),
        (["--engines", ","], "0 engines"),
        (["--json", "/proc/nowhere/report.json"], "choose another --json FILE"),
        (["--json", "/"], "choose another --json FILE"),
        (["--dist", "/nowhere"], "make build"),
    ],
)
def test_what_cannot_run_exits_with_2_and_the_reason(arguments, fault, capsys):
    assert cli.main(["check", *arguments]) == 2
    assert fault in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["explain", "--runs", "1"], "runs is 1"),
        (["explain", "--engines", "cuda"], "unknown engine 'cuda'"),
        (["sweep", "--batches", "4,2"], "batches are [4, 2]"),
        (["sweep", "--widths", "99"], "widths are [99]"),
        (["sweep", "--seconds", "0"], "budget_s is 0"),
        (["tune", "--batch", "1"], "batch is 1"),
        (["tune", "--engines", "wasm-N"], "measured"),
        (["tune", "--module", "/proc/nowhere/recipe.mjs"], "/proc/nowhere"),
    ],
)
def test_a_question_that_cannot_be_asked_exits_with_2_and_the_reason(arguments, fault, capsys):
    assert cli.main(arguments) == 2
    assert fault in capsys.readouterr().err


def test_numbers_that_are_none_are_named(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["sweep", "--batches", "1,many"])
    assert ended.value.code == 2
    assert "1,many" in capsys.readouterr().err


def test_a_missing_browser_is_told(tmp_path, capsys):
    (tmp_path / "index.html").touch()
    assert cli.main(["check", "--dist", str(tmp_path), "--browser", "/nowhere/chromium"]) == 2
    assert "'/nowhere/chromium' is no program; correct --browser" in capsys.readouterr().err


def test_it_runs_as_a_module_too(tmp_path):
    command = [sys.executable, "-m", "pyapp.cli", "check", "--dist", str(tmp_path)]
    done = subprocess.run(command, text=True, capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert "pyapp: error:" in done.stderr


def test_without_a_gpu_the_default_engines_are_those_of_wasm():
    arguments = cli.parser().parse_args(["check", "--gpu", "none"])
    assert cli._engines(arguments) == ["wasm-1", "wasm-N"]
    named = cli.parser().parse_args(["check", "--gpu", "none", "--engines", "webgpu-stock"])
    assert cli._engines(named) == ["webgpu-stock"]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["--cases", "FILE"], "--cases is about a model of your own; name it with --model FILE"),
        (["--rtol", "0"], "--rtol is about a model of your own"),
        (["--model", "/nowhere/model.onnx"], "/nowhere/model.onnx is no file"),
        (["--model", "FILE", "--external", "/nowhere/w.data"], "/nowhere/w.data is no file"),
        (["--model", "FILE", "--size", "batch"], "--size is 'batch'; give NAME=N"),
        (["--model", "FILE", "--size", "batch=-1"], "--size is 'batch=-1'"),
        (["--model", "FILE", "--size", "batch=1", "--cases", "FILE"], "leave one out"),
    ],
)
@pytest.mark.parametrize("command", ["check", "explain", "sweep", "tune", "placement", "locate"])
def test_what_is_wrong_about_a_model_of_ones_own_is_told_before_a_browser_starts(command, arguments, fault, tmp_path, capsys):
    file = tmp_path / "file.onnx"
    file.touch()
    assert cli.main([command, *(str(file) if one == "FILE" else one for one in arguments)]) == 2
    assert fault in capsys.readouterr().err


def test_a_model_of_ones_own_goes_to_the_page_with_all_that_is_set(tmp_path, monkeypatch, capsys):
    given = []

    class Page:
        def load_model(self, own, _progress):
            given.append(own)
            finding = {
                "severity": "warning",
                "node": "conv (Conv)",
                "message": "it leaves pads",
                "remedy": "Fix it.",
                "fix": "explicit-attributes",
            }
            return {"findings": [finding]}

        def ask(self, _question, _settings, _progress):
            return json.loads(REPORT.to_json())

    monkeypatch.setattr(chromium, "open_page", lambda *_: contextlib.nullcontext(Page()))
    files = [tmp_path / name for name in ("model.onnx", "w.data")]
    for file in (*files, tmp_path / "index.html"):
        file.touch()
    sizes = ["--size", "a=b=3", "--size", "N=2"]
    model = ["--model", str(files[0]), "--external", str(files[1])]
    code = cli.main(["check", "--dist", str(tmp_path), *model, *sizes, "--atol", "0.5", "--fix", "plain-names"])
    assert code == 0
    [own] = given
    assert (own.files, own.sizes, own.tolerance, own.fixes) == (files, {"a=b": 3, "N": 2}, {"atol": 0.5}, ["plain-names"])
    assert "warning: conv (Conv): it leaves pads. Fix it. (--fix explicit-attributes)" in capsys.readouterr().err


def test_a_port_that_is_taken_is_told(tmp_path, capsys):
    (tmp_path / "index.html").touch()
    with cli.SiteServer(tmp_path) as server:
        assert cli.main(["serve", "--dist", str(tmp_path), "--port", str(server.port)]) == 2
    assert str(server.port) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"race": [REPORT.race[0]] * 2}, "'wasm-1' is there 2 times @ $.race"),
        ({"schema": "pyapp-report/9"}, "pyapp-report/9"),
    ],
    ids=["contradicts itself", "version"],
)
def test_a_report_that_cannot_be_relied_on_is_no_verdict(change, said, tmp_path, monkeypatch, capsys):
    """Exit code 1 would say that an engine's answers differ, 0 that they agree."""

    class Page:
        def ask(self, _question, _settings, _progress):
            return json.loads(replace(REPORT, **change).to_json())

    monkeypatch.setattr(chromium, "open_page", lambda *_: contextlib.nullcontext(Page()))
    (tmp_path / "index.html").touch()
    written = tmp_path / "report.json"
    assert cli.main(["check", "--dist", str(tmp_path), "--json", str(written)]) == 2
    told = capsys.readouterr()
    assert said in told.err
    assert "make build" in told.err
    assert told.out == ""
    assert not written.exists()


def test_a_file_that_cannot_be_read_is_told(capsys):
    assert cli.main(["eval", "/nowhere/policy.py"]) == 2
    assert "/nowhere/policy.py cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    "case",
    [
        ({"stdout": "one\n", "stderr": "", "value": [1, 2], "traceback": None}, [], "one\n[1, 2]\n", 0),
        ({"stdout": "", "stderr": "", "value": None, "traceback": None}, [], "", 0),
        ({"stdout": "", "stderr": "", "value": None, "traceback": "ZeroDivisionError"}, [], "", 1),
        ({"stdout": "", "stderr": "", "value": 5, "traceback": None}, ["--json"], None, 0),
    ],
)
def test_what_python_found_is_printed(case, tmp_path, monkeypatch, capsys):
    found, arguments, printed, code = case

    class Page:
        def run_code(self, _source, _filename):
            return found

    monkeypatch.setattr(chromium, "open_page", lambda *_: contextlib.nullcontext(Page()))
    (tmp_path / "index.html").touch()
    assert cli.main(["eval", "1 + 1", *arguments, "--dist", str(tmp_path)]) == code
    told = capsys.readouterr()
    assert told.out == (json.dumps(found) + "\n" if printed is None else printed)
    assert (found["traceback"] or "") in told.err


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["check", "--remote", "ftp://grid"], "'ftp://grid' is no address of a Selenium Grid"),
        (["check", "--remote", "http://127.0.0.1:9"], "no Selenium Grid answers at 127.0.0.1:9; start it"),
        (
            ["check", "--remote", "http://me:secret@grid.example:4444"],
            "--remote grid.example:4444 cannot open what is served here",
        ),
        (["check", "--remote", "http://127.0.0.1:9", "--remote", "http://127.0.0.1:9/"], "names a grid twice"),
        (["check", "--remote", "http://127.0.0.1:9", "--site", "http://example.org"], "--site is 'http://example.org'"),
        (["check", "--remote", "http://127.0.0.1:9", "--site", "https://"], "--site is 'https://'"),
        (["check", "--site", "file:///etc"], "--site is 'file:///etc'"),
        (["check", "--remote", "http://127.0.0.1:9", "--gpu", "none"], "say in --capabilities FILE"),
        (["check", "--remote", "http://127.0.0.1:9", "--capabilities", "/nowhere.json"], "/nowhere.json cannot be read"),
        (["check", "--capabilities", "/nowhere.json"], "--capabilities is for --remote"),
        (["tune", "--remote", "http://127.0.0.1:9", "--module", "recipe.mjs"], "leave one out"),
        (["tournament", "--workers", "0"], "--workers is 0; give a number from 1 to 16"),
        (["tournament", "--workers", "17"], "--workers is 17"),
        (["tournament", "--workers", "2", "--remote", "http://127.0.0.1:9"], "for browsers of this machine"),
        (["tournament", "--workers", "2", "--engines", "wasm-1,wasm-N"], "name wasm-2"),
        (["tournament", "--games", "0"], "games is 0"),
        (["tournament", "--epsilon", "2"], "epsilon is 2.0"),
        (["tournament", "--opening", "-1"], "opening is -1"),
        (["tournament", "--engines", "cuda"], "unknown engine 'cuda'"),
    ],
)
def test_a_fleet_that_cannot_be_had_exits_with_2_and_the_reason(arguments, fault, tmp_path, monkeypatch, capsys):
    (tmp_path / "index.html").touch()
    monkeypatch.chdir(tmp_path)
    assert cli.main([*arguments, "--dist", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert fault in told
    assert "secret" not in told


def games(seeds, *, unexplained=0, error=None):
    """Return what a page answers that has played these games."""
    played = [
        PlayedGame(
            seed=seed, opening=0, score=float(seed), decisions=10, truncated=False, seconds=1.0, sha256="", reference_score=None
        )
        for seed in seeds
    ]
    entry = tournament_entry("wasm-1", played, epsilon=0.01, lanes=1, error=error)
    return replace(CHECKED, tournament=[replace(entry, unexplained=unexplained)])


class Games:
    """A page that plays games as told; `die_at` says at which of its questions its browser dies."""

    browser = chromium.Browser(name="chrome", version="156.0.1", platform="linux")

    def __init__(self, asked, die_at=None, **rest):
        self.asked, self.die_at, self.rest, self.count = asked, die_at, rest, 0

    def close(self):
        pass

    def ask(self, question, settings, _progress=None):
        assert question == "tournament"
        self.count += 1
        if self.count == self.die_at:
            raise chromium.BrowserError("the browser died")
        self.asked.append(settings)
        seeds = settings.get("seeds") or range(settings["seed"], settings["seed"] + settings["games"])
        return json.loads(games(seeds, **self.rest).to_json())


@pytest.fixture
def playing(tmp_path, monkeypatch):
    """Return a function that lets `pyapp tournament` play in such pages."""
    (tmp_path / "index.html").touch()

    def play(*arguments, pages):
        opened = iter(pages)
        lock = threading.Lock()

        def open_page(*_):
            with lock:
                return contextlib.nullcontext(next(opened))

        monkeypatch.setattr(chromium, "open_page", open_page)
        return cli.main(["tournament", "--engines", "wasm-1", "--dist", str(tmp_path), *arguments])

    return play


def test_one_browser_is_asked_once(playing, capsys):
    asked = []
    assert playing("--games", "3", "--seed", "5", "--epsilon", "0", pages=[Games(asked)]) == 0
    assert asked == [{"engines": ["wasm-1"], "games": 3, "seed": 5, "epsilon": 0.0, "opening": None, "lanes": 0}]
    assert "wasm-1" in capsys.readouterr().out


def test_browsers_share_games_and_give_one_report(playing, tmp_path, capsys):
    asked, file = [], tmp_path / "report.json"
    pages = [Games(asked), Games(asked, die_at=1), Games(asked)]
    assert playing("--games", "9", "--seed", "5", "--workers", "3", "--json", str(file), pages=pages) == 0
    assert sorted(seed for settings in asked for seed in settings["seeds"]) == list(range(5, 14))
    [entry] = parse_report(file.read_text()).tournament
    assert [game.seed for game in entry.played] == list(range(5, 14))
    told = capsys.readouterr().err
    assert "9 of 9 games" in told


def test_what_was_finished_is_told_where_all_browsers_died(playing, tmp_path, capsys):
    file = tmp_path / "report.json"
    pages = [Games([], die_at=2), Games([], die_at=2)]
    assert playing("--games", "9", "--workers", "2", "--json", str(file), pages=pages) == 2
    [entry] = parse_report(file.read_text()).tournament
    assert 1 <= entry.games <= 2
    told = capsys.readouterr().err
    assert "jobs were not done: every browser was lost" in told
    assert "pyapp: lost browser 1: the browser died" in told


@pytest.mark.parametrize(
    ("found", "ended"),
    [
        ({"unexplained": 1}, (1, "")),
        ({"error": Failure(name="Gone", message="the device was lost", remedy="Try again.")}, (2, "the device was lost")),
    ],
)
def test_games_that_are_not_as_they_should_have_an_exit_code(found, ended, playing, capsys, monkeypatch):
    # What a page says of itself has to fit; here only the exit code is looked at.
    monkeypatch.setattr(headless, "read_foreign", parse_report)
    code, said = ended
    assert playing("--games", "2", pages=[Games([], **found)]) == code
    assert said in capsys.readouterr().err


def test_without_names_several_browsers_play_without_the_engine_that_each_would_measure():
    parse = cli.parser().parse_args
    assert "wasm-N" not in cli._fleet_engines(parse(["tournament", "--workers", "2"]))
    assert "wasm-N" not in cli._fleet_engines(parse(["tournament", "--remote", "http://127.0.0.1:4444"]))
    assert "wasm-N" in cli._fleet_engines(parse(["tournament", "--workers", "1"]))


def test_a_browser_that_is_lost_is_told(tmp_path, monkeypatch, capsys):
    class Page:
        def ask(self, *_):
            raise WebDriverException("disconnected\nStacktrace: #0")

    monkeypatch.setattr(chromium, "open_page", lambda *_: contextlib.nullcontext(Page()))
    (tmp_path / "index.html").touch()
    assert cli.main(["check", "--dist", str(tmp_path)]) == 2
    assert "the browser was lost: disconnected; run it again" in capsys.readouterr().err
