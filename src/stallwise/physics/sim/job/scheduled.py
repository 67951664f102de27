"""A job of which only the times of passes are known: laid out by a schedule, so that it is replayed like a recorded one."""

from __future__ import annotations

import numpy as np

from stallwise.evidence.operations import Work
from stallwise.physics.sim.job.grid import Floats, Grid, Operation
from stallwise.physics.sim.job.replay import Job, job_of
from stallwise.physics.sim.pipeline import even_times, run_program
from stallwise.physics.sim.program import Pass
from stallwise.physics.sim.schedules import schedule_named

_WORK = {
    Pass.FORWARD: Work.FORWARD, Pass.BACKWARD: Work.BACKWARD, Pass.INPUT_GRAD: Work.BACKWARD, Pass.WEIGHT_GRAD: Work.WEIGHT_GRAD,
}  # fmt: skip
BACKWARD_RATIO = 2.0  # of a forward: two GEMMs for one


def scheduled_job(forward_s: Floats, backward_s: Floats, schedule: str = "1f1b", chunks: int = 1) -> Job:
    """From seconds of each pass on each stage, (stage, microbatch, replica, step); chunks share a stage's time evenly."""
    stages, microbatches, replicas, steps = forward_s.shape
    module = schedule_named(schedule)
    count = module.CHUNKS or chunks
    times = even_times(stages, 1.0, 1.0, 1.0, chunks=count)
    run = run_program(module.program(stages, microbatches, count, times), times)
    operations, begin, nominal, actual = [], [], [], []
    own: dict[int, int] = {}
    seen = [0] * stages
    for virtual, device in enumerate(run.program.device_of):
        own[virtual], seen[device] = seen[device], seen[device] + 1
    for device, placed in enumerate(run.devices):
        for item in placed:
            for op in item.slot:
                work = _WORK[op.kind]
                operations.append(Operation(device, work, f"{op.kind.value} pass", own[op.stage], op.microbatch))
                begin.append(item.start_s)
                nominal.append(item.end_s - item.start_s)
                passed = forward_s if work is Work.FORWARD else backward_s
                share = 0.5 if op.kind in (Pass.INPUT_GRAD, Pass.WEIGHT_GRAD) else 1.0
                actual.append(passed[device, op.microbatch] * share / count)
    present = np.ones((replicas, steps), bool)
    spread = np.ones((1, replicas, steps))
    grid = Grid(
        operations, np.array(begin)[:, None, None] * spread, np.array(nominal)[:, None, None] * spread, present,
        np.arange(replicas), np.arange(steps),
    )  # fmt: skip
    job = job_of(grid)
    job.work_s[: len(actual)] = np.stack(actual)
    job.work_s[len(actual) :] = 0.0  # hand-offs between stages: nobody knows them
    ends = job.replay()
    grid.begin_s, grid.work_s = ends - job.work_s, job.work_s.copy()
    return job
