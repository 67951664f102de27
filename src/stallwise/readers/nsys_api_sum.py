"""`nsys stats --report cuda_api_sum` as CSV: how long the host sat in each CUDA call."""

from __future__ import annotations

import csv
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source

FORMAT = "nsys API summary"
CAPTURE = "nsys stats --report cuda_api_sum --format csv run.nsys-rep > api.csv"
_CALLS = (b"cudaLaunchKernel", b"cudaMemcpy", b"cuLaunchKernel", b"cudaStreamSynchronize", b"cudaDeviceSynchronize")
_SYNCS = (
    "cudaDeviceSynchronize",
    "cudaStreamSynchronize",
    "cudaEventSynchronize",
    "cuStreamSynchronize",
    "cuCtxSynchronize",
)
NANOSECOND = 1e-9


def recognises(name: str, head: bytes) -> bool:
    """Its columns, and names of API calls among the rows."""
    start = head[:65536]
    return b"Total Time (ns)" in start and b"Num Calls" in start and any(call in start for call in _CALLS)


def read(artifact: Artifact) -> Iterator[Item]:
    """The synchronising calls: time each, and who they are."""
    lines = artifact.lines()
    begin = next(i for i, line in enumerate(lines) if "Total Time (ns)" in line)
    table = csv.DictReader(lines[begin:])
    best: tuple[float, str, float, int] | None = None
    for number, row in enumerate(table, begin + 2):
        try:
            total, calls = float(row["Total Time (ns)"]) * NANOSECOND, float(row["Num Calls"])
        except (KeyError, TypeError, ValueError):
            continue
        if (row.get("Name") or "").split("_v")[0] in _SYNCS and (best is None or total > best[0]):
            best = (total, row["Name"], calls, number)
    if best is not None:
        total, name, calls, number = best
        source = Source(artifact.name, f"line {number}")
        yield Fact(run.SYNC_TIME, total / max(calls, 1.0), source, samples=int(calls))
        yield Fact(run.SYNC_CALLER, name, source, samples=int(calls))
