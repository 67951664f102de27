"""Who allocates device memory: by operator where a trace recorded the allocator, by kind and place where a snapshot did."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallwise.doctor.measures._by_name import by_name
from stallwise.doctor.measures._step_index import step_index
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.timeline import NO_ID, Kind, Timeline
from stallwise.evidence.top import MOST_ROWS, top_table

NOBODY = "outside any operator"


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """Bytes asked for in a mean step, by the innermost operator that asked."""
    index = step_index(timeline)
    if timeline.memory is None or not len(index.view):
        return
    rows = timeline.rows(Kind.MEMORY)
    size = np.nan_to_num(timeline.size_bytes[rows])
    at = timeline.start_s[rows]
    mine = (size > 0) & (timeline.memory.device != NO_ID)
    mine &= (at >= index.windows.host[0]) & (at < index.windows.host[-1])
    rows, size = rows[mine], size[mine]
    if not len(rows):
        return
    tree = index.view.tree
    asked = tree.at(timeline.lane[rows], timeline.start_s[rows])
    code = np.where(asked >= 0, timeline.name[tree.row[np.maximum(asked, 0)]] if len(tree) else 0, NO_ID) + 1
    found = by_name(code.astype(np.int64), size)
    columns = {
        "name": np.array([timeline.names[c - 1] if c else NOBODY for c in found.code.tolist()], dtype=object),
        "size_bytes": found.total / index.steps,
        "share": found.total / max(float(size.sum()), 1.0),
        "count": found.count / index.steps,
        "median_bytes": found.median,
    }
    yield top_table(
        "allocations", columns, index.source, timeline.scope, unit=index.windows.unit, left_out=found.left_out
    )


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """What was alive at the peak of a snapshot."""
    for table in evidence.table("memory.peak"):
        size = table.columns["size_bytes"]
        columns = {
            "name": table.columns["place"][:MOST_ROWS],
            "kind": table.columns["category"][:MOST_ROWS],
            "size_bytes": size[:MOST_ROWS],
            "share": size[:MOST_ROWS] / max(float(size.sum()), 1.0),
        }
        left_out = max(len(size) - MOST_ROWS, 0)
        yield top_table("allocations", columns, table.source, table.scope, left_out=left_out)
