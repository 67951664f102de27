"""The tree of host operators: who called whom, and which operator a moment on a thread belongs to. Numpy only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stallwise.evidence.timeline import Timeline

Ints = NDArray[np.int64]
NOBODY = -1


@dataclass(eq=False)
class OperatorTree:
    """Operators sorted by thread and start, with their parents. Positions here are not rows of the timeline."""

    row: NDArray[np.intp]  # row of the timeline
    key_start: NDArray[np.float64]  # start, moved so that threads do not overlap
    key_end: NDArray[np.float64]
    parent: Ints
    levels: list[Ints]  # positions by depth
    lane_offset_s: NDArray[np.float64]  # by lane

    @classmethod
    def of(cls, timeline: Timeline, rows: NDArray[np.intp]) -> OperatorTree:
        """Nests the given rows by containment on their lanes."""
        lanes = len(timeline.lanes)
        span = float(timeline.start_s[-1] + np.max(timeline.duration_s)) + 1.0 if len(timeline) else 1.0
        offset: NDArray[np.float64] = np.arange(lanes, dtype=np.float64) * span
        key = timeline.start_s[rows] + offset[timeline.lane[rows]]
        # The timeline is sorted by start and, at ties, by falling length: parents come before their children.
        order = np.argsort(key, kind="stable")
        row, start = rows[order], key[order]
        end = start + timeline.duration_s[row]
        place = np.arange(len(row))
        depth = place - np.searchsorted(np.sort(end), start, side="right")
        depth = np.clip(depth, 0, MAX_DEPTH)
        parent = np.full(len(row), NOBODY, np.int64)
        levels: list[Ints] = []
        for level in range(int(depth.max(initial=-1)) + 1):
            here = np.flatnonzero(depth == level)
            if level and len(levels[-1]):
                above = levels[-1]
                up = np.searchsorted(above, here) - 1
                candidate = above[np.maximum(up, 0)]
                holds = (up >= 0) & (end[candidate] + CLOCK_GRAIN_S >= end[here])
                parent[here] = np.where(holds, candidate, NOBODY)
            levels.append(here)
        return cls(row, start, end, parent, levels, offset)

    def __len__(self) -> int:
        return len(self.row)

    def without_callees(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """What of each operator's value none of those that it called directly has."""
        called = self.parent >= 0
        theirs = np.bincount(self.parent[called], weights=values[called], minlength=len(self))
        own: NDArray[np.float64] = np.maximum(values - theirs, 0.0)
        return own

    def inherited(self, own: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """True where the operator or anyone above it is marked."""
        marked = own.copy()
        for level in self.levels[1:]:
            up = self.parent[level]
            marked[level] |= (up >= 0) & marked[np.maximum(up, 0)]
        return marked

    def root(self) -> Ints:
        """The outermost operator above each."""
        top = np.arange(len(self))
        for level in self.levels[1:]:
            up = self.parent[level]
            top[level] = np.where(up >= 0, top[np.maximum(up, 0)], level)
        return top

    def at(self, lane: NDArray[np.int32], time_s: NDArray[np.float64]) -> Ints:
        """The innermost operator that holds each moment on its lane; NOBODY where none does."""
        if not len(self):
            return np.full(len(lane), NOBODY, np.int64)
        moment = time_s + self.lane_offset_s[lane]
        found = np.searchsorted(self.key_start, moment, side="right") - 1
        for _ in range(MAX_DEPTH):
            done = (found < 0) | (self.key_end[np.maximum(found, 0)] >= moment)
            if done.all():
                break
            found = np.where(done, found, self.parent[np.maximum(found, 0)])
        return found


MAX_DEPTH = 200  # recursion of operators; real traces stay under 40
CLOCK_GRAIN_S = 2e-6  # old traces round to microseconds, so a child may seem to outlive its parent by one
