"""Rank clocks brought together: a collective cannot end anywhere before the last rank has come, and all leave together.

For collective c and rank r with offset o(r):  end(c, r) + o(r) = T(c) + noise.  Offsets and true ends are found by
alternating medians (a straggler moves starts, never ends, so it cannot bend the clock), then a drift is fitted where
the residuals show one beyond their noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._matched import Matched

Floats = NDArray[np.float64]
ROUNDS = 8
SIGMA_OF_MAD = 1.4826  # for normal noise
FINEST_S = 1e-6  # older traces count whole microseconds
ENOUGH_FOR_DRIFT = 9
WORST_DRIFT = 5e-4  # 500 ppm: far beyond any oscillator that keeps a node's clock


@dataclass(slots=True, eq=False)
class OneClock:
    """What to add to each rank's clock, and how far it may still be off."""

    offset_s: Floats
    drift: Floats
    middle_s: float  # where the drift is zero
    error_s: Floats  # per rank: three sigma of one collective's end
    linked: NDArray[np.bool_]  # ranks that share collectives with the largest part; others keep their own clock
    samples: NDArray[np.int64]

    def on(self, times: Floats) -> Floats:
        """Times (collectives x ranks) on the common clock."""
        return times + self.offset_s + self.drift * (times - self.middle_s)

    @property
    def worst_error_s(self) -> float:
        """The bound for any two linked ranks."""
        return float(self.error_s[self.linked].max()) if self.linked.any() else float("inf")


def align(matched: Matched) -> OneClock:
    """Solves for the clocks."""
    usable = matched.together
    ends = matched.end[usable]
    starts = matched.start[usable]
    present = np.isfinite(ends)
    count = present.sum(axis=0)
    offset, linked = _first_guess(ends, present)
    for _ in range(ROUNDS):
        true_end = _row_median(ends + offset, linked)
        moved = _column_median(true_end[:, None] - ends, offset)
        if np.nanmax(np.abs(moved - offset)[linked], initial=0.0) < 1e-9:
            break
        offset = np.where(linked, moved, offset)
    true_end = _row_median(ends + offset, linked)
    middle = float(np.nanmedian(true_end)) if len(true_end) else 0.0
    drift = np.zeros(len(offset))
    differences = true_end[:, None] - (ends + offset)
    for at in np.flatnonzero(linked & (count >= ENOUGH_FOR_DRIFT)):
        drift[at], extra = _drift(differences[:, at], ends[:, at], middle)
        offset[at] += extra
    differences = true_end[:, None] - (ends + offset + drift * (ends - middle))
    sigma = SIGMA_OF_MAD * _column_median(np.abs(differences), np.zeros(len(offset)))
    error = np.maximum(3 * sigma, FINEST_S)
    # One or two collectives fit any offset: only causality bounds the error then.
    shortest = np.where(present, ends - starts, np.inf).min(axis=0, initial=np.inf)
    error = np.where(count < 3, np.maximum(error, shortest), error)
    return OneClock(offset, drift, middle, error, linked, count)


def _first_guess(ends: Floats, present: NDArray[np.bool_]) -> tuple[Floats, NDArray[np.bool_]]:
    """Rank by rank outward from the best connected one."""
    ranks = present.shape[1]
    offset = np.zeros(ranks)
    linked = np.zeros(ranks, bool)
    if not len(ends):
        return offset, linked
    linked[int(np.argmax(present.sum(axis=0)))] = True
    while True:
        true_end = _row_median(ends + offset, linked)
        shared = np.isfinite(true_end)[:, None] & present & ~linked
        new = shared.any(axis=0)
        if not new.any():
            return offset, linked
        offset = np.where(new, _column_median(true_end[:, None] - ends, offset), offset)
        linked |= new


def _row_median(values: Floats, columns: NDArray[np.bool_]) -> Floats:
    picked = values[:, columns]
    out = np.full(len(values), np.nan)
    some = np.isfinite(picked).any(axis=1)
    if some.any():
        out[some] = np.nanmedian(picked[some], axis=1)
    return out


def _column_median(values: Floats, otherwise: Floats) -> Floats:
    out = otherwise.copy()
    some = np.isfinite(values).any(axis=0)
    if some.any():
        out[some] = np.nanmedian(values[:, some], axis=0)
    return out


def _drift(differences: Floats, times: Floats, middle: float) -> tuple[float, float]:
    """Slope and shift from the medians of the first and the last third, where they differ beyond the noise."""
    there = np.flatnonzero(np.isfinite(differences))
    third = len(there) // 3
    early, late = there[:third], there[-third:]
    t0, t1 = float(np.median(times[early])), float(np.median(times[late]))
    if t1 <= t0:
        return 0.0, 0.0
    rise = float(np.median(differences[late]) - np.median(differences[early]))
    slope = rise / (t1 - t0)
    left = differences[there] - slope * (times[there] - middle)
    noise = SIGMA_OF_MAD * float(np.median(np.abs(left - np.median(left)))) * 1.25 / np.sqrt(third)
    if abs(rise) <= max(5 * noise, FINEST_S) or abs(slope) > WORST_DRIFT:
        return 0.0, 0.0
    return slope, float(np.median(left))
