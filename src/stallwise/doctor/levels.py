"""Where a short series changes its level, judged against its own noise.

A change must pass Student's test with the error shared among all places tried. Runs are few, and some agree by chance: their
spread is never taken to be less than what runs of one job on one machine differ by anyway.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stallwise.experiment.paired import student

Floats = NDArray[np.float64]
USUAL_NOISE = 0.01  # of a step: medians of repeated runs of one job on one machine (docs/try.md measures the same)
ERROR_SHARE = 0.05  # of series without a change in which one is named
WORTH_NAMING = 0.01  # smaller changes are nobody's regression
KINDS = 2  # of changes that are looked for: one that stays, and one that comes and goes
FEWEST = 3  # runs that make a series


@dataclass(frozen=True, slots=True)
class Level:
    """A change: the first place after it, and how far beyond the noise's bound it lies."""

    at: int
    against: float


def level_changes(logs: Floats) -> list[Level]:
    """All changes of a series of logarithms, in order."""
    return sorted(_changes(np.asarray(logs, dtype=np.float64), 0), key=lambda level: level.at)


def _changes(logs: Floats, start: int) -> list[Level]:
    n = len(logs)
    if n < FEWEST:
        return []
    found = _one_change(logs) or _there_and_back(logs)
    if not found:
        return []
    edges = [0, *(level.at for level in found), n]
    inside = [x for a, b in zip(edges, edges[1:], strict=False) for x in _changes(logs[a:b], start + a)]
    return [Level(level.at + start, level.against) for level in found] + inside


def _one_change(logs: Floats) -> list[Level]:
    n = len(logs)
    tried = [(_against(logs, np.arange(n) >= k, KINDS * (n - 1)), k) for k in range(1, n)]
    against, at = max(tried)
    return [Level(at, against)] if against > 1.0 else []


def _there_and_back(logs: Floats) -> list[Level]:
    """A level that came and went: two runs or more, with the old level on both sides."""
    n = len(logs)
    places = [(i, j) for i in range(1, n - 2) for j in range(i + 2, n)]
    tried = [(_against(logs, (np.arange(n) >= i) & (np.arange(n) < j), KINDS * len(places)), i, j) for i, j in places]
    if not tried:
        return []
    against, i, j = max(tried)
    return [Level(i, against), Level(j, against)] if against > 1.0 else []


def _against(logs: Floats, other: NDArray[np.bool_], places: int) -> float:
    """The difference of the two groups over the least that could be told from noise."""
    a, b = logs[~other], logs[other]
    difference = abs(float(b.mean() - a.mean()))
    if difference < math.log1p(WORTH_NAMING):
        return 0.0
    left = float(((a - a.mean()) ** 2).sum() + ((b - b.mean()) ** 2).sum())
    return difference / _bound(left, len(logs) - 2, 1.0 / len(a) + 1.0 / len(b), places)


def _bound(squares: float, freedom: int, shares: float, places: int) -> float:
    noise = max(math.sqrt(squares / freedom), USUAL_NOISE)
    return student(1.0 - ERROR_SHARE / (2 * places), freedom) * noise * math.sqrt(shares)


def last_against(logs: Floats) -> tuple[float, float]:
    """The last one against those before it: its logarithmic distance, and that over what noise may do."""
    earlier = np.asarray(logs[:-1], dtype=np.float64)
    difference = float(logs[-1] - earlier.mean())
    left = float(((earlier - earlier.mean()) ** 2).sum())
    bound = _bound(left, len(earlier) - 1, 1.0 + 1.0 / len(earlier), 1)
    return difference, abs(difference) / bound if abs(difference) >= math.log1p(WORTH_NAMING) else 0.0


def noise_share(logs: Floats, changes: list[Level]) -> float:
    """By how much runs of one level differ."""
    edges = [0, *(c.at for c in changes), len(logs)]
    left = [x - logs[a:b].mean() for a, b in zip(edges, edges[1:], strict=False) for x in logs[a:b]]
    freedom = max(len(logs) - len(changes) - 1, 1)
    return float(math.sqrt(sum(x * x for x in left) / freedom))
