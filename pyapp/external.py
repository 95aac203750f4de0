"""Weights in other files than the model, ONNX's external data: which files those are, and the model with them inside."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyapp.onnxfile import MAX_BYTES, ModelError, parse_model
from pyapp.onnxparts import broken, byte_size, is_external, location_of, quoted, tensors, text

if TYPE_CHECKING:
    from onnx import onnx_ml_pb2 as proto


@dataclass(frozen=True, slots=True)
class _Range:
    """Where a tensor's numbers lie."""

    tensor: proto.TensorProto
    location: str
    start: int
    stop: int


def external_files(content: bytes) -> dict[str, int]:
    """Say which other files a model's weights lie in: of the graph, inner graphs, attributes and functions.

    Parameters
    ----------
    content : bytes
        An ONNX file.

    Returns
    -------
    dict of str to int
        The files as the model names them, in its order, each with how many bytes it has at least. Empty where all weights are
        inside.

    Raises
    ------
    ModelError
        If it is no model that can be used, or does not say where its weights lie.
    """
    sizes: dict[str, int] = {}
    for part in _ranges(parse_model(content)):
        sizes[part.location] = max(sizes.get(part.location, 0), part.stop)
    return sizes


def inlined(content: bytes, files: Mapping[str, bytes], *, limit: int = MAX_BYTES) -> bytes:
    """Bring a model's weights in from other files.

    Parameters
    ----------
    content : bytes
        An ONNX file.
    files : mapping of str to bytes
        The other files by the name that the model has for them, or by the last part of it: who picks files in a browser gives
        no folders. Nothing is read from anywhere else, so that a name may be of any kind.
    limit : int
        Most bytes of the model and its weights together.

    Returns
    -------
    bytes
        The model with all its weights inside; `content` itself where they already are.

    Raises
    ------
    ModelError
        ``ExternalDataMissing`` names the files that are missing. ``AmbiguousFiles`` where two files of different folders have
        the same name. ``BrokenModel`` where weights lie outside of their file. ``ModelTooLarge`` for more than `limit` bytes.
        The others of `pyapp.onnxfile.read_model`.
    """
    model = parse_model(content, limit=limit)
    parts = list(_ranges(model))
    if not parts:
        return content
    found = _matched(list(dict.fromkeys(part.location for part in parts)), files)
    for part in parts:
        size = len(found[part.location])
        if part.stop > size:
            where = f"bytes {part.start:,} to {part.stop:,} of {quoted(part.location)}, which has {size:,}"
            raise broken(f"the weights {quoted(part.tensor.name)} are {where}")
    # Weights that share bytes count each: each gets its own.
    total = len(content) + sum(part.stop - part.start for part in parts)
    if total > limit:
        what = f"the model and its weights have {total:,} bytes; at most {limit:,} can be used"
        raise ModelError("ModelTooLarge", what, "Use a smaller or a quantised model.")
    for part in parts:
        part.tensor.raw_data = bytes(found[part.location][part.start : part.stop])
        part.tensor.ClearField("external_data")
        part.tensor.ClearField("data_location")
    return bytes(model.SerializeToString())


def _ranges(model: proto.ModelProto) -> list[_Range]:
    found = []
    for tensor in tensors(model):
        if not is_external(tensor):
            continue
        location = location_of(tensor)
        if not _base(location):
            raise broken(f"the weights {quoted(tensor.name)} are in another file, and {quoted(location)} names none")
        start, length, needed = _number(tensor, "offset") or 0, _number(tensor, "length"), byte_size(tensor)
        size = needed if length is None else length
        if size is None:
            raise broken(f"the weights {quoted(tensor.name)} are in another file, and it is not said how long they are")
        if length is not None and needed is not None and length != needed:
            what = f"have {length:,} bytes in {quoted(location)}, where their shape needs {needed:,}"
            raise broken(f"the weights {quoted(tensor.name)} {what}")
        found.append(_Range(tensor, location, start, start + size))
    return found


def _number(tensor: proto.TensorProto, key: str) -> int | None:
    values = [text(entry.value) for entry in tensor.external_data if entry.key == key]
    if not values:
        return None
    if not re.fullmatch("[0-9]{1,18}", values[-1]):
        raise broken(f"the weights {quoted(tensor.name)} have the {key} {quoted(values[-1])}, which is no number of bytes")
    return int(values[-1])


def _matched(locations: list[str], files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Find the file of each location."""
    missing = [location for location in locations if location not in files and _base(location) not in files]
    if missing:
        # Whole names: the reader has to find each of these files.
        what = f"the model's weights are in other files, which are missing: {', '.join(map(repr, missing))}"
        raise ModelError("ExternalDataMissing", what, "Give them together with the model.")
    keys = {location: location if location in files else _base(location) for location in locations}
    paths: dict[str, str] = {}
    for location, key in keys.items():
        path = posixpath.normpath(_slashed(location))
        if paths.setdefault(key, path) != path:
            what = f"the model's weights are in files of the same name, {quoted(paths[key])} and {quoted(path)}"
            raise ModelError("AmbiguousFiles", what, "Save the model with its weights in one file.")
    return {location: files[key] for location, key in keys.items()}


def _base(location: str) -> str:
    base = _slashed(location).rpartition("/")[2]
    return "" if base in (".", "..") else base


def _slashed(location: str) -> str:
    return location.replace("\\", "/")  # as it is written on Windows
