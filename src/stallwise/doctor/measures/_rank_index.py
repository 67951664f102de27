"""What a rank did with its own time between collectives, so that ranks can be compared over the same stretch of time.

Collectives end together on all ranks. Between two ends every rank has the same time at its disposal: it computes,
copies, waits for input, is held up by its host, or waits in the collective. A rank that waits less than its peers does
more of something else, and that something is why it is late.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._collective_names import HOST_RANGE, op_of
from stallwise.doctor.measures._collective_rows import CollectiveRows
from stallwise.doctor.measures._spans import Spans
from stallwise.doctor.measures._trace_view import view_of
from stallwise.doctor.measures._vocabulary import Host, Work, work_of_kernel
from stallwise.evidence.timeline import Kind, Timeline

Floats = NDArray[np.float64]
# In order: time that could be booked twice goes to the first.
IDLE_REASONS = (("input", Host.LOADER), ("saving", Host.CHECKPOINT), ("gc", Host.GC), ("compiling", Host.COMPILE))
KINDS = ("compute", "copy", *(name for name, _ in IDLE_REASONS), "host")


def seconds_by_kind(timeline: Timeline, rows: CollectiveRows) -> dict[str, Floats]:
    """Seconds by kind in the stretch that ends with each collective; the kinds and `exposed` sum to the stretch."""
    view = view_of(timeline)
    ends = np.maximum.accumulate(rows.end)
    begin = float(rows.windows.host[0])
    starts = np.concatenate(([min(begin, float(rows.start[0]))], ends[:-1]))
    compute, copies = _device_work(timeline) if rows.on_device else _host_work(timeline)
    waiting = Spans.of(rows.start, rows.end)
    copies = copies - compute
    exposed = waiting - compute - copies
    taken = compute | copies | exposed
    booked = {
        "stretch": ends - starts,
        "compute": compute.within(starts, ends),
        "copy": copies.within(starts, ends),
        "exposed": exposed.within(starts, ends),
    }
    for name, meaning in IDLE_REASONS:
        reason = view.ranges(meaning) - taken
        booked[name] = reason.within(starts, ends)
        taken = taken | reason
    booked["host"] = np.maximum(booked["stretch"] - taken.within(starts, ends), 0.0)
    booked["kernels"] = _kernels_between(timeline, starts, ends)
    return booked


def computing(timeline: Timeline, rows: CollectiveRows) -> float:
    """Seconds of the whole window in which the rank computes."""
    compute, _ = _device_work(timeline) if rows.on_device else _host_work(timeline)
    return float(compute.within(rows.windows.device[0], rows.windows.device[-1]))


def _device_work(timeline: Timeline) -> tuple[Spans, Spans]:
    kernels = timeline.named(lambda n: work_of_kernel(n) is not Work.COMMUNICATION, timeline.rows(Kind.KERNEL))
    copies = timeline.rows(Kind.MEMCPY, Kind.MEMSET)
    return (
        Spans.of(timeline.start_s[kernels], timeline.end_s[kernels]),
        Spans.of(timeline.start_s[copies], timeline.end_s[copies]),
    )


def _host_work(timeline: Timeline) -> tuple[Spans, Spans]:
    """Without a device the operators are the work, except those that only wait for a collective."""
    ops = timeline.named(lambda n: not _waits(n), timeline.rows(Kind.CPU_OP))
    leaves = ops[~_parents(timeline, ops)]
    work = Spans.of(timeline.start_s[leaves], timeline.end_s[leaves])
    return work, Spans.of([], [])


def _waits(name: str) -> bool:
    return bool(HOST_RANGE.match(name)) or name.startswith(("c10d::", "record_param_comms")) or op_of(name) == "barrier"


def _parents(timeline: Timeline, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Which of these contain the next one of their thread: a parent may wait for what is not recorded."""
    found = np.zeros(len(rows), bool)
    lanes = timeline.lane[rows]
    for lane in np.unique(lanes):
        mine = np.flatnonzero(lanes == lane)
        start, end = timeline.start_s[rows[mine]], timeline.end_s[rows[mine]]
        found[mine[:-1]] = start[1:] < end[:-1]
    return found


def _kernels_between(timeline: Timeline, starts: Floats, ends: Floats) -> Floats:
    kernels = timeline.named(lambda n: work_of_kernel(n) is not Work.COMMUNICATION, timeline.rows(Kind.KERNEL))
    at = np.sort(timeline.start_s[kernels])
    return (np.searchsorted(at, ends) - np.searchsorted(at, starts)).astype(np.float64)
