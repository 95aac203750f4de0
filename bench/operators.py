"""Which of ONNX's operators give the right answer on WASM and on WebGPU? `python bench/operators.py` (needs `make build`).

The standard node tests of the installed `onnx` package, with their inputs and outputs, go through two engines in the page.
Of WebGPU's a profile says which provider ran the operator. It takes some three minutes on a software adapter.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import math
import re
import sys
import time
import warnings
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
from common import ROOT, dist, finish, load, machine
from numpy.typing import NDArray

from pyapp.chromium import LOST, BrowserError, BrowserOptions, PageDriver, open_page, reason_of
from pyapp.serve import SiteServer
from pyapp.sitefolder import app_folder
from pyapp.support import MAX_IR_VERSION, MAX_OPSET, OWN_DOMAINS, read_table

BOUND = 1.05
"""Of the tests that both engines ran, so many more than pass on both."""

ENGINES = ("wasm-1", "webgpu-stock")

CANARY = "test_relu"
"""A test that works: an engine that cannot run it any more is broken."""

BATCH = 30

CROSSING = {"float16", "float32", "float64", "bool"} | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
"""Types of elements that get from Python to an engine and back."""

NAMED = 12
"""Operators that a line of the summary names."""

RANDOM = re.compile(r"^test_(?:bernoulli|training_dropout(?!_zero_ratio))")
"""Tests whose outputs nobody knows beforehand: only shapes are compared."""

WORDS = ("", "no", "cpu", "yes")
"""The doctor's, from the least to the most."""

PASS, FAIL, UNSUPPORTED, ERROR, SKIPPED = STATUSES = ("pass", "fail", "unsupported", "error", "skipped")

type Found = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Test:
    """A node test.

    Attributes
    ----------
    name : str
        ONNX's, such as ``test_abs``.
    operator : str
        The operator under test, with its domain before it where that is not ONNX's own.
    opset : int
        Version of that domain's operators in its model.
    expanded : bool
        Whether the model has, in its place, the operators that ONNX defines it by.
    skip : str
        Why it cannot cross to an engine; empty where it can.
    lowered : int or None
        The version that ONNX's own model has, where it is newer than onnxruntime-web loads and the operator is the same in
        the newest that it does: the model then has that one.
    model : onnx.ModelProto
        What is opened.
    case : onnx.backend.test.case.test_case.TestCase
        ONNX's own.
    """

    name: str
    operator: str
    opset: int
    expanded: bool
    skip: str
    lowered: int | None
    model: Any
    case: Any

    @property
    def row(self) -> str:
        """Where it stands in the table."""
        return f"{self.operator} (expanded)" if self.expanded else self.operator


@cache
def collect() -> dict[str, Test]:
    """Collect the tests of the installed `onnx`, by name."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():  # of NumPy, about infinities that are meant
        warnings.simplefilter("ignore")
        cases: dict[str, Any] = {case.name: case for case in collect_testcases(None)}
    tests = {}
    for name, case in cases.items():
        whole = cases[name.partition("_expanded")[0]]
        [node] = whole.model.graph.node
        domain = "" if node.domain in OWN_DOMAINS else node.domain
        operator = f"{domain}::{node.op_type}" if domain else node.op_type
        skip = skip_reason(case)
        model = None if skip else lowered(case.model)
        before, now = (opset_of(one, domain) for one in (case.model, model or case.model))
        changed = before if model else None
        tests[name] = Test(name, operator, now, case is not whole, skip, changed, model or case.model, case)
    return tests


def opset_of(model: Any, domain: str) -> int:
    """Return the version of a domain's operators in a model."""
    names = OWN_DOMAINS if domain in OWN_DOMAINS else (domain,)
    return next((int(one.version) for one in model.opset_import if one.domain in names), 0)


def lowered(model: Any) -> Any | None:
    """Return a model with the newest operators and file format that onnxruntime-web loads; None where it has no newer ones.

    It is None, too, where ONNX's checker refuses what results: then its operators are not there, or not for these types.
    """
    from onnx import ModelProto, checker
    from onnx.shape_inference import InferenceError

    if opset_of(model, "") <= MAX_OPSET and model.ir_version <= MAX_IR_VERSION:
        return None
    copy = ModelProto()
    copy.CopyFrom(model)
    copy.ir_version = min(copy.ir_version, MAX_IR_VERSION)
    for one in copy.opset_import:
        if one.domain in OWN_DOMAINS:
            one.version = min(one.version, MAX_OPSET)
    try:
        checker.check_model(copy, full_check=True)
    except (checker.ValidationError, InferenceError):
        return None
    return copy


def skip_reason(case: Any) -> str:
    """Say which inputs and outputs of a test cannot cross to an engine; nothing where all can."""
    from onnx import TensorProto

    kinds = set()
    for value in (*case.model.graph.input, *case.model.graph.output):
        kind = value.type.WhichOneof("value")
        if kind == "tensor_type":
            names = {"FLOAT": "float32", "DOUBLE": "float64"}
            name = TensorProto.DataType.Name(value.type.tensor_type.elem_type)
            kinds.add(names.get(name, name.lower()))
        else:
            kinds.add(kind.removesuffix("_type"))
    return ", ".join(sorted(kinds - CROSSING))


def packed(test: Test) -> dict[str, Any]:
    """Return a test as plain data for the page."""
    [(inputs, outputs)] = test.case.data_sets
    arrays = {f"i{index}": array_of(value) for index, value in enumerate(inputs)}
    arrays |= {f"o{index}": array_of(value) for index, value in enumerate(outputs)}
    archive = io.BytesIO()
    np.savez_compressed(archive, **cast("Any", arrays))
    graph = test.model.graph
    return {
        "name": test.name,
        "model": b64encode(test.model.SerializeToString()).decode(),
        "arrays": b64encode(archive.getvalue()).decode(),
        "inputs": [value.name for value in graph.input],
        "outputs": [value.name for value in graph.output],
        "rtol": test.case.rtol,
        "atol": test.case.atol,
        "random": bool(RANDOM.search(test.name)),
    }


def array_of(value: Any) -> NDArray[Any]:
    """Return an input or output of a test as an array."""
    from onnx import TensorProto, numpy_helper

    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


class Bench:
    """A browser with the page, in which tests are run; a fresh one is taken where it ends. For a `with` block."""

    def __init__(self, options: BrowserOptions, engines: Sequence[str] = ENGINES) -> None:
        self._options = options
        self._engines = engines
        self._canary = packed(collect()[CANARY])
        self._source = (ROOT / "bench" / "inside" / "operators.py").read_text(encoding="utf-8")
        self._stack = contextlib.ExitStack()
        self._page: PageDriver | None = None
        self.browser = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def measure(self, tests: Sequence[Test], *, again: bool = True) -> dict[str, dict[str, Found]]:
        """Run tests; returns what each engine made of each, by the test's name.

        With `again`, what failed is run once more in fresh workers: ``again`` in its result is the other status, if any.
        """
        crossing = [test for test in tests if not test.skip]
        found = {test.name: {engine: skipped(test) for engine in self._engines} for test in tests if test.skip}
        begun = time.monotonic()
        for batch in batches(crossing):
            found |= self._run(self._engines, batch)
            statuses = Counter(one["status"] for test in batch for one in found[test.name].values())
            done = sum(not collect()[name].skip for name in found)
            print(f"{done}/{len(crossing)} {time.monotonic() - begun:.0f} s {dict(statuses)}", file=sys.stderr, flush=True)
        for engine in self._engines if again else ():
            failed = [test for test in crossing if found[test.name][engine]["status"] in (FAIL, ERROR)]
            for index, batch in enumerate(batches(failed)):
                for name, second in self._run([engine], batch, fresh=index == 0).items():
                    if second[engine]["status"] != found[name][engine]["status"]:
                        found[name][engine]["again"] = second[engine]["status"]
        return {test.name: found[test.name] for test in tests}

    def _run(self, engines: Sequence[str], batch: Sequence[Test], *, fresh: bool = False) -> dict[str, dict[str, Found]]:
        try:
            return self._ask(engines, batch, fresh)
        except (BrowserError, *LOST) as error:
            self._stack.close()
            self._page = None
            if len(batch) == 1:
                why = f"the browser ended: {reason_of(error)}"
                return {batch[0].name: {engine: {"status": ERROR, "why": why} for engine in engines}}
        # One of them ended the browser; which one shows when each is alone.
        return {name: one for test in batch for name, one in self._run(engines, [test]).items()}

    def _ask(self, engines: Sequence[str], batch: Sequence[Test], fresh: bool) -> dict[str, dict[str, Found]]:
        page = self._page or self._opened()
        values = {"cases": [packed(test) for test in batch], "engines": list(engines), "canary": self._canary, "fresh": fresh}
        answer = page.evaluate(f"__import__('json').dumps(await main(**{values!r}))")
        if traceback := answer.get("traceback"):
            raise RuntimeError(traceback)
        found: dict[str, dict[str, Found]] = json.loads(ast.literal_eval(answer["repr"] or ""))
        for name, ones in found.items():
            for one in ones.values():
                if collect()[name].lowered and one["status"] == FAIL and not ran(one):
                    # What the newer version allows and the older one does not is no fault.
                    one |= {"status": UNSUPPORTED, "why": one.pop("failure")}
        return found

    def _opened(self) -> PageDriver:
        server = self._stack.enter_context(SiteServer(dist()))
        self._page = page = self._stack.enter_context(open_page(self._options, server.url))
        self.browser = f"{page.browser.name} {page.browser.version}"
        if traceback := page.evaluate(self._source).get("traceback"):
            raise RuntimeError(traceback)
        return page


def skipped(test: Test) -> Found:
    """Return the result of a test that cannot cross."""
    return {"status": SKIPPED, "why": test.skip}


def batches(tests: Sequence[Test]) -> Iterator[Sequence[Test]]:
    """Cut tests into batches for the page."""
    for start in range(0, len(tests), BATCH):
        yield tests[start : start + BATCH]


def ran(found: Found) -> bool:
    """Whether there were outputs."""
    return "run_ms" in found


def place(test: Test, found: Found) -> str:
    """Say where a WebGPU engine ran the operator under test.

    Returns
    -------
    str
        ``gpu`` or ``cpu``; ``mixed`` where there are nodes on both, as where onnxruntime puts an operator's definition in its
        place; ``removed`` where its optimiser left no node; empty where nobody knows.
    """
    if found.get("nodes") is None:
        return ""
    nodes = [node.rpartition(":")[::2] for node in found["nodes"] if not node.startswith("Memcpy")]
    name = test.operator.rpartition("::")[2]
    own = {provider for operator, provider in nodes if operator == name and not test.expanded}
    providers = own or {provider for _, provider in nodes}
    if len(providers) > 1:
        return "mixed"
    return next(iter(providers), "removed")


@dataclass
class Row:
    """An operator's tests.

    Attributes
    ----------
    tests : int
        How many there are.
    statuses : dict of str to Counter
        By engine.
    places : Counter
        Where WebGPU's engine ran it.
    """

    tests: int = 0
    statuses: dict[str, Counter[str]] = field(default_factory=dict)
    places: Counter[str] = field(default_factory=Counter)


def rows_of(tests: Iterable[Test], found: dict[str, dict[str, Found]], engines: Sequence[str]) -> dict[str, Row]:
    """Add up by operator, in alphabetical order."""
    rows: dict[str, Row] = {}
    for test in sorted(tests, key=lambda test: (test.expanded, test.row.lower())):
        row = rows.setdefault(test.row, Row(statuses={engine: Counter() for engine in engines}))
        row.tests += 1
        for engine, one in found[test.name].items():
            row.statuses[engine][one["status"]] += 1
            if engine.startswith("webgpu") and (where := place(test, one)):
                row.places[where] += 1
    return rows


def table_of(rows: dict[str, Row], engines: Sequence[str]) -> list[str]:
    """Return the table's lines; counts are of tests that pass, fail, are not supported, end in an error or are skipped."""
    total = Row(statuses={engine: Counter() for engine in engines})
    for row in rows.values():
        total.tests += row.tests
        total.places += row.places
        for engine in engines:
            total.statuses[engine] += row.statuses[engine]
    head = [
        "operator",
        "tests",
        *(f"{engine} {'/'.join(STATUSES)}" for engine in engines),
        "WebGPU ran it on",
    ]
    lines = [
        [
            name,
            str(row.tests),
            *("/".join(str(row.statuses[engine][status]) for status in STATUSES) for engine in engines),
            ", ".join(f"{where} {count}" for where, count in row.places.most_common()),
        ]
        for name, row in [*rows.items(), ("all", total)]
    ]
    widths = [max(len(line[column]) for line in [head, *lines]) for column in range(len(head))]
    rule = ["-" * width for width in widths]
    return [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
        for line in [head, rule, *lines]
    ]


def supported(
    tests: Iterable[Test], found: dict[str, dict[str, Found]], base: dict[str, Any], facts: dict[str, Any]
) -> dict[str, Any]:
    """Return the doctor's table: `base` with what these tests say.

    A test says something about the row that holds at its version of the operator set. One case that works makes a ``yes``:
    where both are about the same onnxruntime-web, a row gets better by these tests and never worse.
    """
    same = base["onnxruntime_web"] == facts["onnxruntime_web"]
    table = read_table(json.dumps(base))
    operators = {key: dict(row) for key, row in base["operators"].items()}
    fresh: set[tuple[str, str]] = set()
    for test in tests:
        if test.expanded or test.skip:
            continue
        key = row_key(table.rows, test)
        row = operators.setdefault(key, {"wasm": "no", "webgpu": "no"})
        for engine, one in found[test.name].items():
            provider = engine.partition("-")[0]
            said = verdict(test, one, provider)
            if said and not same and (key, provider) not in fresh:
                row[provider] = "no"
                fresh.add((key, provider))
            row[provider] = max(said, row[provider], key=WORDS.index)
    ordered = dict(sorted(operators.items(), key=lambda item: ("::" in item[0], item[0].lower())))
    return {**base, "onnxruntime_web": facts["onnxruntime_web"], "measured": facts["date"][:10], "operators": ordered}


def row_key(rows: Iterable[str], test: Test) -> str:
    """Return the key of the row that holds for a test's version of the operator set."""
    versions = [int(key.partition("@")[2]) for key in rows if key.startswith(f"{test.operator}@")]
    turn = max((version for version in versions if version <= test.opset), default=None)
    return test.operator if turn is None else f"{test.operator}@{turn}"


def verdict(test: Test, one: Found, provider: str) -> str:
    """Return the doctor's word for one result: ``yes``, ``cpu``, ``no``; empty where it says nothing."""
    if one["status"] == UNSUPPORTED:
        return "no"
    if not ran(one):
        return ""
    if provider == "wasm":
        return "yes"
    # Of what onnxruntime puts in an operator's place, one node on the CPU is enough for copies before and after it.
    return {"gpu": "yes", "mixed": "cpu", "removed": "yes", "cpu": "cpu", "": ""}[place(test, one)]


def summary_of(tests: Sequence[Test], found: dict[str, dict[str, Found]], engines: Sequence[str]) -> list[str]:
    """Say what fails and why, how long a test takes, and what passes on one engine alone."""
    lines = []
    for engine in engines:
        alone = [test for test in tests if [one for one in engines if found[test.name][one]["status"] == PASS] == [engine]]
        rows = Counter(test.row for test in alone)
        if alone and len(engines) > 1:
            lines.append(f"{len(alone)} pass on {engine} alone: {', '.join(f'{row} {count}' for row, count in rows.items())}")
    for engine in engines:
        ones = {test: found[test.name][engine] for test in tests}
        took = [one["open_ms"] + one["run_ms"] for one in ones.values() if "run_ms" in one]
        if took:
            lines.append(f"{engine}: a test takes {np.median(took):.0f} ms (median; 95 %: {np.percentile(took, 95):.0f} ms)")
        for status in (FAIL, ERROR, UNSUPPORTED, SKIPPED):
            reasons: dict[str, list[Test]] = {}
            for test, one in ones.items():
                if one["status"] == status:
                    reasons.setdefault(reason(one), []).append(test)
            count = sum(map(len, reasons.values()))
            if count:
                lines.append(f"{engine}: {count} {status}")
            for why, such in sorted(reasons.items(), key=lambda item: -len(item[1])):
                names = sorted({test.row for test in such})
                lines.append(f"  {len(such)} × {why}: {', '.join(names[:NAMED])}{' …' if len(names) > NAMED else ''}")
    return lines


def reason(one: Found) -> str:
    """Return a result's reason in few words, so that like ones are alike."""
    if one["status"] != FAIL:
        return short(one["why"])
    said = "beyond its tolerance, by less than rtol 1e-3 and atol 1e-4" if one.get("near") else "another value"
    return (short(one["failure"]) if "failure" in one else said) + (
        f" (in a fresh worker: {one['again']})" if "again" in one else ""
    )


def short(text: str) -> str:
    """Leave out of an error's message what differs from test to test."""
    text = re.sub(r"(no kernel|not known|No Op registered).*", r"\1", text)
    text = re.sub(r"^running: (?:\w+: )+", "running: ", text)
    return re.sub(r"(=)\d+", r"\1N", text)[:160]


def record(tests: Sequence[Test], found: dict[str, dict[str, Found]], facts: dict[str, Any]) -> str:
    """Return everything as JSON, one line a test."""
    lines = [
        json.dumps(
            {"test": test.name, "operator": test.row, "opset": test.opset}
            | ({"lowered_from": test.lowered} if test.lowered else {})
            | found[test.name],
            separators=(",", ":"),
        )
        for test in tests
    ]
    return f'{json.dumps(facts)[:-1]}, "tests": [\n' + ",\n".join(lines) + "\n]}\n"


def table_text(table: dict[str, Any]) -> str:
    """Return the doctor's table as its file is written: one line an operator."""
    head = {name: value for name, value in table.items() if name != "operators"}
    lines = [f"    {json.dumps(key)}: {json.dumps(row)}" for key, row in table["operators"].items()]
    return json.dumps(head, indent=2, ensure_ascii=False)[:-2] + ',\n  "operators": {\n' + ",\n".join(lines) + "\n  }\n}\n"


def chosen(pattern: str, limit: int | None) -> list[Test]:
    """Return the tests whose names match, at most so many."""
    return [test for name, test in collect().items() if re.search(pattern, name)][:limit]


def versions(site: Path) -> dict[str, str]:
    """Return the versions of what was measured."""
    import onnx

    return {
        "onnxruntime_web": json.loads((app_folder(site) / "site.json").read_text(encoding="utf-8"))["onnxruntime_web"],
        "onnx": onnx.__version__,
    }


def main() -> int:
    """Run the tests, print a table, and return 0 if few enough fail."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tests", default="", metavar="REGEX", help="only tests whose names match")
    parser.add_argument("--limit", type=int, metavar="N", help="only so many tests")
    parser.add_argument(
        "--engines", type=lambda text: text.split(","), default=list(ENGINES), metavar="A,B", help="others than these"
    )
    parser.add_argument("--gpu", choices=("auto", "software"), default="auto", help="auto: the machine's, where there is one")
    parser.add_argument("--browser", default="", help="path of Chromium")
    parser.add_argument("--driver", default="", help="path of chromedriver")
    parser.add_argument("--browser-arg", action="append", default=[], help="argument for Chromium; may be given several times")
    parser.add_argument("--json", type=Path, help="write each test's result to this file")
    parser.add_argument("--table", type=Path, help="write what is printed to this file")
    parser.add_argument(
        "--operators", type=Path, help="write the doctor's table, pyapp/operators.json with what was found, to this file"
    )
    arguments = parser.parse_args()
    tests, engines = chosen(arguments.tests, arguments.limit), arguments.engines
    options = BrowserOptions(
        gpu=arguments.gpu, arguments=arguments.browser_arg, browser=arguments.browser, driver=arguments.driver
    )
    before = load()
    with Bench(options, engines) as bench:
        found = bench.measure(tests)
        browser = bench.browser
    now = datetime.now(UTC)
    facts = {"what": "bench/operators.py", "date": now.isoformat(timespec="seconds"), "machine": machine(), "browser": browser}
    facts |= versions(dist())
    lines = [
        *table_of(rows_of(tests, found, engines), engines),
        "",
        *summary_of(tests, found, engines),
        f"{before} before, {load()} after",
    ]
    print("\n".join(lines))
    if arguments.table:
        arguments.table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if arguments.json:
        arguments.json.write_text(record(tests, found, facts), encoding="utf-8")
    if arguments.operators:
        base = json.loads((ROOT / "pyapp" / "operators.json").read_text(encoding="utf-8"))
        arguments.operators.write_text(table_text(supported(tests, found, base, facts)), encoding="utf-8")
    both = [test for test in tests if all(ran(one) for one in found[test.name].values())]
    passed = sum(all(one["status"] == PASS for one in found[test.name].values()) for test in both)
    by_engine = {engine: dict(Counter(found[test.name][engine]["status"] for test in tests)) for engine in engines}
    return finish(
        "operators",
        ratio=len(both) / passed if passed else math.nan,
        bound=BOUND,
        n=len(both),
        condition=not any(one["status"] == ERROR for ones in found.values() for one in ones.values()),
        tests=len(tests),
        both_pass=passed,
        statuses=by_engine,
    )


if __name__ == "__main__":
    sys.exit(main())
