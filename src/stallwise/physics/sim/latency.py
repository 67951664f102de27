"""Distributions in fixed memory: logarithmic buckets of about one percent."""

from __future__ import annotations

import math
from bisect import bisect_left

SMALLEST_S = 1e-6
RATIO = 1.02
_LOG = math.log(RATIO)


class Latencies:
    """A histogram that answers percentiles to about one percent, whatever the number of values."""

    __slots__ = ("count", "counts", "most", "total")

    def __init__(self) -> None:
        self.counts: dict[int, float] = {}
        self.count = self.total = self.most = 0.0

    def add(self, value: float, times: float = 1.0) -> None:
        """Counts a value so many times."""
        key = int(math.log(max(value, SMALLEST_S) / SMALLEST_S) / _LOG)
        self.counts[key] = self.counts.get(key, 0.0) + times
        self.count += times
        self.total += value * times
        self.most = max(self.most, value)

    @property
    def mean(self) -> float:
        """NaN of nothing."""
        return self.total / self.count if self.count else math.nan

    def quantile(self, share: float) -> float:
        """The value below which this share lies; NaN of nothing."""
        if not self.count:
            return math.nan
        wanted, seen = share * self.count, 0.0
        for key in sorted(self.counts):
            seen += self.counts[key]
            if seen >= wanted:
                return float(min(self.most, SMALLEST_S * RATIO ** (key + 0.5)))
        return self.most

    def below(self, limit: float) -> float:
        """The share of values up to this limit."""
        if not self.count:
            return math.nan
        edge = int(math.log(max(limit, SMALLEST_S) / SMALLEST_S) / _LOG)
        keys = sorted(self.counts)
        return sum(self.counts[k] for k in keys[: bisect_left(keys, edge + 1)]) / self.count

    def buckets(self) -> tuple[list[float], list[float]]:
        """Upper edges and counts."""
        keys = sorted(self.counts)
        return [SMALLEST_S * RATIO ** (k + 1) for k in keys], [self.counts[k] for k in keys]
