"""Cases from a visitor's file, checked against what the model says of its inputs and outputs.

The file becomes `LoadedCases` or a `CaseError`, nothing else; what makes arrays of its bytes is `pyapp.arrayfile`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyapp.arrayfile import (
    MAX_BYTES,
    MAX_CASES,
    NPY_MAGIC,
    ZIP_MAGIC,
    CaseError,
    cast,
    from_lists,
    read_json,
    read_npy,
    read_npz,
    too_large,
)
from pyapp.onnxfile import DTYPES, ModelInfo, TensorInfo

__all__ = ["MAX_BYTES", "CaseError", "LoadedCases", "described", "dtype_of", "is_free", "read_cases", "spelled"]

NUMBERS: dict[str, np.dtype[Any]] = {dtype.name: dtype.newbyteorder("=") for dtype in DTYPES.values()}

SEQUENCE = re.compile(r"_(seq[a-z]*|lengths?|len|tokens?|time[a-z]*|frames?|t)_")
"""Names, as `spelled`, of axes whose places depend on each other, which those of a batch do not."""

Sides = dict[str, dict[str, Any]]
Case = dict[str, dict[str, NDArray[Any]]]
"""Keys are ``input`` and ``output``."""


@dataclass(frozen=True)
class LoadedCases:
    """What a file holds: for each case a dict of arrays by name, in the model's dtypes, contiguous.

    Attributes
    ----------
    inputs : list of dict of str to array
        All of the model's inputs.
    outputs : list of dict of str to array, or None
        Reference answers, of the same outputs in each case; None where the file has none. Outputs that it leaves out are not
        to be compared.
    """

    inputs: list[dict[str, NDArray[Any]]]
    outputs: list[dict[str, NDArray[Any]]] | None


@dataclass(frozen=True)
class _Given:
    """An array of the file and the tensor of the model that it is for."""

    side: str
    value: TensorInfo
    array: NDArray[Any]

    @property
    def called(self) -> str:
        return f"{self.side} {self.value.name!r}"


def read_cases(filename: str, content: bytes, info: ModelInfo) -> LoadedCases:
    """Read cases from a file whose content, not its name, tells the form.

    - ``.npz``: arrays named after inputs and outputs; ``inputs.x`` and ``outputs.x`` (or with a slash) tell them apart where an
      input and an output share a name.
    - ``.npy``: the array of a model with one input.
    - JSON: ``{"inputs": {name: nested lists}, "outputs": {…}}`` or ``{name: nested lists}``; or a list of these, one a case,
      which may also be ``{"cases": […]}``. ``NaN`` and ``Infinity`` are numbers.

    How many cases a set of arrays is, where the file does not list them:

    1. An array with one axis more than the model's tensor has the cases on its first axis. Every other array then needs as
       many, in this way or in the next one.
    2. A batch is as many cases of batch 1: every array has the same length > 1 on its first axis, where the model leaves it
       free or wants 1; inputs have two axes or more. One by one, since that is how most programs run a model, and since a
       wrong case then has a number. No batch is an axis that is named like a sequence (`SEQUENCE`), or whose name is also on a
       later axis of an input: taken apart, it would give other answers.
    3. Everything else is one case. So is all of a file in which an input has a free rank: no axis is known to be the batch. An
       output of free rank follows the inputs.

    Types are those of the model, or convert without loss, or are in `pyapp.arrayfile.NARROWED`. JSON's whole numbers fit every
    number type that has room for them, its others every float.

    Parameters
    ----------
    filename : str
        For messages.
    content : bytes
        The file, at most `MAX_BYTES`; JSON at most `pyapp.arrayfile.MAX_JSON_BYTES`.
    info : ModelInfo
        Fixed sizes have to be met, in outputs too; a size with a name is the same in all inputs of a case.

    Raises
    ------
    CaseError
        If these are no cases for this model; the message says what is wrong where, and what is wanted.
    """
    for value in info.inputs:
        dtype_of(value)
    if not content:
        raise CaseError("BadCases", f"{filename} is empty", "Choose an .npz, .npy or JSON file with inputs.")
    if len(content) > MAX_BYTES:
        raise too_large(f"{filename} has {len(content):,} bytes", MAX_BYTES)
    entries: list[Sides]
    listed = False
    if content.startswith(ZIP_MAGIC):
        entries = [_placed(read_npz(filename, content), info)]
    elif content.startswith(NPY_MAGIC):
        if len(info.inputs) != 1:
            what = f"{filename} holds one array, the model has {len(info.inputs)} inputs: {_names(info.inputs)}"
            raise CaseError("BadCases", what, "Save all of them with numpy.savez(file, name=array, …).")
        entries = [{"input": {info.inputs[0].name: read_npy(filename, content)}, "output": {}}]
    else:
        found, listed = read_json(filename, content)
        entries = [_json_sides(entry, info) for entry in found]
    cases: list[Case] = []
    for number, entry in enumerate(entries):
        given = _converted(entry, info, f" of case {number}" if listed else "")
        made = [_case(given)] if listed else _taken_apart(given)
        _check_shapes(made[0], info, f" of case {number}" if listed else "" if len(made) == 1 else " of every case")
        cases += made
    return _loaded(cases)


def described(value: TensorInfo) -> str:
    """Return a tensor's type and shape, as in ``float32[N,3,?,224]``; a free rank is ``[…]``."""
    if value.dims is None:
        return f"{value.dtype}[…]"
    return f"{value.dtype}[{','.join(str(size) if isinstance(size, str) or not is_free(size) else '?' for size in value.dims)}]"


def is_free(size: int | str | None) -> bool:
    """Return whether a dimension is free; so is a negative number, which some exporters write and runtimes ignore."""
    return not isinstance(size, int) or size < 0


def spelled(name: str) -> str:
    """Return the words of a name in one spelling for searches: ``inputLength2`` is ``_input_length_``."""
    words = re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    return f"_{'_'.join(words)}_"


def dtype_of(value: TensorInfo) -> np.dtype[Any]:
    """Return a tensor's dtype; raises `CaseError` (``UnsupportedType``) where it has none of numpy's number types."""
    if value.dtype in NUMBERS:
        return NUMBERS[value.dtype]
    remedy = f"This page feeds and compares numbers only: {', '.join(NUMBERS)}."
    raise CaseError("UnsupportedType", f"{value.name!r} is of the type {value.dtype}", remedy)


def _names(values: Iterable[TensorInfo]) -> str:
    return ", ".join(repr(value.name) for value in values) or "none"


def _unknown(name: str, what: str, info: ModelInfo) -> CaseError:
    remedy = f"The model's inputs are {_names(info.inputs)}; its outputs are {_names(info.outputs)}."
    return CaseError("UnknownName", f"the file has {name!r}, which is {what} of the model", remedy)


def _placed(arrays: Mapping[str, Any], info: ModelInfo) -> Sides:
    """Sort arrays into inputs and outputs by name."""
    names: dict[str, set[str]] = {"input": {one.name for one in info.inputs}, "output": {one.name for one in info.outputs}}
    sides: Sides = {"input": {}, "output": {}}
    for key, array in arrays.items():
        places = [(side, key) for side in names if key in names[side]]
        places = places or [
            (side, key[len(side) + 2 :])
            for side in names
            if key.startswith((f"{side}s.", f"{side}s/")) and key[len(side) + 2 :] in names[side]
        ]
        if not places:
            raise _unknown(key, "neither an input nor an output", info)
        side, name = places[0]
        if len(places) > 1 or name in sides[side]:
            what = "both an input and an output" if len(places) > 1 else f"an {side} that the file has twice"
            raise CaseError("BadCases", f"{key!r} is {what}", f"Name the arrays 'inputs.{name}' and 'outputs.{name}'.")
        sides[side][name] = array
    return sides


def _json_sides(entry: dict[str, Any], info: ModelInfo) -> Sides:
    sides: Sides = {"input": entry.get("inputs", {}), "output": entry.get("outputs", {})}
    if not entry or not entry.keys() <= {"inputs", "outputs"} or not all(isinstance(side, dict) for side in sides.values()):
        return _placed(entry, info)
    for side, values in (("input", info.inputs), ("output", info.outputs)):
        known = {value.name for value in values}
        for name in sides[side]:
            if name not in known:
                raise _unknown(name, f"no {side}", info)
    return sides


def _converted(sides: Sides, info: ModelInfo, where: str) -> list[_Given]:
    """Return the arrays in the model's types and order, inputs first."""
    if missing := [value for value in info.inputs if value.name not in sides["input"]]:
        what = f"input {missing[0].name!r}{where} is missing; the file has {', '.join(map(repr, sides['input'])) or 'none'}"
        raise CaseError("MissingInput", what, f"The model's inputs are {_names(info.inputs)}.")
    given, total = [], 0
    for side, values in (("input", info.inputs), ("output", info.outputs)):
        for value in values:
            if value.name in sides[side]:
                called, found, dtype = f"{side} {value.name!r}{where}", sides[side][value.name], dtype_of(value)
                array = found if isinstance(found, np.ndarray) else from_lists(called, found)
                total += array.size * dtype.itemsize
                if total > MAX_BYTES:
                    raise too_large(f"the arrays up to {called} have {total:,} bytes as {dtype}", MAX_BYTES)
                given.append(_Given(side, value, cast(called, array, dtype, loose=array is not found)))
    return given


def _case(given: list[_Given]) -> Case:
    case: Case = {"input": {}, "output": {}}
    for one in given:
        case[one.side][one.value.name] = one.array
    return case


def _taken_apart(given: list[_Given]) -> list[Case]:
    """Return the cases in a set of arrays; `read_cases` has the rules."""
    inputs = [one for one in given if one.side == "input"]
    if not inputs or any(one.value.dims is None for one in inputs):
        return [_case(given)]
    later = {size for one in inputs for size in (one.value.dims or ())[1:] if isinstance(size, str)}
    forms = [_form(one, later) for one in given]
    lead = given[forms.index("stacked")] if "stacked" in forms else given[0]
    count = len(lead.array) if lead.array.ndim else 1
    follows = "stacked" if set(forms[: len(inputs)]) == {"stacked"} else "batch"
    forms = [follows if form == "free" and one.array.ndim else form for one, form in zip(given, forms, strict=True)]
    fits = [form in ("stacked", "batch") and len(one.array) == count for one, form in zip(given, forms, strict=True)]
    if not all(fits):
        if "stacked" not in forms:
            return [_case(given)]
        for one, form, fit in zip(given, forms, fits, strict=True):
            if not fit and (count != 1 or form == "stacked"):
                shape = list(one.array.shape)
                what = f"{lead.called} has {count} cases on its first axis, but {one.called} has the shape {shape}"
                raise CaseError("CountsDiffer", what, "Give every array a first axis with as many cases.")
    if count == 0:
        raise CaseError("NoCases", f"{lead.called} has the length 0 on its first axis", "Give at least one case.")
    if count > MAX_CASES:
        raise too_large(f"the file has {count:,} cases", MAX_CASES, "cases")

    def part(index: int, number: int) -> NDArray[Any]:
        array = given[index].array
        if not fits[index]:
            return array  # there is one case, and only other arrays have an axis for it
        return np.asarray(array[number, ...] if forms[index] == "stacked" else array[number : number + 1])

    return [_case([replace(one, array=part(index, n)) for index, one in enumerate(given)]) for n in range(count)]


def _form(one: _Given, later: set[str]) -> str:
    """Say what an array's first axis may be: ``stacked`` cases, a ``batch``; ``whole`` if neither, ``free`` if not known."""
    dims, rank = one.value.dims, one.array.ndim
    if dims is None:
        return "free"
    if rank == len(dims) + 1:
        return "stacked"
    if rank != len(dims) or rank < (2 if one.side == "input" else 1):
        return "whole"
    size = dims[0]
    named = isinstance(size, str) and (size in later or SEQUENCE.search(spelled(size)) is not None)
    return "batch" if (is_free(size) or size == 1) and not named else "whole"


def _check_shapes(case: Case, info: ModelInfo, where: str) -> None:
    sizes: dict[str, tuple[int, str]] = {}
    for side, values in (("input", info.inputs), ("output", info.outputs)):
        for value in values:
            array = case[side].get(value.name)
            if array is None or value.dims is None:
                continue
            if len(value.dims) != array.ndim or any(
                not is_free(want) and want != got for want, got in zip(value.dims, array.shape, strict=True)
            ):
                got = ",".join(map(str, array.shape))
                what = f"{side} {value.name!r}{where} has the shape [{got}], the model wants {described(value)}"
                raise CaseError("WrongShape", what, "Give it that shape, or that shape after an axis with the cases.")
            for name, size in zip(value.dims, array.shape, strict=True) if side == "input" else ():
                if isinstance(name, str) and sizes.setdefault(name, (size, value.name))[0] != size:
                    other = "input {1!r} has {0}".format(*sizes[name])
                    what = f"input {value.name!r}{where} has {name} = {size}, {other}; the model wants {described(value)}"
                    raise CaseError("WrongShape", what, f"Give every input the same {name}.")


def _loaded(cases: list[Case]) -> LoadedCases:
    names = [case["output"].keys() for case in cases]
    for number, these in enumerate(names):
        if these != names[0]:
            what = f"case {number} has answers for {sorted(these)}, case 0 for {sorted(names[0])}"
            raise CaseError("BadCases", what, "Give answers for the same outputs in every case.")
    return LoadedCases([case["input"] for case in cases], [case["output"] for case in cases] if names[0] else None)
