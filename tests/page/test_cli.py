"""The command line, as a program that is called."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from browser import models

from pyapp.onnxfile import TensorInfo, make_model, make_node
from pyapp.report import parse_report
from pyapp.sitefolder import app_folder

PYAPP = [sys.executable, "-m", "pyapp.cli"]
LIMIT_S = 120
QUICK = ["--gpu", "software", "--engines", "wasm-1", "--runs", "5", "--warmup", "1"]


def pyapp(*arguments: object, dist: Path) -> subprocess.CompletedProcess[str]:
    command = [*PYAPP, *map(str, arguments), "--dist", str(dist)]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)


@pytest.fixture
def dist_copy(dist, tmp_path):
    """Return a copy of the site whose files are links; replace a file there, never write into it."""

    def link(source: str, target: str) -> None:
        try:
            os.link(source, target)
        except OSError:  # another file system
            shutil.copy2(source, target)

    return Path(shutil.copytree(dist, tmp_path / "dist", copy_function=link))


def replace(path: Path, content: bytes) -> None:
    path.unlink()
    path.write_bytes(content)


def test_a_check_prints_its_tables_and_writes_its_report(dist, tmp_path):
    file = tmp_path / "new" / "report.json"
    done = pyapp("check", *QUICK, "--json", file, dist=dist)
    assert done.returncode == 0, done.stderr
    report = parse_report(file.read_text())
    assert [entry.runs for entry in report.race] == [5]
    [states] = [entry for entry in report.parity if entry.suite == "states"]
    assert states.agree == 60
    assert re.search(r"states +\| wasm-1 +\| +60 / 60 ", done.stdout)
    assert f"{report.race[0].p50_ms:.3f}" in done.stdout
    assert "webgpu-stock / wasm-1: no ratio" in done.stdout
    assert "race" in done.stderr, "no progress was shown"


def test_a_changed_weight_is_exit_code_1(dist_copy):
    model = models.patched(models.changed_weight())
    replace(app_folder(dist_copy) / "fixtures" / "breakout_dqn.onnx", model)
    done = pyapp("check", *QUICK, dist=dist_copy)
    assert done.returncode == 1, done.stderr
    assert re.search(r"states +\| wasm-1 +\| +\d+ / 60 .* NO ", done.stdout)
    assert "actions differ from Python's" in done.stdout


def test_an_engine_that_cannot_run_is_exit_code_2_with_the_reason(dist):
    done = pyapp("check", "--gpu", "none", "--engines", "wasm-1,webgpu-stock", "--runs", "3", "--warmup", "0", dist=dist)
    assert done.returncode == 2, done.stdout
    assert "webgpu-stock: WebGPU is not available" in done.stderr
    assert re.search(r"states +\| wasm-1 +\| +60 / 60 ", done.stdout), "what could run was not shown"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--engines", "wasm-1,gpu-9"], "unknown engine 'gpu-9'"),
        (["--runs", "0"], "runs is 0"),
        (["--browser", "/no/such/chromium"], "'/no/such/chromium' is no program"),
        (["--browser", "/bin/false"], "Chromium did not start"),
        (["--driver", "/no/such/driver"], "'/no/such/driver' is no program"),
        (["--json", "/proc/no/report.json"], "no report can be written to /proc/no/report.json"),
    ],
)
def test_what_cannot_run_is_exit_code_2_with_the_reason(dist, arguments, reason):
    done = pyapp("check", *QUICK, *arguments, dist=dist)
    assert done.returncode == 2, done.stdout
    assert reason in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_site_is_exit_code_2_with_the_remedy(tmp_path):
    done = pyapp("check", *QUICK, dist=tmp_path / "dist")
    assert done.returncode == 2
    assert f"there is no site in {tmp_path / 'dist'}" in done.stderr
    assert "make build" in done.stderr


def test_a_site_with_a_file_missing_is_exit_code_2_with_the_reason(dist_copy):
    (app_folder(dist_copy) / "fixtures" / "stress.npz").unlink()
    done = pyapp("check", *QUICK, dist=dist_copy)
    assert done.returncode == 2, done.stdout
    assert "the page did not start: stress.npz could not be loaded: the server answered 404. Reload the page" in done.stderr
    assert "Traceback" not in done.stderr


@contextlib.contextmanager
def serving(dist: Path):
    # A shell lets what it runs in the background ignore Ctrl-C, and so would all that these tests start.
    heeding = ["env", "--default-signal=INT"]
    command = [*heeding, *PYAPP, "serve", "--port", "0", "--dist", str(dist)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield server
    finally:
        server.kill()
        server.wait()


def test_serve_prints_where_and_stops_on_ctrl_c(dist):
    with serving(dist) as server:
        line = server.stdout.readline()
        url = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert url, line
        with urllib.request.urlopen(url[0], timeout=5) as answer:
            headers = answer.headers
            assert answer.status == 200
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert headers["Cross-Origin-Embedder-Policy"] == "require-corp"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "unsafe-inline" not in headers["Content-Security-Policy"]
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=5) == 0


def test_a_port_that_is_taken_is_exit_code_2(dist):
    with serving(dist) as server:
        port = re.search(r":(\d+)/", server.stdout.readline())[1]
        done = pyapp("serve", "--port", port, dist=dist)
    assert done.returncode == 2
    assert f"port {port} is in use" in done.stderr


def test_the_report_of_a_check_is_plain_json(dist, tmp_path):
    file = tmp_path / "report.json"
    assert pyapp("check", "--gpu", "none", "--runs", "3", "--warmup", "0", "--json", file, dist=dist).returncode == 0
    report = json.loads(file.read_text())
    assert report["schema"] == "pyapp-report/1"
    assert report["settings"] == {"engines": ["wasm-1", "wasm-N"], "runs": 3, "warmup": 0, "seed": 0}


def test_eval_prints_what_python_prints_its_last_value_or_its_traceback(dist, tmp_path):
    done = pyapp("eval", "print('seen'); states.action[:3]", "--gpu", "none", dist=dist)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "seen"), done.stderr
    assert len(json.loads(done.stdout.splitlines()[1])) == 3
    file = tmp_path / "mine.py"
    file.write_text("def f():\n    raise ValueError('not so')\nf()\n")
    done = pyapp("eval", file, "--json", "--gpu", "none", dist=dist)
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert found["value"] is None
    assert 'mine.py", line 2' in found["traceback"]
    assert found["traceback"].endswith("ValueError: not so")


def test_a_model_of_ones_own_is_checked_from_the_command_line(dist, tmp_path):
    weights = np.random.default_rng(2).standard_normal((6, 3)).astype(np.float32)
    values = [TensorInfo("x", "float32", ("N", 6))], [TensorInfo("y", "float32", ("N", 3))]
    model = tmp_path / "linear.onnx"
    model.write_bytes(make_model([make_node("MatMul", ["x", "w"], ["y"])], *values, {"w": weights}))
    x = np.random.default_rng(3).standard_normal((5, 6)).astype(np.float32)
    np.savez(tmp_path / "right.npz", x=x, y=x @ weights)
    np.savez(tmp_path / "wrong.npz", x=x, y=x @ weights + np.float32(0.5))
    quick = ["--gpu", "none", "--engines", "wasm-1", "--model", model]
    report = tmp_path / "report.json"
    done = pyapp("check", *quick, "--runs", "5", "--cases", tmp_path / "right.npz", "--json", report, dist=dist)
    assert done.returncode == 0, done.stderr
    found = parse_report(report.read_text())
    assert found.model
    assert (found.model.name, found.model.cases, found.agreement[0].agree) == ("linear.onnx", "right.npz", 5)
    assert "Same outputs as the reference" in done.stdout
    done = pyapp("check", *quick, "--runs", "5", "--cases", tmp_path / "wrong.npz", dist=dist)
    assert done.returncode == 1, done.stderr
    assert "more than rtol 0.001 and atol 0.0001 allow, in 5 of 5 cases" in done.stdout
    done = pyapp("placement", *quick, "--size", "N=2", dist=dist)
    assert done.returncode == 0, done.stderr
    assert "float\\[2,3\\]" in done.stdout
    done = pyapp("check", "--gpu", "none", "--model", report, dist=dist)
    assert done.returncode == 2
    assert "pyapp: error:" in done.stderr
