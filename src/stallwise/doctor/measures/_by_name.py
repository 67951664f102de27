"""Sums, counts and medians by name, for tables of what took most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stallwise.evidence.top import MOST_ROWS

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class ByName:
    """One entry a name, the largest sum first."""

    code: NDArray[np.int64]
    total: Floats
    count: Floats
    median: Floats
    left_out: int

    def sums(self, code: NDArray[np.int64], values: Floats) -> Floats:
        """The sum of another quantity by the same names."""
        size = int(max(code.max(initial=0), self.code.max(initial=0))) + 1
        return _sums(code, values, size)[self.code]


def by_name(code: NDArray[np.int64], values: Floats, most: int = MOST_ROWS, weight: Floats | None = None) -> ByName:
    """Ordered by the sum of `values`, or of `weight` where another quantity decides."""
    seen = np.bincount(code) > 0
    names, which = np.flatnonzero(seen), (np.cumsum(seen) - 1)[code]
    total = _sums(which, values, len(names))
    count = np.bincount(which, minlength=len(names)).astype(np.float64)
    order = np.lexsort((values, which))
    first = np.concatenate(([0], np.cumsum(count)[:-1])).astype(np.int64) if len(names) else np.empty(0, np.int64)
    sorted_values = values[order]
    low, high = first + (count.astype(np.int64) - 1) // 2, first + count.astype(np.int64) // 2
    median = (sorted_values[low] + sorted_values[high]) / 2 if len(names) else total
    heavy = total if weight is None else _sums(which, weight, len(names))
    top = np.argsort(-heavy, kind="stable")
    top = top[heavy[top] > 0]
    kept = top[:most]
    return ByName(names[kept], total[kept], count[kept], median[kept], len(top) - len(kept))


def _sums(code: NDArray[np.int64], values: Floats, size: int) -> Floats:
    return np.bincount(code, weights=values, minlength=size).astype(np.float64)
