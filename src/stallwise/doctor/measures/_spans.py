"""Sets of time: disjoint sorted intervals as two arrays, with the algebra of sets. All of it numpy, no loops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Disjoint, sorted, non-empty intervals [start, end)."""

    start: Floats
    end: Floats

    @classmethod
    def of(cls, start: ArrayLike, end: ArrayLike) -> Spans:
        """The union of intervals that may overlap, touch, be empty or come in any order."""
        lo, hi = np.asarray(start, np.float64), np.asarray(end, np.float64)
        keep = hi > lo
        if not keep.all():
            lo, hi = lo[keep], hi[keep]
        if not len(lo):
            return NOTHING
        if len(lo) > 1 and np.any(lo[1:] < lo[:-1]):
            order = np.argsort(lo, kind="stable")
            lo, hi = lo[order], hi[order]
        reach = np.maximum.accumulate(hi)
        first = np.concatenate(([True], lo[1:] > reach[:-1]))
        last = np.concatenate((first[1:], [True]))
        return cls(lo[first], reach[last])

    def __len__(self) -> int:
        return len(self.start)

    @property
    def total_s(self) -> float:
        """Summed length."""
        return float(np.sum(self.end - self.start))

    @property
    def length_s(self) -> Floats:
        """Length of each interval."""
        return self.end - self.start

    def measure_below(self, time_s: ArrayLike) -> Floats:
        """How much of this set lies before each of these moments."""
        at = np.asarray(time_s, np.float64)
        if not len(self.start):
            return np.zeros(at.shape)
        before = np.concatenate(([0.0], np.cumsum(self.end - self.start)))
        place = np.searchsorted(self.start, at, side="right")
        inside = np.where(place > 0, self.end[place - 1] - at, 0.0)
        return before[place] - np.maximum(inside, 0.0)

    def within(self, start: ArrayLike, end: ArrayLike) -> Floats:
        """How much of this set lies inside each of these intervals."""
        return self.measure_below(end) - self.measure_below(start)

    def contains(self, time_s: ArrayLike) -> NDArray[np.bool_]:
        """Whether each of these moments lies in the set."""
        at = np.asarray(time_s, np.float64)
        if not len(self.start):
            return np.zeros(at.shape, bool)
        place = np.searchsorted(self.start, at, side="right") - 1
        return np.asarray((place >= 0) & (at < self.end[np.maximum(place, 0)]))

    def complement(self, start_s: float, end_s: float) -> Spans:
        """What of [start, end) is not in the set."""
        return Spans.of([start_s], [end_s]) - self

    def __or__(self, other: Spans) -> Spans:
        return Spans.of(np.concatenate((self.start, other.start)), np.concatenate((self.end, other.end)))

    def __and__(self, other: Spans) -> Spans:
        if not len(self) or not len(other):
            return NOTHING
        # Each of mine meets a contiguous run of the other's.
        first = np.searchsorted(other.end, self.start, side="right")
        past = np.searchsorted(other.start, self.end, side="left")
        count = np.maximum(past - first, 0)
        mine = np.repeat(np.arange(len(self)), count)
        offset = np.arange(len(mine)) - np.repeat(np.cumsum(count) - count, count)
        theirs = first[mine] + offset
        lo = np.maximum(self.start[mine], other.start[theirs])
        hi = np.minimum(self.end[mine], other.end[theirs])
        keep = hi > lo
        return Spans(lo[keep], hi[keep])

    def __sub__(self, other: Spans) -> Spans:
        if not len(self) or not len(other):
            return self
        lo = np.concatenate(([-np.inf], other.end))
        hi = np.concatenate((other.start, [np.inf]))
        keep = hi > lo
        return self & Spans(lo[keep], hi[keep])

    def longer_than(self, length_s: float) -> Spans:
        """Only the intervals at least this long."""
        keep = self.end - self.start >= length_s
        return Spans(self.start[keep], self.end[keep])


_EMPTY: Floats = np.empty(0)
NOTHING = Spans(_EMPTY, _EMPTY)
