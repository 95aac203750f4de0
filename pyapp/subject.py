"""A model of the visitor's and what it is asked: its cases, the reference, the tolerance. Each change makes a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyapp import report as r
from pyapp.agreement import Tolerance
from pyapp.casefile import read_cases
from pyapp.casemaker import free_sizes, make_cases
from pyapp.cases import CaseSet
from pyapp.doctor import Finding, examine
from pyapp.engine import Tensors
from pyapp.errors import AppError
from pyapp.external import inlined
from pyapp.fixes import apply_fix
from pyapp.onnxfile import ModelError, ModelInfo, TensorInfo, read_model

SUITE = "cases"
MADE = 8
"""So many cases are made from the signature."""

NOBODY = "nobody yet: wasm-1 in this browser answers first"
"""Whose answers the cases have, before anybody was asked."""

REFERENCE_ENGINE = "wasm-1"
GIVEN_REFERENCE = "the file with the cases"
OWN_REFERENCE = f"{REFERENCE_ENGINE} in this browser, since the cases came without answers"


@dataclass(frozen=True, kw_only=True)
class CasesSettings:
    """How cases are made: sizes of free dimensions (those that are not given stay), how many, and the seed of their numbers."""

    sizes: dict[str, int] = field(default_factory=dict)
    count: int = MADE
    seed: int = 0


@dataclass(frozen=True)
class Subject:
    """A model with its cases.

    Attributes
    ----------
    name : str
        The file's.
    model : bytes
        The ONNX file, with all its weights inside.
    info : ModelInfo
        What it says.
    sizes : dict of str to int
        Sizes of its free dimensions.
    tolerance : Tolerance
        How far from the reference an output may be.
    inputs : list of Tensors
        One a case; empty where there are none, and then `problem` says why.
    outputs : list of Tensors or None
        The reference's, one a case.
    origin, reference : str
        Where the inputs come from, and whose answers the outputs are.
    problem : AppError or None
        Why there are no cases.
    fixes : tuple of str
        What was changed in the model, a line each.
    """

    name: str
    model: bytes = field(repr=False)
    info: ModelInfo
    sizes: dict[str, int]
    tolerance: Tolerance = Tolerance()  # noqa: RUF009 - it is frozen
    inputs: Sequence[Tensors] = ()
    outputs: Sequence[Tensors] | None = None
    origin: str = ""
    reference: str = NOBODY
    problem: AppError | None = None
    fixes: tuple[str, ...] = ()

    def cases(self) -> CaseSet:
        """Return its cases.

        Raises
        ------
        AppError
            Where there are none, the reason.
        """
        if not self.inputs:
            raise self.problem or AppError("NoCases", "this model has no cases", "Give cases in a file.")
        return CaseSet(SUITE, self.inputs, self.outputs, self.reference, self.tolerance, batchable=batchable(self.info))

    def findings(self, *, adapter_float16: bool | None = None) -> list[Finding]:
        """Examine the model before any session is made; see `pyapp.doctor.examine`."""
        return examine(self.model, adapter_float16=adapter_float16, sizes=self.sizes)

    @property
    def zeros(self) -> bool:
        """Whether zeros everywhere are an answer of this model."""
        return any(array.dtype.kind == "f" and not array.any() for case in self.outputs or () for array in case.values())

    def entry(self) -> r.ModelEntry:
        """State it for a report."""
        return r.ModelEntry(
            name=self.name,
            size=len(self.model),
            opset=self.info.opset,
            parameters=self.info.parameters,
            operators=self.info.operators,
            inputs=[_stated(value) for value in self.info.inputs],
            outputs=[_stated(value) for value in self.info.outputs],
            sizes=self.sizes,
            fixes=list(self.fixes),
            cases=self.origin,
            reference=self.reference,
            **asdict(self.tolerance),
        )


def _stated(value: TensorInfo) -> r.Tensor:
    return r.Tensor(
        name=value.name,
        dtype=value.dtype,
        dims=None if value.dims is None else ["?" if size is None else str(size) for size in value.dims],
    )


def opened(name: str, content: bytes, files: Mapping[str, bytes] | None = None) -> Subject:
    """Read a model, and make cases for it from its signature.

    Parameters
    ----------
    name : str
        The file's name.
    content : bytes
        An ONNX file.
    files : mapping of str to bytes, optional
        Other files that hold its weights, by name.

    Raises
    ------
    ModelError
        If it cannot be used; the message says why.
    """
    model = inlined(content, files or {})
    info = read_model(model)
    return with_made(Subject(name, model, info, free_sizes(info)))


def with_made(subject: Subject, sizes: Mapping[str, int] | None = None, *, count: int = MADE, seed: int = 0) -> Subject:
    """Make cases from the signature; where that cannot be done, `problem` says why.

    Parameters
    ----------
    subject : Subject
        The model.
    sizes : mapping of str to int, optional
        Sizes of free dimensions; those that are not given stay as they are.
    count, seed : int
        How many cases, and the seed of their numbers.

    Raises
    ------
    AppError
        If a size, the count or the seed is none, naming it.
    """
    unknown = set(sizes or {}) - set(subject.sizes)
    if unknown:
        known = ", ".join(subject.sizes) or "none"
        raise AppError("UnknownDimension", f"the model has no free dimension {sorted(unknown)[0]!r}", f"It has: {known}.")
    wanted = subject.sizes | dict(sizes or {})
    anew = replace(subject, sizes=wanted, inputs=(), outputs=None, reference=NOBODY, problem=None, origin="")
    try:
        inputs = make_cases(subject.info, wanted, count=count, seed=seed)
    except AppError as error:
        if sizes is not None:
            raise  # the visitor has just asked for these
        return replace(anew, problem=error)
    return replace(anew, inputs=inputs, origin=f"made from the model's signature ({count}, seed {seed})")


def with_file(subject: Subject, filename: str, content: bytes) -> Subject:
    """Take cases from a file; see `pyapp.casefile.read_cases`. Their sizes become those of the free dimensions."""
    loaded = read_cases(filename, content, subject.info)
    return replace(
        subject,
        inputs=loaded.inputs,
        outputs=loaded.outputs,
        sizes=subject.sizes | found_sizes(subject.info, loaded.inputs[0]),
        origin=filename,
        reference=GIVEN_REFERENCE if loaded.outputs else NOBODY,
        problem=None,
    )


def found_sizes(info: ModelInfo, case: Tensors) -> dict[str, int]:
    """Read the sizes of free dimensions from a case."""
    return {
        size if isinstance(size, str) else f"{value.name}[{axis}]": case[value.name].shape[axis]
        for value in info.inputs
        for axis, size in enumerate(value.dims or ())
        if not isinstance(size, int)
    }


def batchable(info: ModelInfo) -> bool:
    """Tell whether cases can be stacked: every input and output has a free first dimension, and all have the same one."""
    firsts = [value.dims[0] if value.dims else 0 for value in (*info.inputs, *info.outputs)]
    named = {first for first in firsts if first is not None}
    return bool(firsts) and not any(isinstance(first, int) for first in firsts) and len(named) <= 1


def with_reference(subject: Subject, outputs: Sequence[Tensors], source: str = OWN_REFERENCE) -> Subject:
    """Take an engine's outputs as the reference."""
    return replace(subject, outputs=outputs, reference=source)


def with_fix(subject: Subject, name: str) -> Subject:
    """Apply one of the doctor's fixes; the cases follow where it renames or retypes inputs.

    Raises
    ------
    ModelError
        ``NothingToFix``, or what `pyapp.fixes.apply_fix` raises.
    """
    fixed = apply_fix(subject.model, name, sizes=subject.sizes)
    info = read_model(fixed.content)

    def given(case: Tensors) -> dict[str, NDArray[Any]]:
        renamed = {fixed.renamed_inputs.get(key, key): array for key, array in case.items()}
        return {key: array.astype(fixed.retyped_inputs.get(key, array.dtype)) for key, array in renamed.items()}

    sizes = free_sizes(info)
    return replace(
        subject,
        model=fixed.content,
        info=info,
        sizes={key: subject.sizes.get(key, guess) for key, guess in sizes.items()},
        inputs=[given(case) for case in subject.inputs],
        outputs=subject.outputs
        and [{fixed.renamed_outputs.get(key, key): array for key, array in case.items()} for case in subject.outputs],
        fixes=(*subject.fixes, *fixed.changes),
    )


def require_same_outputs(before: Sequence[Tensors], after: Sequence[Tensors]) -> int:
    """Compare the outputs of a model before and after a fix, by their order, bit by bit; return how many numbers there were.

    Raises
    ------
    ModelError
        ``FixChangesOutputs``, naming the first output and case that differ.
    """
    compared = 0
    for case, (one, other) in enumerate(zip(before, after, strict=True)):
        for (name, array), found in zip(one.items(), other.values(), strict=True):
            if array.dtype != found.dtype or array.shape != found.shape or array.tobytes() != found.tobytes():
                what = f"the fix would change output {name!r} in case {case}, so it was not applied"
                raise ModelError("FixChangesOutputs", what, "Keep the model as it is.")
            compared += int(np.size(array))
    return compared
