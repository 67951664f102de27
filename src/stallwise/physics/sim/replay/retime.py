"""Plays a graph: when everything happens if the host works by this clock and the work takes this long.

The state is one moment for the host and one for each stream, and every piece of work and every wait moves them by a maximum
and a sum, in the order in which the host issued them. All lags and clocks are computed on whole columns beforehand; the one
pass over them touches each piece of work once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stallwise.physics.sim.replay.graph import NOTHING, Graph
from stallwise.physics.sim.replay.host import HostClock

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BLOCK = 1 << 16  # pieces of work turned into Python numbers at a time: bounds memory


@dataclass(slots=True, eq=False)
class Retimed:
    """New starts of the work, and how long the host waits now."""

    start_s: Floats
    clock: HostClock
    wait_s: Floats  # where the host begins to wait, in recorded time
    was_s: Floats  # how long each was in the recording
    waited_s: Floats  # summed over this and all waits before, in new time

    def host(self, time_s: Floats) -> Floats:
        """Recorded moments of the host in new time."""
        own, place = moments(self.clock, self.wait_s, self.was_s, time_s)
        before = np.concatenate(([0.0], self.waited_s))
        # What another thread did during a wait stays inside of it.
        return np.minimum(own + before[place], self.clock.own(time_s) + before[np.searchsorted(self.wait_s, time_s)])


def moments(clock: HostClock, wait_s: Floats, was_s: Floats, time_s: Floats) -> tuple[Floats, Ints]:
    """The host's own time at these moments, and how many waits lie before each.

    One thread may work while another waits: a moment inside a wait counts from the wait's begin, and that wait not yet.
    """
    place = np.searchsorted(wait_s, time_s, "left")
    own = clock.own(time_s)
    if not len(wait_s):
        return own, place
    last = np.maximum(place - 1, 0)
    inside = (place > 0) & (time_s < wait_s[last] + was_s[last])
    return own + np.where(inside, time_s - wait_s[last], 0.0), np.where(inside, last, place)


def boundaries(graph: Graph, played: Retimed, end_s: Floats, marks_s: Floats) -> Floats:
    """When the work handed over before each mark of the host has drained, but never before the mark."""
    marks = played.host(marks_s)
    before = np.searchsorted(graph.turn_s, marks_s, "left")
    if not len(end_s):
        return marks
    drained = np.maximum.accumulate(end_s)[np.maximum(before - 1, 0)]
    return np.maximum(marks, np.where(before > 0, drained, marks))


class _Waits:
    """The host's waits, passed one after the other: `shift` is all that it has waited so far."""

    def __init__(self, graph: Graph, clock: HostClock) -> None:
        self.begin = clock.own(graph.wait_s).tolist()
        self.work, self.pace = graph.wait_for.tolist(), graph.pace_s.tolist()
        self.shift, self.outside = 0.0, -np.inf
        self.sums: list[float] = []

    def pass_until(self, count: int, ended: list[float]) -> float:
        """Passes waits up to this one; `ended` holds when the work so far has ended."""
        for at in range(len(self.sums), count):
            now, target = self.begin[at] + self.shift, self.work[at]
            if target == NOTHING:
                # He does not wait for us: what he is done with before it is asked for, he is done with.
                self.outside = now if self.pace[at] == -np.inf else self.outside + self.pace[at]
                self.shift += max(self.outside - now, 0.0)
            elif target < len(ended):
                self.shift += max(ended[target] - now, 0.0)
            self.sums.append(self.shift)
        return self.shift


def retime(graph: Graph, clock: HostClock, duration_s: Floats | None = None) -> Retimed:
    """The one pass. `duration_s` replaces the recorded durations of the work."""
    durations = graph.duration_s if duration_s is None else duration_s
    known = np.isfinite(graph.handed_s)
    own, passed = moments(clock, graph.wait_s, graph.waited_s, np.where(known, graph.handed_s, graph.start_s))
    # Work nobody handed over, first on its stream, stays where the host's clock has its start.
    placed = ~known & _first_of_each(graph.stream) & (graph.after == NOTHING)
    ready_s = np.where(known, own + graph.handed_lag_s, np.where(placed, own, -np.inf))
    waits = _Waits(graph, clock)
    stream_end = [-np.inf] * (int(graph.stream.max(initial=-1)) + 1)
    ended: list[float] = []
    add_end = ended.append
    shift, at_wait = 0.0, 0
    for begin in range(0, len(graph), BLOCK):
        part = slice(begin, begin + BLOCK)
        for due, ready, lane, lag, after, after_lag, lasts in zip(
            passed[part].tolist(), ready_s[part].tolist(), graph.stream[part].tolist(), graph.stream_lag_s[part].tolist(),
            graph.after[part].tolist(), graph.after_lag_s[part].tolist(), durations[part].tolist(),
            strict=True,
        ):  # fmt: skip
            if due > at_wait:
                shift, at_wait = waits.pass_until(due, ended), due
            start = ready + shift
            free = stream_end[lane] + lag
            if free > start:
                start = free
            if after >= 0:
                free = ended[after] + after_lag
                if free > start:
                    start = free
            stream_end[lane] = end = start + lasts
            add_end(end)
    waits.pass_until(len(graph.wait_s), ended)
    started = np.asarray(ended, np.float64) - durations
    return Retimed(started, clock, graph.wait_s, graph.waited_s, np.asarray(waits.sums, np.float64))


def _first_of_each(stream: Ints) -> NDArray[np.bool_]:
    first = np.zeros(len(stream), bool)
    first[np.unique(stream, return_index=True)[1]] = True
    return first
