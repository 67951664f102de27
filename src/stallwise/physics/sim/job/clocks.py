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
    ends, ahead = grid.end_s, (shift_two - shift_one)[:, None]
    places = {(o.work, o.chunk, o.number, o.stage): i for i, o in enumerate(grid.operations)}
    most, least = [], []  # of the offset between the two clocks
    for (work, *mine, stage), first in places.items():
        others = [places.get((w, *mine, s)) for w, s in ((work, two), (Work.BACKWARD, one), (Work.BACKWARD, two))]  # type: ignore[arg-type]
        if work is not Work.FORWARD or stage != one or None in others:
            continue
        second, back, there = (int(i) for i in others if i is not None)
        here = grid.recorded_at((first, second, back, there))
        if not here.any():
            continue
        ways = [
            [float((grid.begin_s[b] - ends[a] - sign * ahead)[here].min()) for a, b, sign in way]
            for way in (((first, second, 1.0), (there, back, -1.0)), ((back, there, 1.0), (second, first, -1.0)))
        ]
        toward, away = max(ways, key=sum)
        most.append(toward)
        least.append(-away)
    if not most or min(most) < max(least) or max(least) <= 0 <= min(most):
        return None
    return (min(most) + max(least)) / 2, (min(most) - max(least)) / 2
