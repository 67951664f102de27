"""`nsys stats` by call (cuda_api_sum), as CSV or as printed text: how long the host sat in each CUDA call."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source
from stallwise.readers._cells import count_of
from stallwise.readers._nsys_table import summaries

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


def recognises(name: str, head: bytes) -> bool:
    """Its columns, and names of API calls among the rows."""
    start = head[:65536]
    return b"Total Time (ns)" in start and b"Num Calls" in start and any(call in start for call in _CALLS)


def read(artifact: Artifact) -> Iterator[Item]:
    """The synchronising calls: time each, and who they are."""
    rows = [row for table in summaries(artifact.lines()) if table.counted == "Num Calls" for row in table.rows]
    waits = [row for row in rows if row.name.split("_v")[0] in _SYNCS]
    if not waits:
        return
    worst = max(waits, key=lambda row: row.total_s)
    source = Source(artifact.name, f"line {worst.line}")
    yield Fact(run.SYNC_TIME, worst.total_s / max(worst.count, 1.0), source, samples=count_of(worst.count))
    yield Fact(run.SYNC_CALLER, worst.name, source, samples=count_of(worst.count))
