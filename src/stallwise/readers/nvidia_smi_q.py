"""`nvidia-smi -q`: everything about each GPU as indented text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog.hardware import GPU_LOST
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source
from stallwise.readers._gpu_samples import LOST, GpuSamples, seconds
from stallwise.readers._gpu_state import add_card, word

FORMAT = "nvidia-smi -q"
CAPTURE = "nvidia-smi -q > q.txt"
GPU_LINE = re.compile(r"^GPU (?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]")


def recognises(name: str, head: bytes) -> bool:
    """The banner, or a GPU heading followed by what -q prints under it."""
    text = head[:262144].decode("utf-8", errors="replace")
    return "NVSMI LOG" in text or (
        re.search(r"^GPU [0-9A-Fa-f:.]{10,}\s*$", text, re.MULTILINE) is not None
        and re.search(r"^ {4,}\S.* {2,}: ", text, re.MULTILINE) is not None
    )


def read(artifact: Artifact) -> Iterator[Item]:
    """One sample per GPU and report."""
    samples = GpuSamples(artifact.name)
    cards: list[tuple[int, str, int, float, list[str]]] = []
    time_s, index = float("nan"), -1
    told: list[str] | None = None  # the lines of a card
    for number, line in enumerate(artifact.lines(), 1):
        if "NVSMI LOG" in line:
            told, index = None, -1
        elif GPU_LINE.match(line):
            told, index = [], index + 1
            cards.append((index, line.split()[1], number, time_s, told))
        elif line.startswith("Timestamp"):
            time_s = seconds(line.partition(":")[2])
        elif LOST.search(line):
            yield Fact(GPU_LOST, line.strip()[:200], Source(artifact.name, f"line {number}"))
        elif told is not None and line.strip():
            told.append(line)
    for at, bus_id, number, moment_s, lines in cards:
        add_card(samples, at, bus_id, number, moment_s, _pairs(lines))
    yield from samples.items()


def _pairs(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Paths and values: sections are told by their indentation, and a value ("HW Slowdown : Active") can be a section too."""
    sections: list[tuple[int, str]] = []
    for line in lines:
        indent = len(line) - len(line.lstrip())
        key, colon, value = line.strip().partition(" : ")
        if not colon and line.rstrip().endswith(":"):
            key, colon, value = line.strip()[:-1], ":", ""
        while sections and sections[-1][0] >= indent:
            sections.pop()
        sections.append((indent, word(key)))
        if colon:
            yield "/".join(section for _, section in sections), value
