"""What one step of a rank shows, track by track: streams, ranges on the device, threads, and the Python frames of each thread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._operators import OperatorTree
from stallwise.doctor.measures._step_index import StepIndex
from stallwise.evidence.timeline import Kind

Rows = NDArray[np.intp]
Ints = NDArray[np.int64]

MOST_STREAMS = 16
MOST_THREADS = 8  # those that launch work come first, then the busiest
DEEPEST = 48  # levels of nesting: a deeper frame is not reached by scrolling either
HOST = (Kind.ANNOTATION, Kind.CPU_OP, Kind.RUNTIME)


@dataclass(frozen=True, slots=True, eq=False)
class Track:
    """Events that are drawn together, one row of boxes for each level."""

    kind: str  # "stream", "ranges", "thread" or "python"
    label: str
    rows: Rows  # of the timeline, in order of start
    depth: Ints


def tracks_of(index: StepIndex, begin_s: float, device_begin_s: float, end_s: float) -> tuple[list[Track], list[str]]:
    """The tracks of this stretch of time, which begins earlier on the host, and the threads and streams that were left out."""
    t = index.timeline
    first, last = np.searchsorted(t.start_s, [begin_s, end_s])
    # What began before and is still running is rare; it is looked for among all that began before.
    reaching = np.flatnonzero(t.end_s[:first] > begin_s)
    inside = np.concatenate((reaching, np.arange(first, last)))
    inside = inside[(t.duration_s[inside] > 0) & (t.lane[inside] >= 0)]
    streams, no_streams = _streams(index, inside[t.end_s[inside] > device_begin_s])
    threads, no_threads = _threads(index, inside, begin_s, end_s)
    return [*streams, *threads], no_streams + no_threads


def _streams(index: StepIndex, inside: Rows) -> tuple[list[Track], list[str]]:
    t, view = index.timeline, index.view
    work = inside[np.isin(inside, view.work, assume_unique=True)]
    busy = np.bincount(t.lane[work], weights=t.duration_s[work], minlength=len(t.lanes))
    order = [int(s) for s in np.argsort(-busy, kind="stable") if busy[s] > 0]
    ranges = inside[t.kind[inside] == Kind.GPU_ANNOTATION]
    found = []
    for stream in order[:MOST_STREAMS]:
        mine = work[t.lane[work] == stream]
        found.append(Track("stream", f"stream {t.lanes[stream].thread}", mine, np.zeros(len(mine), np.int64)))
        named = ranges[t.lane[ranges] == stream]
        if len(named):
            found.append(_nested(index, "ranges", f"ranges on stream {t.lanes[stream].thread}", named))
    return found, [f"stream {t.lanes[s].thread}" for s in order[MOST_STREAMS:]]


def _threads(index: StepIndex, inside: Rows, begin_s: float, end_s: float) -> tuple[list[Track], list[str]]:
    t = index.timeline
    host = inside[np.isin(t.kind[inside], HOST)]
    frames = inside[t.kind[inside] == Kind.PYTHON]
    # Frames that hold the whole stretch (main, train, the loop) say nothing about any part of it, but for the innermost.
    holds = frames[(t.start_s[frames] <= begin_s) & (t.end_s[frames] >= end_s)]
    innermost = {int(t.lane[row]): int(row) for row in holds.tolist()}
    frames = frames[~np.isin(frames, np.setdiff1d(holds, list(innermost.values())))]
    both = np.concatenate((host, frames))
    spent = np.bincount(t.lane[both], weights=t.duration_s[both], minlength=len(t.lanes))
    leads = index.view.working_lanes[: len(spent)] & (spent > 0)
    order = [int(lane) for lane in np.lexsort((-spent, ~leads)) if spent[lane] > 0]
    found = []
    for lane in order[:MOST_THREADS]:
        label = _thread_label(t.lanes[lane].label, t.lanes[lane].thread)
        for kind, rows, tail in (("thread", host, ""), ("python", frames, ", Python")):
            mine = rows[t.lane[rows] == lane]
            if len(mine):
                found.append(_nested(index, kind, label + tail, mine))
    return found, [_thread_label(t.lanes[lane].label, t.lanes[lane].thread) for lane in order[MOST_THREADS:]]


def _thread_label(name: str, thread: str) -> str:
    name = name.replace(f"thread {thread}", "").replace(thread, "").strip(" ()")
    return f"{name} {thread}" if name else f"thread {thread}"


def _nested(index: StepIndex, kind: str, label: str, rows: Rows) -> Track:
    tree = OperatorTree.of(index.timeline, np.sort(rows))
    depth = np.zeros(len(tree), np.int64)
    for level, here in enumerate(tree.levels):
        depth[here] = level
    keep = depth < DEEPEST
    return Track(kind, label, tree.row[keep], depth[keep])
