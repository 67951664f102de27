"""How fast other processes make batches, where the host found every one of them ready.

A thread of the loop's own process pins each batch when it has come, and asks the driver about every tensor of it. So a trace
shows when batches came, whoever made them. Makers that wait for the host get a new order with every batch that it takes: then each
batch comes as long after an order as its making lasts. Where that is longer than from order to order, several were made at once, and
no more than that many were seen to be. Their pace is the making over how many were made at once: a faster host gets no more from them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._trace_view import TraceView
from stallwise.doctor.measures._vocabulary import Host
from stallwise.evidence.timeline import Kind

Floats = NDArray[np.float64]

PINNING = "PointerGetAttributes"  # whether memory is pinned already; asked once for each tensor
MOST_AT_ONCE = 16
ENOUGH = 3  # batches whose making must be seen
# Batches that are alike are made in times that are: one may last longer, none much shorter than usual. What is below the second of
# these parts of the usual time is no making; between them nobody can say.
ALIKE, NONE = 0.85, 0.7


def came_s(view: TraceView, asked: int) -> Floats:
    """When batches had come: the last tensor of each, where as many come as are asked for; else nothing."""
    t = view.timeline
    hit = np.array([name.endswith(PINNING) for name in t.names], bool)
    rows = view.runtime_rows[hit[t.name[view.runtime_rows]]]
    rows = rows[~view.working_lanes[t.lane[rows]]]
    handing = np.unique(t.lane[view.calls(Host.LAUNCH | Host.COPY_CALL)])
    rows = rows[~np.isin(t.lane[rows], handing)]
    lanes = np.unique(t.lane[rows])
    tensors = round(len(rows) / asked) if asked else 0
    if len(lanes) != 1 or not tensors or t.kind[rows[0]] != Kind.RUNTIME:
        return t.start_s[:0]
    return np.sort(t.start_s[rows])[tensors - 1 :: tensors]


def pace_s(asked_s: Floats, came_s: Floats) -> float:
    """Seconds from batch to batch at which these makers were seen to work at most; nothing known is no bound."""
    order = np.searchsorted(asked_s, came_s, "right") - 1
    for others in range(MOST_AT_ONCE):
        of_this = order - others
        lasts = (came_s - asked_s[np.maximum(of_this, 0)])[of_this >= 0]
        if len(lasts) < ENOUGH:
            break
        usual, shortest = float(np.median(lasts)), float(lasts.min())
        if shortest >= ALIKE * usual:
            return usual / (others + 1)
        if shortest >= NONE * usual:
            break
    return 0.0
