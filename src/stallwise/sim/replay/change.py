"""One thing changed in a recorded run, and what the run takes then."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from stallwise.sim.replay.graph import Graph
from stallwise.sim.replay.host import clock_of
from stallwise.sim.replay.retime import Retimed, retime

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


def play(graph: Graph, change: Change, share: float = 1.0) -> Retimed:
    """The run after this share of the change."""
    edges = np.empty(2 * len(change.host_start_s))
    edges[0::2], edges[1::2] = change.host_start_s, change.host_end_s
    cost = np.zeros(max(len(edges) - 1, 0))
    cost[0::2] = share * (change.host_end_s - change.host_start_s)
    clock = clock_of(edges, cost, graph.wait_s, graph.waited_s, 0.0)
    changed = graph
    if change.waits is not None:
        # Waiting for work that never comes up is no wait.
        changed = replace(changed, wait_for=np.where(change.waits, len(graph), graph.wait_for))
    if change.longest_lag_s is not None:
        changed = replace(changed, stream_lag_s=np.minimum(graph.stream_lag_s, change.longest_lag_s))
    left = None if change.work is None else graph.duration_s * (1.0 - share * (1.0 - change.work))
    return retime(changed, clock, left)


def both(one: Change, other: Change) -> Change:
    """Two changes at once."""
    start = np.concatenate((one.host_start_s, other.host_start_s))
    end = np.concatenate((one.host_end_s, other.host_end_s))
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    if len(start):
        reach = np.maximum.accumulate(end)
        first = np.concatenate(([True], start[1:] > reach[:-1]))
        start, end = start[first], reach[np.concatenate((first[1:], [True]))]
    waits = [c.waits for c in (one, other) if c.waits is not None]
    work = [c.work for c in (one, other) if c.work is not None]
    lags = [c.longest_lag_s for c in (one, other) if c.longest_lag_s is not None]
    return Change(
        start,
        end,
        np.logical_or.reduce(waits) if waits else None,
        np.minimum.reduce(work) if work else None,
        min(lags) if lags else None,
    )
