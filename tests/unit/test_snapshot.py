import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyapp.breakout import snapshot

PARTS = [b"frames", b"", b"emulator" * 100]


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=5), st.sampled_from(["native", "wasm"]))
def test_what_is_sealed_comes_out_again(parts, body):
    assert snapshot.unseal(body, snapshot.seal(body, parts), parts=len(parts)) == parts


@given(st.data())
def test_one_changed_byte_is_refused(data):
    state = bytearray(snapshot.seal("wasm", PARTS))
    place = data.draw(st.integers(0, len(state) - 1))
    state[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ValueError, match="state"):
        snapshot.unseal("wasm", bytes(state), parts=3)


@pytest.mark.parametrize("change", [lambda s: s[:-1], lambda s: s + b"x", lambda s: s[:30], lambda s: s + s])
def test_a_wrong_size_is_quoted_with_the_right_one(change):
    state = snapshot.seal("wasm", PARTS)
    with pytest.raises(ValueError, match=rf"must have {len(state)} bytes, got {len(change(state))}"):
        snapshot.unseal("wasm", change(state), parts=3)


@pytest.mark.parametrize("state", [b"", b"PK\3\4 some archive", b"\0" * 1000])
def test_something_else_is_quoted(state):
    with pytest.raises(ValueError, match=rf"got {len(state)} bytes"):
        snapshot.unseal("wasm", state, parts=3)


@pytest.mark.parametrize("state", [None, "text", 3, [1, 2]])
def test_what_is_no_bytes_is_named(state):
    with pytest.raises(ValueError, match=f"got {type(state).__name__}"):
        snapshot.unseal("wasm", state, parts=3)


def test_the_other_body_s_state_is_refused():
    with pytest.raises(ValueError, match="saved by the 'native' emulator, this one is 'wasm'"):
        snapshot.unseal("wasm", snapshot.seal("native", PARTS), parts=3)


@pytest.mark.parametrize(("inner", "parts"), [(struct.pack("<I", 1000) + b"abc", 1), (b"\1", 1), (struct.pack("<I", 0), 2)])
def test_parts_that_do_not_add_up_are_refused(inner, parts):
    with pytest.raises(ValueError, match="part"):
        snapshot.unseal("wasm", snapshot.seal("wasm", [inner])[:12] + header_of(inner) + inner, parts=parts)


def header_of(content):
    return struct.pack("<II", zlib.crc32(content), len(content))
