"""Out-of-memory messages of PyTorch 0.4 to 2.15 (CUDA, HIP, XPU), JAX, TensorFlow, CUDA itself and serving engines.

Their words are data (oom_words.toml)."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from stallwise.evidence.catalog import memory as m
from stallwise.evidence.catalog import quantities
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit, parse

SIZE = r"(?<![\d.,])([\d.,]{1,40}\s{0,4}(?:[KMGTPE]i?B|bytes|B|[KMGT]\b))"
_MORE_THAN = re.compile(r"Tried to allocate more than 1EB memory")


@cache
def _book() -> dict[str, Any]:
    return tomllib.loads(files("stallwise.readers").joinpath("oom_words.toml").read_text(encoding="utf-8"))


def words() -> tuple[bytes, ...]:
    """One of these stands in every such text, in lower case."""
    return tuple(w.encode() for w in _book()["words"])


@cache
def expression(name: str) -> re.Pattern[str]:
    """An expression of the book."""
    return re.compile(_book()[name])


@cache
def _sizes() -> tuple[tuple[str, re.Pattern[str], tuple[Quantity | None, ...]], ...]:
    """Each wording's name, its expression, and the quantities of its groups."""
    known = quantities()
    return tuple(
        (row["of"], re.compile(row["match"].replace("SIZE", SIZE), re.DOTALL), tuple(known.get(n) for n in row["are"]))
        for row in _book()["size"]
    )


def sizes_in(text: str) -> dict[Quantity, float]:
    """Every number of the message in bytes or tokens."""
    found: dict[Quantity, float] = {}
    for _, pattern, named in _sizes():
        if match := pattern.search(text):
            for quantity, group in zip(named, match.groups(), strict=False):
                value = _size(group, quantity) if quantity is not None and group else None
                if quantity is not None and value is not None:
                    found.setdefault(quantity, value)
    if _MORE_THAN.search(text):
        found[m.REQUEST] = 2.0**60
    if match := expression("free_of").search(text):
        found[m.FREE], found[m.CAPACITY] = float(match[1]) * 2**30, float(match[2]) * 2**30
    if m.RESERVED in found and m.ALLOCATED in found:
        found.setdefault(m.UNUSED_RESERVED, max(0.0, found[m.RESERVED] - found[m.ALLOCATED]))
    return found


def shape_in(text: str) -> tuple[str, float] | None:
    """The tensor's shape and bytes, where the message (TensorFlow's) prints them."""
    match = expression("shape").search(text)
    if match is None:
        return None
    elements = 1.0
    for part in match[1].split(","):
        elements *= float(part or 1)
    return match[1].replace(",", " x "), elements * _book()["widths"].get(match[2], 4)


def engine_facts(text: str) -> dict[Quantity, float]:
    """What a serving engine says of its KV cache at start-up."""
    found: dict[Quantity, float] = {}
    if not expression("no_room_for_cache").search(text):
        return found
    found[m.KV_NO_ROOM] = 1.0
    if match := expression("fraction").search(text):
        found[m.MEMORY_FRACTION] = float(match[1])
    if match := expression("longest").search(text):
        found[m.MAX_LENGTH] = float(match[1])
    return found


def wording_of(text: str) -> str:
    """Whose message it is."""
    for name, pattern, _ in _sizes():
        if pattern.search(text):
            return name
    return "CUDA"


def _size(text: str, quantity: Quantity) -> float | None:
    cleaned = text.replace(",", "").strip()
    if quantity.unit is Unit.TOKEN:
        return float(cleaned)
    cleaned = re.sub(r"\s{0,9}bytes$", "B", cleaned)
    if re.fullmatch(r"[\d.]+\s*[KMGT]", cleaned):
        cleaned += "iB"  # XLA prints 12.34G and means GiB
    if re.fullmatch(r"[\d.]+", cleaned):
        return float(cleaned)
    return parse(cleaned, Unit.BYTE)
