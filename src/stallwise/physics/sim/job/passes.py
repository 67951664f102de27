"""What passes take: by stage, and by microbatch, whose length shows in all passes alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stallwise.evidence.operations import PASSES, Work
from stallwise.physics.sim.job.grid import Floats, usual
from stallwise.physics.sim.job.replay import Job

ROUNDS = 8  # in which a slot of two passes is divided between them


def stage_means(job: Job, work: Floats) -> dict[Work, dict[int, float]]:
    """Mean time of each kind of pass on each stage."""
    grid, own = job.grid, own_times(job, work)
    found: dict[Work, dict[int, float]] = {}
    for kind in PASSES:
        places = {s: grid.where(kind, stage=s) for s in grid.stages}
        found[kind] = {s: float(own[m][:, grid.present].mean()) for s, m in places.items() if m}
    return {kind: means for kind, means in found.items() if means}


def stage_times(job: Job, work: Floats) -> dict[int, float]:
    """Seconds of passes a step on each stage, a mean replica."""
    grid, own = job.grid, own_times(job, work)
    return {s: float(own[grid.where(*PASSES, stage=s)][:, grid.present].sum(axis=0).mean()) for s in grid.stages}


def own_times(job: Job, work: Floats) -> Floats:
    """Two passes in one slot were both recorded with all of its time: each gets its part."""
    shares = slot_shares(job)
    return work * shares[:, None, None] if (shares < 1).any() else work


def slot_shares(job: Job) -> Floats:
    """The part of each operation in the time of its slot, by what passes of its kind and its neighbour's take alone."""
    grid, beside = job.grid, side_by_side(job)
    found = np.ones(len(grid.operations))
    alone = {
        kind: _mean_of(job.work_s, [i for i in grid.where(kind) if i not in beside], 1.0) for kind in PASSES if beside
    }
    for i, j in beside.items():
        mine, other = (alone[grid.operations[k].work] for k in (i, j))
        found[i] = mine / max(mine + other, 1e-12)
    return found


@dataclass(slots=True, eq=False)
class Lengths:
    """How long each microbatch is against the mean, (microbatch, replica, step)."""

    numbers: list[int]
    relative: Floats
    together: float  # correlation of forward and backward
    share: Floats  # of each operation in the time of its slot, which two passes may share: (operation, replica, step)


def lengths(job: Job, even: Floats) -> Lengths | None:
    """From all passes of a microbatch. Two passes in one slot divide it by what is known of both, again and again."""
    grid, means = job.grid, stage_means(job, even)
    numbers = sorted({o.number for o in grid.operations if o.is_pass})
    if Work.FORWARD not in means or len(means) < 2:
        return None
    place = {n: at for at, n in enumerate(numbers)}
    beside, share = side_by_side(job), np.ones_like(even)
    alone = {
        k: _mean_of(even, [i for i in grid.where(k) if i not in beside], sum(m.values())) for k, m in means.items()
    }
    parts: list[Floats] = []
    for _ in range(ROUNDS if beside else 1):
        parts = [_relative(job, even * share, place, forward=f) for f in (True, False)]
        weight = sum(means[Work.FORWARD].values()) / sum(sum(m.values()) for m in means.values())
        whole = weight * parts[0] + (1 - weight) * parts[1]
        for i, j in beside.items():
            mine, others = (whole[place[grid.operations[k].number]] * alone[grid.operations[k].work] for k in (i, j))
            share[i] = mine / np.maximum(mine + others, 1e-12)
    a, b = (p[:, grid.present].ravel() for p in parts)
    if a.std() == 0 or b.std() == 0:
        return None
    return Lengths(numbers, whole, float(np.corrcoef(a, b)[0, 1]), share)


def _mean_of(work: Floats, places: list[int], otherwise: float) -> float:
    return float(work[places].mean()) if places else otherwise


def side_by_side(job: Job) -> dict[int, int]:
    """Passes that begin and end together on one stage."""
    grid = job.grid
    begin, end = usual(grid.begin_s, grid.complete), usual(grid.end_s, grid.complete)
    near_s = 1e-4 * float(end.max())
    slots: dict[tuple[int, int, int], list[int]] = {}
    for i, o in enumerate(grid.operations):
        if o.is_pass and end[i] > begin[i]:
            slots.setdefault((o.stage, round(begin[i] / near_s), round(end[i] / near_s)), []).append(i)
    pairs = [places for places in slots.values() if len(places) == 2]
    return {i: j for one, two in pairs for i, j in ((one, two), (two, one))}


def _relative(job: Job, work: Floats, place: dict[int, int], *, forward: bool) -> Floats:
    """Passes of one direction, all stages together, over what they take in the mean."""
    grid = job.grid
    total, expected = np.zeros((len(place), *grid.present.shape)), np.zeros(len(place))
    alike: dict[tuple[Work, int, int], list[int]] = {}
    for i, o in enumerate(grid.operations):
        if o.is_pass and (o.work is Work.FORWARD) is forward:
            alike.setdefault((o.work, o.stage, o.chunk), []).append(i)
    for mine in alike.values():
        mean = float(work[mine][:, grid.present].mean())
        for i in mine:
            total[place[grid.operations[i].number]] += work[i]
            expected[place[grid.operations[i].number]] += mean
    return np.asarray(total / np.maximum(expected, 1e-12)[:, None, None])
