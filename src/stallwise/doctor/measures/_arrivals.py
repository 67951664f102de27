"""When batches that other processes make were there: by their clock, not by that of the host that asks for them.

A host that works faster asks earlier and waits longer. So every batch that was waited for keeps its moment: it comes as long
after the one before it as it did, or after the beginning of the recording. What came after the last wait was ready when it was
asked for, which tells only that it was not later. It is taken to come at the pace of those before it, so that steps which live on
batches made in advance are not taken for a loader that keeps up with any host. Where none was waited for, the makers' own pace counts.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures import _batch_makers as makers
from stallwise.doctor.measures._trace_view import TraceView
from stallwise.doctor.measures._vocabulary import Host
from stallwise.evidence.timeline import Kind
from stallwise.physics.sim.replay.graph import CLOCK_GRAIN_S

Floats = NDArray[np.float64]

READY_S = 300e-6  # handing a ready batch over takes less,
READY_SHARE = 0.05  # or less than this part of the time from batch to batch
AHEAD = (
    16  # batches that are made in advance, two for each of eight workers: whoever is further ahead stands still himself
)
UNCOUNTED = -np.inf  # the pace of a moment from which the next one counts


def batches_asked(view: TraceView) -> NDArray[np.intp]:
    """Rows in which the host asks other processes for a batch."""
    t = view.timeline
    rows = t.rows(Kind.ANNOTATION)
    hit = (view.range_flags[t.name[rows]] & int(Host.LOADER)) != 0
    rows = rows[hit & view.working_lanes[t.lane[rows]]]
    multiprocess = np.array(["MultiProcess" in n for n in t.names], bool)
    asked: NDArray[np.intp] = rows[multiprocess[t.name[rows]]] if len(rows) else rows
    return asked


def waits_for_batches(view: TraceView) -> tuple[Floats, Floats, Floats]:
    """When the host waits for a batch of another process, how long, and how long after the last such moment it came."""
    t, rows = view.timeline, batches_asked(view)
    asked, got = t.start_s[rows], t.end_s[rows]
    usual = float(np.median(np.diff(got))) if len(rows) > 1 else 0.0
    late = np.flatnonzero(got - asked > max(READY_S, READY_SHARE * usual))
    if not len(late):
        pace_s = makers.pace_s(asked, makers.came_s(view, len(rows)))
        return _all_ready(np.append(asked, _step_end(view, float(asked[-1]))) if pace_s > 0 else asked[:0], pace_s)
    moments = list(_until_the_last(asked, got, late, float(t.start_s[0])))
    moments += _after_the_last(asked, got, late, float(t.start_s[0]))
    begin, length, pace = (np.array(column, np.float64) for column in zip(*moments, strict=True))
    return begin, length, pace


def _step_end(view: TraceView, last_ask_s: float) -> float:
    """Just before the end of the widest range around the last ask: the next step begins there, and asks."""
    t, rows = view.timeline, view.timeline.rows(Kind.ANNOTATION)
    around = rows[view.working_lanes[t.lane[rows]] & (t.start_s[rows] <= last_ask_s) & (t.end_s[rows] > last_ask_s)]
    return max(float(t.end_s[around].max(initial=last_ask_s)) - CLOCK_GRAIN_S, last_ask_s)


def _all_ready(asked: Floats, pace_s: float) -> tuple[Floats, Floats, Floats]:
    """Nobody waited; but a host that asks faster than batches are made will."""
    came = np.minimum(asked[:1] + pace_s * np.arange(len(asked)), asked)
    return asked, np.zeros(len(asked)), np.diff(came, prepend=np.inf)


def _until_the_last(
    asked: Floats, got: Floats, late: NDArray[np.intp], first_s: float
) -> list[tuple[float, float, float]]:
    """Waits, each counted from the one before it, or from the moment when its making can have begun."""
    waits = []
    for before, at in pairwise((-1, *late.tolist())):
        since = float(got[before]) if before >= 0 else first_s
        if at - before > AHEAD:
            since = float(got[at - AHEAD])
        if before < 0 or at - before > AHEAD:
            waits.append((since, 0.0, UNCOUNTED))
        waits.append((float(asked[at]), float(got[at] - asked[at]), float(got[at]) - since))
    return waits


def _after_the_last(
    asked: Floats, got: Floats, late: NDArray[np.intp], first_s: float
) -> list[tuple[float, float, float]]:
    """What was ready comes at the pace of those before, but not after it was asked for; as many as were seen to come so."""
    last, before = int(late[-1]), int(late[-2]) if len(late) > 1 else -1
    since, batches = (float(got[before]) if before >= 0 else first_s), last - before
    rest = asked[last + 1 : last + 1 + min(batches, AHEAD)]
    paced = float(got[last]) + np.arange(1, len(rest) + 1) * (float(got[last]) - since) / batches
    came = np.minimum(paced, rest)
    return [(ask, 0.0, gap) for ask, gap in zip(rest, np.diff(came, prepend=got[last]), strict=True)]
