"""Device memory: allocations inside the loop, and the peak where the allocator's counters were recorded."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallwise.doctor.measures._report import said
from stallwise.doctor.measures._spans import Spans
from stallwise.doctor.measures._step_book import book_of
from stallwise.doctor.measures._vocabulary import Host
from stallwise.evidence.catalog import step as catalog
from stallwise.evidence.evidence import Item
from stallwise.evidence.timeline import NO_ID, Timeline


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """Calls a step, their time, and the peak."""
    book = book_of(timeline)
    rows = book.view.calls(Host.ALLOC)
    lo, hi = book.windows.host[0], book.windows.host[-1]
    rows = rows[(timeline.start_s[rows] >= lo) & (timeline.start_s[rows] < hi)]
    yield said(book, catalog.ALLOC_CALLS, len(rows) / book.steps)
    yield said(book, catalog.ALLOC_TIME, float(timeline.duration_s[rows].sum()) / book.steps)
    free = np.array(["Free" in name for name in timeline.names])[timeline.name[rows]]
    # Waiting for the device inside a free is no cost of its own: only the time with an idle device counts.
    idle = book.busy.complement(float(book.windows.device[0]), float(book.windows.device[-1]))
    for quantity, which in ((catalog.FREE_WAIT, rows[free]), (catalog.MALLOC_WAIT, rows[~free])):
        spans = Spans.of(timeline.start_s[which], timeline.end_s[which])
        yield said(book, quantity, book.mean_s(spans & idle))
    if timeline.memory is not None:
        on_device = timeline.memory.device != NO_ID
        held = timeline.memory.reserved_bytes[on_device]
        if len(held) and np.isfinite(held).any():
            yield said(book, catalog.MEMORY_PEAK, float(np.nanmax(held)))
    capacity = max((d.memory_bytes for d in timeline.devices), default=0.0)
    if capacity:
        yield said(book, catalog.MEMORY_CAPACITY, capacity)
