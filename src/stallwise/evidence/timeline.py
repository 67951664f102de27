"""One rank's events as columns: what ran when, on which lane.

A trace has 10^6 to 10^7 events, so nothing here is an object per event. Times are seconds since `origin_s`; strings
are codes into a list; details that few measures need (tensor shapes, collective arguments, launch grids) are interned
as raw JSON and decoded once per distinct value when somebody asks.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from stallwise.evidence.fact import WHOLE, Scope, Source
from stallwise.late import np

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
ON_DEVICE = (*GPU_KINDS, Kind.GPU_ANNOTATION, Kind.SYNC)
NO_ID = -1


@dataclass(frozen=True, slots=True)
class Lane:
    """A host thread or a device stream."""

    on_device: bool
    process: str  # host pid, or device id
    thread: str  # host tid, or stream id
    label: str = ""  # the thread's own name where the trace tells it


@dataclass(frozen=True, slots=True)
class Device:
    """What the trace says of a GPU."""

    index: int
    name: str
    memory_bytes: float = 0.0
    sm_count: int = 0
    compute_capability: str = ""


@dataclass(slots=True, eq=False)
class MemoryCounters:
    """What the allocator said at each event of kind MEMORY, in the order of `rows(Kind.MEMORY)`."""

    allocated_bytes: NDArray[np.float64]
    reserved_bytes: NDArray[np.float64]
    address: NDArray[np.uint64]
    device: NDArray[np.int32]  # NO_ID for host memory


@dataclass(slots=True, eq=False)
class Recorded:
    """The times that the file tells, event by event, where a replay has moved them."""

    start_s: NDArray[np.float64]
    end_s: NDArray[np.float64]
    boundary_s: NDArray[np.float64]  # of the steps on the device
    clean_ends_s: tuple[float, float]  # between which the mean step lies that the replay tells


@dataclass(slots=True, eq=False)
class Timeline:
    """Columns of equal length, sorted by start; of two that start together the longer (the parent) comes first."""

    start_s: NDArray[np.float64]
    duration_s: NDArray[np.float64]
    kind: NDArray[np.uint8]
    name: NDArray[np.int32]  # code into names
    lane: NDArray[np.int32]  # code into lanes: a host thread or a device stream
    correlation: NDArray[np.int64]  # joins a runtime call with what it launched; NO_ID where absent
    external: NDArray[np.int64]  # joins device work with the operator that caused it; NO_ID where absent
    size_bytes: NDArray[np.float64]  # of a copy or an allocation (negative: freed); NaN where absent
    detail: NDArray[np.int32]  # code into details, NO_ID where absent
    names: list[str]
    lanes: list[Lane]
    details: list[bytes]  # raw JSON objects of the event's args without its ids, interned
    source: Source
    scope: Scope = WHOLE
    origin_s: float = 0.0  # add to start_s for the trace's own clock (since the epoch where the trace tells)
    devices: list[Device] = field(default_factory=list)
    properties: dict[str, Any] = field(default_factory=dict)  # distributedInfo, versions, with_stack...
    memory: MemoryCounters | None = None
    recorded: Recorded | None = None  # None where the times above are those of the file
    _decoded: dict[int, dict[str, Any]] = field(default_factory=dict, repr=False)
    _ends: NDArray[np.float64] | None = field(default=None, init=False, repr=False)
    _rows: dict[tuple[Kind, ...], NDArray[np.intp]] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.start_s)

    @property
    def end_s(self) -> NDArray[np.float64]:
        """Ends of all events, not to be written to."""
        if self._ends is None:
            self._ends = self.start_s + self.duration_s
            self._ends.setflags(write=False)
        return self._ends

    @property
    def span_s(self) -> float:
        """From the first start to the last end."""
        return float(self.end_s.max() - self.start_s[0]) if len(self) else 0.0

    def rows(self, *kinds: Kind) -> NDArray[np.intp]:
        """Row numbers of the events of these kinds, in order of start; not to be written to."""
        found = self._rows.get(kinds)
        if found is None:
            wanted = np.zeros(256, dtype=bool)
            wanted[[int(k) for k in kinds]] = True
            found = self._rows[kinds] = np.flatnonzero(wanted[self.kind])
            found.setflags(write=False)
        return found

    def text(self, row: int) -> str:
        """The name of one event."""
        return self.names[int(self.name[row])]

    def named(self, test: Any, rows: NDArray[np.intp] | None = None) -> NDArray[np.intp]:
        """The rows (of these, or of all) whose name passes the test; the test runs once per distinct name."""
        passes = np.fromiter((bool(test(n)) for n in self.names), dtype=bool, count=len(self.names))
        if rows is None:
            return np.flatnonzero(passes[self.name])
        kept: NDArray[np.intp] = rows[passes[self.name[rows]]]
        return kept

    def codes(self, rows: NDArray[np.intp]) -> list[int]:
        """The name codes that these rows use, each once, in order."""
        used: list[int] = np.flatnonzero(np.bincount(self.name[rows])).tolist()
        return used

    def details_of(self, row: int) -> dict[str, Any]:
        """The args of one event that were kept (shapes, types, collective, grid), decoded; empty where none."""
        return self._detail(int(self.detail[row]))

    def distinct_values(self, key: str, rows: NDArray[np.intp]) -> tuple[list[Any], NDArray[np.intp]]:
        """One arg of many events: what each distinct detail says of it, and for each event which of them it has."""
        codes, which = np.unique(self.detail[rows], return_inverse=True)
        return [self._detail(code).get(key) for code in codes.tolist()], which

    def _detail(self, code: int) -> dict[str, Any]:
        if code == NO_ID:
            return {}
        found = self._decoded.get(code)
        if found is None:
            found = self._decoded[code] = json.loads(self.details[code])
        return found

    @property
    def distributed(self) -> dict[str, Any]:
        """What the trace says of the job: rank, world_size, backend, process groups; empty where it does not."""
        info = self.properties.get("distributedInfo")
        return info if isinstance(info, dict) else {}
