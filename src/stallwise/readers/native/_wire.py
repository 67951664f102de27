"""Messages as protobuf writes them, without their schema: numbers and bytes by the number of their field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types
LONGEST_VARINT_BITS = 63


def fields_of(data: bytes) -> Iterator[tuple[int, int, bytes | int]]:
    """Field number, wire type and value. Raises ValueError or IndexError where the bytes are damaged or end too early."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        field, kind = key >> 3, key & 7
        if kind == VARINT:
            number, place = _varint(data, place)
            yield field, kind, number
            continue
        if kind == BYTES:
            length, place = _varint(data, place)
        elif kind in (FIXED64, FIXED32):
            length = 8 if kind == FIXED64 else 4
        else:
            raise ValueError(f"wire type {kind}")
        if place + length > len(data):
            raise ValueError("a field longer than its message")
        yield field, kind, data[place : place + length]
        place += length


def message(data: Any) -> dict[int, list[Any]]:
    """The values of each field. Raises as `fields_of`, and TypeError where a number stands in a message's place."""
    found: dict[int, list[Any]] = {}
    for field, _, value in fields_of(data):
        found.setdefault(field, []).append(value)
    return found


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place += 1
        if not byte & 0x80:
            return value, place
        shift += 7
        if shift > LONGEST_VARINT_BITS:
            raise ValueError("a varint of more than ten bytes")
