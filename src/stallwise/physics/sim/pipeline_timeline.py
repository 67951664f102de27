"""A simulated pipeline step as evidence: one timeline per rank, as a trace of the real run would show it.

Work is kernels on a compute stream. Waiting for a neighbour shows as it does in a real trace: as a send-receive kernel
that occupies the communication stream until the data is there.
"""

from __future__ import annotations

import numpy as np

from stallwise.evidence.fact import Scope, Source
from stallwise.evidence.timeline import NO_ID, Device, Kind, Lane, Timeline
from stallwise.physics.sim.pipeline import PipelineRun, Placed
from stallwise.physics.sim.program import Slot

RECEIVE = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
STEP = "ProfilerStep#0"
COMPUTE_LANE, COMM_LANE, HOST_LANE = 0, 1, 2


def timelines(run: PipelineRun, *, gpu: str = "simulated") -> list[Timeline]:
    """One per device, on a common clock."""
    return [_timeline(rank, placed, run, gpu) for rank, placed in enumerate(run.devices)]


def _name(slot: Slot) -> str:
    return " + ".join(f"{op.kind.value} microbatch {op.microbatch} stage {op.stage}" for op in slot)


def _timeline(rank: int, placed: tuple[Placed, ...], run: PipelineRun, gpu: str) -> Timeline:
    events: list[tuple[float, float, int, str, int]] = [(0.0, run.step_s, int(Kind.ANNOTATION), STEP, HOST_LANE)]
    clock = 0.0
    for item in placed:
        if item.start_s > clock:
            events.append((clock, item.start_s - clock, int(Kind.KERNEL), RECEIVE, COMM_LANE))
        events.append((item.start_s, item.end_s - item.start_s, int(Kind.KERNEL), _name(item.slot), COMPUTE_LANE))
        clock = item.end_s
    events.sort(key=lambda event: (event[0], -event[1]))
    names = list(dict.fromkeys(event[3] for event in events))
    code = {name: i for i, name in enumerate(names)}
    size = len(events)
    return Timeline(
        start_s=np.array([e[0] for e in events]),
        duration_s=np.array([e[1] for e in events]),
        kind=np.array([e[2] for e in events], dtype=np.uint8),
        name=np.array([code[e[3]] for e in events], dtype=np.int32),
        lane=np.array([e[4] for e in events], dtype=np.int32),
        correlation=np.full(size, NO_ID, dtype=np.int64),
        external=np.full(size, NO_ID, dtype=np.int64),
        size_bytes=np.full(size, np.nan),
        detail=np.full(size, NO_ID, dtype=np.int32),
        names=names,
        lanes=[Lane(True, "0", "7"), Lane(True, "0", "20"), Lane(False, str(1000 + rank), str(1000 + rank))],
        details=[],
        source=Source(f"simulated {run.program.schedule}"),
        scope=Scope(rank=rank),
        devices=[Device(0, gpu)],
        properties={"distributedInfo": {"rank": rank, "world_size": len(run.devices), "backend": "nccl"}},
    )
