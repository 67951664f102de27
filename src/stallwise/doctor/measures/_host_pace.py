"""How fast the host was while it was recorded, told by the shortest things it did.

What recording an event costs differs twofold between hosts, and on one host from hour to hour. So do the shortest launches, the
shortest operators and the shortest pauses around them, which hold little beside the recorder's own work. Each of them is a poor
yardstick alone: a program may have few that are as short as they can be. Their mean is a better one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._trace_view import TraceView
from stallwise.doctor.measures._vocabulary import Host
from stallwise.evidence.timeline import Kind

Floats = NDArray[np.float64]

SHORTEST = 5.0  # percent: below it lie mistakes of the clock
ENOUGH = 20  # for a percentile to be one
MOST_OPERATORS = 50_000  # looked at


def shortest_s(view: TraceView) -> dict[str, float]:
    """The shortest launches, operators and pauses between operators."""
    t = view.timeline
    found = {"launch": t.duration_s[view.calls(Host.LAUNCH)]}
    rows = t.rows(Kind.CPU_OP)
    rows = rows[view.working_lanes[t.lane[rows]]][:MOST_OPERATORS]
    order = np.lexsort((-t.end_s[rows], t.start_s[rows], t.lane[rows]))
    start, end, lane = t.start_s[rows][order], t.end_s[rows][order], t.lane[rows][order]
    beside = lane[1:] == lane[:-1]
    holds_others = beside & (start[1:] < end[:-1])
    found["operator"] = (end - start)[:-1][~holds_others]
    found["between"] = (start[1:] - end[:-1])[beside & ~holds_others]
    return {name: float(np.percentile(times, SHORTEST)) for name, times in found.items() if len(times) >= ENOUGH}
