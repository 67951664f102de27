"""Copies and fills by kind: bytes, time, rate, and how near the memory or the bus they run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallwise.doctor.measures._by_name import by_name
from stallwise.doctor.measures._step_index import step_index
from stallwise.doctor.measures.top_kernels import step_s
from stallwise.evidence.evidence import Item
from stallwise.evidence.timeline import Kind, Timeline
from stallwise.evidence.top import top_table

THERE_AND_BACK = 2.0  # a copy inside the device reads and writes every byte


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """Times, counts and bytes are those of a mean step."""
    index = step_index(timeline)
    view = index.view
    at = np.flatnonzero(index.inside & ~view.is_kernel)
    if not len(at):
        return
    code = timeline.name[view.work[at]].astype(np.int64)
    found = by_name(code, view.duration[at])
    size = np.nan_to_num(timeline.size_bytes[view.work[at]])
    moved = found.sums(code, size)
    rate = np.divide(moved, found.total, out=np.full(len(moved), np.nan), where=(found.total > 0) & (moved > 0))
    ceiling = np.full(len(moved), np.nan)
    if view.gpu is not None:
        crosses = found.sums(code, index.purposes.crosses_bus[at].astype(np.float64)) > 0
        fills = found.sums(code, (timeline.kind[view.work[at]] == Kind.MEMSET).astype(np.float64)) > 0
        inside = view.gpu.bandwidth_byte_per_s / np.where(fills, 1.0, THERE_AND_BACK)
        ceiling = np.where(crosses, view.gpu.pcie_byte_per_s, inside)
        ceiling = np.where(ceiling > 0, ceiling, np.nan)
    columns = {
        "name": np.array([timeline.names[c] for c in found.code.tolist()], dtype=object),
        "time_s": found.total / index.steps,
        "share": found.total / index.steps / step_s(index),
        "size_bytes": moved / index.steps,
        "rate_byte_per_s": rate,
        "count": found.count / index.steps,
        "median_s": found.median,
        "roof_share": np.minimum(rate / ceiling, 1.0),
    }
    yield top_table("copies", columns, index.source, timeline.scope, unit=index.windows.unit, left_out=found.left_out,
                    of_whole=float(view.duration[at].sum()) / index.steps / step_s(index))  # fmt: skip
