"""Out-of-memory errors in any log: the sizes of the message and what the traceback says the program was doing.

Messages of PyTorch 0.4 to 2.15 (CUDA, HIP, XPU), JAX, TensorFlow, CUDA itself and serving engines; their words are data
(oom_words.toml)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from math import prod
from typing import Any

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import memory as m
from stallwise.evidence.catalog import quantities
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source
from stallwise.evidence.quantity import Quantity
from stallwise.evidence.skeletons import loosened
from stallwise.readers._patterns import document
from stallwise.readers._traceback import Frame, frames_before, phase_of, place_of
from stallwise.units import Unit, parse

FORMAT = "out-of-memory error"
SIZE = r"(?<![\d.,])([\d.,]{1,40}\s{0,4}(?:[KMGTPE]i?B|bytes|B|[KMGT]\b))"
MESSAGE_LINES = 12  # the longest wordings spread over this many lines
LONGEST = 4000  # characters of a line
FRESH_PROCESS_BYTES = 6e8  # a process that has only opened the device
OF_THE_CACHE = (m.KV_NEEDED, m.KV_AVAILABLE, m.KV_TOKENS, m.MAX_LENGTH)
Sizes = dict[Quantity, float]


def recognises(name: str, head: bytes) -> bool:
    """Any text that speaks of memory running out."""
    if b"\x00" in head[:4096] or b"traceEvents" in head[:8192]:
        return False
    plain = head.lower()  # searching plain words is a hundred times faster than one expression over a megabyte
    return any(word.encode() in plain for word in document("oom_words")["words"])


def read(artifact: Artifact) -> Iterator[Item]:
    """The first failure in the log (later ones are its echo on other ranks) and how many there were."""
    lines = artifact.lines()
    failures, killed = _lines_with(artifact, "device_failure"), _lines_with(artifact, "host_failure")
    if failures:
        at = next((i for i in failures if _sizes_in(_message(lines, i))[1].get(m.REQUEST)), failures[0])
        yield from _failure(artifact.name, lines, at, len(failures))
    if killed:
        yield Fact(m.HOST_KILLED, 1.0, Source(artifact.name, f"line {killed[0] + 1}"), samples=len(killed))
    whole = "\n".join(lines[at][:LONGEST] for at in _telling(artifact))
    told = dict(_of_the_engine(whole))
    if not failures:
        told |= {q: value for q, value in _sizes_in(whole)[1].items() if q in OF_THE_CACHE}
    yield from (Fact(quantity, value, Source(artifact.name)) for quantity, value in told.items())
    if _expression("refused").search(
        whole
    ):  # the device is held by others: the engine says what is free and what it wanted
        wanted = _sizes_in(whole, start=True)[1] | {m.FAILED: 1.0, m.PROCESS_USE: FRESH_PROCESS_BYTES}
        yield from (
            Fact(quantity, value, Source(artifact.name, "start-up check")) for quantity, value in wanted.items()
        )


@cache
def _expression(name: str) -> re.Pattern[str]:
    return re.compile(document("oom_words")[name])


@cache
def sizes() -> tuple[tuple[dict[str, Any], re.Pattern[str], tuple[Quantity | None, ...]], ...]:
    """Each wording with its expression and the quantities of its groups."""
    return tuple(
        (row, re.compile(row["match"].replace("SIZE", SIZE), re.DOTALL), tuple(map(quantities().get, row["are"])))
        for row in document("oom_words")["size"]
    )


def _lines_with(artifact: Artifact, name: str) -> list[int]:
    """Lines that an expression fits; those with an error's or exit's number are told by their digits."""
    text, pattern = artifact.skeletons, _expression(name)
    may = text.where(lambda x: pattern.search(x) or "exit" in x or "runtime error" in x)
    return [at for at in text.lines_of(may) if pattern.search(text.lines[at])]


def _telling(artifact: Artifact) -> list[int]:
    """Lines enough to find what is said in one line: the first of each skeleton, and all where certain digits make the meaning."""
    text, pattern = artifact.skeletons, _expression("no_room_for_cache")
    loose = re.compile(loosened(pattern.pattern), pattern.flags)
    return sorted({*text.firsts, *text.lines_of(text.where(loose.search))})


def _message(lines: list[str], at: int) -> str:
    return "\n".join(lines[at : at + MESSAGE_LINES])


def _failure(name: str, lines: list[str], at: int, count: int) -> Iterator[Fact]:
    source, text = Source(name, f"line {at + 1}"), _message(lines, at)
    wording, found = _sizes_in(text)
    yield Fact(m.FAILED, 1.0, source, samples=count)
    yield Fact(m.WORDING, wording, source)
    yield from (Fact(quantity, value, source) for quantity, value in found.items())
    if shape := _expression("shape").search(text):  # TensorFlow prints the tensor's
        width = document("oom_words")["widths"].get(shape[2], 4)
        yield Fact(m.SHAPE, shape[1].replace(",", " x "), source)
        yield Fact(m.REQUEST, prod(float(part or 1) for part in shape[1].split(",")) * width, source)
    frames = frames_before(lines, at)
    if phase := phase_of(frames) or phase_of([Frame("", "", lines[at])]):
        yield Fact(m.PHASE, phase, source)
    if place := place_of(frames):
        yield Fact(m.PLACE, place, source)


def _sizes_in(text: str, *, start: bool = False) -> tuple[str, Sizes]:
    """Whose message it is, and every number of it in bytes or tokens."""
    found: Sizes = {}
    whose = ""
    for row, pattern, named in sizes():
        if ("start" in row or not start) and (match := pattern.search(text)):
            whose = whose or row["of"]
            for quantity, group in zip(named, match.groups(), strict=False):
                if quantity is not None and group:
                    found.setdefault(quantity, _size(group, quantity, row.get("unit", "")))
    if m.RESERVED in found and m.ALLOCATED in found:
        found.setdefault(m.UNUSED_RESERVED, max(0.0, found[m.RESERVED] - found[m.ALLOCATED]))
    return whose or "CUDA", found


def _of_the_engine(text: str) -> Iterator[tuple[Quantity, float]]:
    """What a serving engine says of its KV cache at start-up."""
    if _expression("no_room_for_cache").search(text):
        yield m.KV_NO_ROOM, 1.0
        for name, quantity in (("fraction", m.MEMORY_FRACTION), ("longest", m.MAX_LENGTH)):
            if match := _expression(name).search(text):
                yield quantity, float(match[1])


def _size(text: str, quantity: Quantity, unit: str) -> float:
    cleaned = re.sub(r"\s{0,9}bytes$", "B", text.replace(",", "").strip())
    if quantity.unit is Unit.TOKEN or re.fullmatch(r"[\d.]+", cleaned):
        return parse(cleaned + unit, Unit.BYTE) if unit else float(cleaned)
    return parse(cleaned + ("iB" if cleaned[-1] in "KMGT" else ""), Unit.BYTE)  # XLA prints 12.34G and means GiB
