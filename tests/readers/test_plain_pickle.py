"""Pickles are read as data: nothing in them runs, nothing large is allocated, plain values come out as they were."""

from __future__ import annotations

import collections
import datetime
import os
import pickle
import struct
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stallwise.errors import UnreadableInput
from stallwise.readers.native._plain_pickle import load_plain, load_slowly, looks_like_pickle

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)  # of more bits none is read: they can be made to have one hash
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.binary(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=5), inner, max_size=4)
        | st.tuples(inner, inner)
        | st.lists(inner, max_size=5).map(tuple)
    ),
    max_leaves=30,
)
RAN: list[str] = []


def trap(word: str) -> str:
    RAN.append(word)
    return word


class Trap:
    def __init__(self, opcode_user: Any) -> None:
        self.how = opcode_user

    def __reduce__(self) -> Any:
        return self.how


HARMFUL = {
    "a call": Trap((trap, ("call",))),
    "a call of the shell": Trap((os.system, ("true",))),
    "an object with state": Trap((collections.OrderedDict, (), {"a": 1})),
    "a builtin": Trap((eval, ("1+1",))),
    "a date": datetime.date(2026, 1, 1),
    "a class": collections.Counter,
    "an exception": ValueError("x"),
    "a complex number": 1 + 2j,
}


@given(PLAIN, st.integers(0, 5))
def test_plain_values_come_back_as_they_were(value: Any, protocol: int) -> None:
    if protocol < 3 and any(word in pickle.dumps(value, protocol) for word in (b"_codecs", b"__builtin__")):
        return  # old protocols write bytes as a call
    data = pickle.dumps(value, protocol)
    assert load_plain(data, "x") == value
    assert load_slowly(data) == value


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("what", HARMFUL)
def test_code_is_refused_and_never_runs(what: str, protocol: int) -> None:
    RAN.clear()
    data = pickle.dumps({"entries": [HARMFUL[what]]}, protocol)
    with pytest.raises(UnreadableInput, match="not opened"):
        load_plain(data, "dump")
    with pytest.raises(UnreadableInput, match="not opened"):
        load_slowly(data)
    assert RAN == []


def test_the_refusal_names_what_was_asked_for() -> None:
    with pytest.raises(UnreadableInput, match=r"posix\.system|nt\.system"):
        load_plain(pickle.dumps(HARMFUL["a call of the shell"], 4), "dump")


RAW = {
    "REDUCE on plain data": b"\x80\x02]K\x01\x85R.",
    "BUILD on plain data": b"\x80\x02}}b.",
    "OBJ": b"\x80\x02(]o.",
    "NEWOBJ": b"\x80\x02])\x81.",
    "INST": b"(ios\nsystem\n.",
    "an extension": b"\x80\x02\x82\x01.",
    "a persistent id": b"\x80\x02K\x01Q.",
    "a text persistent id": b"Pabc\n.",
    "an out-of-band buffer": b"\x80\x05\x97.",
    "GLOBAL in protocol 0": b"cos\nsystem\n(S'true'\ntR.",
    "code after harmless memo tricks": b"\x80\x02(]q\x00u" + b"cos\nsystem\nX\x04\x00\x00\x00true\x85R.",
}


@pytest.mark.parametrize("what", RAW)
def test_hand_made_programs_are_refused(what: str) -> None:
    with pytest.raises((UnreadableInput, ValueError, IndexError)):
        load_slowly(RAW[what])
    with pytest.raises(UnreadableInput):
        load_plain(RAW[what], "dump")


def laughs(levels: int, make: bytes, close: bytes) -> bytes:
    """Containers of ten references to the one before."""
    parts = [b"\x80\x02]q\x00"]
    for level in range(levels):
        parts.append(make + b"h" + bytes([level]) + (b"h" + bytes([level])) * 9 + close + b"q" + bytes([level + 1]))
    return b"".join(parts) + b"."


BOMBS = {
    "lists of lists": laughs(30, b"](", b"e"),
    "tuples of tuples": laughs(30, b"(", b"t"),
    "a tuple bomb as a key": b"\x80\x02}" + laughs(40, b"(", b"t")[2:-1] + b"Ns.",
    "a list that holds itself": b"\x80\x02]q\x00h\x00a.",
    "nested a hundred thousand deep": b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".",
    "tuples nested deep as a key": b"\x80\x02})" + b"\x85" * 100_000 + b"Ns.",
    "a memo place far out": b"\x80\x02]r" + struct.pack("<I", 0xFFFFFFF0) + b".",
    "a text memo place far out": b"]p999999999999\n.",
    "a string that claims 4 GB": b"\x80\x02X" + struct.pack("<I", 0xFFFFFFF0) + b"abc.",
    "a byte array that claims an exabyte": b"\x80\x05\x96" + struct.pack("<Q", 1 << 60) + b"abc.",
    "a frame that claims an exabyte": b"\x80\x04\x95" + struct.pack("<Q", 1 << 60) + b"].",
    "an integer that claims 2 GB": b"\x80\x02\x8b" + struct.pack("<I", 0x7FFFFFFF) + b"\x01.",
}


@pytest.mark.parametrize("what", BOMBS)
def test_bombs_end_early_with_little_memory(what: str) -> None:
    tracemalloc.start()
    try:
        load_plain(BOMBS[what], "dump")
    except UnreadableInput as error:
        assert error.hint
    else:
        assert "memo place" in what  # harmless where the memo is a dictionary
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60e6


@given(st.binary(max_size=60), st.integers(0, 5))
def test_any_bytes_give_a_value_or_a_clear_refusal(tail: bytes, protocol: int) -> None:
    for data in (bytes([0x80, protocol]) + tail, tail, b"}q\x00" + tail):
        try:
            load_plain(data, "x")
        except UnreadableInput as error:
            assert error.problem


@settings(max_examples=60)
@given(PLAIN, st.integers(2, 5), st.data())
def test_a_damaged_pickle_is_refused_or_read(value: Any, protocol: int, draw: st.DataObject) -> None:
    data = bytearray(pickle.dumps(value, protocol))
    place = draw.draw(st.integers(0, len(data) - 1))
    data[place] = draw.draw(st.integers(0, 255))
    for changed in (bytes(data), bytes(data[:place])):
        try:
            load_plain(changed, "x")
        except UnreadableInput:
            continue


def test_the_opening_tells_a_pickle_from_text() -> None:
    assert looks_like_pickle(pickle.dumps({"a": 1}, 4)) and looks_like_pickle(pickle.dumps({"a": 1}, 0))
    assert not looks_like_pickle(b'{"a": 1}\n') and not looks_like_pickle(b"(dpkg-reconfigure) said no")
