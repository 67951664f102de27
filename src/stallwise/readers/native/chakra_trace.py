"""Chakra execution traces (PyTorch's ExecutionTraceObserver): recognised; they hold operators and their order, no times."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Note, Source

FORMAT = "Chakra execution trace"
EXCLUSIVE = True
_SCHEMA = re.compile(rb'"schema"\s*:\s*"[^"]*chakra')
_OLDER = re.compile(rb'"nodes"\s*:\s*\[')


def recognises(name: str, head: bytes) -> bool:
    """Its schema, or the first node that every such trace has."""
    start = head[:65536]
    return _SCHEMA.search(start) is not None or (b"execution_graph" in start and _OLDER.search(start) is not None)


def read(artifact: Artifact) -> Iterator[Item]:
    """What it is and what it lacks."""
    yield Note(
        "a Chakra execution trace: operators, their shapes and their order, but no times, so nothing tells what is slow; "
        "record a profiler trace of the same steps",
        Source(artifact.name),
    )
