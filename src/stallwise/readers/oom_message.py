"""Out-of-memory errors in any log: what the traceback says the program was doing. Their sizes are read by a book of gauges."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import memory as m
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source
from stallwise.readers._patterns import entries, patterns
from stallwise.readers._traceback import Frame, frames_before, phase_of, place_of

FORMAT = "out-of-memory error"
_P = patterns("oom")


def recognises(name: str, head: bytes) -> bool:
    """Any text that may speak of memory running out."""
    plain = b"" if b"\x00" in head[:4096] or b"traceEvents" in head[:8192] else head.lower()
    return any(word.encode() in plain for word in entries("oom")["failure"]["words"])


def read(artifact: Artifact) -> Iterator[Item]:
    """The first failure that names a size, else the first (others are its echo on other ranks), and how many there were."""
    text = artifact.skeletons
    may = text.lines_of(text.where(lambda x: _P["failure"].search(x) or "runtime error" in x))
    failures = [at for at in may if _P["failure"].search(text.lines[at])]
    if not failures:
        return
    at = next((i for i in failures if _P["size"].search(text.lines[i])), failures[0])
    source, frames = Source(artifact.name, f"line {at + 1}"), frames_before(text.lines, at)
    yield Fact(m.FAILED, 1.0, source, samples=len(failures))
    if phase := phase_of(frames) or phase_of([Frame("", "", text.lines[at])]):
        yield Fact(m.PHASE, phase, source)
    if place := place_of(frames):
        yield Fact(m.PLACE, place, source)
