"""A job of many workers from its operation table: replayed, attributed, and what each fault costs a step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from stallwise.doctor.measures._operation_pictures import pictures
from stallwise.doctor.measures._operation_rows import Columns, together
from stallwise.doctor.measures._waiting_ranks import least_waiting
from stallwise.evidence.catalog import distributed as d
from stallwise.evidence.catalog import step as s
from stallwise.evidence.catalog import workers as q
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import WHOLE, Fact, Note, Scope, Source, Table
from stallwise.evidence.ledger import Category, Ledger
from stallwise.evidence.operations import COLLECTIVES, COMMUNICATION, KIND, PASSES, Work
from stallwise.physics.sim.job.attribution import Attribution, Share, attribute
from stallwise.physics.sim.job.clocks import Clocks, align
from stallwise.physics.sim.job.faults import Fault, Kind, exposed_transfers_s, faults_of, peers_work
from stallwise.physics.sim.job.grid import Grid, grid_of, numbered
from stallwise.physics.sim.job.passes import stage_times
from stallwise.physics.sim.job.replay import Job, NoOrder, job_of
from stallwise.physics.sim.job.scheduled import BACKWARD_RATIO, scheduled_job
from stallwise.units import Unit, show

ORDER = 40
ATTRIBUTION = "job.attribution"
FAITHFUL = 0.02  # of the measured step: a replay further off prices nothing
LONGEST = 0.99


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Facts of the whole job; notes of what was left out."""
    tables = evidence.table(KIND)
    if not tables:
        return
    recorded = [t for t in tables if not t.meta.get("laid_out")]
    files = sorted({t.source.file for t in recorded or tables})
    source = Source(files[0] if len(files) == 1 else f"{len(files)} files")
    if not recorded:
        yield from _of_times(evidence, tables, source)
        return
    grid = grid_of(*together(recorded))
    if grid is None:
        yield Note(
            "no two workers or steps of this timeline share a program: nothing can be compared", source, lost=True
        )
        return
    for text in grid.left_out:
        yield Note(f"left out: {text}", source, lost=True)
    clocks = align(grid)
    if clocks is not None:
        yield from _clock_facts(clocks, grid, source)
    try:
        job = job_of(grid)
    except NoOrder as error:
        yield Note(error.problem, source, lost=True)
        return
    if grid.workers > 1:
        yield from _Facts(job, source).all()


def _clock_facts(clocks: Clocks, grid: Grid, source: Source) -> Iterator[Item]:
    stages = grid.stages
    worst = np.unravel_index(int(np.abs(clocks.offset_s).argmax()), clocks.offset_s.shape)
    who = worker_name(int(grid.replicas[worst[1]]), stages[worst[0]], len(stages))
    most, error = (show(x, Unit.SECOND) for x in (float(abs(clocks.offset_s[worst])), clocks.error_s))
    yield Note(
        f"clocks of the workers differ by up to {most} ({who}); they were aligned by their collectives, to {error}",
        source,
    )
    yield Fact(d.CLOCK_ERROR, clocks.error_s, source)
    for at, stage in enumerate(stages):
        for r, replica in enumerate(grid.replicas.tolist()):
            if clocks.offset_s[at, r]:
                scope = (
                    Scope(rank=replica)
                    if len(stages) == 1
                    else Scope(stage=stage, group=f"data-parallel rank {replica}")
                )
                yield Fact(d.CLOCK_OFFSET, -float(clocks.offset_s[at, r]), source, scope)


def _of_times(evidence: Evidence, tables: list[Table], source: Source) -> Iterator[Item]:
    """Times without moments: laid out by a schedule, or one part of a step after the other."""
    columns, labels, works = together(tables)
    job = _scheduled(columns, works)
    if job is None and set(works) & {int(w) for w in PASSES}:
        grid = grid_of(columns, labels, works)
        if grid is None or grid.workers < 2:
            return
        for text in grid.left_out:
            yield Note(f"left out: {text}", source, lost=True)
        job = job_of(grid)
    if job is None:
        yield from least_waiting(columns, source)
        return
    facts = _Facts(job, source)
    noticed = [f for f in facts.faults if f.kind is not Kind.SYNC and f.cost_s > FAITHFUL * facts.attribution.step_s]
    if noticed:
        yield facts.fact(d.JOB_STEP, facts.attribution.step_s)
        yield facts.fact(q.WORKERS, float(job.grid.workers))
        yield facts.attribution_table()
        for fault in noticed:
            yield from _OF_KIND[fault.kind](facts, fault, True)
        yield from pictures(job, facts.attribution, source)


def _scheduled(columns: Columns, works: list[int]) -> Job | None:
    """A row for each stage and microbatch: 1F1B, which most frameworks run where nothing else is asked for."""
    work = np.array(works)[columns["label"]]
    forward, backward = work == Work.FORWARD, np.isin(work, (Work.BACKWARD, Work.WEIGHT_GRAD))
    whole = work == Work.COMPUTE
    stages, stage = numbered(columns["stage"])
    if len(stages) < 2 or (columns["microbatch"] < 0).any() or not (forward.any() or whole.any()):
        return None
    _, microbatch = numbered(columns["microbatch"])
    (replicas, replica), (steps, step) = numbered(columns["replica"]), numbered(columns["step"])
    shape = (len(stages), int(microbatch.max()) + 1, len(replicas), len(steps))
    passes = [np.zeros(shape), np.zeros(shape)]
    share = 1 / (1 + BACKWARD_RATIO)
    for which, parts in ((forward, (1.0, 0.0)), (backward, (0.0, 1.0)), (whole, (share, 1 - share))):
        at = tuple(x[which] for x in (stage, microbatch, replica, step))
        for total, part in zip(passes, parts, strict=True):
            np.add.at(total, at, part * columns["duration_s"][which])
    for total in passes:
        mean = total.sum(axis=(1, 2, 3)) / np.maximum((total > 0).sum(axis=(1, 2, 3)), 1)
        total[:] = np.where(total > 0, total, mean[:, None, None, None])
    if not backward.any() and forward.any():
        passes[1] = BACKWARD_RATIO * passes[0]
    job = scheduled_job(passes[0], passes[1])
    job.grid.replicas, job.grid.steps = replicas, steps
    return job


class _Facts:
    """Facts of one job."""

    def __init__(self, job: Job, source: Source) -> None:
        self.job, self.source = job, source
        grid = job.grid
        self.samples = int(grid.present.sum())
        self.measured_s = float(grid.measured_s().mean())
        self.attribution = attribute(job)
        self.error = self.attribution.step_s / self.measured_s - 1 if self.measured_s > 0 else 0.0
        self.faults = faults_of(job)

    def fact(self, quantity: Any, value: float | str, scope: Scope = WHOLE, **more: Any) -> Fact:
        return Fact(quantity, value, self.source, scope, samples=self.samples, **more)

    def all(self) -> Iterator[Item]:
        """In the order of the story: the job, then its faults."""
        grid, found = self.job.grid, self.attribution
        faithful = abs(self.error) <= FAITHFUL
        if not faithful:
            text = (
                f"replayed unchanged, the step differs from the measured one by {abs(self.error):.1%}: dependencies are "
                "not fully known, so costs are those of the tables alone"
            )
            yield Note(text, self.source)
        yield self._ledger()
        yield self.fact(d.JOB_STEP, found.step_s)
        yield self.fact(s.STEP_COUNT, float(len(grid.steps)))
        yield self.fact(q.WORKERS, float(grid.workers))
        yield self.fact(d.RANKS_SEEN, float(grid.workers))
        yield self.fact(q.IDEAL_STEP, found.ideal_s)
        yield self.fact(q.SLOWDOWN, found.slowdown)
        yield self.fact(q.REPLAY_ERROR, self.error)
        yield self.fact(q.SLOWEST_SHARE, found.slowest.explains(found.lost_s))
        if len(grid.stages) > 1:
            yield self.fact(q.LAST_STAGE_SHARE, found.by_stage[-1].explains(found.lost_s))
            yield from self._bubble()
        yield self.attribution_table()
        for fault in self.faults:
            yield from _OF_KIND[fault.kind](self, fault, faithful)
        yield from pictures(self.job, found, self.source)

    def _ledger(self) -> Ledger:
        """Of a mean worker: computing, moving bytes while nothing else could run, and the rest, in which it waits for others."""
        job, grid = self.job, self.job.grid
        here = grid.present
        work = [i for i, o in enumerate(grid.operations) if o.work not in COMMUNICATION]
        stages = len(grid.stages)
        whole = self.attribution.step_s
        compute = min(float(job.work_s[work][:, here].sum(axis=0).mean()) / stages, whole)
        moving = min(self._sync_s() + exposed_transfers_s(job), whole - compute)
        rest = Category.BUBBLE if stages > 1 else Category.HOST_WAIT
        seconds = {Category.COMPUTE: compute, Category.COMMUNICATION: moving, rest: whole - compute - moving}
        return Ledger(seconds, self.source, samples=len(grid.steps))

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

    def attribution_table(self) -> Table:
        """Slowdown and its shares, for whoever reads the answer as data."""
        found: Attribution = self.attribution

        def rows(shares: list[Share]) -> list[dict[str, Any]]:
            return [{"name": x.name, "added_s": x.added_s, "removed_s": x.removed_s} for x in shares]

        grid = self.job.grid
        names = [worker_name(int(grid.replicas[r]), stage, len(grid.stages)) for r, stage in found.slowest_workers]
        meta = {
            "step_s": found.step_s, "measured_step_s": self.measured_s, "ideal_step_s": found.ideal_s,
            "slowdown": found.slowdown, "slowest_workers": names[:8],
            "slowest_workers_share": found.slowest.explains(found.lost_s),
            "last_stage_share": found.by_stage[-1].explains(found.lost_s) if len(found.by_stage) > 1 else 0.0,
            "replay_error": self.error, "replicas": len(grid.replicas), "stages": len(grid.stages), "steps": len(grid.steps),
            "by_kind": rows(found.by_kind), "by_stage": rows(found.by_stage), "by_replica": rows(found.by_replica)[:64],
            "faults": [{"kind": f.kind.value, "cost_s": f.cost_s, "factor": f.factor} for f in self.faults],
            "left_out": list(grid.left_out),
        }  # fmt: skip
        return Table(ATTRIBUTION, {}, self.source, meta=meta)

    def worker(self, fault: Fault, faithful: bool) -> Iterator[Item]:
        """A slow worker, or one that does what its peers do not."""
        first = max((f for f in self.faults if f.kind in _STRAGGLERS), key=lambda f: f.cost_s)
        if fault is not first:
            return
        grid, stages = self.job.grid, len(self.job.grid.stages)
        replica, stage = fault.workers[0]
        more = len(fault.workers) - 1
        name = worker_name(replica, stage, stages) + (f" and {more} more" if more else "")
        scope = Scope(rank=replica) if stages == 1 else Scope(stage=stage, group=f"data-parallel rank {replica}")
        cost = fault.cost_s if faithful else self._table_cost(fault)
        yield self.fact(d.STRAGGLER, name, scope)
        yield self.fact(d.STRAGGLER_COST, cost, scope)
        lost = self.attribution.lost_s
        yield self.fact(d.STRAGGLER_EXPLAINS, min(cost / lost, 1.0) if lost > 0 else 1.0)
        yield Fact(d.STRAGGLER_OFTEN, fault.often, self.source, samples=len(grid.steps), note="steps")
        if fault.since is not None:
            yield self.fact(d.STRAGGLER_SINCE, float(fault.since))
        if fault.kind is Kind.WORKER:
            yield self.fact(q.WORKER_FACTOR, fault.factor, scope)
            cause, detail = (
                "clocks",
                f"slower passes: {fault.factor:.2f}x those of its peers for the same work",
            )
        else:
            cause = "input" if fault.kind is Kind.INPUT else "saving"
            detail = (
                "waiting for input that its peers do not wait for"
                if cause == "input"
                else "saving while its peers do not"
            )
        yield self.fact(d.STRAGGLER_CAUSE, cause)
        yield self.fact(d.STRAGGLER_CAUSE_SHARE, 1.0)
        yield self.fact(d.STRAGGLER_DETAIL, detail)

    def _table_cost(self, fault: Fault) -> float:
        """Without a replay: what the worker computes beyond its peers."""
        stage = fault.stage if fault.stage >= 0 else self.job.grid.stages[0]
        own = stage_times(self.job, peers_work(self.job)).get(stage, 0.0)
        return (fault.factor - 1) * own * fault.often

    def stage(self, fault: Fault, faithful: bool) -> Iterator[Item]:
        times = stage_times(self.job, peers_work(self.job))
        mean = float(np.mean(list(times.values())))
        for stage, seconds in sorted(times.items()):
            yield self.fact(d.STAGE_COMPUTE, seconds, Scope(stage=stage))
        yield self.fact(d.PIPELINE_STAGES, float(len(times)))
        yield self.fact(d.STAGE_RATIO, fault.factor)
        yield self.fact(d.SLOWEST_STAGE, float(fault.stage))
        rest = (len(times) * mean - times[fault.stage]) / (len(times) - 1)
        yield self.fact(q.STAGE_COST, fault.cost_s if faithful else times[fault.stage] - rest)
        yield self.fact(q.STAGE_BALANCED, fault.balanced_s if faithful else times[fault.stage] - mean)

    def sequence(self, fault: Fault, faithful: bool) -> Iterator[Item]:
        if not faithful:
            return
        yield self.fact(q.SEQUENCE_COST, fault.cost_s)
        yield self.fact(q.SEQUENCE_SPREAD, fault.factor)
        yield self.fact(q.SEQUENCE_TOGETHER, fault.together)
        passes = self.job.grid.where(*PASSES)
        usual = self.job.work_s[passes] / self.job.work_s[passes].mean(axis=(1, 2), keepdims=True)
        yield self.fact(q.SEQUENCE_LONGEST, float(np.quantile(usual[:, self.job.grid.present], LONGEST)))

    def link(self, fault: Fault, faithful: bool) -> Iterator[Item]:
        if not faithful:
            return
        of = ", ".join(str(r) for r, _ in fault.workers[:4])
        where = f"stages {fault.link[0]} and {fault.link[1]}" + (f" of data-parallel rank {of}" if of else "")
        yield self.fact(q.LINK, where)
        yield self.fact(q.LINK_COST, fault.cost_s)
        yield self.fact(q.LINK_RATIO, fault.factor)

    def pause(self, fault: Fault, faithful: bool) -> Iterator[Item]:
        if not faithful:
            return
        yield self.fact(q.PAUSE_COST, fault.cost_s)
        yield self.fact(q.PAUSE_OFTEN, fault.often)
        stages = len(self.job.grid.stages)
        yield self.fact(q.PAUSE_ONE, fault.factor, note=worker_name(*fault.workers[0], stages))

    def sync(self, fault: Fault, faithful: bool) -> Iterator[Item]:
        if not faithful:
            return
        yield self.fact(d.COMM_EXPOSED, fault.cost_s)
        yield self.fact(d.COMM_SHARE, fault.cost_s / self.attribution.step_s)
        yield self.fact(d.WAIT_FOR_PEERS, 0.0)
        yield self.fact(d.MOVING_BYTES, fault.cost_s)
        yield self.fact(d.COLLECTIVES, float(len(self.job.grid.where(*COLLECTIVES)) / len(self.job.grid.stages)))


def worker_name(replica: int, stage: int, stages: int) -> str:
    """As a person would say it."""
    return f"rank {replica}" if stages == 1 else f"data-parallel rank {replica}, pipeline stage {stage}"


_STRAGGLERS = (Kind.WORKER, Kind.INPUT, Kind.CHECKPOINT)
_OF_KIND = {
    Kind.WORKER: _Facts.worker, Kind.INPUT: _Facts.worker, Kind.CHECKPOINT: _Facts.worker, Kind.STAGE: _Facts.stage,
    Kind.SEQUENCE: _Facts.sequence, Kind.LINK: _Facts.link, Kind.PAUSE: _Facts.pause, Kind.SYNC: _Facts.sync,
}  # fmt: skip
