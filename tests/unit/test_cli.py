import contextlib
import json
from dataclasses import replace

import pytest

from pyapp import chromium, cli
from tests.unit.test_report_csv import REPORT


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


def test_without_a_gpu_the_default_engines_are_those_of_wasm():
    arguments = cli._parser().parse_args(["check", "--gpu", "none"])
    assert cli._engines(arguments) == ["wasm-1", "wasm-N"]
    named = cli._parser().parse_args(["check", "--gpu", "none", "--engines", "webgpu-stock"])
    assert cli._engines(named) == ["webgpu-stock"]


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
