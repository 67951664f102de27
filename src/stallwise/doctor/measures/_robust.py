"""Shapes in a noisy series, found with medians so that one wild point never decides."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from heapq import heappush, heappushpop

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
MAD_TO_SIGMA = 1.4826  # makes the median absolute deviation equal sigma for normal noise
SPIKE_SIGMAS = 6.0  # a normal series of 10^6 points has none
SPIKE_SHARE = 0.05  # and a spike must stand out by this part of the usual value
WINDOW = 25  # points of the rolling median that spikes are measured against
MAX_SLOPE_POINTS = 400  # Theil-Sen looks at all pairs; longer series are thinned
MANY_POINTS = 4000  # above, a split is looked for in two passes
ROUGHLY = 12  # places that the first of them takes at a time
ROUNDING = 1e-12  # of the sum of a series: splits that differ by less may be equally good
MOST_TIED = 8  # of those that are looked at once more
MIN_POINTS = 6


def spread(values: Values) -> float:
    """A sigma that half of the points may be wrong about."""
    return float(MAD_TO_SIGMA * np.median(np.abs(values - np.median(values)))) if len(values) else 0.0


def rolling_median(values: Values, window: int = WINDOW) -> Values:
    """The median of the neighbourhood of each point; windows shrink towards the ends, so that a trend is no spike."""
    n = len(values)
    half = min(window // 2, (n - 1) // 2)
    if half == 0:
        return values.copy()
    result = np.empty(n)
    result[half : n - half] = np.median(np.lib.stride_tricks.sliding_window_view(values, 2 * half + 1), axis=1)
    first, last = values[: 2 * half].tolist(), values[n - 2 * half :].tolist()
    for i in range(half):
        result[i] = sorted(first[: 2 * i + 1])[i]
        result[n - 1 - i] = sorted(last[2 * half - 1 - 2 * i :])[i]
    return result


def spikes(values: Values) -> NDArray[np.intp]:
    """Places of isolated high points."""
    if len(values) < MIN_POINTS:
        return np.array([], dtype=np.intp)
    base = rolling_median(values)
    above = values - base
    limit = np.maximum(SPIKE_SIGMAS * spread(values - base), SPIKE_SHARE * base)
    return np.flatnonzero(above > limit)


@dataclass(frozen=True, slots=True)
class Shift:
    """A level that changed once."""

    index: int  # the first point of the new level
    before: float
    after: float
    residual: float  # mean absolute deviation that remains


def best_shift(values: Values, margin: int = 3) -> Shift | None:
    """The split into two levels that leaves the least absolute deviation; of a long series first roughly, then nearby."""
    n = len(values)
    if n < 2 * margin:
        return None
    stride = max(1, n // MAX_SLOPE_POINTS)
    places = range(margin, n - margin + 1, stride)
    if n > MANY_POINTS:
        rough = min((_split(values, i) for i in places[::ROUGHLY]), key=lambda s: s.residual)
        near = places.index(rough.index)
        places = places[max(near - ROUGHLY, 0) : near + ROUGHLY + 1]
        return min((_split(values, i) for i in places), key=lambda s: s.residual)
    left, right = _deviations(values), _deviations(values[::-1])[::-1]
    remaining = left[places.start - 1 : n - margin : stride] + right[places.start :: stride][: len(places)]
    best = float(remaining.min()) + ROUNDING * float(np.abs(values).sum())
    tied = np.flatnonzero(remaining <= best)[:MOST_TIED].tolist()
    return min((_split(values, places[at]) for at in tied), key=lambda s: s.residual)


def _deviations(values: Values) -> Values:
    """The sum of absolute deviations from the median of each beginning of the series: the lower half is kept apart from the upper."""
    low: list[float] = []  # negated, so that its largest comes first
    high: list[float] = []
    low_sum = high_sum = 0.0
    result = np.empty(len(values))
    for i, value in enumerate(values.tolist()):
        if len(low) > len(high):
            moved = -heappushpop(low, -value)
            heappush(high, moved)
            low_sum, high_sum = low_sum + value - moved, high_sum + moved
            result[i] = high_sum - low_sum
        else:
            moved = heappushpop(high, value)
            heappush(low, -moved)
            low_sum, high_sum = low_sum + moved, high_sum + value - moved
            result[i] = high_sum - low_sum - low[0]
    return result


def _split(values: Values, index: int) -> Shift:
    left, right = values[:index], values[index:]
    low, high = float(np.median(left)), float(np.median(right))
    return Shift(index, low, high, float(np.abs(left - low).sum() + np.abs(right - high).sum()) / len(values))


def slope(x: Values, values: Values) -> float:
    """The median of all pairwise slopes (Theil-Sen)."""
    stride = max(1, -(-len(x) // MAX_SLOPE_POINTS))
    a, b = x[::stride], values[::stride]
    i, j = _pairs(len(a))
    run = a[j] - a[i]
    keep = run > 0
    return float(np.median((b[j] - b[i])[keep] / run[keep])) if keep.any() else 0.0


@lru_cache(maxsize=4)
def _pairs(points: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Each point with each later one."""
    return np.triu_indices(points, 1)


def line_residual(x: Values, values: Values) -> tuple[float, float, float]:
    """Start and end of the robust line, and the mean absolute deviation from it."""
    gradient = slope(x, values)
    offset = float(np.median(values - gradient * x))
    fitted = gradient * x + offset
    return float(fitted[0]), float(fitted[-1]), float(np.abs(values - fitted).mean())


def monotony(values: Values) -> float:
    """Spearman's correlation with time: 1 for a series that only rises."""
    n = len(values)
    if n < 3 or np.all(values == values[0]):
        return 0.0
    moved = np.argsort(np.argsort(values, kind="stable"), kind="stable") - np.arange(n, dtype=float)
    return float(1.0 - 6.0 * (moved @ moved) / (n * (n * n - 1.0)))


def events(places: NDArray[np.intp], gap: int = 2) -> NDArray[np.intp]:
    """The first place of each run of neighbours: one pause may slow several steps in a row."""
    if not len(places):
        return places
    fresh = np.concatenate([[True], np.diff(places) > gap])
    return np.asarray(places[fresh], dtype=np.intp)


def segments(values: Values, drop: float = 0.3) -> list[Values]:
    """The series cut where it falls back by a good part of its range (a sawtooth: memory freed at each epoch)."""
    height = float(values.max() - values.min())
    if height <= 0:
        return [values]
    cuts = np.flatnonzero(np.diff(values) < -drop * height) + 1
    return [part for part in np.split(values, cuts) if len(part)]


def regularity(places: Values) -> tuple[float, float]:
    """The usual distance of events and how regular it is (1: a clock)."""
    gaps = np.diff(places)
    if not len(gaps):
        return float("nan"), 0.0
    period = float(np.median(gaps))
    if period <= 0:
        return float("nan"), 0.0
    return period, float(max(0.0, 1.0 - np.median(np.abs(gaps - period)) / period * 2))
