"""`nsys stats` by kernel (cuda_gpu_kern_sum, gpukernsum), as CSV or as printed text."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Note, Scope, Source
from stallwise.readers._cells import count_of
from stallwise.readers._nsys_table import has_summary, summaries

FORMAT = "nsys kernel summary"
CAPTURE = "nsys stats --report cuda_gpu_kern_sum --format csv run.nsys-rep > kernels.csv"
COUNTED = ("Instances", "Count")
_COPIES = ("[CUDA memcpy", "[CUDA memset", "[CUDA Unified")


def recognises(name: str, head: bytes) -> bool:
    """Its header line: a total and instances."""
    return has_summary(head, COUNTED)


def read(artifact: Artifact) -> Iterator[Item]:
    """Total and mean time of every kernel, and its share."""
    tables = [table.rows for table in summaries(artifact.lines()) if table.counted in COUNTED]
    kernels = [rows for rows in tables if rows and not all(row.name.startswith(_COPIES) for row in rows)]
    if not kernels:
        yield Note("the kernel summary is empty", Source(artifact.name))
        return
    rows = kernels[0]
    whole = sum(row.total_s for row in rows)
    for row in rows:
        scope, source = Scope(kernel=row.name), Source(artifact.name, f"line {row.line}")
        yield Fact(k.TOTAL_TIME, row.total_s, source, scope, samples=count_of(row.count))
        yield Fact(k.TIME, row.total_s / max(row.count, 1.0), source, scope, samples=count_of(row.count))
        if whole:
            yield Fact(k.TIME_SHARE, row.total_s / whole, source, scope)
