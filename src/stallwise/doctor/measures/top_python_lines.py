"""The lines of Python that take most: the host's own time in each, and how long the device idled meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallwise.doctor.measures._by_name import by_name
from stallwise.doctor.measures._operators import OperatorTree
from stallwise.doctor.measures._spans import NOTHING
from stallwise.doctor.measures._step_index import step_index
from stallwise.doctor.measures.places import FRAME, readable
from stallwise.doctor.measures.top_kernels import step_s
from stallwise.evidence.evidence import Item
from stallwise.evidence.timeline import Kind, Timeline
from stallwise.evidence.top import top_table


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """From frames that the trace recorded. What a line calls without a line of its own (built-ins, modules) is its own time."""
    index = step_index(timeline)
    rows = timeline.rows(Kind.PYTHON)
    if not len(rows):
        return
    lined = np.array([FRAME.match(name) is not None for name in timeline.names], bool)
    rows = rows[lined[timeline.name[rows]] & index.view.working_lanes[timeline.lane[rows]]]
    tree = OperatorTree.of(timeline, rows)
    if not len(tree):
        return
    lo, hi = float(index.windows.device[0]), float(index.windows.device[-1])
    start, end = np.clip(timeline.start_s[tree.row], lo, hi), np.clip(timeline.end_s[tree.row], lo, hi)
    idle = index.busy.complement(lo, hi) if len(index.view) else NOTHING
    whole, idle_s = end - start, idle.within(start, end)
    own, own_idle = tree.without_callees(whole), tree.without_callees(idle_s)
    code = timeline.name[tree.row].astype(np.int64)
    seen = whole > 0
    found = by_name(code[seen], own[seen])
    columns = {
        "name": np.array([readable(timeline.names[c]) for c in found.code.tolist()], dtype=object),
        "host_s": found.total / index.steps,
        "share": found.total / index.steps / step_s(index),
        "idle_s": found.sums(code[seen], own_idle[seen]) / index.steps,
        "count": found.count / index.steps,
        "median_s": found.median,
    }
    yield top_table(
        "python lines", columns, index.source, timeline.scope, unit=index.windows.unit, left_out=found.left_out,
        of_whole=float(own[seen].sum()) / index.steps / step_s(index),
    )  # fmt: skip
