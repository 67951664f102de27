"""`top` and `free`: how many cores are busy, how much of the host is idle, memory over time."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Series, Source
from stallwise.readers._log_line import clock_of
from stallwise.units import Unit, parse

FORMAT = "top or free output"
CAPTURE = "top -b -n 1 > load.txt"
_CPU = re.compile(r"%?Cpu\(s\):.*?([\d.]+)[ %]*id")
_PROCESS = re.compile(r"^\s*(\d+)\s+\S+\s+\S+\s+\S+\s+\S+\s+\S+\s+\S+\s+[RSDZTI]\s+([\d.]+)\s+([\d.]+)\s+\S+\s+(.+)$")
_FREE = re.compile(r"Mem:.*?used:?\s+([\d.]+ ?[KMGT]i?B?)", re.IGNORECASE)
_FREE_COLUMNS = re.compile(r"^\s*(?:\S+ )?Mem:\s+([\d.]+[KMGT]?i?)\s+([\d.]+[KMGT]?i?)\s")
_TOTAL = re.compile(r"total:?\s+([\d.]+ ?[KMGT]i?B?)", re.IGNORECASE)


def recognises(name: str, head: bytes) -> bool:
    """The header of top, or the memory line of free."""
    return (b"load average" in head and b"PID" in head) or (b"Mem:" in head[:65536] and b"used" in head[:65536])


def read(artifact: Artifact) -> Iterator[Item]:
    """Busy cores of the busiest process, idle share, and memory in use."""
    busiest, memory = 0.0, []
    place = 0
    for number, text in enumerate(artifact.lines(), 1):
        if match := _CPU.search(text):
            yield Fact(run.HOST_IDLE_SHARE, float(match[1]) / 100, Source(artifact.name, f"line {number}"))
        if match := _PROCESS.match(text):
            cores = float(match[2]) / 100
            if cores > busiest:
                busiest, place = cores, number
        if match := _FREE.search(text) or _FREE_COLUMNS.match(text):
            written = match[match.lastindex or 1].replace(" ", "")
            clock_s = clock_of(text)
            memory.append(
                (clock_s if clock_s is not None else float(number), parse(_bytes(written), Unit.BYTE), number)
            )
    if busiest:
        yield Fact(run.HOST_BUSY_CORES, busiest, Source(artifact.name, f"line {place}"))
    if len(memory) > 1:
        source = Source(artifact.name, f"lines {memory[0][2]}-{memory[-1][2]}")
        x = np.array([m[0] for m in memory])
        yield Series(run.HOST_MEMORY, x - x[0], np.array([m[1] for m in memory]), source, over="time_s")


def _bytes(written: str) -> str:
    return written if written[-1] in "Bb" else f"{written}B" if not written[-1].isdigit() else f"{written}KiB"
