"""One thing changed in a recorded run, and what the run takes then."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from stallwise.physics.sim.replay.graph import Graph
from stallwise.physics.sim.replay.host import clock_of, waited_until
from stallwise.physics.sim.replay.retime import Retimed, retime

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_NONE: Floats = np.empty(0)


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """What is taken out: stretches of the host's time (disjoint, in order), waits, and parts of the device's work."""

    host_start_s: Floats = field(default_factory=lambda: _NONE)
    host_end_s: Floats = field(default_factory=lambda: _NONE)
    waits: Bools | None = None  # by wait of the graph: True for those that no longer happen
    work: Floats | None = None  # by piece of work: what part of its time is left
    longest_lag_s: float | None = None  # between queued work, where that is prepared as a whole
    slower_start_s: Floats = field(
        default_factory=lambda: _NONE
    )  # stretches in which the host has more to do with the change
    slower_end_s: Floats = field(default_factory=lambda: _NONE)
    slower_part: float = 0.0  # by this part of their time


def play(graph: Graph, change: Change, share: float = 1.0) -> Retimed:
    """The run after this share of the change."""
    edges = np.unique(
        np.concatenate((change.host_start_s, change.host_end_s, change.slower_start_s, change.slower_end_s))
    )
    middle = (edges[1:] + edges[:-1]) / 2
    gone = _inside(middle, change.host_start_s, change.host_end_s)
    slower = _inside(middle, change.slower_start_s, change.slower_end_s) & ~gone
    working = np.diff(edges) - np.diff(waited_until(edges, graph.wait_s, graph.waited_s))
    cost = share * np.where(slower, -change.slower_part * working, np.diff(edges) * gone)
    clock = clock_of(edges, cost, graph.wait_s, graph.waited_s, 0.0)
    changed = graph
    if change.waits is not None:
        # Waiting for work that never comes up is no wait.
        changed = replace(changed, wait_for=np.where(change.waits, len(graph), graph.wait_for))
    if change.longest_lag_s is not None:
        changed = replace(changed, stream_lag_s=np.minimum(graph.stream_lag_s, change.longest_lag_s))
    left = None if change.work is None else graph.duration_s * (1.0 - share * (1.0 - change.work))
    return retime(changed, clock, left)


def part_of(change: Change, share: float) -> Change:
    """The change made to this share: of every stretch so much goes, and of the waits so many, evenly spread."""
    if share >= 1.0:
        return change
    waits = change.waits
    if waits is not None:
        count = np.cumsum(waits)
        waits = waits & (np.floor(count * share) > np.floor((count - 1) * share))
    return replace(
        change,
        host_end_s=change.host_start_s + share * (change.host_end_s - change.host_start_s),
        waits=waits,
        work=None if change.work is None else 1.0 - share * (1.0 - change.work),
        longest_lag_s=None,  # work is prepared as a whole, or it is not
        slower_part=share * change.slower_part,
    )


def both(one: Change, other: Change) -> Change:
    """Two changes at once."""
    start, end = _joined((one.host_start_s, other.host_start_s), (one.host_end_s, other.host_end_s))
    slower_start, slower_end = _joined(
        (one.slower_start_s, other.slower_start_s), (one.slower_end_s, other.slower_end_s)
    )
    waits = [c.waits for c in (one, other) if c.waits is not None]
    work = [c.work for c in (one, other) if c.work is not None]
    lags = [c.longest_lag_s for c in (one, other) if c.longest_lag_s is not None]
    return Change(
        start,
        end,
        np.logical_or.reduce(waits) if waits else None,
        np.minimum.reduce(work) if work else None,
        min(lags) if lags else None,
        slower_start,
        slower_end,
        max(one.slower_part, other.slower_part),
    )


def _joined(starts: tuple[Floats, Floats], ends: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Stretches of both, disjoint again."""
    start, end = np.concatenate(starts), np.concatenate(ends)
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    if not len(start):
        return start, end
    reach = np.maximum.accumulate(end)
    first = np.concatenate(([True], start[1:] > reach[:-1]))
    return start[first], reach[np.concatenate((first[1:], [True]))]


def _inside(time_s: Floats, start_s: Floats, end_s: Floats) -> Bools:
    """Which moments lie in one of these stretches."""
    if not len(start_s):
        return np.zeros(len(time_s), bool)
    place = np.searchsorted(start_s, time_s, "right") - 1
    found: Bools = (place >= 0) & (time_s < end_s[np.maximum(place, 0)])
    return found
