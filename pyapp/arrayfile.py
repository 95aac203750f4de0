"""Arrays from foreign bytes: an .npz, an .npy, JSON. What a model wants of them is `pyapp.casefile`'s business.

The bytes may be damaged, huge, or meant to do harm. They become arrays or a `CaseError`, nothing else.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from pyapp.errors import AppError
from pyapp.jsondepth import depth

MAX_BYTES = 256 << 20
"""Of a file, of what an archive unpacks to, and of the arrays made from it: Python in a browser has two gigabytes."""

MAX_JSON_BYTES = 32 << 20
"""Python's objects take up to 27 times the bytes of their JSON."""

MAX_CASES = 100_000
MAX_DEPTH = 32
"""Up to three levels are around a tensor. In a browser, JSON that nests some thousand deep ends Python without an exception."""

MAX_HEADER = 1000
"""Characters of an .npy's header, where 118 are usual. It is parsed as Python, whose parser can be nested to death too."""

NPY_MAGIC = b"\x93NUMPY"
ZIP_MAGIC = b"PK"
PICKLE_MAGIC = b"\x80"

NARROWED = frozenset({("float64", "float32"), ("int64", "int32")})
"""Accepted where the values allow it: numpy makes the wider types unless told otherwise, so files have them by accident."""


class CaseError(AppError):
    """Cases cannot be had, or not used with a model.

    From files: ``BadCases``, ``MissingInput``, ``UnknownName``, ``WrongShape``, ``WrongType``, ``PickledArray``,
    ``CountsDiffer``, ``NoCases``. From made cases: ``FreeRank``, ``BadSize``, ``BadCount``, ``BadSeed``. From both:
    ``CasesTooLarge``, ``UnsupportedType``.
    """


def too_large(what: str, limit: int, unit: str = "bytes") -> CaseError:
    """Return the error for `what`, which says how large something is."""
    return CaseError("CasesTooLarge", f"{what}; at most {limit:,} {unit} can be used", "Give fewer or smaller cases.")


def read_npz(filename: str, content: bytes) -> dict[str, NDArray[Any]]:
    """Read an archive's arrays by name, of at most `MAX_BYTES` together; read-only, in the file's dtypes.

    Raises
    ------
    CaseError
        ``CasesTooLarge``, ``PickledArray``, ``WrongType``, or ``BadCases`` if the archive is damaged or holds anything else.
    """
    arrays: dict[str, NDArray[Any]] = {}
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except Exception as error:  # zipfile raises many kinds on damaged files
        raise _damaged(filename, error) from error
    members = archive.infolist()
    # No more is read of a member than it declares, so a zip bomb gives itself away, or is cut short.
    if (total := sum(member.file_size for member in members)) > MAX_BYTES:
        raise too_large(f"{filename} unpacks to {total:,} bytes", MAX_BYTES)
    for member in members:
        name = member.filename.removesuffix(".npy")
        if name == member.filename or name in arrays:
            what = f"{filename} holds {member.filename!r}, which is {'there twice' if name in arrays else 'no .npy'}"
            raise CaseError("BadCases", what, "Make it with numpy.savez(file, name=array, …).")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            what = f"{filename} packs {member.filename!r} in a way that numpy does not use"
            raise CaseError("BadCases", what, "Make it with numpy.savez or numpy.savez_compressed.")
        try:
            with archive.open(member) as stream:
                data = stream.read(member.file_size)
        except Exception as error:  # as above, and zlib's
            raise _damaged(filename, error) from error
        arrays[name] = read_npy(f"{name!r} in {filename}", data)
    return arrays


def read_npy(what: str, data: bytes) -> NDArray[Any]:
    """Read an array of numbers as a read-only view of `data`, in the file's dtype.

    numpy's own reader would make room for the shape that a header claims before it looks for the bytes.

    Raises
    ------
    CaseError
        ``PickledArray``, ``WrongType`` if it is no array of numbers, or ``BadCases`` if it is damaged; the message begins with
        `what`.
    """
    stream = io.BytesIO(data)
    try:
        read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[npy.read_magic(stream)]
        shape, by_columns, dtype = read(stream, max_header_size=MAX_HEADER)
    except Exception as error:  # the header is a Python literal: numpy and Python's parser raise many kinds
        raise _damaged(what, error) from error
    if dtype.hasobject:
        raise _pickled(what)
    if dtype.kind not in "biufc":
        raise CaseError("WrongType", f"{what} is an array of {dtype}", "Save numbers.")
    start = stream.tell()
    wanted = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or wanted != len(data) - start:
        why = f"the shape {list(shape)} of {dtype} needs {wanted:,} bytes, there are {len(data) - start:,}"
        raise _damaged(what, why)
    try:
        return np.ndarray(shape, dtype, buffer=data, offset=start, order="F" if by_columns else "C")
    except (ValueError, TypeError, OverflowError) as error:  # too many axes, or sizes beside a zero
        raise _damaged(what, error) from error


def read_json(filename: str, content: bytes) -> tuple[list[dict[str, Any]], bool]:
    """Read JSON's objects: the only one, or one a case; and whether the file lists them as cases.

    Raises
    ------
    CaseError
        ``PickledArray``, ``CasesTooLarge``, ``NoCases``, or ``BadCases`` if it is no JSON, nests too deep, or has no objects.
    """
    if content.startswith(PICKLE_MAGIC):  # no UTF-8 begins with it
        raise _pickled(filename)
    if len(content) > MAX_JSON_BYTES:
        raise too_large(f"{filename} has {len(content):,} bytes of JSON", MAX_JSON_BYTES)
    try:
        text = content.decode("utf-8-sig")
        if depth(text) > MAX_DEPTH:
            raise CaseError("BadCases", f"{filename} nests more than {MAX_DEPTH} deep", "Give nested lists of numbers.")
        value = json.loads(text, object_pairs_hook=_once)
    except ValueError as error:
        what = f"{filename} is no .npz and no .npy, and cannot be read as JSON: {error}"
        raise CaseError("BadCases", what, "Give inputs as .npz, .npy or JSON.") from error
    if isinstance(value, dict) and list(value) == ["cases"] and isinstance(value["cases"], list):
        # Otherwise it is an input of that name.
        value = value["cases"] if all(isinstance(entry, dict) for entry in value["cases"]) else value
    entries = value if isinstance(value, list) else [value]
    if not entries:
        raise CaseError("NoCases", f"{filename} has no cases", "Give at least one.")
    if len(entries) > MAX_CASES:
        raise too_large(f"{filename} has {len(entries):,} cases", MAX_CASES, "cases")
    if odd := [entry for entry in entries if not isinstance(entry, dict)]:
        what = f"{filename} has {_kind(type(odd[0]))} where an object with the inputs of a case belongs"
        raise CaseError("BadCases", what, 'Write {"inputs": {name: nested lists}}, or a list of these.')
    return entries, isinstance(value, list)


def from_lists(called: str, nested: object) -> NDArray[Any]:
    """Return JSON's nested lists as bool, int64, uint64 or float64, whichever holds them; the message begins with `called`."""
    try:
        leaves = np.array(nested, dtype=object)  # so numpy makes no long texts of short ones, and no floats of integers
        kinds = set(map(type, leaves.flat))
    except ValueError:
        kinds = {list}
    if list in kinds:
        raise CaseError("WrongShape", f"{called} has lists of unlike lengths", "Give each list on a level as many numbers.")
    if odd := kinds - {bool, int, float}:
        raise CaseError(
            "WrongType", f"{called} holds {_kind(odd.pop())}", "Give nested lists of numbers, or of true and false."
        )
    if bool in kinds and len(kinds) > 1:
        raise CaseError("WrongType", f"{called} mixes booleans with numbers", "Give one of both.")
    try:
        if kinds == {bool}:
            return leaves.astype(bool)
        if kinds == {int} and leaves.max() < 1 << 64 and leaves.min() >= -(1 << 63):
            return leaves.astype(np.int64 if leaves.max() < 1 << 63 else np.uint64)
        return leaves.astype(np.float64)
    except OverflowError as error:
        raise CaseError("WrongType", f"{called} has a whole number beyond all number types", "Give smaller ones.") from error


def cast(called: str, array: NDArray[Any], dtype: np.dtype[Any], *, loose: bool) -> NDArray[Any]:
    """Return a contiguous, writable copy in `dtype`.

    Parameters
    ----------
    called : str
        What the message begins with.
    array : array of numbers
        In either byte order.
    dtype : dtype
        What is wanted.
    loose : bool
        Whether the source has no types of its own, as JSON: then numbers only have to be within the range of `dtype`, and
        whole where it is one of integers. Otherwise a conversion has to be lossless or one of `NARROWED`.

    Raises
    ------
    CaseError
        ``WrongType``.
    """
    if array.dtype == bool:  # a file's may be other bytes than 0 and 1
        array = array.view(np.uint8) != 0
    source = array.dtype.newbyteorder("=")
    kinds = (source.kind, dtype.kind)
    if np.can_cast(source, dtype, "safe"):
        return np.array(array, dtype, order="C")
    if not (
        (source.name, dtype.name) in NARROWED or (loose and source.kind in "iuf" and dtype.kind in "iuf" and kinds not in _CUT)
    ):
        hint = "Write whole numbers, or true and false." if loose else f"Save array.astype({dtype.name!r})."
        raise CaseError("WrongType", f"{called} is {source}, the model wants {dtype}", hint)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        fits = array.size == 0 or (int(array.min()) >= limits.min and int(array.max()) <= limits.max)
        made = np.array(array, dtype, order="C") if fits else array
    else:
        with np.errstate(over="ignore"):
            made = np.array(array, dtype, order="C")
        fits = bool((np.isfinite(made) | ~np.isfinite(array)).all())
    if not fits:
        what = f"{called} has numbers that {dtype}, which the model wants, has no room for"
        raise CaseError("WrongType", what, "Give smaller numbers.")
    return made


_CUT = (("f", "i"), ("f", "u"))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has a name twice")
    return found


def _kind(leaf: type) -> str:
    return {dict: "an object", list: "a list", str: "a text", type(None): "null"}.get(leaf, "a number")


def _damaged(what: str, why: object) -> CaseError:
    reason = str(why) or type(why).__name__
    return CaseError("BadCases", f"{what} is damaged or incomplete: {reason[:200].rstrip('. ')}", "Save it again.")


def _pickled(what: str) -> CaseError:
    message = f"{what} holds Python objects; arrays of Python objects are not read, since reading them could run code"
    return CaseError("PickledArray", message, "Save arrays of numbers.")
