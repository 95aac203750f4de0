"""Saved games: parts in a sealed envelope, so that a wrong or damaged one is refused before an emulator reads it."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAGIC: Final = b"PyBk1\0"
_HEADER: Final = struct.Struct("<6s6sII")  # magic, body, CRC-32 and length of what follows


def seal(body: str, parts: Sequence[bytes]) -> bytes:
    """Return the parts as one piece.

    Parameters
    ----------
    body
        Which emulator they are for, up to 6 ASCII letters.
    parts
        Any bytes.
    """
    content = b"".join(struct.pack("<I", len(part)) + part for part in parts)
    return _HEADER.pack(_MAGIC, body.encode(), zlib.crc32(content), len(content)) + content


def unseal(body: str, state: bytes, *, parts: int) -> list[bytes]:
    """Return the parts of what `seal` made.

    Raises
    ------
    ValueError
        `state` is something else, is cut or damaged, or is for another emulator.
    """
    if not isinstance(state, bytes | bytearray | memoryview):
        raise ValueError(f"state must be bytes from save(), got {type(state).__name__}")
    state = bytes(state)
    if len(state) < _HEADER.size or not state.startswith(_MAGIC):
        raise ValueError(f"state must be bytes from save(), got {len(state)} bytes that begin with {state[:6]!r}")
    _, found, checksum, length = _HEADER.unpack_from(state)
    content = state[_HEADER.size :]
    if len(content) != length:
        raise ValueError(f"state must have {_HEADER.size + length} bytes, got {len(state)}: it is cut, or something was added")
    if zlib.crc32(content) != checksum:
        raise ValueError("state is damaged: its checksum does not match; save the game again")
    if (made_by := found.rstrip(b"\0").decode("ascii", "replace")) != body:
        raise ValueError(f"state was saved by the {made_by!r} emulator, this one is {body!r}; save the game here")
    return _split(content, parts)


def _split(content: bytes, parts: int) -> list[bytes]:
    found: list[bytes] = []
    rest = content
    while rest:
        size = int.from_bytes(rest[:4], "little")
        if len(rest) < 4 + size:
            raise ValueError(f"state part {len(found)} must have {size} bytes, got {len(rest) - 4}; save the game again")
        found.append(rest[4 : 4 + size])
        rest = rest[4 + size :]
    if len(found) != parts:
        raise ValueError(f"state must have {parts} parts, got {len(found)}; save the game again")
    return found
