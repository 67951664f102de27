"""Replays a job with given durations: all replicas and steps at once, operation by operation.

An operation begins when all it waits for has ended; operations of one group begin when the last of them could, and those of
all replicas where they meet. What held a worker up beyond that, and is no part of the usual pace, is its `lead`: a pause of
its host.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from stallwise.errors import StallwiseError
from stallwise.physics.sim.job.dependencies import Draft, Member, draft_of, groups_of, is_lane
from stallwise.physics.sim.job.grid import Bools, Floats, Grid, usual

A_PAUSE = 2e-3  # of a step: a worker that starts this much later than usual was held up


class NoOrder(StallwiseError):
    """Operations wait for each other in a circle: the records are not those of one job."""


@dataclass(slots=True, eq=False)
class Job:
    """A grid with its dependencies, ready to be replayed."""

    grid: Grid
    after: list[tuple[int, ...]]
    order: list[tuple[Member, bool]]  # groups, each after all it waits for
    work_s: Floats  # without waiting for others
    lead_s: Floats
    last: list[int]  # operations that nobody waits for
    links: dict[int, tuple[int, int]]
    producer: dict[int, int]
    _ends: Floats | None = None  # room for the ends of one replay, of which there are many

    def replay(self, work_s: Floats | None = None, lead_s: Floats | None = None, into: Floats | None = None) -> Floats:
        """When every operation ends: (operation, replica, step)."""
        work = self.work_s if work_s is None else work_s
        lead = self.lead_s if lead_s is None else lead_s
        held = [bool(x.any()) for x in lead] if any(lead.strides) else [False] * len(lead)  # one zero for all
        absent = None if self.grid.present.all() else ~self.grid.present
        end = np.empty(work.shape) if into is None else into
        for members, across in self.order:
            ready: Floats | None = None
            for i in members:
                start = self._start(i, end)
                if held[i]:
                    start = start + lead[i]
                ready = start if ready is None else np.maximum(ready, start)
            assert ready is not None
            if across:
                if absent is not None:
                    ready = np.where(absent, -np.inf, ready)
                ready = np.broadcast_to(ready.max(axis=0), ready.shape)
            for i in members:
                np.add(ready, work[i], out=end[i])
        return end

    def _start(self, i: int, end: Floats) -> Floats:
        before = self.after[i]
        if not before:
            return np.zeros(end.shape[1:])
        start: Floats = end[before[0]]
        for j in before[1:]:
            start = np.maximum(start, end[j])
        return start

    def steps_s(self, work_s: Floats | None = None, lead_s: Floats | None = None) -> Floats:
        """Length of each step."""
        if self._ends is None:
            self._ends = np.empty(self.work_s.shape)
        end = self.replay(work_s, lead_s, self._ends)[self.last].max(axis=0)
        return np.asarray(np.where(self.grid.present, end, -np.inf).max(axis=0))

    def step_s(self, work_s: Floats | None = None, lead_s: Floats | None = None) -> float:
        """The mean step."""
        return float(self.steps_s(work_s, lead_s).mean())


def job_of(grid: Grid) -> Job:
    """Finds dependencies, own durations and pauses. Raises NoOrder."""
    draft = draft_of(grid)
    groups = groups_of(draft)
    after = [tuple(sorted(before)) for before in draft.after]
    order = _ordered(after, groups)
    waited = {j for before in after for j in before}
    last = [i for i in range(len(after)) if i not in waited]
    work = grid.work_s.copy()
    for members, across in groups:
        _own_time(grid, work, members, across)
    _alone(draft, groups, work)
    if grid.recorded is not None:
        _usual_where_unknown(grid, work, groups)
    return Job(grid, after, order, work, _pauses(draft, after), last, draft.links, draft.producer)


def _ordered(after: list[tuple[int, ...]], groups: list[tuple[Member, bool]]) -> list[tuple[Member, bool]]:
    """Groups and single operations so that each comes after all it waits for."""
    group_at: dict[int, int] = {}
    every = list(groups)
    for at, (members, _) in enumerate(groups):
        group_at |= dict.fromkeys(members, at)
    for i in range(len(after)):
        if i not in group_at:
            group_at[i] = len(every)
            every.append(((i,), False))
    needs = [{group_at[j] for i in members for j in after[i]} - {at} for at, (members, _) in enumerate(every)]
    waiting = [len(n) for n in needs]
    users: list[list[int]] = [[] for _ in every]
    for at, before in enumerate(needs):
        for j in before:
            users[j].append(at)
    ready = deque(at for at, count in enumerate(waiting) if not count)
    found: list[tuple[Member, bool]] = []
    while ready:
        at = ready.popleft()
        found.append(every[at])
        for user in users[at]:
            waiting[user] -= 1
            if not waiting[user]:
                ready.append(user)
    if len(found) < len(every):
        raise NoOrder("operations wait for each other in a circle: the recorded times are not those of one job")
    return found


def _own_time(grid: Grid, work: Floats, members: Member, across: bool) -> None:
    """From the moment the last has come: what it waited before that is no time of its own."""
    begin = grid.begin_s[list(members)].max(axis=0)
    if across:
        begin = np.where(grid.recorded_at(members), begin, -np.inf).max(axis=0)
    for i in members:
        work[i] = np.clip(grid.begin_s[i] + grid.work_s[i] - begin, 0.0, grid.work_s[i])


def _usual_where_unknown(grid: Grid, work: Floats, groups: list[tuple[Member, bool]]) -> None:
    """Where a member was not recorded nobody knows who came last: then the own time is the usual one of that name."""
    unsure: list[tuple[int, Bools]] = []
    usual_s: dict[str, list[float]] = {}
    for members, across in groups:
        known = grid.recorded_at(members)
        if across:
            known = known & known.all(axis=0)
        for i in members:
            if known.any():
                usual_s.setdefault(grid.operations[i].label, []).append(float(np.median(work[i][known])))
            if not known.all():
                unsure.append((i, known))
    for i, known in unsure:
        seen = usual_s.get(grid.operations[i].label)
        work[i] = np.where(known, work[i], np.median(seen) if seen else work[i].min())


def _alone(draft: Draft, groups: list[tuple[Member, bool]], work: Floats) -> None:
    """A receive whose send nobody recorded counts from the end of what it carries."""
    grid, grouped = draft.grid, {i for members, _ in groups for i in members}
    for i, before in draft.producer.items():
        if i not in grouped and grid.operations[i].known:
            begin = np.maximum(grid.begin_s[i], grid.begin_s[before] + grid.work_s[before])
            work[i] = np.clip(grid.begin_s[i] + grid.work_s[i] - begin, 0.0, grid.work_s[i])


def _pauses(draft: Draft, after: list[tuple[int, ...]]) -> Floats:
    """How much later than usual a worker began what it could have begun."""
    grid, lead = draft.grid, np.zeros_like(draft.grid.work_s)
    least_s = A_PAUSE * float(np.median(grid.measured_s()))
    late = np.zeros_like(lead)
    lane = [i for i, o in enumerate(grid.operations) if is_lane(o)]
    for i in lane:
        before = (*after[i], *(after[draft.slots[i]] if i in draft.slots else ()))
        ready: Floats | float = 0.0
        for at, j in enumerate(before):
            end = grid.begin_s[j] + grid.work_s[j]
            ready = np.maximum(ready, end) if at else end
        late[i] = np.where(grid.recorded_at((i, *before)), grid.begin_s[i] - ready, 0.0)
    beyond = late - usual(late, grid.complete)[:, None, None]
    lead[lane] = np.where(
        (beyond[lane] > least_s) & grid.present, np.minimum(beyond[lane], np.maximum(late[lane], 0.0)), 0.0
    )
    return lead
