"""Why the device was idle: each idle moment goes to what the host was doing instead of launching.

The host is late for a gap only until it launches the work that ends the gap; a gap whose next work was queued already
is the device's own. A host that stopped in a synchronisation lost its lead: gaps that follow would have been hidden by
that lead, so they are charged to the synchronisation, up to the time it waited (a Lindley recursion, vectorised).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._spans import NOTHING, Spans
from stallwise.doctor.measures._trace_view import TraceView
from stallwise.doctor.measures._vocabulary import Host
from stallwise.doctor.measures._warm_up import captures, first_launches
from stallwise.doctor.measures._windows import Windows
from stallwise.evidence.timeline import Kind

Floats = NDArray[np.float64]

# The interpreter runs tens of thousands of bytecodes in a millisecond: more than stands between two launches.
QUIET_S = 1e-3
BULK_BYTES = 1e6  # smaller copies take less than a launch: reading one number waits for kernels, not for its bytes
DISPATCH_S = 20e-6  # the device starts queued work within a few microseconds; double that under a profiler


class Idle(Enum):
    """What the host was doing while the device had nothing to do."""

    INPUT = "waiting for the next batch"
    CHECKPOINT = "saving a checkpoint"
    COMPILE = "compiling"
    PLAN = "inside one operator, preparing its first use"
    FIRST_LAUNCH = "loading code or setting a library up, once"
    CAPTURE = "capturing a graph: kernels are recorded, not run"
    CPU_WORK = "computing an operator on the CPU"
    GC = "collecting garbage"
    ALLOC = "allocating or freeing device memory"
    SYNC = "stopped by a synchronisation"
    COPY_CALL = "inside a copy call"
    PROFILER = "inside the profiler"
    LAUNCH = "launching"
    SILENT = "outside any recorded operator"
    DISPATCH = "nothing: the next work was queued already"
    UNRECORDED = "waiting in a synchronisation for work that the trace does not hold"
    UNKNOWN = "not recorded"


@dataclass(eq=False)
class IdleTimes:
    """Idle time by reason, and which synchronisations cost what."""

    spans: dict[Idle, Spans] = field(default_factory=dict)
    sync_row: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp))
    sync_wait_s: Floats = field(default_factory=lambda: np.empty(0))  # waited while the device worked
    sync_cost_s: Floats = field(default_factory=lambda: np.empty(0))  # idle time of the device that it caused

    def get(self, kind: Idle) -> Spans:
        """The idle time of this reason."""
        return self.spans.get(kind, NOTHING)


def idle_times(view: TraceView, windows: Windows, busy: Spans) -> IdleTimes:
    """All idle time between the first and the last border."""
    idle = busy.complement(float(windows.device[0]), float(windows.device[-1]))
    times = IdleTimes()
    if not len(idle):
        return times
    late, queued, unknown = _by_next_work(view, idle)
    times.spans[Idle.DISPATCH] = queued
    times.spans[Idle.UNKNOWN] = unknown
    left = late
    for reason, spans in _host_states(view):
        taken = left & spans
        times.spans[reason] = times.get(reason) | taken
        left = left - taken
    # A synchronisation returns within microseconds of the device falling idle. One that stands longer waits for work
    # that the trace does not hold.
    endless = (times.get(Idle.SYNC) | times.get(Idle.DISPATCH)).longer_than(QUIET_S) & view.call_spans(Host.SYNC)
    times.spans[Idle.SYNC] = times.get(Idle.SYNC) - endless
    times.spans[Idle.DISPATCH] = times.get(Idle.DISPATCH) - endless
    times.spans[Idle.UNRECORDED] = endless
    for reason, spans in _quiet_stretches(view, left):
        taken = left & spans
        times.spans[reason] = times.get(reason) | taken
        left = left - taken
    _charge_syncs(view, times, left, idle, busy)
    return times


def _by_next_work(view: TraceView, idle: Spans) -> tuple[Spans, Spans, Spans]:
    """Splits idle time: the host was late; the work was queued already; the trace does not tell."""
    if not view.launched.any():
        if len(view) and not len(view.runtime_rows) and not len(view.tree):
            short = idle.length_s < DISPATCH_S
            return (
                NOTHING,
                Spans(idle.start[short], idle.end[short]),
                Spans(idle.start[~short], idle.end[~short]),
            )
        return idle, NOTHING, NOTHING
    place = np.searchsorted(view.start, idle.end, side="left")
    last = place >= len(view)
    place = np.minimum(place, len(view) - 1)
    known = view.launched[place] | last
    launch = np.where(last, idle.end, view.queued_at[place])
    queued = known & (launch <= idle.start)
    tiny = ~known & (idle.length_s < DISPATCH_S)
    device = queued | tiny
    return (
        Spans(idle.start[known & ~queued], idle.end[known & ~queued]),
        Spans(idle.start[device], idle.end[device]),
        Spans(idle.start[~known & ~tiny], idle.end[~known & ~tiny]),
    )


def _host_states(view: TraceView) -> list[tuple[Idle, Spans]]:
    """States that a name tells, strongest first."""
    t = view.timeline
    overhead = t.rows(Kind.OVERHEAD)
    names = [n.lower() for n in t.names]
    loading = np.array(["function loading" in n or "module" in n for n in names], bool)[t.name[overhead]]
    full = np.array(["command buffer" in n for n in names], bool)[t.name[overhead]]
    return [
        (Idle.CAPTURE, captures(view)),
        (Idle.FIRST_LAUNCH, first_launches(view)),
        (Idle.GC, view.ranges(Host.GC)),
        (Idle.COMPILE, view.ranges(Host.COMPILE)),
        (Idle.PLAN, view.call_spans(Host.LOADING_CODE) | _spans(view, overhead[loading])),
        (Idle.PROFILER, _spans(view, overhead[~loading & ~full])),
        (Idle.CHECKPOINT, view.ranges(Host.CHECKPOINT)),
        (Idle.INPUT, view.ranges(Host.LOADER)),
        (Idle.ALLOC, view.call_spans(Host.ALLOC)),
        (Idle.COPY_CALL, view.call_spans(Host.COPY_CALL)),
        (Idle.SYNC, view.call_spans(Host.SYNC)),
        (Idle.COPY_CALL, view.ranges(Host.TRANSFER, Kind.ANNOTATION)),
    ]


def _spans(view: TraceView, rows: NDArray[np.intp]) -> Spans:
    return Spans.of(view.timeline.start_s[rows], view.timeline.end_s[rows])


def _quiet_stretches(view: TraceView, left: Spans) -> list[tuple[Idle, Spans]]:
    """Stretches in which the working threads neither enter nor leave an operator or a driver call."""
    t = view.timeline
    rows = t.rows(Kind.CPU_OP, Kind.RUNTIME)
    rows = rows[view.working_lanes[t.lane[rows]]]
    if not len(rows) or not len(left):
        # Nobody can be launching for so long without a single recorded call.
        return [(Idle.UNKNOWN, left.longer_than(QUIET_S))] if len(left) else []
    ends = [left.start[0], left.end[-1]]
    edges = np.insert(view.host_edges, np.searchsorted(view.host_edges, ends), ends)
    long = np.diff(edges) >= QUIET_S
    lo, hi = edges[:-1][long], edges[1:][long]
    middle = (lo + hi) / 2
    inside = _spans(view, rows).contains(middle)
    prepares = inside & _launching_operators(view).contains(middle)
    return [
        (Idle.SILENT, Spans(lo[~inside], hi[~inside])),
        (Idle.PLAN, Spans(lo[prepares], hi[prepares])),
        (Idle.CPU_WORK, Spans(lo[inside & ~prepares], hi[inside & ~prepares])),
    ]


def _launching_operators(view: TraceView) -> Spans:
    """Operators that put work on the device themselves, and launch calls."""
    tree = view.tree
    launches = view.calls(Host.LAUNCH)
    mine = np.zeros(len(tree), bool)
    mine[view.operator[view.operator >= 0]] = True
    rows = np.concatenate((tree.row[mine], launches)) if len(tree) else launches
    return _spans(view, rows)


def _charge_syncs(view: TraceView, times: IdleTimes, launching: Spans, idle: Spans, busy: Spans) -> None:
    t = view.timeline
    rows = np.concatenate((view.calls(Host.SYNC), view.calls(Host.ALLOC), view.calls(Host.COPY_CALL)))
    rows = np.sort(rows)
    waited = busy.within(t.start_s[rows], t.end_s[rows])
    keep = waited > 0
    rows, waited = rows[keep], waited[keep]
    lost = idle.length_s
    # Everything idle uses up the lead that a wait cost; only launching time may be charged for it.
    time = np.concatenate((t.end_s[rows], idle.start))
    change = np.concatenate((waited, -lost))
    order = np.lexsort((-change, time))
    level = np.cumsum(change[order])
    debt = level - np.minimum(np.minimum.accumulate(level), 0.0)
    before = np.empty(len(debt))
    before[order] = np.concatenate(([0.0], debt[:-1]))
    owed = before[len(rows) :]  # debt at the start of each idle interval
    # Within a gap the debt pays for the first seconds.
    reach = Spans(idle.start, idle.start + np.minimum(owed, lost))
    keep = reach.end > reach.start
    charged = launching & Spans(reach.start[keep], reach.end[keep])
    times.spans[Idle.LAUNCH] = launching - charged
    last = np.searchsorted(t.end_s[rows], charged.start, side="right") - 1
    valid = last >= 0
    by_copy = by_alloc = np.zeros(len(charged), bool)
    if len(rows):
        by_copy = valid & forced_by_copies(view, rows)[np.maximum(last, 0)]
        by_alloc = valid & ~by_copy & np.isin(rows, view.calls(Host.ALLOC))[np.maximum(last, 0)]
    by_sync = ~by_copy & ~by_alloc
    times.spans[Idle.ALLOC] = times.get(Idle.ALLOC) | Spans(charged.start[by_alloc], charged.end[by_alloc])
    times.spans[Idle.COPY_CALL] = times.get(Idle.COPY_CALL) | Spans(charged.start[by_copy], charged.end[by_copy])
    times.spans[Idle.SYNC] = times.get(Idle.SYNC) | Spans(charged.start[by_sync], charged.end[by_sync])
    times.sync_row, times.sync_wait_s = rows, waited
    cost = np.bincount(last[valid], weights=charged.length_s[valid], minlength=len(rows))
    times.sync_cost_s = cost.astype(np.float64)


def forced_by_copies(view: TraceView, waits: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Waits that a bulk copy forces: the copy call itself, or a synchronisation in the operator that copies."""
    t, tree = view.timeline, view.tree
    size = np.nan_to_num(t.size_bytes[view.work])
    bulk = (t.kind[view.work] == Kind.MEMCPY) & (size >= BULK_BYTES) & view.launched
    calls = np.unique(view.launch_row[bulk])
    forced: NDArray[np.bool_] = np.isin(waits, calls)
    if len(tree) and len(calls):
        callers = np.unique(tree.at(t.lane[calls], t.start_s[calls]))
        mine = tree.at(t.lane[waits], t.start_s[waits])
        forced |= np.isin(mine, callers) & (mine >= 0)
    return forced
