"""Every moment at which a recording thread entered or left a recorded event, with what recording it costs there.

A recorder takes its time stamp last on entry and first on exit, so its cost lies before the start and after the end of what it
records: outside of the event, inside of whatever stands around it. A driver call is hooked from inside: its cost lies within.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._trace_view import TraceView
from stallwise.evidence.timeline import Kind
from stallwise.physics.costs.profiler import RecordingCost

Floats = NDArray[np.float64]

RECORDED = (Kind.CPU_OP, Kind.ANNOTATION, Kind.PYTHON, Kind.RUNTIME)
BEFORE = 0.6  # of a recorded operator's cost lies before its start, the rest after its end


@dataclass(frozen=True, slots=True, eq=False)
class HostPoints:
    """Moments in order, and what recording costs in the stretch that follows each but the last."""

    at_s: Floats
    cost_s: Floats


def points_of(view: TraceView, cost: RecordingCost) -> HostPoints:
    """All moments of the threads that launch."""
    t = view.timeline
    rows = t.rows(*RECORDED)
    rows = rows[view.working_lanes[t.lane[rows]]]
    at = np.concatenate((t.start_s[rows], t.start_s[rows] + t.duration_s[rows]))
    order = np.argsort(at, kind="stable")
    kind = np.tile(t.kind[rows], 2)[order]
    leaving = order >= len(rows)
    at = at[order]
    del order
    entry, inside, leave = (np.zeros(256) for _ in range(3))
    for recorded, seconds in (
        (Kind.CPU_OP, cost.operator_s),
        (Kind.ANNOTATION, cost.operator_s),
        (Kind.PYTHON, cost.python_frame_s),
    ):
        entry[recorded], leave[recorded] = BEFORE * seconds, (1.0 - BEFORE) * seconds
    inside[Kind.RUNTIME] = cost.runtime_call_s
    stretch = np.where(leaving[1:], 0.0, entry[kind[1:]])
    stretch += np.where(leaving[:-1], leave[kind[:-1]], inside[kind[:-1]])
    return HostPoints(at, stretch)
