"""Every moment at which a recording thread entered or left a recorded event, with what recording it costs there.

A recorder takes its time stamp last on entry and first on exit, so its cost lies before the start and after the end of what it
records: outside of the event, inside of whatever stands around it. A driver call is hooked from inside: its cost lies within.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stallwise.evidence.timeline import Kind
from stallwise.measures._trace_view import TraceView

Floats = NDArray[np.float64]

RECORDED = (Kind.CPU_OP, Kind.ANNOTATION, Kind.PYTHON, Kind.RUNTIME)
BEFORE = 0.6  # of a recorded operator's cost lies before its start, the rest after its end


@dataclass(frozen=True, slots=True, eq=False)
class HostPoints:
    """Moments in order, and of each kind how many costs fall into the stretch that follows each moment."""

    at_s: Floats
    shares: dict[Kind, Floats]  # one entry for each stretch between two moments

    def cost_s(self, per_event_s: dict[Kind, float]) -> Floats:
        """What recording costs in each stretch."""
        total = np.zeros(max(len(self.at_s) - 1, 0))
        for kind, share in self.shares.items():
            total += per_event_s.get(kind, 0.0) * share
        return total


def points_of(view: TraceView) -> HostPoints:
    """All moments of the threads that launch."""
    t = view.timeline
    rows = t.rows(*RECORDED)
    rows = rows[view.working_lanes[t.lane[rows]]]
    kind = t.kind[rows]
    count = len(rows)
    at = np.concatenate((t.start_s[rows], t.start_s[rows] + t.duration_s[rows]))
    order = np.argsort(at, kind="stable")
    shares: dict[Kind, Floats] = {}
    for wanted in RECORDED:
        mine = np.concatenate((kind, kind)) == wanted
        if not mine.any():
            continue
        is_end = np.arange(2 * count) >= count
        entering, leaving = (mine & ~is_end)[order], (mine & is_end)[order]
        if wanted is Kind.RUNTIME:
            shares[wanted] = entering[:-1].astype(np.float64)
        else:
            shares[wanted] = BEFORE * entering[1:] + (1.0 - BEFORE) * leaving[:-1]
    return HostPoints(at[order], shares)
