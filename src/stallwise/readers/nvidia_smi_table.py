"""The table plain `nvidia-smi` prints: temperature, power, memory and use of each GPU at one moment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog.hardware import GPU_LOST
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source
from stallwise.readers._gpu_samples import LOST, MIB, GpuSamples, number, seconds

FORMAT = "nvidia-smi table"
CAPTURE = "nvidia-smi > smi.txt"
BANNER = re.compile(r"\|\s*NVIDIA-SMI\s+\S+")
FIRST = re.compile(
    r"^\|\s*(\d{1,9})\s+(.+?)\s+(?:On|Off|N/A|WDDM|TCC|MCDM)\s*\|\s*([0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:\S+)\s+\S+\s*\|\s*(\S+)\s*\|"
)
SECOND = re.compile(
    r"^\|\s*(?:\d+%|N/A|ERR!?)\s+(\d+C?|N/A|ERR!?)\s+P?\S+\s+(\S+)\s*/\s*(\S+)\s*\|\s*(\d+)MiB\s*/\s*(\d+)MiB\s*\|\s*(\d+%|N/A)"
)
STAMP = re.compile(r"^[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d \d{4}")


def recognises(name: str, head: bytes) -> bool:
    """The banner of the table, or the two lines of a card where somebody pasted only those."""
    text = head.decode("utf-8", errors="replace")
    if BANNER.search(text) is not None:
        return True
    lines = text.splitlines()
    return any(FIRST.match(a) and SECOND.match(b) for a, b in pairwise(lines))


def read(artifact: Artifact) -> Iterator[Item]:
    """One sample per GPU and table."""
    samples = GpuSamples(artifact.name)
    time_s = float("nan")
    pending: tuple[int, str, str, float] | None = None
    for line_number, line in enumerate(artifact.lines(), 1):
        if STAMP.match(line):
            time_s = seconds(line)
        elif first := FIRST.match(line):
            pending = int(first[1]), first[2], first[3], number(first[4])
        elif LOST.search(line) or (line.startswith("|") and "ERR!" in line):
            yield Fact(GPU_LOST, line.strip("| ")[:200], Source(artifact.name, f"line {line_number}"))
        second = SECOND.match(line)
        if second and pending:
            index, name, bus_id, ecc = pending
            values = {
                "time_s": time_s,
                "temperature_c": number(second[1]),
                "power_w": number(second[2]),
                "power_limit_w": number(second[3]),
                "memory_used_bytes": float(second[4]) * MIB,
                "memory_total_bytes": float(second[5]) * MIB,
                "utilisation_share": number(second[6]),
                "ecc_uncorrected": ecc,  # the table's "Uncorr. ECC"
            }
            samples.add(index, values, line_number, name=name, bus_id=bus_id)
            pending = None
    yield from samples.items()
