"""A launch benchmark as a table: time of launching n kernels one by one and, beside it, of replaying them as a graph."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source
from stallwise.evidence.quantity import Quantity
from stallwise.readers._cells import number_of, seconds_in
from stallwise.readers.shapes._plainly import plain_words
from stallwise.readers.shapes.delimited import first_row, table_in

FORMAT = "launch probe"
_COUNT = {"kernels", "launches", "nodes", "kernel", "ops"}


def recognises(name: str, head: bytes) -> bool:
    """A first column that counts kernels and others that time launches."""
    columns = first_row(head)
    return len(columns) >= 2 and bool(_COUNT & set(plain_words(columns[0]))) and any(_role(c) for c in columns[1:])


def _role(column: str) -> Quantity | None:
    words = plain_words(column)
    if seconds_in(words) is None:
        return None
    if {"replay", "graph", "graphs"} & set(words):
        return run.REPLAY_COST
    return run.LAUNCH_COST if any(w.startswith("launch") or w == "eager" for w in words) else None


def read(artifact: Artifact) -> Iterator[Item]:
    """Seconds a kernel, as the slope over the number of kernels."""
    rows = table_in(artifact.text())
    for column, cells in zip(rows.columns[1:], rows.cells[1:], strict=True) if rows is not None else ():
        quantity, scale = _role(column), seconds_in(plain_words(column)) or 1.0
        both = [(number_of(n), number_of(t)) for n, t in zip(rows.cells[0] if rows else (), cells, strict=True)]
        points = np.array([(n, t) for n, t in both if n is not None and t is not None and abs(n) + abs(t) < np.inf])
        if quantity is not None and len(points):
            several = len(set(points[:, 0])) > 1
            slope = np.polyfit(points[:, 0], points[:, 1], 1)[0] if several else points[0, 1] / max(points[0, 0], 1.0)
            yield Fact(quantity, float(slope) * scale, Source(artifact.name, f"column {column}"), samples=len(points))
