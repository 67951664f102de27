"""What each set of operations costs: added to the ideal job, and removed from the real one.

In the ideal job every operation of a name takes the mean of all workers and steps (transfers and collectives the median,
whose outliers are the network's). Slowdown, and the shares of it that the slowest workers or one stage explain, are those of
"Understanding Stragglers in Large Model Training Using What-if Analysis" (OSDI 2025): figures can be compared with that study.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from stallwise.evidence.operations import COMMUNICATION, PASSES
from stallwise.physics.sim.job.grid import Bools, Floats
from stallwise.physics.sim.job.replay import Job

SLOWEST_SHARE = 0.03  # of the workers, as the study counts them
MOST_SETS = 64  # hosts or microbatches that are replayed one by one
MOST_WORKERS = 8
MOST_ENTRIES = 4_000_000  # operations times replicas times steps: beyond, a replay of each microbatch takes too long
MOST_REPLICAS = 256  # replays by replica; beyond, neighbours are taken together

Workers: TypeAlias = "list[tuple[int, int]]"  # place of the replica, and stage


@dataclass(frozen=True, slots=True)
class Share:
    """One set of operations."""

    name: str
    added_s: float  # to the ideal step, by this set alone
    removed_s: float  # from the real step, without it

    def explains(self, lost_s: float) -> float:
        """The share of all lost time that goes without it."""
        return self.removed_s / lost_s if lost_s > 0 else 0.0


@dataclass(slots=True, eq=False)
class Attribution:
    """Where the difference between the real and the ideal step lies."""

    step_s: float
    ideal_s: float
    by_kind: list[Share]
    by_stage: list[Share]
    by_replica: list[Share]
    slowest_workers: list[tuple[int, int]]  # (place of the replica, stage): a thirtieth of all, slowest first
    slowest: Share
    ideal_work_s: Floats  # of each operation
    by_host: list[Share]
    by_microbatch: list[Share]
    by_worker: list[Share]  # of the slowest, in their order

    @property
    def lost_s(self) -> float:
        """What stragglers of all kinds cost."""
        return self.step_s - self.ideal_s

    @property
    def slowdown(self) -> float:
        """Real over ideal step."""
        return self.step_s / self.ideal_s if self.ideal_s > 0 else 1.0


class WhatIf:
    """Replays one job with sets of operations made ideal or real."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.ideal = ideal_work(job)
        shape = job.work_s.shape
        self.ideal_whole = np.broadcast_to(self.ideal[:, None, None], shape)
        self.none = np.broadcast_to(0.0, job.lead_s.shape)
        self.step_s = job.step_s()
        self.ideal_s = job.step_s(self.ideal_whole, self.none)
        self._added, self._work, self._lead = self.ideal_whole.copy(), job.work_s.copy(), job.lead_s.copy()

    def share(self, name: str, chosen: list[int], replicas: Bools | None = None, *, removed: bool = True) -> Share:
        """A set: these operations, of all replicas or of some. Without `removed` only what it adds to the ideal step."""
        which = np.ones(len(self.job.grid.replicas), bool) if replicas is None else replicas
        return self.sets(name, [np.ix_(np.array(chosen), np.flatnonzero(which))], removed=removed)

    def sets(self, name: str, places: Sequence[Any], *, removed: bool = True) -> Share:
        """Operations and replicas at these places together. The arrays are changed there and put back: there are many sets."""
        for at in places:
            self._added[at] = self.job.work_s[at]
        added_s = self.job.step_s(self._added, self.none) - self.ideal_s
        for at in places:
            self._added[at] = self.ideal_whole[at]
        if not removed:
            return Share(name, added_s, 0.0)
        for at in places:
            self._work[at], self._lead[at] = self.ideal_whole[at], 0.0
        removed_s = self.step_s - self.job.step_s(self._work, self._lead)
        for at in places:
            self._work[at], self._lead[at] = self.job.work_s[at], self.job.lead_s[at]
        return Share(name, added_s, removed_s)


def ideal_work(job: Job) -> Floats:
    """Of each operation: the mean of its name over all workers and steps, or the median of a transfer's."""
    grid = job.grid
    found = np.zeros(len(grid.operations))
    for label in {o.label for o in grid.operations}:
        mine = [i for i, o in enumerate(grid.operations) if o.label == label]
        values = job.work_s[mine][:, grid.present]
        moves = grid.operations[mine[0]].work in COMMUNICATION
        found[mine] = float(np.median(values) if moves else values.mean())
    return found


def attribute(job: Job, hosts: Mapping[str, Workers] | None = None) -> Attribution:
    """Slowdown and its shares; by host where workers are known by theirs."""
    what_if, grid = WhatIf(job), job.grid
    everything = list(range(len(grid.operations)))
    kinds = sorted({o.label for o in grid.operations})
    by_kind = [what_if.share(k, [i for i in everything if grid.operations[i].label == k]) for k in kinds]
    of_stage = {s: [i for i in everything if grid.operations[i].stage == s] for s in grid.stages}
    by_stage = [what_if.share(str(s), of_stage[s]) for s in grid.stages]
    by_replica = [
        what_if.share(str(r), everything, grid.replicas == r, removed=False) for r in grid.replicas[:MOST_REPLICAS]
    ]
    score = np.minimum.outer(
        np.array([s.added_s for s in by_replica]), np.array([s.added_s for s in by_stage])
    )  # a slow worker shows in its replica and in its stage
    count = -(-round(grid.workers * SLOWEST_SHARE * 100) // 100)
    order = np.argsort(-score, axis=None, kind="stable")[: max(count, 1)]
    workers = [(int(at) // len(grid.stages), grid.stages[int(at) % len(grid.stages)]) for at in order]
    known = hosts if hosts is not None and 1 < len(hosts) <= MOST_SETS else {}
    numbers: dict[int, list[int]] = {}
    for i in grid.where(*PASSES):
        numbers.setdefault(grid.operations[i].number, []).append(i)
    few = numbers if 1 < len(numbers) <= MOST_SETS and job.work_s.size <= MOST_ENTRIES else {}
    return Attribution(
        what_if.step_s, what_if.ideal_s, by_kind, by_stage, by_replica, workers,
        _together(what_if, "slowest workers", workers, of_stage), what_if.ideal,
        [_together(what_if, name, mine, of_stage) for name, mine in known.items()],
        [what_if.share(str(n), few[n]) for n in sorted(few)],
        [_together(what_if, "", [one], of_stage) for one in workers[:MOST_WORKERS]],
    )  # fmt: skip


def _together(what_if: WhatIf, name: str, workers: Workers, of_stage: dict[int, list[int]]) -> Share:
    """Some workers at once."""
    return what_if.sets(name, [(of_stage[stage], replica) for replica, stage in workers])
