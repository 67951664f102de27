"""Clocks of workers brought together: all leave a collective at one moment, and a hand-off ends at one moment on both sides.

A clock that is off shows the same shift at the begin of every step and at the end of every collective; a slow worker begins its
steps with the others. Only a shift that both show, beyond their own scatter, is taken for the clock's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stallwise.evidence.operations import COLLECTIVES, Work
from stallwise.physics.sim.job.grid import Floats, Grid

AGREE = 0.2  # of the shift: begins and ends that differ by more speak of no clock
LEAST = 1e-3  # of a step: what is below moves no replay
MAD = 1.4826  # of a normal deviation


@dataclass(frozen=True, slots=True)
class Clocks:
    """What was taken from each worker's times, and how far clocks may still be apart."""

    offset_s: Floats  # (stage, replica)
    error_s: float


def align(grid: Grid) -> Clocks | None:
    """Shifts the grid's begins onto one clock; None where clocks agree, or nothing shows that they do not."""
    stages = grid.stages
    offset = np.zeros((len(stages), len(grid.replicas)))
    errors = []
    step_s = float(np.median(grid.measured_s()))
    for at, stage in enumerate(stages):
        found = _within_stage(grid, stage, LEAST * step_s)
        if found is not None:
            offset[at], error = found
            errors.append(error)
    moved = offset.copy()
    for at in range(1, len(stages)):
        difference = _between(grid, stages[at - 1], stages[at], offset[at - 1], offset[at])
        own = difference[0] if difference is not None and abs(difference[0]) > LEAST * step_s else 0.0
        errors += [difference[1]] if difference is not None else []
        moved[at] = offset[at] + (moved[at - 1] - offset[at - 1]).mean() + own
    if not np.abs(moved).max(initial=0.0) > LEAST * step_s:
        return None
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


def _between(grid: Grid, one: int, two: int, shift_one: Floats, shift_two: Floats) -> tuple[float, float] | None:
    """How far the clock of one stage runs ahead of that of the stage before: transfers end together on both sides."""
    ends = grid.end_s
    found = []
    for send, receive, source, target in (
        (Work.FORWARD_SEND, Work.FORWARD_RECEIVE, one, two), (Work.BACKWARD_SEND, Work.BACKWARD_RECEIVE, two, one),
    ):  # fmt: skip
        sent, got = (grid.where(w, stage=s) for w, s in ((send, source), (receive, target)))
        sent, got = (sorted(x, key=lambda i: grid.operations[i].number) for x in (sent, got))
        if sent and len(sent) == len(got):
            sign = 1.0 if source == one else -1.0
            shift = (shift_two - shift_one) * sign
            found.append(sign * (ends[got] - ends[sent] - shift[None, :, None])[:, grid.present])
    if not found:
        return _by_causality(grid, one, two, shift_one, shift_two)
    values = np.concatenate([x.ravel() for x in found])
    middle = float(np.median(values))
    return middle, MAD * float(np.median(np.abs(values - middle)))


def _by_causality(grid: Grid, one: int, two: int, shift_one: Floats, shift_two: Floats) -> tuple[float, float] | None:
    """Without transfers: a pass cannot begin before the one that it follows has ended. Where it seems to, on either way, the least
    delays there and back are taken to be equal.

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
