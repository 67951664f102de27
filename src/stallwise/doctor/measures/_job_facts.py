"""Facts of a job of many workers that was replayed: the step, who explains its slowdown, and what each fault costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from stallwise.doctor.measures._operation_pictures import pictures
from stallwise.doctor.measures._operation_rows import Members
from stallwise.evidence.catalog import distributed as d
from stallwise.evidence.catalog import step as s
from stallwise.evidence.catalog import workers as q
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import WHOLE, Fact, Note, Scope, Source, Table
from stallwise.evidence.ledger import Category, Ledger
from stallwise.evidence.operations import COLLECTIVES, COMMUNICATION, PASSES, UNKNOWN, Work
from stallwise.physics.sim.job.attribution import Attribution, Share, attribute
from stallwise.physics.sim.job.faults import Fault, Kind, exposed_transfers_s, faults_of, peers_work
from stallwise.physics.sim.job.grid import Grid
from stallwise.physics.sim.job.passes import stage_times
from stallwise.physics.sim.job.replay import Job

ATTRIBUTION = "job.attribution"
FAITHFUL = 0.02  # of the measured step: a replay further off prices nothing
LONGEST = 0.99
IN_TURN = "one rank after another"


class JobFacts:
    """Facts of one job; `timed`: durations alone are known, and what hides behind what is not."""

    def __init__(self, job: Job, source: Source, members: Members, *, timed: bool = False) -> None:
        self.job, self.source, self.members, self.timed = job, source, members, timed
        self.hosts = _hosts(job.grid, members)
        grid = job.grid
        self.samples = int(grid.present.sum())
        self.measured_s = float(grid.measured_s().mean())
        self.attribution = attribute(job, self.hosts)
        self.error = self.attribution.step_s / self.measured_s - 1 if self.measured_s > 0 else 0.0
        self.faults = [f for f in faults_of(job) if not (timed and f.kind is Kind.SYNC)]
        self.even = peers_work(job)

    def fact(self, quantity: Any, value: float | str, scope: Scope = WHOLE, **more: Any) -> Fact:
        return Fact(quantity, value, self.source, scope, samples=self.samples, **more)

    def all(self, *, with_ledger: bool = True) -> Iterator[Item]:
        """In the order of the story: the job, then its faults."""
        grid, found = self.job.grid, self.attribution
        if not self.faithful:
            text = (
                f"replayed unchanged, the step differs from the measured one by {abs(self.error):.1%}: dependencies are "
                "not fully known, so costs are those of the tables alone"
            )
            yield Note(text, self.source)
        if with_ledger:
            yield self._ledger()
        yield self.fact(d.JOB_STEP, found.step_s)
        yield self.fact(s.STEP_COUNT, float(len(grid.steps)))
        yield self.fact(q.WORKERS, float(grid.workers))
        yield self.fact(d.RANKS_SEEN, float(grid.workers))
        yield self.fact(q.IDEAL_STEP, found.ideal_s)
        yield self.fact(q.SLOWDOWN, found.slowdown)
        if not self.timed:
            yield self.fact(q.REPLAY_ERROR, self.error)
        yield self.fact(q.SLOWEST_SHARE, found.slowest.explains(found.lost_s))
        if len(grid.stages) > 1:
            yield self.fact(q.LAST_STAGE_SHARE, found.by_stage[-1].explains(found.lost_s))
            yield from self._bubble()
        yield self._attribution_table()
        yield from self.some(*Kind)

    def some(self, *kinds: Kind) -> Iterator[Item]:
        """Faults of these kinds, and the pictures."""
        for fault in self.faults:
            if fault.kind in kinds and (self.faithful or fault.kind in _BY_TABLES):
                yield from _OF_KIND[fault.kind](self, fault)
        yield from pictures(self.job, self.attribution, self.even, self.members, self.source)

    @property
    def faithful(self) -> bool:
        """Whether the replay is near enough to what was measured to price anything."""
        return abs(self.error) <= FAITHFUL

    def name(self, replica: int, stage: int) -> str:
        """A worker, as a person would say it."""
        return worker_name(replica, stage, len(self.job.grid.stages), self.members)

    def _ledger(self) -> Ledger:
        """Of a mean worker: its own work, moving bytes while nothing else could run, and the rest, in which it waits for others."""
        job, grid = self.job, self.job.grid
        left = self.attribution.step_s
        seconds = dict.fromkeys((Category.COMPUTE, *_CATEGORY.values()), 0.0)
        for i, operation in enumerate(grid.operations):
            if operation.work not in COMMUNICATION:
                mine = _CATEGORY.get(operation.work, Category.COMPUTE)
                seconds[mine] += float(job.work_s[i][grid.present].mean()) / len(grid.stages)
                seconds[Category.HOST_WAIT] += float(job.lead_s[i][grid.present].mean()) / len(grid.stages)
        seconds[Category.COMMUNICATION] = self._sync_s() + exposed_transfers_s(job)
        for category, value in seconds.items():
            seconds[category] = min(value, left)
            left -= seconds[category]
        waits = Category.BUBBLE if len(grid.stages) > 1 else Category.COMMUNICATION
        seconds[waits] = seconds.get(waits, 0.0) + left
        return Ledger({c: x for c, x in seconds.items() if x > 0}, self.source, samples=len(grid.steps))

    def _bubble(self) -> Iterator[Fact]:
        """Idle as it is, and as it would be if all workers took the mean: the schedule's own."""
        grid = self.job.grid
        passes = grid.where(*PASSES)
        busy = float(self.job.work_s[passes][:, grid.present].sum(axis=0).mean()) / len(grid.stages)
        others = self.attribution.step_s - self._sync_s()
        ideal_s = self.attribution.ideal_s - self._sync_s()
        if busy <= 0 or ideal_s <= 0:
            return
        yield self.fact(d.PIPELINE_STAGES, float(len(grid.stages)))
        yield self.fact(d.MICROBATCHES_SEEN, float(len({grid.operations[i].number for i in passes})))
        yield self.fact(d.PIPELINE_IDLE, max(1 - busy / others, 0.0))
        yield self.fact(d.BUBBLE_IDEAL, max(1 - busy / ideal_s, 0.0), note="replayed with all workers at the mean")

    def _sync_s(self) -> float:
        return next((f.cost_s for f in self.faults if f.kind is Kind.SYNC), 0.0)

    def _attribution_table(self) -> Table:
        """Slowdown and its shares, for whoever reads the answer as data."""
        found: Attribution = self.attribution

        def rows(shares: list[Share]) -> list[dict[str, Any]]:
            return [{"name": x.name, "added_s": x.added_s, "removed_s": x.removed_s} for x in shares]

        grid = self.job.grid
        names = [self.name(int(grid.replicas[r]), stage) for r, stage in found.slowest_workers]
        meta = {
            "step_s": found.step_s, "measured_step_s": self.measured_s, "ideal_step_s": found.ideal_s,
            "slowdown": found.slowdown, "slowest_workers": names[:8],
            "slowest_workers_share": found.slowest.explains(found.lost_s),
            "last_stage_share": found.by_stage[-1].explains(found.lost_s) if len(found.by_stage) > 1 else 0.0,
            "replay_error": self.error, "replicas": len(grid.replicas), "stages": len(grid.stages), "steps": len(grid.steps),
            "by_kind": rows(found.by_kind), "by_stage": rows(found.by_stage), "by_replica": rows(found.by_replica)[:64],
            "by_host": rows(found.by_host), "by_microbatch": rows(found.by_microbatch),
            "by_worker": [row | {"name": name} for row, name in zip(rows(found.by_worker), names, strict=False)],
            "faults": [{"kind": f.kind.value, "cost_s": f.cost_s, "factor": f.factor} for f in self.faults],
            "left_out": list(grid.left_out),
        }  # fmt: skip
        return Table(ATTRIBUTION, {}, self.source, meta=meta)

    def worker(self, fault: Fault) -> Iterator[Item]:
        """A slow worker, or one that does what its peers do not."""
        first = max((f for f in self.faults if f.kind in _STRAGGLERS), key=lambda f: f.cost_s)
        if fault is not first:
            return
        grid, stages = self.job.grid, len(self.job.grid.stages)
        name, host, scope = IN_TURN, "", WHOLE
        if fault.workers:
            replica, stage = fault.workers[0]
            name, host = self._who(fault)
            scope = Scope(rank=replica) if stages == 1 else Scope(stage=stage, group=f"data-parallel rank {replica}")
        cost = fault.cost_s if self.faithful else self._table_cost(fault)
        yield self.fact(d.STRAGGLER, name, scope)
        if host:
            yield self.fact(q.WORKER_HOST, host, scope)
        yield self.fact(d.STRAGGLER_COST, cost, scope)
        lost = self.attribution.lost_s
        yield self.fact(d.STRAGGLER_EXPLAINS, min(cost / lost, 1.0) if lost > 0 else 1.0)
        yield Fact(d.STRAGGLER_OFTEN, fault.often, self.source, samples=len(grid.steps), note="steps")
        if fault.since is not None:
            yield self.fact(d.STRAGGLER_SINCE, float(fault.since))
        if fault.kind is Kind.WORKER:
            yield self.fact(q.WORKER_FACTOR, fault.factor, scope)
        cause, detail = _HELD_UP_BY[fault.kind]
        yield self.fact(d.STRAGGLER_CAUSE, cause)
        yield self.fact(d.STRAGGLER_CAUSE_SHARE, 1.0)
        yield self.fact(d.STRAGGLER_DETAIL, detail.format(fault.factor))

    def _who(self, fault: Fault) -> tuple[str, str]:
        """The workers of a fault in words, and the host if all of them are on one; a host of which all are slow is named instead."""
        slow = [self.members[w].host if w in self.members else "" for w in fault.workers]
        host = slow[0] if len(set(slow)) == 1 else ""
        name = self.name(*fault.workers[0])
        whole = len(self.hosts.get(host, ())) if host else 0
        if host and len(self.hosts) > 1 and whole > 1 and len(fault.workers) == whole:
            return f"host {host} (all {whole} of its workers)", host
        more = len(fault.workers) - 1
        where = f" on {host}" if len(self.hosts) > 1 and host else ""
        return name + (f" and {more} more" if more else "") + where, host

    def _table_cost(self, fault: Fault) -> float:
        """Without a replay: what the worker computes beyond its peers."""
        stage = fault.stage if fault.stage >= 0 else self.job.grid.stages[0]
        own = stage_times(self.job, self.even).get(stage, 0.0)
        return (fault.factor - 1) * own * fault.often

    def stage(self, fault: Fault) -> Iterator[Item]:
        times = stage_times(self.job, self.even)
        mean = float(np.mean(list(times.values())))
        for stage, seconds in sorted(times.items()):
            yield self.fact(d.STAGE_COMPUTE, seconds, Scope(stage=stage))
        yield self.fact(d.PIPELINE_STAGES, float(len(times)))
        yield self.fact(d.STAGE_RATIO, fault.factor)
        yield self.fact(d.SLOWEST_STAGE, float(fault.stage))
        rest = (len(times) * mean - times[fault.stage]) / (len(times) - 1)
        yield self.fact(q.STAGE_COST, fault.cost_s if self.faithful else times[fault.stage] - rest)
        yield self.fact(q.STAGE_BALANCED, fault.balanced_s if self.faithful else times[fault.stage] - mean)

    def sequence(self, fault: Fault) -> Iterator[Item]:
        yield self.fact(q.SEQUENCE_COST, fault.cost_s)
        yield self.fact(q.SEQUENCE_SPREAD, fault.factor)
        yield self.fact(q.SEQUENCE_TOGETHER, fault.together)
        passes = self.job.grid.where(*PASSES)
        usual = self.job.work_s[passes] / self.job.work_s[passes].mean(axis=(1, 2), keepdims=True)
        yield self.fact(q.SEQUENCE_LONGEST, float(np.quantile(usual[:, self.job.grid.present], LONGEST)))

    def link(self, fault: Fault) -> Iterator[Item]:
        of = ", ".join(str(r) for r, _ in fault.workers[:4])
        where = f"stages {fault.link[0]} and {fault.link[1]}" + (f" of data-parallel rank {of}" if of else "")
        yield self.fact(q.LINK, where)
        yield self.fact(q.LINK_COST, fault.cost_s)
        yield self.fact(q.LINK_RATIO, fault.factor)

    def pause(self, fault: Fault) -> Iterator[Item]:
        yield self.fact(q.PAUSE_COST, fault.cost_s)
        yield self.fact(q.PAUSE_OFTEN, fault.often)
        yield self.fact(q.PAUSE_ONE, fault.factor, note=self.name(*fault.workers[0]))

    def sync(self, fault: Fault) -> Iterator[Item]:
        yield self.fact(d.COMM_EXPOSED, fault.cost_s)
        yield self.fact(d.COMM_SHARE, fault.cost_s / self.attribution.step_s)
        yield self.fact(d.WAIT_FOR_PEERS, 0.0)
        yield self.fact(d.MOVING_BYTES, fault.cost_s)
        yield self.fact(d.COLLECTIVES, float(len(self.job.grid.where(*COLLECTIVES)) / len(self.job.grid.stages)))


def worker_name(replica: int, stage: int, stages: int, members: Members) -> str:
    """As a person would say it."""
    who = members.get((replica, stage))
    rank = who.rank if who is not None else UNKNOWN
    if stages == 1:
        return f"rank {replica if rank < 0 else rank}"
    place = (
        f"pipeline stage {stage}" if who and who.counted else f"data-parallel rank {replica}, pipeline stage {stage}"
    )
    return place if rank < 0 else f"rank {rank} ({place})"


def _hosts(grid: Grid, members: Members) -> dict[str, list[tuple[int, int]]]:
    """Workers of each host, as the place of the replica and the stage."""
    found: dict[str, list[tuple[int, int]]] = {}
    for place, replica in enumerate(grid.replicas.tolist()):
        for stage in grid.stages:
            member = members.get((replica, stage))
            if member is not None and member.host:
                found.setdefault(member.host, []).append((place, stage))
    return found


_STRAGGLERS = (Kind.WORKER, Kind.INPUT, Kind.CHECKPOINT)
_HELD_UP_BY = {
    Kind.WORKER: ("clocks", "slower passes: {:.2f}x those of its peers for the same work"),
    Kind.INPUT: ("input", "waiting for input that its peers do not wait for"),
    Kind.CHECKPOINT: ("saving", "saving while its peers do not"),
}
_BY_TABLES = (*_STRAGGLERS, Kind.STAGE)  # priced without a replay, too
_CATEGORY = {
    Work.INPUT: Category.INPUT_WAIT, Work.CHECKPOINT: Category.CHECKPOINT, Work.GARBAGE: Category.HOST_WAIT,
}  # fmt: skip
_OF_KIND = {
    Kind.WORKER: JobFacts.worker, Kind.INPUT: JobFacts.worker, Kind.CHECKPOINT: JobFacts.worker, Kind.STAGE: JobFacts.stage,
    Kind.SEQUENCE: JobFacts.sequence, Kind.LINK: JobFacts.link, Kind.PAUSE: JobFacts.pause, Kind.SYNC: JobFacts.sync,
}  # fmt: skip
