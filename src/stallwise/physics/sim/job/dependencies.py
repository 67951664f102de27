"""Which operation waits for which, as the recorded order shows it: no schedule has to be named, and any may be used.

A worker runs its computing in the recorded order. A microbatch passes the stages in the order of its forwards, and back in
the order of its backwards; from one stage to the next it is handed over by a send and a receive, or, where nobody recorded
those, by a hand-off whose time is what the next stage waited beyond the end of the one before. A collective begins when its
last member has come.
"""

from __future__ import annotations

import warnings
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from stallwise.evidence.operations import COLLECTIVES, COMMUNICATION, Work
from stallwise.physics.sim.job.grid import Bools, Floats, Grid, Ints, Operation, usual

NEAR = 1e-4  # of a step: ends and begins this close touch; clocks of one cluster agree to tens of microseconds
SAME_END = 5e-3  # of a step: collectives that end so close together may be one
OVERLAPS = 0.1  # of the shorter: two computations that share more run side by side
HAND_OFF_LIMIT = 3.0  # times the usual of its link; what is longer held the stage up for another reason
HAND_OFF = "hand-off"
MAY_HIDE = (Work.OPTIMIZER, Work.CHECKPOINT, Work.OTHER)  # a norm over all gradients or a barrier may lie inside

Member = tuple[int, ...]


@dataclass(slots=True, eq=False)
class Draft:
    """Dependencies while they are found. Usual begins and ends stand for all replicas and steps."""

    grid: Grid
    begin: list[float]
    end: list[float]
    near_s: float
    after: list[set[int]]
    pairs: list[Member] = field(default_factory=list)  # operations that begin together
    links: dict[int, tuple[int, int]] = field(default_factory=dict)  # receive or hand-off -> stages it connects
    producer: dict[int, int] = field(default_factory=dict)  # receive or hand-off -> pass that it carries the result of
    slots: dict[int, int] = field(default_factory=dict)  # pass -> the one beside it, which begins and ends with it
    lanes: dict[int, tuple[list[float], list[int]]] = field(default_factory=dict)  # computing of a stage by its ends

    def by_begin(self, places: Iterable[int]) -> list[int]:
        """In the order of their begins."""
        return sorted(places, key=lambda i: (self.begin[i], self.end[i], i))

    def done_before(self, places: Sequence[int], moment: float) -> list[int]:
        """Those that have ended by then."""
        return [i for i in places if self.end[i] <= moment + self.near_s]

    def last_done(self, stage: int, moment: float) -> set[int]:
        """The last computation of a stage that has ended by then, if any."""
        ends, places = self.lanes[stage]
        at = bisect_right(ends, moment + self.near_s)
        return {places[at - 1]} if at else set()


def draft_of(grid: Grid) -> Draft:
    """All dependencies but those across replicas."""
    # What comes after another in every replica and step does so in the medians, of begins and of ends.
    begin, end = usual(grid.begin_s, grid.complete), usual(grid.end_s, grid.complete)
    near_s = max(NEAR * float(end.max() - begin.min()), 1e-6)
    draft = Draft(grid, begin.tolist(), end.tolist(), near_s, [set() for _ in grid.operations])
    for stage in grid.stages:
        lane = draft.by_begin(i for i, o in enumerate(grid.operations) if o.stage == stage and is_lane(o))
        by_end = sorted(lane, key=lambda i: (draft.end[i], i))
        draft.lanes[stage] = [draft.end[i] for i in by_end], by_end
        _in_order(draft, lane)
        _slots(draft, lane)
        _collectives(draft, stage, lane)
    _microbatches(draft)
    return draft


def _in_order(draft: Draft, lane: list[int]) -> None:
    """Each computation after those before it on its worker, but for two that run side by side."""
    frontier: list[int] = []
    before: set[int] = set()
    for i in lane:
        room = OVERLAPS * (draft.end[i] - draft.begin[i])
        ended = [j for j in frontier if draft.end[j] <= draft.begin[i] + max(draft.near_s, room)]
        if ended or not frontier:
            before = set(ended)
            frontier = [j for j in frontier if j not in before]
        draft.after[i] |= before
        frontier.append(i)


def _slots(draft: Draft, lane: list[int]) -> None:
    """Two passes that share a slot wait for the inputs of both."""
    operations = draft.grid.operations
    for i, j in zip(lane[:-1], lane[1:], strict=True):
        touching = max(abs(draft.begin[i] - draft.begin[j]), abs(draft.end[i] - draft.end[j])) <= draft.near_s
        passes = operations[i].is_pass and operations[j].is_pass and draft.end[i] - draft.begin[i] > 2 * draft.near_s
        if touching and passes and i not in draft.slots:
            draft.slots |= {i: j, j: i}
            draft.pairs.append((i, j))


def _collectives(draft: Draft, stage: int, lane: list[int]) -> None:
    """After the computing and the collectives before them; what uses their result comes after them."""
    grid = draft.grid
    syncs = draft.by_begin(grid.where(*COLLECTIVES, stage=stage))
    for at, i in enumerate(syncs):
        draft.after[i] |= draft.last_done(stage, draft.begin[i])
        draft.after[i] |= set(draft.done_before(syncs[:at], draft.begin[i])[-1:])
    forwards = [i for i in lane if grid.operations[i].work is Work.FORWARD]
    for i in syncs:
        if grid.operations[i].work is Work.PARAMETER_GATHER:
            chunk = grid.operations[i].chunk
            users = [f for f in forwards if grid.operations[f].chunk == chunk] or forwards
            later = [f for f in users if draft.begin[f] >= draft.end[i] - draft.near_s]
            if later:
                draft.after[later[0]].add(i)
    for i in lane:
        if not grid.operations[i].is_pass:
            draft.after[i] |= set(draft.done_before(syncs, draft.begin[i])[-1:])


def _microbatches(draft: Draft) -> None:
    """From stage to stage, forward and back, and each backward after its own forward."""
    operations = draft.grid.operations
    own: dict[tuple[int, int, int], dict[Work, int]] = defaultdict(dict)
    routes: dict[tuple[int, int], list[int]] = defaultdict(list)
    for i, o in enumerate(operations):
        if o.is_pass:
            own[o.stage, o.chunk, o.number].setdefault(o.work, i)
            if o.work is not Work.WEIGHT_GRAD:
                routes[o.work, o.number].append(i)
    for mine in own.values():
        for first, second in ((Work.FORWARD, Work.BACKWARD), (Work.BACKWARD, Work.WEIGHT_GRAD)):
            if first in mine and second in mine:
                draft.after[mine[second]].add(mine[first])
    crossing: dict[Work, list[tuple[int, int]]] = defaultdict(list)
    for (kind, _number), places in routes.items():
        ordered = draft.by_begin(places)
        for before, then in zip(ordered[:-1], ordered[1:], strict=True):
            if operations[before].stage == operations[then].stage:
                draft.after[then].add(before)
            else:
                crossing[Work(kind)].append((before, then))
    missing = _hand_over(draft, crossing[Work.FORWARD], Work.FORWARD_SEND, Work.FORWARD_RECEIVE)
    missing += _hand_over(draft, crossing[Work.BACKWARD], Work.BACKWARD_SEND, Work.BACKWARD_RECEIVE)
    if missing:
        _add_hand_offs(draft, missing)


def _hand_over(draft: Draft, crossing: list[tuple[int, int]], send: Work, receive: Work) -> list[tuple[int, int]]:
    """Receives belong to the passes that use them, sends to those that made what is sent; returns those that nobody recorded."""
    operations = draft.grid.operations
    received: dict[int, int] = {}
    sent: dict[int, int] = {}
    for stage in draft.grid.stages:
        users = draft.by_begin({then for _, then in crossing if operations[then].stage == stage})
        received |= _matched(draft, users, draft.by_begin(draft.grid.where(receive, stage=stage)), latest=True)
        makers = draft.by_begin({before for before, _ in crossing if operations[before].stage == stage})
        sent |= _matched(draft, makers, draft.by_begin(draft.grid.where(send, stage=stage)), latest=False)
    missing: list[tuple[int, int]] = []
    for before, then in crossing:
        if then not in received:
            missing.append((before, then))
            continue
        i = received[then]
        draft.after[then].add(i)
        draft.links[i] = operations[before].stage, operations[then].stage
        draft.producer[i] = before
        draft.after[i] |= draft.last_done(operations[then].stage, draft.begin[i])  # it is asked for after that
        if before in sent:
            draft.after[sent[before]].add(before)
            draft.pairs.append((sent[before], i))
        else:
            draft.after[i].add(before)
    return missing


def _matched(draft: Draft, passes: list[int], transfers: list[int], *, latest: bool) -> dict[int, int]:
    """Pairs in order; where there are more transfers than passes, the one next to each pass in time."""
    if len(transfers) < len(passes):
        return {}
    if len(transfers) == len(passes):
        return dict(zip(passes, transfers, strict=True))
    found: dict[int, int] = {}
    free = list(transfers)
    for i in passes:
        fits = (
            [j for j in free if draft.end[j] <= draft.begin[i] + draft.near_s][-1:]
            if latest
            else [j for j in free if draft.begin[j] >= draft.end[i] - draft.near_s][:1]
        )
        if fits:
            found[i] = fits[0]
            free.remove(fits[0])
    return found


def _add_hand_offs(draft: Draft, missing: list[tuple[int, int]]) -> None:
    """One for each pass that uses another stage's result while nobody recorded how it came."""
    grid, first = draft.grid, len(draft.grid.operations)
    ends = grid.end_s
    lane_s = np.stack([_latest(ends, draft.after[then]) for _, then in missing])
    sender_s = np.stack([ends[before] for before, _ in missing])
    begin_s = np.stack([grid.begin_s[then] for _, then in missing])
    stages = np.array([[grid.operations[a].stage, grid.operations[b].stage] for a, b in missing])
    here = np.stack([grid.recorded_at((before, then, *draft.after[then])) for before, then in missing])
    links = [np.flatnonzero((stages == link).all(axis=1)) for link in np.unique(stages, axis=0)]
    asks, work = _transfers(begin_s, sender_s, lane_s, here, links, draft.near_s)
    for at, (before, then) in enumerate(missing):
        made, used = grid.operations[before], grid.operations[then]
        receive = Work.FORWARD_RECEIVE if used.work is Work.FORWARD else Work.BACKWARD_RECEIVE
        grid.operations.append(Operation(used.stage, receive, HAND_OFF, used.chunk, used.number, known=False))
        draft.after.append({before} | (set(draft.after[then]) if asks else set()))
        draft.after[then].add(first + at)
        draft.links[first + at] = made.stage, used.stage
        draft.producer[first + at] = before
        draft.begin.append(draft.end[before])
        draft.end.append(draft.begin[then])
    grid.begin_s = np.concatenate((grid.begin_s, np.maximum(sender_s, lane_s) if asks else sender_s))
    grid.work_s = np.concatenate((grid.work_s, work))


def _transfers(
    begin_s: Floats, sender_s: Floats, lane_s: Floats, here: Bools, links: list[Ints], near_s: float
) -> tuple[bool, Floats]:
    """Whether stages ask for their input only when they are free, and how long each hand-off takes.

    Where a stage was free before the result was there, the hand-off is what it waited beyond. Where it was busy until
    later, it waits once more if it asks late, and not at all if the input came meanwhile.
    """
    gap = begin_s - sender_s
    waited = (sender_s >= lane_s - near_s) & (gap >= 0) & here
    beyond = np.maximum(begin_s - np.maximum(sender_s, lane_s), 0.0)
    usual_s = np.full((*gap.shape[:2], 1), np.nan)
    for mine in links:
        usual_s[mine] = _typical(np.where(waited[mine], gap[mine], np.nan), np.nan)
    busy = (lane_s > sender_s + near_s) & here & np.isfinite(usual_s)
    if np.isnan(usual_s).all() or (busy.any() and (beyond > 0.5 * usual_s)[busy].mean() > 0.5):
        for mine in links:
            usual_s[mine] = _typical(np.where(here[mine], beyond[mine], np.nan), 0.0)
        return True, np.where(here, np.minimum(beyond, HAND_OFF_LIMIT * usual_s + near_s), usual_s)
    usual_s = np.nan_to_num(usual_s)
    short = np.where(here, np.clip(gap, 0.0, usual_s), usual_s)
    return False, np.minimum(np.where(waited, gap, short), HAND_OFF_LIMIT * usual_s + near_s)


def _typical(values: Floats, otherwise: float) -> Floats:
    """The median of each replica, of all where one has none."""
    by_replica, whole = _median(values, (0, 2)), _median(values, None)
    found = np.where(np.isfinite(by_replica), by_replica, whole)
    return np.where(np.isfinite(found), found, otherwise)[None, :, None]


def _latest(ends: Floats, places: Iterable[int]) -> Floats:
    known = [i for i in places if i < len(ends)]
    return np.max(ends[known], axis=0) if known else np.full(ends.shape[1:], -np.inf)


def _median(values: Floats, axis: tuple[int, ...] | None) -> Floats:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of slices without a number
        return np.asarray(np.nanmedian(values, axis=axis))


def groups_of(draft: Draft) -> list[tuple[Member, bool]]:
    """Operations that begin together, and whether those of all replicas do."""
    grid = draft.grid
    near_s = SAME_END * float(np.median(grid.measured_s()))
    hiding = grid.where(*MAY_HIDE)
    left = [*grid.where(*COLLECTIVES), *hiding]
    end = {i: _here(grid, grid.begin_s[i] + grid.work_s[i]) for i in left}
    ready = {i: _here(grid, _ready(draft, i)) for i in left}
    groups: list[tuple[Member, bool]] = [(pair, False) for pair in draft.pairs]
    while left:
        first = left.pop(0)
        members = [first, *(i for i in left if _one_collective(draft, first, i, end, ready, near_s))]
        left = [i for i in left if i not in members]
        if first in hiding and len(members) == 1:
            continue
        groups.append((tuple(members), _across(grid, end[first], ready[first], near_s)))
    return groups


def _here(grid: Grid, values: Floats) -> Floats:
    return np.where(grid.complete, values, np.nan)


def _ready(draft: Draft, i: int) -> Floats:
    before = draft.after[i]
    ends = draft.grid.begin_s[list(before)] + draft.grid.work_s[list(before)]
    return np.asarray(ends.max(axis=0) if before else draft.grid.begin_s[i])


def _one_collective(
    draft: Draft, a: int, b: int, end: dict[int, Floats], ready: dict[int, Floats], near_s: float
) -> bool:
    """The same name on two stages is one collective where they end together though they were ready apart."""
    one, two = draft.grid.operations[a], draft.grid.operations[b]
    if (one.label, one.number) != (two.label, two.number) or one.stage == two.stage:
        return False
    difference_s = float(np.nanmedian(np.abs(end[a] - end[b])))
    return difference_s <= near_s and float(np.nanmedian(np.abs(ready[a] - ready[b]))) > 3 * difference_s + near_s


def _across(grid: Grid, end: Floats, ready: Floats, near_s: float) -> bool:
    """Replicas meet in it, unless they end as far apart as they came."""
    if len(grid.replicas) < 2:
        return False
    seen = np.isfinite(end).sum(axis=0) > 1  # steps in which two replicas can be compared
    if not seen.any():
        return True
    spread = [float(np.median(np.nanmax(x[:, seen], axis=0) - np.nanmin(x[:, seen], axis=0))) for x in (end, ready)]
    return spread[0] <= near_s or spread[0] <= 0.5 * spread[1]


def is_lane(operation: Operation) -> bool:
    """Whether it runs where passes run, and so may be held up by its own host."""
    return operation.work not in COMMUNICATION
