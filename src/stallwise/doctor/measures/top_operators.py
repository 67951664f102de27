"""The operators that take most: time of the device work they launch themselves, and the host's own time in them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallwise.doctor.measures._by_name import by_name
from stallwise.doctor.measures._step_index import step_index
from stallwise.doctor.measures.top_kernels import MOST_ASKED, floors, step_s
from stallwise.evidence.evidence import Item
from stallwise.evidence.timeline import Timeline
from stallwise.evidence.top import top_table


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """Ordered by the larger of both times, since either may hold the step up."""
    index = step_index(timeline)
    view, tree = index.view, index.view.tree
    if not len(tree):
        return
    start = timeline.start_s[tree.row]
    mine = (start >= index.windows.host[0]) & (start < index.windows.host[-1])
    own = tree.without_callees(timeline.duration_s[tree.row])
    launched = np.flatnonzero(index.inside & (view.operator >= 0))
    device = np.bincount(view.operator[launched], weights=view.duration[launched], minlength=len(tree))
    code = timeline.name[tree.row].astype(np.int64)
    found = by_name(code[mine], timeline.duration_s[tree.row][mine], weight=np.maximum(own, device)[mine])
    floor, seconds = floors(index, launched[:MOST_ASKED])
    known = np.isfinite(floor) & (seconds > 0)
    by_operator = code[view.operator[launched[:MOST_ASKED]]][known]
    least, taken = (found.sums(by_operator, values[known]) for values in (floor, seconds))
    host, busy = found.sums(code[mine], own[mine]) / index.steps, found.sums(code[mine], device[mine]) / index.steps
    columns = {
        "name": np.array([timeline.names[c] for c in found.code.tolist()], dtype=object),
        "time_s": busy,
        "share": (busy if len(view) else host) / step_s(index),
        "host_s": host,
        "count": found.count / index.steps,
        "median_s": found.median,
        "roof_share": np.minimum(np.divide(least, taken, out=np.full(len(least), np.nan), where=taken > 0), 1.0),
    }
    yield top_table("operators", columns, index.source, timeline.scope, unit=index.windows.unit, left_out=found.left_out,
                    of_whole=float((device if len(view) else own)[mine].sum()) / index.steps / step_s(index))  # fmt: skip
