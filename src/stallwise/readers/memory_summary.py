"""torch.cuda.memory_summary(): the allocator's own table."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import memory as m
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source
from stallwise.units import Unit, parse

FORMAT = "PyTorch memory summary"
CAPTURE = "print(torch.cuda.memory_summary())"
_TITLE = "memory summary, device ID"
_COUNTS = re.compile(r"OOMs\s*[:=]\s*(\d+)\s*\|\s*cudaMalloc retries\s*[:=]\s*(\d+)")
_ROW = re.compile(r"\|\s*(Allocated memory|GPU reserved memory|Non-releasable memory|Active memory)\s*\|"
                  r"\s*([\d.]+ \w+)\s*\|\s*([\d.]+ \w+)\s*\|")  # fmt: skip


def recognises(name: str, head: bytes) -> bool:
    """The table's title."""
    return _TITLE.encode() in head


def read(artifact: Artifact) -> Iterator[Item]:
    """Current and peak use of the first table."""
    source = Source(artifact.name, "memory summary")
    text = artifact.text().replace("\\n", "\n")  # the summary may be a JSON string
    if match := _COUNTS.search(text):
        yield Fact(m.OOMS, float(match[1]), source)
        yield Fact(m.RETRIES, float(match[2]), source)
    rows = {match[1]: (_size(match[2]), _size(match[3])) for match in _ROW.finditer(text)}
    allocated, reserved = rows.get("Allocated memory"), rows.get("GPU reserved memory")
    if allocated:
        yield Fact(m.PEAK, allocated[1], source)
        if not _says_sizes(text):
            yield Fact(m.ALLOCATED, allocated[0], source)
    if reserved and not _says_sizes(text):
        yield Fact(m.RESERVED, reserved[0], source)
        if allocated:
            yield Fact(m.UNUSED_RESERVED, max(0.0, reserved[0] - allocated[0]), source)


def _says_sizes(text: str) -> bool:
    """The error's own sentence speaks of the moment of failure; the table was often printed after the clean-up."""
    return "reserved by PyTorch but unallocated" in text


def _size(text: str) -> float:
    return parse(text, Unit.BYTE)
