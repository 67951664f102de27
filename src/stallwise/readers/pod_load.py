"""`kubectl top pod`, `docker stats` and pod manifests: cores in use and cores allowed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import median

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import serving
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Scope, Source

FORMAT = "container load"
CAPTURE = "kubectl top pod > load.txt"
_TOP = re.compile(r"^\s*(?:\S+\s+)?(\S+)\s+(\d+)(m?)\s+\d+(?:Mi|Gi|Ki)\b")
_STATS = re.compile(r"^\s*[0-9a-f]{12}\s+(\S+)\s+([\d.]+)%\s")
_LIMIT = re.compile(r"^\s*(?:cpu|cpus|nano_cpus|--cpus)\W+(\d+(?:\.\d+)?)(m?)\W*$", re.IGNORECASE)


def recognises(name: str, head: bytes) -> bool:
    """The header of kubectl top or docker stats, or limits in a manifest."""
    return (
        b"CPU(cores)" in head or (b"CPU %" in head and b"MEM USAGE" in head) or (b"limits:" in head and b"cpu:" in head)
    )


def read(artifact: Artifact) -> Iterator[Item]:
    """Median cores per container, and the limit."""
    used: dict[str, list[float]] = {}
    inside_limits = False
    for number, text in enumerate(artifact.lines(), 1):
        if "limits:" in text:
            inside_limits = True
        elif "requests:" in text:
            inside_limits = False
        if inside_limits and (match := _LIMIT.match(text)):
            cores = float(match[1]) / (1000 if match[2] else 1)
            yield Fact(serving.CPU_LIMIT, cores, Source(artifact.name, f"line {number}"))
        elif match := _TOP.match(text):
            used.setdefault(match[1], []).append(float(match[2]) / (1000 if match[3] else 1))
        elif match := _STATS.match(text):
            used.setdefault(match[1], []).append(float(match[2]) / 100)
    for pod, values in used.items():
        source = Source(artifact.name, pod)
        yield Fact(serving.CPU_USED, median(values), source, Scope(run=artifact.name), samples=len(values))
