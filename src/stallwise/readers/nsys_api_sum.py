"""`nsys stats` by call (cuda_api_sum), as CSV or as printed text: how long the host sat in each CUDA call."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source
from stallwise.readers._cells import count_of
from stallwise.readers._nsys_table import SummaryRow, summaries

FORMAT = "nsys API summary"
CAPTURE = "nsys stats --report cuda_api_sum --format csv run.nsys-rep > api.csv"
_CALLS = (b"cudaLaunchKernel", b"cudaMemcpy", b"cuLaunchKernel", b"cudaStreamSynchronize", b"cudaDeviceSynchronize")
_ALLOCATE = ("cudaMalloc", "cuMemAlloc", "cudaMallocManaged")
_FREE = ("cudaFree", "cuMemFree")
_LAUNCHES = ("cudaLaunchKernel", "cuLaunchKernel", "cudaGraphLaunch")
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
    """The synchronising calls: time each, and who they are. The allocating ones: how many a launch, how much of all the time."""
    rows = [row for table in summaries(artifact.lines()) if table.counted == "Num Calls" for row in table.rows]
    yield from _allocations(rows, artifact.name)
    waits = [row for row in rows if _plain(row.name) in _SYNCS]
    if not waits:
        return
    worst = max(waits, key=lambda row: row.total_s)
    source = Source(artifact.name, f"line {worst.line}")
    yield Fact(run.SYNC_TIME, worst.total_s / max(worst.count, 1.0), source, samples=count_of(worst.count))
    yield Fact(run.SYNC_CALLER, worst.name, source, samples=count_of(worst.count))


def _allocations(rows: list[SummaryRow], file: str) -> Iterator[Item]:
    """A caching allocator asks the driver hardly ever once it is warm, whatever the number of launches."""
    taken, freed = ([row for row in rows if _plain(row.name) in calls] for calls in (_ALLOCATE, _FREE))
    asked = [*taken, *freed]
    launches = sum(row.count for row in rows if _plain(row.name).startswith(_LAUNCHES))
    whole_s = sum(row.total_s for row in rows)
    if not asked or launches <= 0 or whole_s <= 0:
        return
    source = Source(file, f"line {max(asked, key=lambda row: row.total_s).line}")
    calls = min(sum(row.count for row in some) for some in (taken, freed))  # memory only taken: a model is loaded
    yield Fact(run.ALLOCS_PER_LAUNCH, calls / launches, source, samples=count_of(calls))
    yield Fact(run.ALLOC_CALL_SHARE, sum(row.total_s for row in asked) / whole_s, source, samples=count_of(calls))


def _plain(name: str) -> str:
    """Without the version that newer toolkits put behind a call."""
    return name.split("_v")[0]
