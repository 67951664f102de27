"""Out-of-memory errors in any log: the sizes of the message and what the traceback says the program was doing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import memory as m
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source
from stallwise.evidence.skeletons import loosened
from stallwise.readers._cells import number_of
from stallwise.readers._oom_text import (
    engine_facts,
    expression,
    shape_in,
    sizes_in,
    wording_of,
    words,
)
from stallwise.readers._traceback import Frame, frames_before, phase_of, place_of

FORMAT = "out-of-memory error"
MESSAGE_LINES = 12  # the longest wordings spread over this many lines
FRESH_PROCESS_BYTES = 6e8  # a process that has only opened the device


def recognises(name: str, head: bytes) -> bool:
    """Any text that speaks of memory running out."""
    if b"\x00" in head[:4096] or b"traceEvents" in head[:8192]:
        return False
    plain = head.lower()  # searching plain words is a hundred times faster than one expression over a megabyte
    return any(word in plain for word in words())


def read(artifact: Artifact) -> Iterator[Item]:
    """The first failure in the log (later ones are its echo on other ranks) and how many there were."""
    lines = artifact.lines()
    failures, killed = _lines_with(artifact, "device_failure"), _lines_with(artifact, "host_failure")
    if failures:
        at = next((i for i in failures if sizes_in(_message(lines, i)).get(m.REQUEST)), failures[0])
        yield from _failure(artifact.name, lines, at, len(failures))
    if killed:
        source = Source(artifact.name, f"line {killed[0] + 1}")
        yield Fact(m.HOST_KILLED, 1.0, source, samples=len(killed))
    whole = "\n".join(lines[at][:4000] for at in _telling(artifact))
    for quantity, value in engine_facts(whole).items():
        yield Fact(quantity, value, Source(artifact.name))
    yield from _claimed(artifact.name, whole)
    if not failures:
        for quantity, value in sizes_in(whole).items():
            if quantity in (m.KV_NEEDED, m.KV_AVAILABLE, m.KV_TOKENS, m.MAX_LENGTH):
                yield Fact(quantity, value, Source(artifact.name))


def _lines_with(artifact: Artifact, name: str) -> list[int]:
    """Lines that an expression fits; those with an error's or exit's number are told by their digits."""
    text, pattern = artifact.skeletons, expression(name)
    may = text.where(lambda x: pattern.search(x) or "exit" in x or "runtime error" in x)
    return [at for at in text.lines_of(may) if pattern.search(text.lines[at])]


def _telling(artifact: Artifact) -> list[int]:
    """Lines enough to find what is said in one line: the first of each skeleton, and all where certain digits make the meaning."""
    text, pattern = artifact.skeletons, expression("no_room_for_cache")
    loose = re.compile(loosened(pattern.pattern), pattern.flags)
    return sorted({*text.firsts, *text.lines_of(text.where(loose.search))})


def _claimed(name: str, text: str) -> Iterator[Fact]:
    """An engine that refuses to start because others hold the device says what is free and what it wanted."""
    match = expression("refused").search(text)
    if match is None:
        return
    source = Source(name, "start-up check")
    gibibytes = [number_of(match[i]) for i in (1, 2, 3)]
    if None in gibibytes:
        return
    free, capacity, wanted = (value * 2**30 for value in gibibytes if value is not None)
    values = {m.FAILED: 1.0, m.FREE: free, m.CAPACITY: capacity, m.REQUEST: wanted, m.PROCESS_USE: FRESH_PROCESS_BYTES}
    for quantity, value in values.items():
        yield Fact(quantity, value, source)


def _message(lines: list[str], at: int) -> str:
    return "\n".join(lines[at : at + MESSAGE_LINES])


def _failure(name: str, lines: list[str], at: int, count: int) -> Iterator[Fact]:
    source = Source(name, f"line {at + 1}")
    text = _message(lines, at)
    yield Fact(m.FAILED, 1.0, source, samples=count)
    yield Fact(m.WORDING, wording_of(text), source)
    for quantity, value in sizes_in(text).items():
        yield Fact(quantity, value, source)
    if (shape := shape_in(text)) is not None:
        yield Fact(m.SHAPE, shape[0], source)
        yield Fact(m.REQUEST, shape[1], source)
    frames = frames_before(lines, at)
    if phase := phase_of(frames) or phase_of([Frame("", "", lines[at])]):
        yield Fact(m.PHASE, phase, source)
    if place := place_of(frames):
        yield Fact(m.PLACE, place, source)
