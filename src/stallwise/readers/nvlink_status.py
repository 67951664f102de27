"""`nvidia-smi nvlink -s` and `-e`: which links are up, how fast, and how often they had to repeat themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog.hardware import NVLINK_ACTIVE, NVLINK_ERRORS, NVLINK_INACTIVE
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Scope, Source

FORMAT = "nvidia-smi nvlink"
CAPTURE = "nvidia-smi nvlink -s > links.txt; nvidia-smi nvlink -e >> links.txt"
GPU = re.compile(r"^GPU (\d+): (.+?) \(UUID")
LINK = re.compile(r"^\s+Link (\d+): (?:(\d+(?:\.\d+)?) GB/s|(<?inactive>?|disabled|down))", re.IGNORECASE)
ERROR = re.compile(r"^\s+Link (\d+): (.*?(?:Error|Replay|Recovery|CRC).*?): ?(\d+)", re.IGNORECASE)
NONE_UP = re.compile(r"all links are in-?active", re.IGNORECASE)


def recognises(name: str, head: bytes) -> bool:
    """A GPU heading with links below it."""
    text = head[:262144].decode("utf-8", errors="replace")
    return re.search(r"^GPU \d+: .*\(UUID", text, re.MULTILINE) is not None and (
        re.search(r"^\s+Link \d+: ", text, re.MULTILINE) is not None or NONE_UP.search(text) is not None
    )


def read(artifact: Artifact) -> Iterator[Item]:
    """Counts per GPU."""
    gpu, line_of, active, inactive, errors = -1, 0, 0, 0, 0.0
    for number, line in enumerate([*artifact.lines(), "GPU 999999: end (UUID"], 1):
        heading = GPU.match(line)
        if heading:
            if gpu >= 0:
                yield from _facts(artifact.name, gpu, line_of, active, inactive, errors)
            gpu, line_of, active, inactive, errors = int(heading[1]), number, 0, 0, 0.0
        elif error := ERROR.match(line):
            errors += float(error[3])
        elif link := LINK.match(line):
            up = link[2] is not None and float(link[2]) > 0
            active, inactive = active + up, inactive + (not up)
        elif NONE_UP.search(line) and gpu >= 0:
            inactive = max(inactive, 1)


def _facts(file: str, gpu: int, line: int, active: int, inactive: int, errors: float) -> Iterator[Fact]:
    source, scope = Source(file, f"line {line}"), Scope(gpu=gpu)
    if active or inactive:
        yield Fact(NVLINK_ACTIVE, float(active), source, scope)
        yield Fact(NVLINK_INACTIVE, float(inactive), source, scope)
    if errors:
        yield Fact(NVLINK_ERRORS, errors, source, scope)
