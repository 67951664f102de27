"""From a trace to a graph that can be replayed: who handed over what, who waits for whom.

Calls are told apart by what they do, not by their length: a call that waits for the device ends when some work has ended. Any
call that hands work over also waits when the queue is full: a launch, a memset, an event.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._arrivals import waits_for_batches
from stallwise.doctor.measures._trace_view import TraceView
from stallwise.doctor.measures._vocabulary import Host
from stallwise.physics.sim.replay.graph import CLOCK_GRAIN_S, NOTHING, Graph, graph_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RETURN_S = 100e-6  # a call that waited returns this soon after the work; later, it waited for something else as well
# A call that lasts this long while this much work is queued stood before a full queue: 1024 launches fit, fewer of those
# with many arguments or on several streams. Loading code takes as long, but nothing is queued far ahead then.
QUEUE_DEPTH = 100
BLOCKED_S = 50e-6
WAITS = Host.SYNC | Host.COPY_CALL | Host.ALLOC  # what they do may be to wait for the device


def graph_of_view(view: TraceView) -> tuple[Graph, NDArray[np.intp]]:
    """The graph, and for each of its pieces of work the position in the view."""
    t = view.timeline
    anchor = np.where(view.launched, view.launch_start, view.start)
    if view.launched.any():
        # Work whose launch is missing at the start of a trace was launched before recording began.
        first = float(view.start[view.launched].min())
        anchor = np.where(~view.launched & (view.start < first), -np.inf, anchor)
    # Work of one launch (a graph) keeps the device's order.
    order = np.lexsort((view.start, anchor)).astype(np.intp)
    start, duration = view.start[order], view.duration[order]
    handed = np.where(view.launched, view.launch_start, -np.inf)[order]
    # A clock that runs ahead shows work before its hand-over; the hand-over then says nothing.
    handed = np.where(handed <= start, handed, -np.inf)
    lanes = t.lane[view.work[order]].astype(np.int64)
    stream = np.unique(lanes, return_inverse=True)[1].astype(np.int64) if len(lanes) else lanes
    wait, waited, target, pace = _waits(view, order, start + duration, anchor[order])
    after = _waits_by_events(view, order, start, duration, stream, anchor[order])
    return graph_of(start, duration, anchor[order], handed, stream, after, wait, waited, target, pace), order


def _waits(
    view: TraceView, order: NDArray[np.intp], end: Floats, anchor: Floats
) -> tuple[Floats, Floats, Ints, Floats]:
    t = view.timeline
    calls = np.sort(np.concatenate((view.calls(WAITS), blocked_calls(view))))
    begin, finish = t.start_s[calls], t.end_s[calls]
    target = _ended_inside(end, begin, finish)
    target = np.where(target >= 0, target, _stood_before_own(view, order, end, calls))
    # Only work that was handed over by then can be waited for; that of the call itself is.
    known = target >= 0
    known &= anchor[np.maximum(target, 0)] <= begin + CLOCK_GRAIN_S
    begin, finish, target = begin[known], finish[known], target[known]
    until = np.clip(end[target], begin, finish)
    wait, waited, pace = begin, until - begin, np.zeros(len(begin))
    outside, stood, rhythm = waits_for_batches(view)
    at = np.concatenate((wait, outside))
    by_time = np.argsort(at, kind="stable")
    joined = (
        at[by_time],
        np.concatenate((waited, stood))[by_time],
        np.concatenate((target, np.full(len(outside), NOTHING, np.int64)))[by_time],
        np.concatenate((pace, rhythm))[by_time],
    )
    # Waits of two threads at once are one wait: the later begins where the earlier ends.
    starts, lengths = joined[0], joined[1]
    if len(starts):
        reach = np.concatenate(([-np.inf], np.maximum.accumulate(starts + lengths)[:-1]))
        moved = np.maximum(starts, reach)
        return moved, np.maximum(starts + lengths - moved, 0.0), joined[2], joined[3]
    return joined


def _ended_inside(end: Floats, begin: Floats, finish: Floats) -> Ints:
    """The last work that ended during each call and near the call's own end; NOTHING where none did."""
    if not len(end) or not len(begin):
        return np.full(len(begin), NOTHING, np.int64)
    order = np.argsort(end, kind="stable")
    place = np.searchsorted(end[order], finish + CLOCK_GRAIN_S, side="right") - 1
    found = order[np.maximum(place, 0)]
    fits = (place >= 0) & (end[found] > begin) & (finish - end[found] < RETURN_S)
    return np.where(fits, found, NOTHING).astype(np.int64)


def _stood_before_own(view: TraceView, order: NDArray[np.intp], end: Floats, calls: NDArray[np.intp]) -> Ints:
    """A copy from pageable memory is made by the call itself, once the stream has come to it: what ended just before it."""
    found = np.full(len(calls), NOTHING, np.int64)
    t = view.timeline
    launched_by = view.launch_row[order]
    by_call = np.argsort(launched_by, kind="stable")
    place = np.searchsorted(launched_by[by_call], calls)
    own = by_call[np.minimum(place, len(by_call) - 1)] if len(by_call) else np.zeros(len(calls), np.int64)
    if not len(by_call):
        return found
    start = view.start[order][own]
    has = (launched_by[own] == calls) & (start > t.start_s[calls] + CLOCK_GRAIN_S) & (start < t.end_s[calls])
    by_end = np.argsort(end, kind="stable")
    last = by_end[np.maximum(np.searchsorted(end[by_end], start + CLOCK_GRAIN_S, side="right") - 1, 0)]
    has &= (start - end[last] < RETURN_S) & (end[last] > t.start_s[calls])
    found[has] = last[has]
    return found


def blocked_calls(view: TraceView) -> NDArray[np.intp]:
    """Calls that stood before a full queue, beside those that wait for the device anyway."""
    t = view.timeline
    calls: NDArray[np.intp] = view.runtime_rows[(view.runtime_flags & int(WAITS)) == 0]
    long = calls[t.duration_s[calls] > BLOCKED_S]
    if not len(long) or not view.launched.any():
        return long[:0]
    handed = np.sort(view.launch_start[view.launched])
    ended = np.sort(view.end[view.launched])
    depth = np.searchsorted(handed, t.start_s[long]) - np.searchsorted(ended, t.start_s[long])
    full: NDArray[np.intp] = long[depth >= QUEUE_DEPTH]
    return full


def _waits_by_events(
    view: TraceView, order: NDArray[np.intp], start: Floats, duration: Floats, stream: Ints, handed: Floats
) -> Ints:
    """Stream waits by the host's own calls: what was handed over before an event was recorded ends before what is handed
    over after another stream was told to wait for it."""
    t = view.timeline
    found = np.full(len(start), NOTHING, np.int64)
    rows = view.runtime_rows
    if not len(rows) or not len(start) or int(stream.max(initial=0)) == 0:
        return found
    waits = _called(view, rows, "StreamWaitEvent")
    records = _called(view, rows, "EventRecord")
    if not len(waits) or not len(records):
        return found
    called_s = t.start_s[waits]
    place = np.searchsorted(t.start_s[records], called_s) - 1
    recorded = t.start_s[records][np.maximum(place, 0)]
    source = np.searchsorted(handed, recorded) - 1
    follower = np.searchsorted(handed, called_s)
    valid = (place >= 0) & (source >= 0) & (follower < len(start))
    source, follower = source[valid], follower[valid]
    real = stream[source] != stream[follower]
    real &= start[source] + duration[source] <= start[follower] + CLOCK_GRAIN_S
    found[follower[real]] = source[real]
    return found


def _called(view: TraceView, rows: NDArray[np.intp], part: str) -> NDArray[np.intp]:
    hit = np.array([part in name for name in view.timeline.names], bool)
    called: NDArray[np.intp] = rows[hit[view.timeline.name[rows]]]
    return called
