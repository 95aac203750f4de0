"""What a report says of a model of the visitor's, as Markdown: the model, its outputs, its nodes, and where it goes wrong."""

from __future__ import annotations

from pyapp.markdown import markdown_line, markdown_table
from pyapp.report import AgreementEntry, FaultStep, ModelEntry, Report, Tensor

SHOWN_NODES = 20
"""Of each engine; a model can have thousands, and the JSON has them all."""


def model_facts(model: ModelEntry) -> list[str]:
    """State a model, its cases and the tolerance."""
    operators = ", ".join(f"{op} x{count}" for op, count in model.operators.items())
    rows = [
        ["inputs", "; ".join(map(_signature, model.inputs))],
        ["outputs", "; ".join(map(_signature, model.outputs))],
        ["operators", operators],
        ["parameters", f"{model.parameters:,}"],
        ["size", f"{model.size:,} bytes, opset {model.opset}"],
        ["cases", model.cases],
        ["reference", model.reference],
        ["tolerance", f"rtol {model.rtol:g}, atol {model.atol:g}"],
        *([["sizes", ", ".join(f"{name} = {size}" for name, size in model.sizes.items())]] if model.sizes else []),
        *(["changed", change] for change in model.fixes),
    ]
    return [markdown_line(f"Model: {model.name}"), "", markdown_table(["", "what it says"], rows), ""]


def _signature(tensor: Tensor) -> str:
    dims = "any rank" if tensor.dims is None else ",".join(tensor.dims)
    return f"{tensor.name} {tensor.dtype}[{dims}]"


def same_outputs(report: Report) -> list[str]:
    """State how each output agrees with the reference."""
    columns = ["output", "engine", "agree", "by", "max abs", "max rel", "max ULP", "cosine", "SNR dB", "worst", "passed"]
    return [
        "\n## Same outputs as the reference?\n",
        markdown_table(columns, [_output_row(entry) for entry in report.agreement]),
    ]


def _output_row(entry: AgreementEntry) -> list[str]:
    return [
        entry.output,
        entry.engine,
        f"{entry.agree} / {entry.cases}",
        entry.criterion,
        _number(entry.max_abs),
        _number(entry.max_rel),
        _number(entry.max_ulp),
        "-" if entry.cosine is None else f"{entry.cosine:.6f}",
        ("inf" if entry.max_abs == 0 else "-") if entry.snr_db is None else f"{entry.snr_db:.0f}",
        f"case {entry.worst_case} {entry.worst_index}",
        "yes" if entry.passed else "NO",
    ]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1e}"


def placed(report: Report) -> list[str]:
    """State where the nodes ran, the most expensive first."""
    parts = ["\n## Where did it run?\n"]
    for entry in report.placement:
        if entry.reason:
            parts.append(markdown_line(f"{entry.engine}: {entry.reason}"))
            continue
        rows = [[node.name, node.op, node.provider, node.shape, f"{node.ms:.3f}"] for node in entry.nodes[:SHOWN_NODES]]
        more = len(entry.nodes) - len(rows)
        parts += [
            markdown_line(
                f"{entry.engine}: {len(entry.nodes)} nodes, {entry.copies} copies between CPU and GPU"
                f"{', no node allowed on the CPU' if entry.strict else ''}"
                f"{f'; the {len(rows)} most expensive' if more else ''}."
            ),
            "",
            markdown_table(["node", "operator", "provider", "gives", "ms"], rows),
            "",
        ]
    return parts


def faults(report: Report) -> list[str]:
    """State where engines' values leave the reference's."""
    parts = ["\n## Where does it go wrong?\n"]
    for entry in report.faults:
        parts += [markdown_line(f"{entry.engine} against {entry.reference}, case {entry.case}: {entry.kind}."), ""]
        parts += [markdown_line(warning) for warning in entry.warnings]
        steps = [*entry.steps, *([entry.alone] if entry.alone else [])]
        if steps:
            columns = ["node", "operator", "value", "max abs", "max rel", ""]
            parts += ["", markdown_table(columns, [_step_row(step, alone=step is entry.alone) for step in steps]), ""]
    return parts


def _step_row(step: FaultStep, *, alone: bool) -> list[str]:
    verdict = step.failure or ("within" if step.close else "too far")
    return [
        step.node,
        step.op,
        step.output,
        _number(step.max_abs),
        _number(step.max_rel),
        f"alone: {verdict}" if alone else verdict,
    ]
