"""The chain that made a step as long as it was: walked back from its end, through work, hand-overs and waits.

Each piece of work started when the last of three things had happened: the host had handed it over, its stream was free, or the
work of another stream that it waits for had ended. The host in its turn was held up only where it waited for work. So one chain
leads from the end of the step to its begin, and only what lies on it can shorten the step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._trace_view import TraceView
from stallwise.physics.sim.replay.graph import CLOCK_GRAIN_S, NOTHING, Graph

Floats = NDArray[np.float64]
ON_HOST, ON_DEVICE, BETWEEN = 0, 1, 2
WORD = {ON_HOST: "the host", ON_DEVICE: "work on the device", BETWEEN: "between hand-over, end and start"}
NO_ROW = -1


@dataclass(frozen=True, slots=True, eq=False)
class CriticalPath:
    """Links in order of time; they touch each other and fill the step."""

    kind: NDArray[np.int64]
    start_s: Floats
    end_s: Floats
    row: NDArray[
        np.int64
    ]  # of the timeline: the work, or the call that handed the next work over; NO_ROW where unknown

    def seconds(self) -> dict[str, float]:
        """How much of the step each kind of link takes."""
        return {
            word: float((self.end_s - self.start_s)[self.kind == kind].sum())
            for kind, word in WORD.items()
            if (self.kind == kind).any()
        }


def critical_path(
    view: TraceView, graph: Graph, order: NDArray[np.intp], begin_s: float, end_s: float
) -> CriticalPath | None:
    """The chain between two moments; None where no work ends inside."""
    start, end = graph.start_s, graph.start_s + graph.duration_s
    inside = np.flatnonzero((end > begin_s) & (start < end_s))
    if not len(inside):
        return None
    before = _before(graph)
    wait_end = graph.wait_s + graph.waited_s
    links: list[tuple[int, float, float, int]] = []
    at, now = int(inside[np.argmax(end[inside])]), end_s

    def link(kind: int, since: float, row: int) -> None:
        nonlocal now
        since = max(min(since, now), begin_s)
        if now > since:
            links.append((kind, since, now, row))
        now = since

    if end[at] < end_s:  # after the last work the host goes on alone
        link(ON_HOST, float(end[at]), NO_ROW)
    for _ in range(2 * len(inside) + 2 * len(graph.wait_s) + 2):
        if now <= begin_s:
            break
        link(ON_DEVICE, float(start[at]), int(view.work[order[at]]))
        if now <= begin_s:
            break
        held, other = _held_by(graph, at, before, end)
        if held == ON_DEVICE and other >= 0:
            link(BETWEEN, float(end[other]), NO_ROW)
            at = other
            continue
        if not np.isfinite(graph.handed_s[at]):
            break
        call = int(view.launch_row[order[at]])
        link(BETWEEN, float(graph.handed_s[at]), call)
        # The host worked since its last wait for the device; before that it was the device's turn.
        place = int(np.searchsorted(wait_end, now + CLOCK_GRAIN_S, side="right")) - 1
        while place >= 0 and (graph.wait_for[place] == NOTHING or graph.waited_s[place] <= CLOCK_GRAIN_S):
            place -= 1
        if place < 0 or wait_end[place] <= begin_s:
            link(ON_HOST, begin_s, call)
            break
        link(ON_HOST, float(wait_end[place]), call)
        at = int(graph.wait_for[place])
        if at >= len(graph) or end[at] > now + CLOCK_GRAIN_S:
            break
        link(BETWEEN, float(end[at]), NO_ROW)
    if now > begin_s:
        link(BETWEEN, begin_s, NO_ROW)
    kinds, since, until, rows = zip(*reversed(links), strict=True)
    return CriticalPath(np.array(kinds), np.array(since), np.array(until), np.array(rows, np.int64))


def _before(graph: Graph) -> NDArray[np.int64]:
    """The work before each on its stream, NOTHING for the first."""
    order = np.lexsort((np.arange(len(graph)), graph.stream))
    before = np.full(len(graph), NOTHING, np.int64)
    same = graph.stream[order][1:] == graph.stream[order][:-1]
    before[order[1:][same]] = order[:-1][same]
    return before


def _held_by(graph: Graph, at: int, before: NDArray[np.int64], end: Floats) -> tuple[int, int]:
    """Whose end or hand-over, with its lag, comes last: that is what the start waited for."""
    handed = float(graph.handed_s[at] + graph.handed_lag_s[at])
    stream, after = int(before[at]), int(graph.after[at])
    by_stream = float(end[stream] + graph.stream_lag_s[at]) if stream >= 0 else -np.inf
    by_other = float(end[after] + graph.after_lag_s[at]) if after >= 0 else -np.inf
    if max(by_stream, by_other) >= handed:
        return ON_DEVICE, stream if by_stream >= by_other else after
    return ON_HOST, NOTHING
