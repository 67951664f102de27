"""Operations or parts of steps as a table: CSV with a row a rank and step, a stage and microbatch, or an operation."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.readers._operation_columns import operations_in
from stallwise.readers.shapes.delimited import table_in

FORMAT = "table of operations"
FIRST_ROWS = 3


def recognises(name: str, head: bytes) -> bool:
    """Titles that place a row in a job, and times."""
    if b"\x00" in head[:4096] or head.lstrip()[:1] in (b"{", b"[", b"<"):
        return False
    lines = (x for x in head.decode("utf-8", "replace").splitlines() if x.strip() and not x.startswith("#"))
    titles, few = (
        next(lines, ""),
        islice(lines, FIRST_ROWS),
    )  # of rows that are alike a sample shows one; its last may be cut
    tables = (table_in(f"{titles}\n{row}") for row in few)
    return any(rows is not None and operations_in(rows, name, fewest=1) is not None for rows in tables)


def read(artifact: Artifact) -> Iterator[Item]:
    """One table of operations."""
    rows = table_in(artifact.text())
    found = operations_in(rows, artifact.name) if rows is not None else None
    if found is not None:
        yield found
