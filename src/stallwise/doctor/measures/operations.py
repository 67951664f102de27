"""A job of many workers from its operation table: replayed, attributed, and what each fault costs a step."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import numpy as np

from stallwise.doctor.measures._job_facts import JobFacts, worker_name
from stallwise.doctor.measures._operation_rows import Columns, Members, Rows, together
from stallwise.doctor.measures._rank_times import least_waiting, without_hidden_waits
from stallwise.doctor.measures._traced_ranks import traced_ranks
from stallwise.doctor.measures.clocks import TABLE as MATCHED
from stallwise.evidence.catalog import distributed as d
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Note, Scope, Source
from stallwise.evidence.ledger import Category
from stallwise.evidence.operations import KIND, PASSES, UNKNOWN, Work, numbered
from stallwise.physics.sim.job.clocks import Clocks, align
from stallwise.physics.sim.job.faults import Kind
from stallwise.physics.sim.job.grid import Grid, grid_of
from stallwise.physics.sim.job.replay import Job, NoOrder, job_of
from stallwise.physics.sim.job.scheduled import BACKWARD_RATIO, scheduled_job
from stallwise.units import Unit, show

ORDER = 40
WHOLE = 0.9  # of every worker: what happens in more than a tenth of its steps shows in the rest


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Facts of the whole job, and what was left out: from timelines of operations, else traces of ranks, else times of parts."""
    tables = evidence.table(KIND)
    recorded = [t for t in tables if not t.meta.get("laid_out") and not t.meta.get("traced")]
    times = [t for t in tables if t.meta.get("laid_out")]
    traced = traced_ranks(evidence, [t for t in tables if t.meta.get("traced")]) if not recorded else None
    used = recorded or (traced.tables if traced else times)
    if not used:
        return
    files = sorted({t.source.file for t in used})
    source = Source(files[0] if len(files) == 1 else f"{len(files)} files")
    rows = together(used)
    if missing := traced.missing if traced else _gaps(rows.members):
        ranks = ", ".join(map(str, missing[:8])) + (f" and {len(missing) - 8} more" if len(missing) > 8 else "")
        yield Note(f"no recording of rank {ranks}: its peers stand for it", source, lost=True)
    if used is times:
        yield from _of_times(evidence, rows, source)
        return
    facts = yield from _replayed(rows, source, of_traces=traced is not None)
    if facts is not None and traced is not None and evidence.table(MATCHED) and not traced.pipelined:
        # What a replica is late by its collectives tell more finely.
        yield from facts.some(Kind.SEQUENCE)
    elif facts is not None:
        yield from facts.all(with_ledger=not _has_ledger(evidence))


def _gaps(members: Members) -> list[int]:
    """Ranks below the highest that are not here; where most are not, some were chosen to be recorded."""
    ranks = {m.rank for m in members.values()}
    gaps = sorted(set(range(max(ranks, default=0))) - ranks)
    return gaps if UNKNOWN not in ranks and len(gaps) < len(ranks) else []


def _has_ledger(evidence: Evidence) -> bool:
    return any(x.seconds.get(Category.COMPUTE) for x in evidence.ledgers)


def _replayed(rows: Rows, source: Source, *, of_traces: bool) -> Generator[Item, None, JobFacts | None]:
    """A job of which moments are known, on one clock."""
    grid = grid_of(rows.columns, rows.labels, rows.works)
    if grid is None or (grid.workers < 2 and of_traces):
        if not of_traces:
            text = "no two workers or steps of this timeline share a program: nothing can be compared"
            yield Note(text, source, lost=True)
        return None
    yield from _left_out(grid, source)
    clocks = align(grid)
    if clocks is not None:
        yield from _clock_facts(clocks, grid, rows.members, source, only_note=of_traces)
    try:
        return JobFacts(job_of(grid), source, rows.members) if grid.workers > 1 else None
    except NoOrder as error:
        yield Note(error.problem, source, lost=True)
        return None


def _left_out(grid: Grid, source: Source) -> Iterator[Note]:
    """A step that the recording did not end, or a warm-up, leaves the job known."""
    for text in grid.left_out:
        yield Note(f"left out: {text}", source, lost=grid.least_kept < WHOLE)


def _clock_facts(clocks: Clocks, grid: Grid, members: Members, source: Source, *, only_note: bool) -> Iterator[Item]:
    stages = grid.stages
    worst = np.unravel_index(int(np.abs(clocks.offset_s).argmax()), clocks.offset_s.shape)
    who = worker_name(int(grid.replicas[worst[1]]), stages[worst[0]], len(stages), members)
    most, error = (show(x, Unit.SECOND) for x in (float(abs(clocks.offset_s[worst])), clocks.error_s))
    yield Note(
        f"clocks of the workers differ by up to {most} ({who}); they were aligned by their collectives, to {error}",
        source,
    )
    if only_note:  # offsets of traces stand already
        return
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


def _of_times(evidence: Evidence, rows: Rows, source: Source) -> Iterator[Item]:
    """Times without moments: laid out by a schedule, or one part of a step after the other."""
    rows.columns = without_hidden_waits(rows.columns, rows.works)
    job = _scheduled(rows.columns, rows.works)
    if job is None and not set(rows.works) & {int(w) for w in PASSES}:
        yield from least_waiting(rows.columns, source)
        return
    grid = job.grid if job is not None else grid_of(rows.columns, rows.labels, rows.works)
    if grid is None or grid.workers < 2:
        return
    yield from _left_out(grid, source)
    yield from JobFacts(job or job_of(grid), source, rows.members, timed=True).all(
        with_ledger=not _has_ledger(evidence)
    )


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
