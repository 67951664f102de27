"""Where a replay moves recorded events: the host's by its clock, work to its new start, and what stands beside work along with it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stallwise.evidence.timeline import Timeline
from stallwise.physics.sim.replay.graph import Graph
from stallwise.physics.sim.replay.retime import Retimed

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


def moved(t: Timeline, rows: Rows, graph: Graph, played: Retimed, work: Rows, lasts_s: Floats) -> tuple[Floats, Floats]:
    """New starts and ends of these rows, which rise; `work` has the row of each piece of work, `lasts_s` its new length."""
    start, end = t.start_s[rows], t.end_s[rows]
    on_device = np.array([lane.on_device for lane in t.lanes], bool)[t.lane[rows]]
    host = ~on_device
    start[host], end[host] = played.host(start[host]), played.host(end[host])
    # What the device's rows hold beside the work itself (ranges, waits, other GPUs) moves along with the work around it.
    by_old = np.argsort(graph.start_s, kind="stable")
    old = graph.start_s[by_old]
    shift = np.maximum.accumulate(played.start_s[by_old]) - old
    if len(old):
        start[on_device] += np.interp(start[on_device], old, shift)
        end[on_device] += np.interp(end[on_device], old, shift)
    place = np.minimum(np.searchsorted(rows, work), max(len(rows) - 1, 0))
    here = rows[place] == work
    start[place[here]] = played.start_s[here]
    end[place[here]] = (played.start_s + lasts_s)[here]
    return start, np.maximum(end, start)
