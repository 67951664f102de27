"""A job of many workers from its operation table: replayed, attributed, and what each fault costs a step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallwise.doctor.measures._hidden_waits import without_hidden_waits
from stallwise.doctor.measures._job_facts import FAITHFUL, JobFacts, worker_name
from stallwise.doctor.measures._operation_pictures import pictures
from stallwise.doctor.measures._operation_rows import Columns, Members, together
from stallwise.doctor.measures._traced_ranks import Traced, traced_ranks
from stallwise.doctor.measures._waiting_ranks import least_waiting
from stallwise.doctor.measures.clocks import TABLE as MATCHED
from stallwise.evidence.catalog import distributed as d
from stallwise.evidence.catalog import workers as q
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Note, Scope, Source, Table
from stallwise.evidence.ledger import Category
from stallwise.evidence.operations import KIND, PASSES, Work
from stallwise.physics.sim.job.clocks import Clocks, align
from stallwise.physics.sim.job.faults import Kind
from stallwise.physics.sim.job.grid import Grid, grid_of, numbered
from stallwise.physics.sim.job.replay import Job, NoOrder, job_of
from stallwise.physics.sim.job.scheduled import BACKWARD_RATIO, scheduled_job
from stallwise.units import Unit, show

ORDER = 40


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Facts of the whole job; notes of what was left out."""
    tables = evidence.table(KIND)
    if not tables:
        return
    recorded = [t for t in tables if not t.meta.get("laid_out") and not t.meta.get("traced")]
    times = [t for t in tables if t.meta.get("laid_out")]
    traced = traced_ranks(evidence, [t for t in tables if t.meta.get("traced")]) if not recorded else None
    used = recorded or (traced.tables if traced else times)
    files = sorted({t.source.file for t in used})
    source = Source(files[0] if len(files) == 1 else f"{len(files)} files")
    if traced is not None:
        yield from _of_traces(evidence, traced, source)
        return
    if not recorded:
        if times:
            yield from _of_times(evidence, times, source)
        return
    rows = together(recorded)
    grid = grid_of(rows.columns, rows.labels, rows.works)
    if grid is None:
        yield Note(
            "no two workers or steps of this timeline share a program: nothing can be compared", source, lost=True
        )
        return
    for text in grid.left_out:
        yield Note(f"left out: {text}", source, lost=True)
    clocks = align(grid)
    if clocks is not None:
        yield from _clock_facts(clocks, grid, rows.members, source)
    try:
        job = job_of(grid)
    except NoOrder as error:
        yield Note(error.problem, source, lost=True)
        return
    if grid.workers > 1:
        yield from JobFacts(job, source, rows.members).all()


def _of_traces(evidence: Evidence, traced: Traced, source: Source) -> Iterator[Item]:
    """Profiler traces of ranks: the job of a pipeline, and of replicas what their collectives do not tell."""
    if traced.missing:
        ranks = ", ".join(str(r) for r in traced.missing[:8])
        yield Note(f"no trace of rank {ranks}: its peers stand for it", source, lost=True)
    rows = together(traced.tables)
    grid = grid_of(rows.columns, rows.labels, rows.works)
    if grid is None or grid.workers < 2:
        return
    for text in grid.left_out:
        yield Note(f"left out: {text}", source, lost=True)
    clocks = align(grid)
    if clocks is not None:
        yield from [x for x in _clock_facts(clocks, grid, rows.members, source) if isinstance(x, Note)]
    try:
        facts = JobFacts(job_of(grid), source, rows.members)
    except NoOrder as error:
        yield Note(error.problem, source, lost=True)
        return
    if traced.pipelined or not evidence.table(MATCHED):
        yield from facts.all(with_ledger=not any(x.seconds.get(Category.COMPUTE) for x in evidence.ledgers))
        return
    faithful = abs(facts.error) <= FAITHFUL
    for fault in facts.faults:
        if fault.kind is Kind.SEQUENCE:
            yield from facts.sequence(fault, faithful)
    yield from pictures(facts.job, facts.attribution, source)


def _clock_facts(clocks: Clocks, grid: Grid, members: Members, source: Source) -> Iterator[Item]:
    stages = grid.stages
    worst = np.unravel_index(int(np.abs(clocks.offset_s).argmax()), clocks.offset_s.shape)
    who = worker_name(int(grid.replicas[worst[1]]), stages[worst[0]], len(stages), members)
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
    rows = together(tables)
    rows.columns = without_hidden_waits(rows.columns, rows.works)
    job = _scheduled(rows.columns, rows.works)
    if job is None and set(rows.works) & {int(w) for w in PASSES}:
        grid = grid_of(rows.columns, rows.labels, rows.works)
        if grid is None or grid.workers < 2:
            return
        for text in grid.left_out:
            yield Note(f"left out: {text}", source, lost=True)
        job = job_of(grid)
    if job is None:
        yield from least_waiting(rows.columns, source)
        return
    facts = JobFacts(job, source, rows.members)
    noticed = [f for f in facts.faults if f.kind is not Kind.SYNC and f.cost_s > FAITHFUL * facts.attribution.step_s]
    if noticed:
        yield facts.fact(d.JOB_STEP, facts.attribution.step_s)
        yield facts.fact(q.WORKERS, float(job.grid.workers))
        yield facts.attribution_table()
        for fault in noticed:
            yield from facts.of_fault(fault, faithful=True)
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
