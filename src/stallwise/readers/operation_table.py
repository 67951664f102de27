"""Operations or parts of steps as a table: CSV with a row a rank and step, a stage and microbatch, or an operation."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.readers._operation_columns import operations_in
from stallwise.readers.shapes.delimited import table_in

FORMAT = "table of operations"
SAMPLE_BYTES = 1 << 16


def recognises(name: str, head: bytes) -> bool:
    """Titles that place a row in a job, and times."""
    if b"\x00" in head[:4096] or head.lstrip()[:1] in (b"{", b"[", b"<"):
        return False
    cut = head[:SAMPLE_BYTES]
    rows = table_in((cut if len(cut) == len(head) else cut[: cut.rfind(b"\n") + 1]).decode("utf-8", "replace"))
    return rows is not None and operations_in(rows, name) is not None


def read(artifact: Artifact) -> Iterator[Item]:
    """One table of operations."""
    rows = table_in(artifact.text())
    found = operations_in(rows, artifact.name) if rows is not None else None
    if found is not None:
        yield found
