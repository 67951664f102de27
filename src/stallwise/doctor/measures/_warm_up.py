"""Time that a run spends once: first launches that load their code, graph capture, a library that is set up.

It is told by the calls themselves. A launch takes microseconds; one that takes hundreds of times the usual loads a module. What
is launched between the begin and the end of a capture is recorded, not run.
"""

from __future__ import annotations

import numpy as np

from stallwise.doctor.measures._spans import NOTHING, Spans
from stallwise.doctor.measures._trace_view import TraceView
from stallwise.doctor.measures._vocabulary import Host
from stallwise.evidence.timeline import Kind

FIRST_LAUNCH = 100.0  # times the median launch: a driver call that only launches never varies so much
FIRST_LAUNCH_S = 1e-3
QUEUED = 100  # pieces of work ahead: a launch behind them waits for a full queue
STANDING_S = (
    20e-3  # an allocation or query that takes so long sets something up: the driver's context, a library's workspace
)


def first_launches(view: TraceView) -> Spans:
    """Launches that loaded their code, and other short calls that stood for long with nothing queued."""
    t = view.timeline
    launches = view.calls(Host.LAUNCH)
    if len(launches) < 2:
        return NOTHING
    limit = max(FIRST_LAUNCH * float(np.median(t.duration_s[launches])), FIRST_LAUNCH_S)
    slow = launches[t.duration_s[launches] > limit]
    others = view.runtime_rows[(view.runtime_flags & int(Host.LAUNCH | Host.SYNC | Host.COPY_CALL)) == 0]
    slow = np.concatenate((slow, others[t.duration_s[others] > STANDING_S]))
    if len(slow) and view.launched.any():
        handed, ended = np.sort(view.launch_start[view.launched]), np.sort(view.end[view.launched])
        ahead = np.searchsorted(handed, t.start_s[slow]) - np.searchsorted(ended, t.start_s[slow])
        slow = slow[ahead < QUEUED]
    return Spans.of(t.start_s[slow], t.end_s[slow])


def captures(view: TraceView) -> Spans:
    """From the begin of each capture to its end."""
    t = view.timeline
    rows = t.rows(Kind.RUNTIME)
    begins = rows[np.array(["BeginCapture" in n for n in t.names], bool)[t.name[rows]]]
    ends = rows[np.array(["EndCapture" in n for n in t.names], bool)[t.name[rows]]]
    if not len(begins) or not len(ends):
        return NOTHING
    place = np.searchsorted(t.start_s[ends], t.start_s[begins])
    closed = place < len(ends)
    return Spans.of(t.start_s[begins[closed]], t.end_s[ends[place[closed]]])
