"""Clocks of workers brought together: all leave a collective at one moment, and a hand-off ends at one moment on both sides.

A clock that is off shows the same shift at the begin of every step and at the end of every collective; a slow worker begins its
steps with the others. Only a shift that both show, beyond their own scatter, is taken for the clock's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stallwise.evidence.operations import COLLECTIVES, COMMUNICATION, Work
from stallwise.physics.sim.job.grid import Floats, Grid, usual

AGREE = 0.2  # of the shift: begins and ends that differ by more speak of no clock
LEAST = 1e-4  # of a step: less moves no replay, on sixteen stages neither; clocks of one cluster agree to tens of microseconds
MAD = 1.4826  # of a normal deviation


@dataclass(frozen=True, slots=True)
class Clocks:
    """What was taken from each worker's times, and how far clocks may still be apart."""

    offset_s: Floats  # (stage, replica)
    error_s: float


def align(grid: Grid) -> Clocks | None:
    """Shifts the grid's begins onto one clock; None where clocks agree, or nothing shows that they do not."""
    stages, least_s = grid.stages, LEAST * float(np.median(grid.measured_s()))
    offset = np.zeros((len(stages), len(grid.replicas)))
    errors = []
    for at, stage in enumerate(stages):
        found = _within_stage(grid, stage, least_s)
        if found is not None:
            offset[at], error = found
            errors.append(error)
    pairs = [_Pair(grid, stages[at - 1], stages[at], offset[at] - offset[at - 1]) for at in range(1, len(stages))]
    bounds = [pair.bounds() for pair in pairs]
    if not offset.any() and all(low <= least_s and -least_s <= high for low, high in bounds):
        return None
    moved = offset.copy()
    for at, (low, high) in enumerate(_tightened(pairs, bounds, _idle_s(grid), least_s), 1):
        moved[at] = offset[at] + (moved[at - 1] - offset[at - 1]).mean() + (low + high) / 2
        errors.append(abs(high - low) / 2)
    for i, operation in enumerate(grid.operations):
        grid.begin_s[i] -= moved[stages.index(operation.stage)][:, None]
    grid.begin_s -= np.where(grid.present, grid.begin_s.min(axis=0), np.inf).min(axis=0)
    return Clocks(moved, max(errors, default=0.0))


def _within_stage(grid: Grid, stage: int, least_s: float) -> tuple[Floats, float] | None:
    """Shift of each replica against the middle one."""
    syncs = grid.where(*COLLECTIVES, stage=stage)
    mine = [i for i, o in enumerate(grid.operations) if o.stage == stage]
    if not syncs or len(grid.replicas) < 2:
        return None
    begin = np.where(grid.present, grid.begin_s[mine].min(axis=0), np.nan)
    shifts = [_shift(begin)] + [_shift(np.where(grid.present, grid.begin_s[i] + grid.work_s[i], np.nan)) for i in syncs]
    together = np.stack([s for s, _ in shifts])
    found = np.median(together, axis=0)
    agrees = np.abs(together - found).max(axis=0) <= np.maximum(AGREE * np.abs(found), least_s)
    error = max(e for _, e in shifts)
    return np.where(agrees & (np.abs(found) > least_s), found, 0.0), error


def _shift(moments: Floats) -> tuple[Floats, float]:
    """(replica, step) against the middle replica: the median over steps, and what is left of scatter."""
    difference = moments - np.nanmedian(moments, axis=0)
    middle = np.nanmedian(difference, axis=1)
    left = np.abs(difference - middle[:, None])
    return np.nan_to_num(middle), float(np.nan_to_num(MAD * np.nanmedian(left)))


class _Pair:
    """Two neighbouring stages, and the passes of one that follow passes of the other.

    Which way a microbatch goes is each one's own (V-shaped and bidirectional schedules send some back): there and back together
    take no negative time, whatever the clocks say.
    """

    def __init__(self, grid: Grid, one: int, two: int, ahead: Floats) -> None:
        self.grid, self.ahead = grid, ahead[:, None]  # by which the second clock is known to be ahead
        self.there: list[tuple[int, int]] = []  # pass of the first stage, and the one of the second that follows it
        self.back: list[tuple[int, int]] = []
        places = {(o.work, o.chunk, o.number, o.stage): i for i, o in enumerate(grid.operations)}
        for (work, *mine, stage), first in places.items():
            others = [places.get((w, *mine, s)) for w, s in ((work, two), (Work.BACKWARD, one), (Work.BACKWARD, two))]  # type: ignore[arg-type]
            if work is Work.FORWARD and stage == one and None not in others:
                second, back, there = (int(i) for i in others if i is not None)
                ways = ((first, second), (there, back)), ((back, there), (second, first))
                best = max(ways, key=lambda way: self._least_s(way[:1], 1.0) + self._least_s(way[1:], -1.0))
                self.there.append(best[0])
                self.back.append(best[1])

    def bounds(self) -> tuple[float, float]:
        """How far the clock of the second stage is ahead, at least and at most: a pass begins after the one that it follows."""
        return -self._least_s(self.back, -1.0), self._least_s(self.there, 1.0)

    def waited(self, idle_s: Floats, near_s: float) -> tuple[float, float]:
        """The same by hand-offs that the stage stood idle for, longer than this; infinite where it never did."""
        return -self._least_s(self.back, -1.0, idle_s, near_s), self._least_s(self.there, 1.0, idle_s, near_s)

    def _least_s(
        self, way: Sequence[tuple[int, int]], sign: float, idle_s: Floats | None = None, near_s: float = 0.0
    ) -> float:
        """The least delay of a step, in the usual step."""
        grid, least = self.grid, np.full(len(self.grid.steps), np.inf)
        for before, after in way:
            here = grid.recorded_at((before, after))
            if idle_s is not None:
                here = here & (idle_s[after] > near_s)
            delay = grid.begin_s[after] - grid.begin_s[before] - grid.work_s[before] - sign * self.ahead
            least = np.minimum(least, np.where(here, delay, np.inf).min(axis=0))
        known = least[np.isfinite(least)]
        return float(np.median(known)) if len(known) else np.inf


def _tightened(
    pairs: Sequence[_Pair], bounds: Sequence[tuple[float, float]], idle_s: Floats, near_s: float
) -> list[tuple[float, float]]:
    """Bounds between whose middle and each end a hand-off lies: where nobody waited for one way, it takes what it takes elsewhere."""
    if not pairs:
        return []
    widths = [high - low for low, high in bounds if np.isfinite(high - low)]
    least_s = max(min(widths, default=0.0), 0.0)  # there and back
    received = sorted(
        {then for pair in pairs for _, then in (*pair.there, *pair.back) if np.isfinite(idle_s[then]).any()}
    )
    asking = usual(idle_s[received], pairs[0].grid.complete)  # who asks late is idle without waiting
    asked_s = max(float(asking.min(initial=np.inf)), 0.0)
    found = []
    for pair, (low, high) in zip(pairs, bounds, strict=True):
        if not np.isfinite(high - low):
            low, high = 0.0, 0.0
        else:
            back, there = pair.waited(idle_s, 2 * asked_s + near_s)
            tight = back >= low - near_s, there <= high + near_s
            low, high = max(low, back), min(high, there)
            low = high - least_s if tight == (False, True) else low
            high = low + least_s if tight == (True, False) else high
        found.append((low, high))
    return found


def _idle_s(grid: Grid) -> Floats:
    """How long its worker stood idle before each pass; unknown where two share a slot, which waits for the inputs of both."""
    idle, begin = np.full_like(grid.begin_s, np.inf), usual(grid.begin_s, grid.complete)
    near_s = LEAST * float(np.median(grid.measured_s()))
    for stage in grid.stages:
        lane = [i for i, o in enumerate(grid.operations) if o.stage == stage and o.work not in COMMUNICATION]
        lane.sort(key=lambda i: begin[i])
        ended: Floats = np.full(idle.shape[1:], -np.inf)
        for before, i in zip([-1, *lane], lane, strict=False):
            idle[i] = grid.begin_s[i] - ended
            if before >= 0 and begin[i] <= begin[before] + near_s:
                idle[[before, i]] = np.nan
            ended = np.maximum(ended, grid.begin_s[i] + grid.work_s[i])
    return idle
