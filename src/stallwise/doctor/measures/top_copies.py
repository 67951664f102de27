"""Copies and fills by kind: bytes, time, rate, and how near the memory or the bus they run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallwise.doctor.measures._by_name import by_name
from stallwise.doctor.measures._step_book import book_of
from stallwise.doctor.measures.top_kernels import step_s
from stallwise.evidence.evidence import Item
from stallwise.evidence.timeline import Kind, Timeline
from stallwise.evidence.top import top_table

THERE_AND_BACK = 2.0  # a copy inside the device reads and writes every byte


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """Times, counts and bytes are those of a mean step."""
    book = book_of(timeline)
    view = book.view
    at = np.flatnonzero(book.inside & ~view.is_kernel)
    if not len(at):
        return
    code = timeline.name[view.work[at]].astype(np.int64)
    found = by_name(code, view.duration[at])
    size = np.nan_to_num(timeline.size_bytes[view.work[at]])
    moved = found.sums(code, size)
    rate = np.divide(moved, found.total, out=np.full(len(moved), np.nan), where=(found.total > 0) & (moved > 0))
    roof = np.full(len(moved), np.nan)
    if view.gpu is not None:
        crosses = found.sums(code, book.purposes.crosses_bus[at].astype(np.float64)) > 0
        fills = found.sums(code, (timeline.kind[view.work[at]] == Kind.MEMSET).astype(np.float64)) > 0
        inside = view.gpu.bandwidth_byte_per_s / np.where(fills, 1.0, THERE_AND_BACK)
        roof = np.where(crosses, view.gpu.pcie_byte_per_s, inside)
        roof = np.where(roof > 0, roof, np.nan)
    columns = {
        "name": np.array([timeline.names[c] for c in found.code.tolist()], dtype=object),
        "time_s": found.total / book.steps,
        "share": found.total / book.steps / step_s(book),
        "size_bytes": moved / book.steps,
        "rate_byte_per_s": rate,
        "count": found.count / book.steps,
        "median_s": found.median,
        "roof_share": np.minimum(rate / roof, 1.0),
    }
    yield top_table("copies", columns, book.source, timeline.scope, unit=book.windows.unit, left_out=found.left_out,
                    of_whole=float(view.duration[at].sum()) / book.steps / step_s(book))  # fmt: skip
