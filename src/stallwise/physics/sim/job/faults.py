"""What is out of line in a job, and what the step takes without it.

Each fault is judged against its own peers: a worker against the same stage of other replicas, a stage against the other stages, a
microbatch against the other microbatches, a link against the other links, a pause against the usual pace. Its cost is the
step less the step replayed with that set like its peers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from stallwise.evidence.operations import COLLECTIVES, PASSES, RECEIVES, Work
from stallwise.physics.sim.job.grid import ENOUGH, Bools, Floats, middle
from stallwise.physics.sim.job.passes import lengths, own_times, side_by_side, slot_shares, stage_means, stage_times
from stallwise.physics.sim.job.replay import Job

SLOW = 0.05  # beyond its peers; healthy ranks of one job differ by one to three percent
SIGMAS = 4.0  # of the mean's own error: hundreds of workers are looked at
LATER = 0.3  # of the excess: a worker that was this close to its peers before has changed at that step
UNEVEN_STAGES = 1.05  # slowest over mean: layers come whole
VARIES = 0.03  # deviation of microbatches; noise of equal ones is one percent
TOGETHER = 0.4  # correlation of forward and backward over microbatches: one length is behind both; passes that share a slot blur it
CHANCE = 3.0  # over the root of the number of microbatches: so much correlation comes by chance
LATE = 0.01  # of a step: what steps vary by without a reason
SLOW_LINK = 2.0  # times the usual transfer
MOST_WORKERS = 16  # that are replayed one by one


class Kind(Enum):
    """What is out of line."""

    WORKER = "worker"
    STAGE = "stage"
    SEQUENCE = "sequence"
    LINK = "link"
    PAUSE = "pause"
    INPUT = "input"
    CHECKPOINT = "checkpoint"
    SYNC = "sync"


@dataclass(frozen=True, slots=True)
class Fault:
    """One of them, with what it costs a mean step."""

    kind: Kind
    cost_s: float
    factor: float = 1.0  # time over that of its peers; deviation of microbatches
    workers: tuple[tuple[int, int], ...] = ()  # (replica, stage), costliest first
    stage: int = -1
    link: tuple[int, int] = (-1, -1)
    since: int | None = None  # number of the step
    often: float = 1.0  # share of steps, or of workers and steps
    balanced_s: float = 0.0  # of a stage: what moving work away wins, until all stages are equal
    together: float = 0.0  # correlation of forward and backward


@dataclass(slots=True, eq=False)
class Slow:
    """A worker that is slower than its peers from some step on."""

    replica: int  # its place
    stage: int
    since: int  # place of the step
    factor: float


def faults_of(job: Job) -> list[Fault]:
    """All that cost anything, costliest first."""
    step_s = job.step_s()
    slow = _slow_workers(job)
    even = _without(job, slow)  # the others' durations are compared without them
    found = [_workers(job, slow, step_s), _sequence(job, even, step_s), _stages(job, even, step_s), _links(job, step_s)]
    found += [_pauses(job, step_s), _own_work(job, Work.INPUT, Kind.INPUT, step_s)]
    found += [_own_work(job, Work.CHECKPOINT, Kind.CHECKPOINT, step_s), _exposed_sync(job, step_s)]
    return sorted((f for f in found if f is not None and f.cost_s > 0), key=lambda f: -f.cost_s)


def _slow_workers(job: Job) -> list[Slow]:
    """Against the same stage of other replicas; what all stages of a replica have in common are its sequences."""
    grid, own = job.grid, own_times(job, job.work_s)
    places = {s: mine for s in grid.stages if (mine := grid.where(*PASSES, stage=s))}
    stages = list(places)
    if len(grid.replicas) == 1:
        return _slower(stages, [_against_stages(job, mine) for mine in places.values()])
    total = np.stack([np.where(_mostly(job, mine), own[mine].sum(axis=0), np.nan) for mine in places.values()])
    if len(stages) == 1:
        return _slower(stages, [_against_peers(total[0])])
    every = np.ones(len(grid.replicas), bool)
    slow = _slower(stages, map(_against_peers, _without_lengths(total, every, np.ones_like(total[0]))))
    rest = ~np.isin(np.arange(len(every)), [s.replica for s in slow])
    if slow and rest.any():  # once more with what stages take on replicas that are well
        slow = _slower(stages, map(_against_peers, _without_lengths(total, rest, middle(total))))
    return slow


def _without_lengths(total: Floats, well: Bools, base: Floats) -> Floats:
    """(stage, replica, step) over what most stages of a replica have in common in a step."""
    share = middle(np.moveaxis(total[:, well] / base[well], 2, 0))  # the usual step of each replica
    usual_s = middle(share.T, lower=True)
    return np.asarray(total / np.maximum(middle(total / usual_s[:, None, None], lower=True), 1e-9))


def _slower(stages: Sequence[int], ratios: Iterable[Floats]) -> list[Slow]:
    found = []
    for stage, ratio in zip(stages, ratios, strict=True):
        for replica, values in enumerate(ratio):
            since, factor = _slow_since(values)
            if factor > 1 + SLOW:
                found.append(Slow(replica, stage, since, factor))
    return sorted(found, key=lambda s: -s.factor)


def _mostly(job: Job, places: list[int]) -> Bools:
    """Where most of these operations were recorded: what was filled in is like its peers and tells nothing."""
    grid = job.grid
    return grid.present if grid.recorded is None else grid.present & (grid.recorded[places].mean(axis=0) > ENOUGH)


def _against_peers(total: Floats) -> Floats:
    """Each replica over the mean of the quicker half, step by step."""
    seen = np.isfinite(total)
    mean = np.where(seen, total, 0.0).sum(axis=1) / np.where(seen.any(axis=1), seen.sum(axis=1), np.nan)
    quick = np.argsort(mean, kind="stable")[: -(-int(seen.any(axis=1).sum()) // 2)]
    here = np.isfinite(total[quick])
    peers = np.where(here, total[quick], 0.0).sum(axis=0) / np.maximum(here.sum(axis=0), 1)
    return np.asarray(total / np.where(peers > 0, peers, np.nan))


def _against_stages(job: Job, mine: list[int]) -> Floats:
    """Without replicas: this stage over time, against the other stages over time."""
    grid = job.grid
    every = [grid.where(*PASSES, stage=s) for s in grid.stages]
    own = job.work_s[mine].sum(axis=(0, 1))
    others = np.stack([job.work_s[m].sum(axis=(0, 1)) for m in every if m and m != mine] or [np.ones_like(own)])
    others = others / np.median(others, axis=1, keepdims=True)
    ratio = own / np.median(others, axis=0)
    return np.asarray(ratio / np.quantile(ratio, 0.25))[None]


def _slow_since(ratio: Floats) -> tuple[int, float]:
    """From which step on, and by how much; 1 where it is not, or not surely."""
    known = np.flatnonzero(np.isfinite(ratio))
    values = ratio[known]
    if not len(values):
        return 0, 1.0
    at = _change(values)
    after, before = values[at:], values[:at]
    factor = float(after.mean())
    if at and not (before.mean() - 1 < LATER * (factor - 1)):
        at, after, factor = 0, values, float(values.mean())
    logs = np.log(np.maximum(after, 1e-9))  # lengths of sequences have long tails
    error = float(logs.std(ddof=1)) / np.sqrt(len(after)) if len(after) > 1 else 0.0
    sure = float(logs.mean()) > SIGMAS * (1 + 2 / len(after)) * error
    return int(known[at]), factor if sure else 1.0


def _change(values: Floats) -> int:
    """Where two levels describe the series best; 0 where one does."""
    count = len(values)
    if count < 4:
        return 0
    sums, squares = np.concatenate(([0.0], np.cumsum(values))), np.concatenate(([0.0], np.cumsum(values**2)))
    cut = np.arange(2, count - 1)
    left = squares[cut] - sums[cut] ** 2 / cut
    right = (squares[-1] - squares[cut]) - (sums[-1] - sums[cut]) ** 2 / (count - cut)
    best = int(np.argmin(left + right))
    whole = squares[-1] - sums[-1] ** 2 / count
    gained = whole - (left + right)[best]
    spread = max((left + right)[best] / max(count - 2, 1), 1e-12)
    return int(cut[best]) if gained > 2 * SIGMAS**2 * spread and gained > 0.3 * whole else 0


def _without(job: Job, slow: list[Slow]) -> Floats:
    """Durations with these workers as quick as their peers."""
    work = job.work_s.copy()
    for one in slow:
        mine = job.grid.where(*PASSES, stage=one.stage)
        work[np.ix_(mine, [one.replica], range(one.since, work.shape[2]))] /= one.factor
    return work


def peers_work(job: Job) -> Floats:
    """Durations with every slow worker as quick as its peers."""
    return _without(job, _slow_workers(job))


def _workers(job: Job, slow: list[Slow], step_s: float) -> Fault | None:
    if not slow:
        return None
    grid = job.grid
    alone = {id(s): step_s - job.step_s(_without(job, [s])) for s in slow[:MOST_WORKERS]}
    first = max(slow[:MOST_WORKERS], key=lambda s: (alone[id(s)], s.factor))
    ordered = [first, *(s for s in slow if s is not first)]
    return Fault(
        Kind.WORKER,
        step_s - job.step_s(_without(job, slow)),
        first.factor,
        tuple((int(grid.replicas[s.replica]), s.stage) for s in ordered),
        first.stage,
        since=int(grid.steps[first.since]) if first.since else None,
        often=1 - first.since / len(grid.steps),
    )


def _stages(job: Job, even: Floats, step_s: float) -> Fault | None:
    """The slowest stage like the mean of the others, and all stages at their mean with the whole work kept."""
    grid = job.grid
    times = stage_times(job, even)
    if len(times) < 2 or min(times.values()) <= 0:
        return None
    slowest = max(times, key=lambda s: times[s])
    mean = float(np.mean(list(times.values())))
    if times[slowest] < UNEVEN_STAGES * mean:
        return None
    to_mean, to_rest = np.ones(len(grid.operations)), np.ones(len(grid.operations))
    for kind, means in stage_means(job, even).items():
        rest = [t for s, t in means.items() if s != slowest]
        for stage, own in means.items():
            mine = grid.where(kind, stage=stage)
            to_mean[mine] = float(np.mean(list(means.values()))) / own if own > 0 else 1.0
            if stage == slowest and rest:
                to_rest[mine] = min(float(np.mean(rest)) / own, 1.0) if own > 0 else 1.0
    shares, beside = slot_shares(job), side_by_side(job)
    for factor in (to_mean, to_rest):
        alone = factor.copy()
        for i, j in beside.items():  # the slot as a whole becomes shorter
            factor[i] = shares[i] * alone[i] + shares[j] * alone[j]
    balanced, others = (job.work_s * factor[:, None, None] for factor in (to_mean, to_rest))
    return Fault(
        Kind.STAGE, step_s - job.step_s(others), times[slowest] / mean, stage=slowest,
        balanced_s=step_s - job.step_s(balanced),
    )  # fmt: skip


def _sequence(job: Job, even: Floats, step_s: float) -> Fault | None:
    """Every microbatch of a step as long as their mean."""
    grid, found = job.grid, lengths(job, even)
    if found is None or found.together < max(TOGETHER, CHANCE / np.sqrt(found.relative.size)):
        return None
    varies = float(found.relative[:, grid.present].std())
    if varies < VARIES or len(found.numbers) * len(grid.replicas) < 2:
        return None
    mean = np.nanmean(np.where(grid.present, found.relative, np.nan), axis=(0, 1))
    to = dict(zip(found.numbers, mean / np.maximum(found.relative, 1e-9), strict=True))
    beside, work = side_by_side(job), job.work_s.copy()
    for i, o in enumerate(grid.operations):
        if o.is_pass:
            own = found.share[i] * to[o.number]
            work[i] *= own + (1 - found.share[i]) * to[grid.operations[beside[i]].number] if i in beside else own
    return Fault(Kind.SEQUENCE, step_s - job.step_s(work), varies, together=found.together)


def _links(job: Job, step_s: float) -> Fault | None:
    """Transfers of some links like those of the others."""
    grid = job.grid
    of_link: dict[tuple[int, int], list[int]] = {}
    for i, ends in job.links.items():
        of_link.setdefault((min(ends), max(ends)), []).append(i)
    keys = sorted(of_link)
    typical = np.array([np.median(job.work_s[of_link[k]], axis=(0, 2)) for k in keys])  # (link, replica)
    if typical.size < 2:
        return None
    usual_s = float(np.quantile(typical, 0.5, method="lower")) if typical.size > 2 else float(typical.min())
    slow: Bools = (typical > SLOW_LINK * usual_s) & (typical > 1e-3 * step_s / max(len(job.links), 1))
    if not slow.any() or slow.mean() > 0.5:
        return None
    work = job.work_s.copy()
    costs: dict[tuple[int, int], float] = {}
    for at, key in enumerate(keys):
        if slow[at].any():
            which = np.ix_(np.array(of_link[key]), np.flatnonzero(slow[at]))
            alone = job.work_s.copy()
            alone[which] = np.minimum(alone[which], usual_s)
            work[which] = np.minimum(work[which], usual_s)
            costs[key] = step_s - job.step_s(alone)
    worst = max(costs, key=lambda k: costs[k])
    at = keys.index(worst)
    who = () if slow[at].all() else tuple((int(grid.replicas[r]), worst[0]) for r in np.flatnonzero(slow[at]))
    ratio = float(typical[at][slow[at]].mean() / usual_s) if usual_s > 0 else float("inf")
    return Fault(Kind.LINK, step_s - job.step_s(work), ratio, who, worst[1], worst)


def _pauses(job: Job, step_s: float) -> Fault | None:
    """No worker held up, and no collection of garbage longer than usual."""
    grid = job.grid
    lead, work, held = job.lead_s, job.work_s.copy(), job.lead_s.sum(axis=0)
    garbage = grid.where(Work.GARBAGE)
    by_worker = {s: lead[[i for i, o in enumerate(grid.operations) if o.stage == s]].sum(axis=0) for s in grid.stages}
    for i in garbage:
        beyond = np.maximum(work[i] - _peers(work[i]), 0.0)
        by_worker[grid.operations[i].stage] = by_worker[grid.operations[i].stage] + beyond
        work[i] -= beyond
        held = held + beyond
    if not held.any():
        return None
    totals = {(r, s): float(x[r].sum()) for s, x in by_worker.items() for r in range(len(grid.replicas))}
    ordered = sorted((w for w in totals if totals[w] > 0), key=lambda w: -totals[w])
    paused = sum(int((x > 0).sum()) for x in by_worker.values()) / (grid.present.sum() * len(grid.stages))
    share = totals[ordered[0]] / sum(totals.values())
    return Fault(
        Kind.PAUSE, step_s - job.step_s(work, np.zeros_like(lead)), share,
        tuple((int(grid.replicas[r]), s) for r, s in ordered[:MOST_WORKERS]), often=float(paused),
    )  # fmt: skip


def _peers(values: Floats) -> Floats:
    """What the quicker half of the replicas take in the same step; without replicas, in the usual step."""
    if len(values) > 1:
        return np.broadcast_to(np.quantile(values, 0.5, axis=0, method="lower"), values.shape)
    return np.full_like(values, float(np.median(values)))


def _own_work(job: Job, work: Work, kind: Kind, step_s: float) -> Fault | None:
    """What some workers do and their peers do not: waiting for input, saving; without workers where it goes round."""
    grid, changed = job.grid, job.work_s.copy()
    beyond_of: dict[tuple[int, int], Floats] = {}
    late_s = np.zeros(changed.shape[2])
    for i in grid.where(work):
        peers = _peers(changed[i])
        beyond = np.maximum(changed[i] - peers, 0.0)
        for r in np.flatnonzero(beyond.any(axis=1)).tolist():
            key = int(grid.replicas[r]), grid.operations[i].stage
            beyond_of[key] = beyond_of[key] + beyond[r] if key in beyond_of else beyond[r]
        late_s = np.maximum(late_s, beyond.max(axis=0))
        changed[i] -= beyond
    if not beyond_of:
        return None
    often = float((late_s > LATE * step_s).mean())
    return Fault(kind, step_s - job.step_s(changed), 1.0, _standing_out(beyond_of, grid.workers), often=often)


def _standing_out(beyond_s: dict[tuple[int, int], Floats], workers: int) -> tuple[tuple[int, int], ...]:
    """Workers that make half of it alone, or surely more than the mean worker."""
    total = float(sum(x.sum() for x in beyond_s.values()))
    return tuple(
        who for who, x in sorted(beyond_s.items(), key=lambda item: -item[1].sum())
        if x.sum() >= 0.5 * total or x.mean() - total / workers / len(x) > SIGMAS * x.std() / np.sqrt(len(x))
    )  # fmt: skip


def _exposed_sync(job: Job, step_s: float) -> Fault | None:
    """Collectives that take no time of their own: what overlapping all of it could win."""
    mine = job.grid.where(*COLLECTIVES)
    if not mine:
        return None
    work = job.work_s.copy()
    work[mine] = 0.0
    return Fault(Kind.SYNC, step_s - job.step_s(work))


def exposed_transfers_s(job: Job) -> float:
    """What the step would save if hand-offs between stages took no time."""
    work = job.work_s.copy()
    work[job.grid.where(*RECEIVES)] = 0.0
    return job.step_s() - job.step_s(work)
