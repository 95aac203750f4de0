"""What will go wrong with a model in onnxruntime-web, before a session is created: which node, and what to do about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from pyapp.convchannels import misread_nodes
from pyapp.external import external_files
from pyapp.fixes import EXACT_IN_FLOAT32, can_fix, free_dimensions, missing_attributes, movable_casts, odd_names, own_opset
from pyapp.graphs import all_nodes, called, places_of_type, read_below, real_inputs
from pyapp.onnxfile import parse_model
from pyapp.onnxparts import quoted, tensors, text, type_name
from pyapp.support import KNOWN_DOMAINS, MAX_IR_VERSION, MAX_OPSET, MIN_OPSET, OWN_DOMAINS, PROVIDERS, operators

if TYPE_CHECKING:
    from onnx import onnx_ml_pb2 as proto

Severity = Literal["error", "warning", "note"]
_Numbers = Literal["raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
MOST_BYTES, MANY_BYTES = 1 << 31, 100_000_000
CONTROL_FLOW = frozenset({"If", "Loop", "Scan", "SequenceMap"})
WIDE = ("INT64", "UINT64")
SHOWN = 3
NUMBERS: tuple[_Numbers, ...] = get_args(_Numbers)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about a model that its reader should know.

    Attributes
    ----------
    code : str
        A stable name that code can test: ``operator-on-cpu``, ``free-dimensions`` …
    severity : str
        ``error`` where an engine will refuse the model or a part of it, ``warning`` where it will be slow or may be refused,
        ``note`` otherwise.
    node : str
        Name and operator, of the first three where it is about several; empty where it is about the model.
    message : str
        What was found.
    remedy : str
        What can be done about it; empty where nothing need be.
    fix : str or None
        Name of the fix in `pyapp.fixes.FIXES` that can be applied.
    """

    code: str
    severity: Severity
    node: str
    message: str
    remedy: str
    fix: str | None = None


@dataclass(frozen=True, slots=True)
class _Case:
    """What is examined, and for what."""

    size: int
    files: Mapping[str, int]
    model: proto.ModelProto
    providers: tuple[str, ...]
    adapter_float16: bool | None
    sizes: Mapping[str, int]

    @property
    def webgpu(self) -> bool:
        return "webgpu" in self.providers

    def fixable(self, name: str) -> str | None:
        """Return a fix's name where it has something to do."""
        return name if can_fix(self.model, name, sizes=self.sizes) else None


def examine(
    content: bytes,
    *,
    providers: Sequence[str] = PROVIDERS,
    adapter_float16: bool | None = None,
    sizes: Mapping[str, int] | None = None,
) -> list[Finding]:
    """Look for what will go wrong with a model, without running it.

    Parameters
    ----------
    content : bytes
        An ONNX file; its weights may be in others.
    providers : sequence of str
        Which of ``wasm`` and ``webgpu`` it is meant for.
    adapter_float16 : bool or None
        Whether the graphics adapter has ``shader-f16``; None where that is not known.
    sizes : mapping of str to int
        Sizes for free dimensions, as in `pyapp.fixes.apply_fix`.

    Returns
    -------
    list of Finding
        Errors first. Nodes with the same trouble share a finding.

    Raises
    ------
    ModelError
        If the file is no model.
    ValueError
        If there is no such provider.
    """
    if unknown := set(providers) - set(PROVIDERS):
        raise ValueError(f"unknown providers {sorted(unknown)}; known are {', '.join(PROVIDERS)}")
    files = external_files(content)  # before, so that the model is in memory once
    model = parse_model(content)
    for tensor in tensors(model):
        for numbers in NUMBERS:  # nothing looks at them, and each copy that tries a fix would hold them again
            tensor.ClearField(numbers)
    case = _Case(len(content), files, model, tuple(providers), adapter_float16, sizes or {})
    found = [finding for check in CHECKS for finding in check(case)]
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))


def _several(names: Sequence[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def _listed(names: Iterable[str]) -> str:
    return _several([quoted(name) for name in names])


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _types(nodes: Iterable[proto.NodeProto]) -> str:
    counts = Counter(text(node.op_type) for node in nodes)
    return ", ".join(f"{op} ({count})" if count > 1 else op for op, count in counts.most_common())


# --- operators ---


def _operators(case: _Case) -> Iterator[Finding]:
    model, table = case.model, operators()
    versions = {text(entry.domain): entry.version for entry in model.opset_import}
    functions = {(text(entry.domain), text(entry.name)) for entry in model.functions}
    groups: dict[str, list[proto.NodeProto]] = {}
    for node in all_nodes(model):
        op, domain = text(node.op_type), text(node.domain)
        if (domain, op) in functions:
            continue  # its body is examined
        if domain not in KNOWN_DOMAINS:
            groups.setdefault("domain", []).append(node)
            continue
        opset = own_opset(model) if domain in OWN_DOMAINS else versions.get(domain, 1)
        does = {provider: table.support(op, domain, opset, provider) for provider in case.providers}
        missing = [provider for provider in case.providers if does[provider] == "no"]
        if missing:
            groups.setdefault(" and ".join(missing), []).append(node)
        elif does.get("webgpu") == "cpu":
            groups.setdefault("cpu", []).append(node)
        elif None in does.values():
            groups.setdefault("unknown", []).append(node)
    for what, nodes in groups.items():
        yield _operator_finding(what, nodes, f"onnxruntime-web {table.version}", own_opset(model))


def _operator_finding(what: str, nodes: Sequence[proto.NodeProto], runtime: str, opset: int) -> Finding:
    names, types, count = _several([called(node) for node in nodes]), _types(nodes), _counted(len(nodes), "node")
    if what == "domain":
        domains = _listed(dict.fromkeys(text(node.domain) for node in nodes))
        message = f"{count} of the domain {domains}: {runtime} has no kernels for it"
        return Finding("unknown-domain", "error", names, message, "Export the model with ONNX's own operators.")
    if what == "cpu":
        message = (
            f"WebGPU has no kernel for {types} at opset {opset}: {count} will run on the CPU, with copies before and after"
        )
        remedy = "Compare with WASM; export with another opset (older ones often have kernels) or with other operators."
        return Finding("operator-on-cpu", "warning", names, message, remedy)
    if what == "unknown":
        return Finding("operator-unknown", "note", names, f"nothing is known about {types} in {runtime} ({count})", "")
    message = f"{runtime} has no kernel on {what} for {types} at opset {opset} ({count})"
    wasm = "Run it on WASM, or export" if what == "webgpu" else "Export"
    return Finding("operator-missing", "error", names, message, f"{wasm} with other operators or with an older opset.")


def _convolutions(case: _Case) -> Iterator[Finding]:
    opset = own_opset(case.model)
    nodes = [node for node in all_nodes(case.model) if missing_attributes(node, opset)]
    # That a convolution's group is left out troubles no build.
    nodes = [node for node in nodes if missing_attributes(node, opset) != ["group"]]
    if nodes and case.webgpu:
        missing = sorted({name for node in nodes for name in missing_attributes(node, opset)} - {"group"})
        message = (
            f"{_counted(len(nodes), 'node')} ({_types(nodes)}) leave {', '.join(missing)} to their defaults, "
            "which onnxruntime-web's older WebGPU build (JSEP: ort.min.js, ort.all.min.js) refuses"
        )
        remedy = "Write them out (fix explicit-attributes), or use the builds ort.jspi and ort.webgpu."
        names = _several([called(node) for node in nodes])
        yield Finding("conv-defaults", "warning", names, message, remedy, case.fixable("explicit-attributes"))


def _wrong_convolutions(case: _Case) -> Iterator[Finding]:
    nodes = misread_nodes(case.model) if case.webgpu else []
    if nodes:
        message = (
            f"onnxruntime-web {operators().version} computes {_counted(len(nodes), 'convolution')} wrongly on WebGPU: input "
            "channels that are a multiple of 3 but not of 4, more than 3, with output channels that are a multiple of 4"
        )
        names = _several([called(node) for node in nodes])
        remedy = "Add a channel of zeros (fix channels-padded), or use WASM; see microsoft/onnxruntime#29651."
        yield Finding("conv-channels", "error", names, message, remedy, case.fixable("channels-padded"))


def _control_flow(case: _Case) -> Iterator[Finding]:
    nodes = [node for node in all_nodes(case.model) if node.op_type in CONTROL_FLOW and text(node.domain) in OWN_DOMAINS]
    if nodes and case.webgpu:
        message = f"{_types(nodes)} decide on the CPU what runs next, which prevents graph capture"
        names = _several([called(node) for node in nodes])
        yield Finding("control-flow", "note", names, message, "Export the model with a fixed course where it has one.")


def _emptiness(case: _Case) -> Iterator[Finding]:
    graph = case.model.graph
    if not graph.node:
        yield Finding("no-nodes", "note", "", "the model has no nodes: it computes nothing", "")
    read = {name for node in graph.node for name in node.input} | read_below(graph) | {value.name for value in graph.output}
    unused = [text(value.name) for value in real_inputs(graph) if value.name not in read]
    if unused:
        remedy = "Feed it anyway, or export the model without it."
        yield Finding("unused-input", "note", "", f"nothing reads {_counted(len(unused), 'input')}: {_listed(unused)}", remedy)


# --- types ---


def _integer_inputs(case: _Case) -> Iterator[Finding]:
    movable = movable_casts(case.model)
    kinds = {value.name: type_name(value.type.tensor_type.elem_type) for value in real_inputs(case.model.graph)}
    wide = [f"{text(name)} ({kind.lower()})" for name, kind in kinds.items() if kind in WIDE]
    if wide:
        message = f"{_several(wide)}: 64-bit integers are BigInt in JavaScript, and cannot be inputs in fast GPU buffers"
        yield Finding("integer-input", "warning", "", message, "Export the model with int32 or float32 inputs.")
    small = [f"{text(name)} ({kind.lower()})" for name, kind in kinds.items() if kind in EXACT_IN_FLOAT32 and name in movable]
    if small and case.webgpu:
        nodes = [called(node) for nodes in movable.values() for node in nodes]
        message = f"{_several(small)}: cast to float32 at once, and the JSEP build casts such an input on the CPU"
        remedy = "Feed the same numbers as float32 (fix cast-moved), or use the builds ort.jspi and ort.webgpu."
        yield Finding("integer-input", "warning", _several(nodes), message, remedy, case.fixable("cast-moved"))
    rest = [
        f"{text(name)} ({kind.lower()})" for name, kind in kinds.items() if kind in EXACT_IN_FLOAT32 and name not in movable
    ]
    if rest and case.webgpu:
        message = f"{_several(rest)}: integers of 8 or 16 bits, for which WebGPU has few kernels"
        yield Finding("integer-input", "note", "", message, "See on which provider the nodes behind them run.")


def _tensor_types(case: _Case) -> Iterator[Finding]:
    half = places_of_type(case.model, "FLOAT16") if case.webgpu and not case.adapter_float16 else []
    if half:
        unsure = case.adapter_float16 is None
        needs = "which WebGPU computes only on an adapter with shader-f16" if unsure else "and this adapter has no shader-f16"
        message = f"{_counted(len(half), 'tensor')} are 16-bit floats, {needs}: {_several(half)}"
        yield Finding("float16", "warning" if unsure else "error", "", message, "Use the float32 model there, or WASM.")
    double = places_of_type(case.model, "DOUBLE") if case.webgpu else []
    if double:
        message = f"WebGPU does not compute float64, and its builds have few kernels for it even on the CPU: {_several(double)}"
        yield Finding("double-precision", "warning", "", message, "Export the model in float32, or use WASM.")
    short = [*places_of_type(case.model, "INT16"), *places_of_type(case.model, "UINT16")] if case.webgpu else []
    if short:
        message = f"WebGPU's builds have few kernels for 16-bit integers, even on the CPU: {_several(short)}"
        yield Finding("short-integers", "warning", "", message, "Use 32-bit integers, or WASM.")
    strings = places_of_type(case.model, "STRING")
    if strings:
        message = f"strings are computed on WASM alone: {_several(strings)}"
        yield Finding("string-tensors", "warning", "", message, "Do what handles text outside of the model.")


def _not_tensors(case: _Case) -> Iterator[Finding]:
    graph = case.model.graph
    kinds = {text(value.name): value.type.WhichOneof("value") for value in (*real_inputs(graph), *graph.output)}
    others = [f"{name} ({(kind or 'no').removesuffix('_type')} type)" for name, kind in kinds.items() if kind != "tensor_type"]
    if others:
        message = f"these inputs or outputs are no tensors, and cannot be fed or read here: {_several(others)}"
        yield Finding("not-tensor", "error", "", message, "Export the model with tensors as its inputs and outputs.")


# --- the file ---


def _size(case: _Case) -> Iterator[Finding]:
    files = case.files
    total = case.size + sum(files.values())
    if total > MOST_BYTES:
        message = f"the model has {total:,} bytes; a browser's runtime can hold {MOST_BYTES:,}"
        yield Finding("too-large", "error", "", message, "Use a smaller or a quantised model.")
    elif total > MANY_BYTES:
        message = f"the model has {total:,} bytes, which every visitor downloads"
        yield Finding("too-large", "note", "", message, "Use a smaller or a quantised model.")
    if files:
        names = _several([f"{name} ({size:,} bytes)" for name, size in files.items()])
        message = f"weights are in {_counted(len(files), 'other file')}: {names}"
        yield Finding("external-missing", "warning", "", message, "Give these files together with the model.")


def _versions(case: _Case) -> Iterator[Finding]:
    opset, version, runtime = own_opset(case.model), case.model.ir_version, f"onnxruntime-web {operators().version}"
    if opset > MAX_OPSET:
        message = f"the model is of opset {opset}; {runtime} loads up to {MAX_OPSET}"
        yield Finding("opset-too-new", "error", "", message, f"Export it with opset {MAX_OPSET} or an older one.")
    if version > MAX_IR_VERSION:
        message = f"the file is of format version {version}; {runtime} loads up to {MAX_IR_VERSION}"
        yield Finding("opset-too-new", "error", "", message, "Save it with an older version of onnx.")
    if 0 < opset < MIN_OPSET:
        message = f"the model is of opset {opset}; {runtime} guarantees {MIN_OPSET} and later ones"
        yield Finding("opset-old", "note", "", message, "Convert it with onnx.version_converter if it is refused.")


def _names(case: _Case) -> Iterator[Finding]:
    graph = case.model.graph
    for what, values in (("input", real_inputs(graph)), ("output", list(graph.output))):
        names = [text(value.name) for value in values]
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice or "" in names:
            message = f"{what}s have no name or one that another has: {_listed(twice or [''])}"
            yield Finding("odd-name", "error", "", message, "Export the model with a name of its own for each.")
        odd = [name for name in odd_names(values) if name]
        if odd:
            message = f"{_counted(len(odd), what)} with spaces or signs in the name: {_listed(odd)}"
            remedy = "Rename it (fix plain-names): tools and code stumble over such names."
            yield Finding("odd-name", "warning", "", message, remedy, case.fixable("plain-names"))
    counts = Counter(text(node.name) for node in graph.node if node.name)
    odd = [name for name, count in counts.items() if count > 1]
    nameless = sum(not node.name for node in graph.node)
    if odd or nameless:
        parts = [f"{_counted(nameless, 'node')} without a name"] if nameless else []
        parts += [f"names that several nodes have: {_listed(odd)}"] if odd else []
        yield Finding("odd-name", "note", "", f"{'; '.join(parts)}: a profile cannot tell them apart", "")


def _free_dimensions(case: _Case) -> Iterator[Finding]:
    free = free_dimensions(case.model.graph)
    if free:
        told = [name if name in places else f"{name} (in {_several(places)})" for name, places in free.items()]
        message = f"{_counted(len(free), 'free dimension')} of inputs: {_several(told)}"
        needs = "graph capture and GPU buffers of a fixed size need sizes" if case.webgpu else "a run needs sizes"
        remedy = "Give sizes when the model is opened, or write them into it (fix batch-fixed)."
        yield Finding("free-dimensions", "note", "", f"{message}; {needs}", remedy, case.fixable("batch-fixed"))


CHECKS: tuple[Callable[[_Case], Iterator[Finding]], ...] = (
    _versions, _size, _operators, _not_tensors, _names, _tensor_types, _integer_inputs, _convolutions, _free_dimensions,
    _wrong_convolutions, _control_flow, _emptiness,
)  # fmt: skip
