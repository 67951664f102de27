"""Readings as plain data: lists, numbers, texts and arrays. Decoding builds our own evidence types and can do nothing else.

Every value that is not a plain number or text is a list that starts with a tag; a type that is not named below is refused,
and its reading is simply not kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from enum import Enum
from functools import cache
from typing import Any

import msgspec

from stallwise.doctor.reading import Reading
from stallwise.evidence.bag import Bag, Passage
from stallwise.evidence.catalog import quantities
from stallwise.evidence.event import Event, Form, Role, Stamp
from stallwise.evidence.fact import Fact, Note, Scope, Series, Source, Table
from stallwise.evidence.ledger import Category, Ledger
from stallwise.evidence.quantity import Quantity
from stallwise.evidence.timeline import Device, Kind, Lane, MemoryCounters
from stallwise.evidence.unread import ErrorLine, Unread
from stallwise.late import np
from stallwise.units import Unit

_RECORDS: dict[str, Any] = {
    c.__name__: c
    for c in (
        Bag, Device, ErrorLine, Event, Fact, Lane, Ledger, MemoryCounters, Note, Passage, Reading, Scope, Series, Source, Stamp,
        Table, Unread,
    )
}  # fmt: skip
_ENUMS: dict[str, type[Enum]] = {c.__name__: c for c in (Category, Form, Kind, Role, Unit)}
_GROUPS: dict[str, Callable[[list[Any]], Any]] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
_ARRAYS = "bifuSU"  # kinds of numpy arrays that are nothing but bytes


def encoded(reading: Reading) -> bytes:
    """Raises TypeError for what has no place here."""
    return msgspec.msgpack.encode(_plain(reading))


def decoded(data: bytes) -> Reading:
    """Raises ValueError, KeyError or TypeError for anything that `encoded` has not written."""
    found = _built(msgspec.msgpack.decode(data))
    if not isinstance(found, Reading):
        raise TypeError("this is no reading")
    return found


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind))


def _plain(value: Any) -> Any:
    kind = type(value)
    if value is None or kind in (bool, float, str, bytes):
        return value
    if kind is int:
        return value if -(1 << 63) <= value < 1 << 63 else ["int", str(value)]
    if kind is Quantity:
        if quantities().get(value.name) != value:
            raise TypeError(f"{value.name} is no quantity of the catalogue")
        return ["Quantity", value.name]
    if kind.__name__ in _RECORDS and _RECORDS[kind.__name__] is kind:
        return [kind.__name__, *[_plain(getattr(value, name)) for name in _names(kind)]]
    if kind.__name__ in _GROUPS and kind.__module__ == "builtins":
        plain = map(_plain, value)
        return [kind.__name__, *(sorted(plain, key=repr) if kind in (set, frozenset) else plain)]
    if isinstance(value, dict) and kind.__module__ in ("builtins", "collections"):
        return ["dict", *[[_plain(k), _plain(v)] for k, v in value.items()]]
    if isinstance(value, Enum) and _ENUMS.get(kind.__name__) is kind:
        return ["Enum", kind.__name__, value.name]
    if isinstance(value, np.ndarray):
        return _plain_array(value)
    if isinstance(value, np.generic):
        return _plain(value.item())
    raise TypeError(f"{kind.__module__}.{kind.__name__} has no place in the cache")


def _plain_array(value: np.ndarray[Any, Any]) -> list[Any]:
    if value.dtype.kind in _ARRAYS:
        return ["array", value.dtype.str, list(value.shape), np.ascontiguousarray(value).tobytes()]
    if value.dtype.kind != "O":
        raise TypeError(f"arrays of {value.dtype} have no place in the cache")
    return ["objects", list(value.shape), *map(_plain, value.ravel().tolist())]


def _built(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    tag, *rest = value
    if tag in _RECORDS:
        return _RECORDS[tag](*map(_built, rest))
    if tag in _GROUPS:
        return _GROUPS[tag](list(map(_built, rest)))
    if tag == "Quantity":
        return quantities()[rest[0]]
    if tag == "dict":
        return {_built(k): _built(v) for k, v in rest}
    if tag == "Enum":
        return _ENUMS[rest[0]][rest[1]]
    if tag == "int":
        return int(rest[0])
    if tag == "array":
        dtype = np.dtype(rest[0])
        if dtype.kind not in _ARRAYS:
            raise TypeError(f"arrays of {dtype} have no place in the cache")
        return np.frombuffer(rest[2], dtype).reshape(rest[1]).copy()
    if tag == "objects":
        array = np.empty(len(rest) - 1, dtype=object)
        array[:] = list(map(_built, rest[1:]))
        return array.reshape(rest[0])
    raise TypeError(f"'{str(tag)[:40]}' has no place in the cache")
