"""Device memory: allocations inside the loop, and the peak where the allocator's counters were recorded."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallwise.doctor.measures._report import step_fact
from stallwise.doctor.measures._spans import Spans
from stallwise.doctor.measures._step_index import step_index
from stallwise.doctor.measures._vocabulary import Host
from stallwise.evidence.catalog import step as catalog
from stallwise.evidence.evidence import Item
from stallwise.evidence.timeline import NO_ID, Timeline


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """Calls a step, their time, and the peak."""
    index = step_index(timeline)
    rows = index.view.calls(Host.ALLOC)
    lo, hi = index.windows.host[0], index.windows.host[-1]
    rows = rows[(timeline.start_s[rows] >= lo) & (timeline.start_s[rows] < hi)]
    yield step_fact(index, catalog.ALLOC_CALLS, len(rows) / index.steps)
    yield step_fact(index, catalog.ALLOC_TIME, float(timeline.duration_s[rows].sum()) / index.steps)
    free = np.array(["Free" in name for name in timeline.names])[timeline.name[rows]]
    # Waiting for the device inside a free is no cost of its own: only the time with an idle device counts.
    idle = index.busy.complement(float(index.windows.device[0]), float(index.windows.device[-1]))
    for quantity, which in ((catalog.FREE_WAIT, rows[free]), (catalog.MALLOC_WAIT, rows[~free])):
        spans = Spans.of(timeline.start_s[which], timeline.end_s[which])
        yield step_fact(index, quantity, index.mean_s(spans & idle))
    if timeline.memory is not None:
        on_device = timeline.memory.device != NO_ID
        held = timeline.memory.reserved_bytes[on_device]
        if len(held) and np.isfinite(held).any():
            yield step_fact(index, catalog.MEMORY_PEAK, float(np.nanmax(held)))
    capacity = max((d.memory_bytes for d in timeline.devices), default=0.0)
    if capacity:
        yield step_fact(index, catalog.MEMORY_CAPACITY, capacity)
