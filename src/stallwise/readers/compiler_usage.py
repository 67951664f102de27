"""What compilers print of a kernel's registers and spills: ptxas -v, and Triton's line for a compiled kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Scope, Source

FORMAT = "compiler resource usage"
CAPTURE = "nvcc -Xptxas -v kernel.cu 2> usage.txt"
_ENTRY = re.compile(r"(?:Compiling entry function|Function properties for) '?([\w$.]+)'?(?: for 'sm_(\d+)\w*')?")
_SPILL = re.compile(r"(?<!\d)(\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_ONE_LINE = re.compile(r"^(\S+?)(?:\[.*\])?(?: cc (\d+))?: (\d+) registers, (\d+) bytes spilled per thread")
MAX_BYTES = 64 << 20


def recognises(name: str, head: bytes) -> bool:
    """One of the two wordings."""
    return b"ptxas info" in head or b"bytes spilled per thread" in head or b"bytes spill stores" in head


def read(artifact: Artifact) -> Iterator[Item]:
    """Registers and spilled bytes of each kernel."""
    name = ""
    for number, line in enumerate(artifact.text(MAX_BYTES).splitlines(), 1):
        source = Source(artifact.name, f"line {number}")
        if match := _ONE_LINE.match(line.strip()):
            scope = Scope(kernel=match[1])
            yield Fact(k.REGISTERS, float(match[3]), source, scope)
            yield Fact(k.SPILL_BYTES_PER_THREAD, float(match[4]), source, scope)
            continue
        if match := _ENTRY.search(line):
            name = match[1]
        if name and (match := _SPILL.search(line)):
            yield Fact(k.SPILL_BYTES_PER_THREAD, float(max(int(match[1]), int(match[2]))), source, Scope(kernel=name))
        if name and (match := _USED.search(line)):
            yield Fact(k.REGISTERS, float(match[1]), source, Scope(kernel=name))
