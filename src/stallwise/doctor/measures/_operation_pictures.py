"""What the pictures of a job show: every worker in every step, every microbatch on every stage, and one step beside the ideal one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._operation_rows import Members
from stallwise.evidence.fact import Source, Table
from stallwise.evidence.operations import COMMUNICATION, PASSES, Work
from stallwise.physics.sim.job.attribution import Attribution
from stallwise.physics.sim.job.grid import Floats
from stallwise.physics.sim.job.replay import Job

WORKERS = "job.workers"  # rows: workers and steps
MICROBATCHES = "job.microbatches"  # rows: stages and microbatches
STEPS = "job.steps"  # rows: operations of one replica in one step, real and ideal
MOST_CELLS = 200_000


def pictures(job: Job, found: Attribution, even_s: Floats, members: Members, source: Source) -> Iterator[Table]:
    """Tables that a report draws; `even_s`: durations without slow workers, which would look like long stages."""
    yield _workers(job, members, source)
    if len({o.number for o in job.grid.operations if o.is_pass}) > 1:
        yield _microbatches(job, even_s, source)
    yield _one_step(job, found, source)


def _workers(job: Job, members: Members, source: Source) -> Table:
    """Seconds that each worker computed or stood still beyond the quicker half of its stage."""
    grid = job.grid
    rows: dict[str, list[NDArray[Any]]] = {name: [] for name in ("replica", "stage", "step", "beyond_s", "worked_s")}
    steps = np.arange(len(grid.steps))[:: max(1, grid.workers * len(grid.steps) // MOST_CELLS)]
    for stage in grid.stages:
        mine = [i for i, o in enumerate(grid.operations) if o.stage == stage and o.work not in COMMUNICATION]
        total = (job.work_s[mine] + job.lead_s[mine]).sum(axis=0)[:, steps]
        peers = np.quantile(total, 0.5, axis=0, method="lower") if len(total) > 1 else np.median(total)
        present = grid.present[:, steps]
        rows["replica"].append(np.repeat(grid.replicas, len(steps)))
        rows["stage"].append(np.full(total.size, stage))
        rows["step"].append(np.tile(grid.steps[steps], len(total)))
        rows["beyond_s"].append(np.where(present, total - peers, np.nan).ravel())
        rows["worked_s"].append(np.where(present, total, np.nan).ravel())
    known = {(s, r): members[r, s] for s in grid.stages for r in grid.replicas.tolist() if (r, s) in members}
    meta = {"members": {key: (who.rank, who.host) for key, who in known.items()}}
    return Table(WORKERS, {name: np.concatenate(values) for name, values in rows.items()}, source, meta=meta)


def _microbatches(job: Job, even_s: Floats, source: Source) -> Table:
    """Mean and deviation of forward and backward of each microbatch on each stage."""
    grid = job.grid
    cells: dict[tuple[int, int], list[int]] = {}
    for i in grid.where(*PASSES):
        cells.setdefault((grid.operations[i].stage, grid.operations[i].number), []).append(i)
    keys = sorted(cells)
    totals = [even_s[cells[key]].sum(axis=0)[grid.present] for key in keys]
    columns = {
        "stage": np.array([k[0] for k in keys]), "microbatch": np.array([k[1] for k in keys]),
        "mean_s": np.array([t.mean() for t in totals]), "deviation_s": np.array([t.std() for t in totals]),
    }  # fmt: skip
    return Table(MICROBATCHES, columns, source)


def _one_step(job: Job, found: Attribution, source: Source) -> Table:
    """The replica that ends last in the step that is most like the mean, as replayed and as it would ideally be."""
    grid = job.grid
    real = job.replay()
    steps_s = np.where(grid.present, real[job.last].max(axis=0), -np.inf).max(axis=0)
    step = int(np.argmin(np.abs(steps_s - steps_s.mean())))
    shown = [
        i for i, o in enumerate(grid.operations) if o.known and o.work not in (Work.FORWARD_SEND, Work.BACKWARD_SEND)
    ]
    passes = grid.where(*PASSES)
    late = np.where(grid.present[:, step], real[passes, :, step].max(axis=0), -np.inf)
    replica = int(np.argmax(late))
    ideal_work = np.broadcast_to(found.ideal_work_s[:, None, None], job.work_s.shape)
    ideal = job.replay(ideal_work.copy(), np.zeros_like(job.lead_s))
    begin, length, which = [], [], []
    for at, (end, work) in enumerate(((real, job.work_s), (ideal, ideal_work))):
        begin.append(end[shown, replica, step] - work[shown, replica, step])
        length.append(work[shown, replica, step])
        which.append(np.full(len(shown), at))
    columns = {
        "ideal": np.concatenate(which), "begin_s": np.concatenate(begin), "length_s": np.concatenate(length),
        "stage": np.tile([grid.operations[i].stage for i in shown], 2),
        "work": np.tile([int(grid.operations[i].work) for i in shown], 2),
        "microbatch": np.tile([grid.operations[i].number for i in shown], 2),
    }  # fmt: skip
    meta = {"step": int(grid.steps[step]), "replica": int(grid.replicas[replica])}
    return Table(STEPS, columns, source, meta=meta)
