"""What stands in a slot of an expression, by the type that its table names: a count, a size, a time, a unit's number, a word."""

from __future__ import annotations

import re
from math import prod

from stallwise.errors import BadRequest
from stallwise.evidence.number_columns import Column
from stallwise.readers.text.value import number_in
from stallwise.units import Unit, parse, readings_of

ENDLESS = ("unlimited", "-1", "infinity")
_PLAIN = ("int", "number")
_WORDED = ("text", "", "items", "hex", "milli", "bytes", "scaled", "time", "rate", "bits", "product")


def typed(kind: str, written: str) -> float | str | None:
    """The value in SI; None where the slot does not hold what its type says."""
    if kind in ("text", "") or kind.startswith("code:"):
        return written
    try:
        return _number(kind, written)
    except (ValueError, OverflowError, BadRequest):
        return None


def is_plain(kind: str) -> bool:
    """A type whose slots hold a number alone."""
    return kind in _PLAIN or (kind not in _WORDED and not kind.startswith("code:") and bool(readings_of(kind)))


def plain_numbers(kind: str, numbers: Column) -> Column:
    """The same as `typed` for many numbers of a plain type."""
    return numbers if kind in _PLAIN else numbers * readings_of(kind)[0][1]


def _number(kind: str, written: str) -> float | None:
    match kind:
        case "int" | "number":
            return float(written.replace(",", "").replace("_", ""))
        case "items":  # a list: how many
            return float(len([item for item in written.split(",") if item]))
        case "product":
            return prod(float(item) for item in written.split(",") if item)
        case "hex":
            return float(int(written, 16))
        case "bytes":
            return _bytes(written)
        case "scaled":  # 405B, 1.3M, 12,000
            found = number_in(written)
            factor = {"b": 1e9, "m": 1e6, "k": 1e3}.get(found[1].strip().lower(), 1.0) if found else 1.0
            return found[0] * factor if found else None
        case "time":  # with its unit
            return parse(written.replace(" ", ""), Unit.SECOND)
        case "rate":  # the same
            return parse(written.replace(" ", ""), Unit.BYTE_PER_S)
        case "milli":  # 1500m of a core
            return float(written) / 1e3
        case "bits":  # as bytes
            return float(written) / 8
    readings = readings_of(kind)
    if not readings:
        raise LookupError(f"a slot of unknown type: {kind}")
    return float("inf") if written in ENDLESS else float(written.replace(",", "")) * readings[0][1]


def _bytes(written: str) -> float:
    cleaned = re.sub(r"\s{0,9}bytes$", "B", written.replace(",", ""))
    if re.fullmatch(r"[\d.]+\s*[KMGT]i?", cleaned):
        cleaned = cleaned.rstrip("i") + "iB"  # XLA prints 12.34G and means GiB
    return float(cleaned) if re.fullmatch(r"[\d.]+", cleaned) else parse(cleaned.replace(" ", ""), Unit.BYTE)
