"""One rank's events as columns: what ran when, on which lane.

A trace has 10^6 to 10^7 events, so nothing here is an object per event. Times are seconds since `origin_s`; strings are
codes into a list; details that few readers need (tensor shapes, collective arguments) stay as raw JSON until asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stallwise.evidence.fact import WHOLE, Scope, Source


class Kind(IntEnum):
    """What sort of thing an event is, whatever the year or vendor called it."""

    OTHER = 0
    KERNEL = 1
    MEMCPY = 2
    MEMSET = 3
    CPU_OP = 4
    RUNTIME = 5  # a call into the CUDA/HIP runtime or driver
    ANNOTATION = 6  # a named range on the host (steps, stages, NVTX)
    GPU_ANNOTATION = 7  # the same range projected on the device: overlaps kernels, never sum it
    PYTHON = 8
    OVERHEAD = 9  # the profiler's own work
    SYNC = 10
    MEMORY = 11  # an instant with allocator counters


GPU_KINDS = (Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET)
NO_ID = -1


@dataclass(slots=True, eq=False)
class Timeline:
    """Columns of equal length, sorted by start."""

    start_s: NDArray[np.float64]
    duration_s: NDArray[np.float64]
    kind: NDArray[np.uint8]
    name: NDArray[np.int32]  # code into names
    lane: NDArray[np.int32]  # code into lanes: a host thread or a device stream
    correlation: NDArray[np.int64]  # joins a runtime call with what it launched; NO_ID where absent
    external: NDArray[np.int64]  # joins device work with the operator that caused it
    size_bytes: NDArray[np.float64]  # of a copy or an allocation; NaN where absent
    detail: NDArray[np.int32]  # code into details, NO_ID where absent
    names: list[str]
    lanes: list[Lane]
    details: list[bytes]  # raw JSON of the event's args, interned
    source: Source
    scope: Scope = WHOLE
    origin_s: float = 0.0  # add to start_s for the trace's own clock
    devices: list[Device] = field(default_factory=list)
    properties: dict[str, Any] = field(default_factory=dict)  # distributedInfo, versions, with_stack...

    def __len__(self) -> int:
        return len(self.start_s)

    @property
    def end_s(self) -> NDArray[np.float64]:
        """Ends of all events."""
        return self.start_s + self.duration_s

    def rows(self, *kinds: Kind) -> NDArray[np.intp]:
        """Row numbers of the events of these kinds, in order of start."""
        return np.flatnonzero(np.isin(self.kind, [int(k) for k in kinds]))

    def text(self, row: int) -> str:
        """The name of one event."""
        return self.names[int(self.name[row])]


@dataclass(frozen=True, slots=True)
class Lane:
    """A host thread or a device stream."""

    on_device: bool
    process: str  # host pid, or device id
    thread: str  # host tid, or stream id


@dataclass(frozen=True, slots=True)
class Device:
    """What the trace says of a GPU."""

    index: int
    name: str
    memory_bytes: float = 0.0
    sm_count: int = 0
    compute_capability: str = ""
