"""Profiler traces of several ranks from simulated steps: kernels on one stream, NCCL on another, one clock."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from stallwise.physics.sim.pipeline import PipelineRun
from stallwise.physics.sim.program import Pass

HOST_US = 3.0  # a launch
AHEAD_US = 300.0  # how far the host runs before the device
COMPUTE, NCCL = 7, 20
MATRIX = {Pass.FORWARD: "nvjet_sm90_tst_256x128_64x4_2x1", Pass.INPUT_GRAD: "nvjet_sm90_tst_128x256_64x4_NTN"}


@dataclass
class RankTrace:
    """One rank's file in the making; times in microseconds."""

    rank: int
    world: int
    gpu: str = "NVIDIA H100 80GB HBM3"
    events: list[dict[str, Any]] = field(default_factory=list)
    ids: int = 0

    def kernel(self, name: str, start_us: float, us: float, stream: int = COMPUTE, **args: Any) -> None:
        """A kernel with its launch before it."""
        self.ids += 1
        at = max(0.0, start_us - AHEAD_US)
        both = {"correlation": self.ids, "External id": self.ids}
        self._add("cudaLaunchKernel", "cuda_runtime", at, HOST_US, 100, 100, both)
        self._add(name, "kernel", start_us, us, 0, stream, {**both, "device": 0, "stream": stream, **args})

    def collective(self, op: str, size_bytes: float, start_us: float, us: float, group: int, **more: Any) -> None:
        """An NCCL kernel with what the profiler writes beside it."""
        elements = int(size_bytes / 2)
        name = {"allreduce": "AllReduce_Sum_bf16_RING_LL", "all_to_all": "SendRecv"}.get(op, "SendRecv")
        self.kernel(
            f"ncclDevKernel_{name}(ncclDevKernelArgsStorage<4096ul>)", start_us, us, NCCL,
            **{"Collective name": op, "In msg nelems": elements, "Out msg nelems": elements, "dtype": "BFloat16",
               "Group size": group, "Process Group Name": "0", **more},
        )  # fmt: skip

    def step(self, number: int, start_us: float, us: float) -> None:
        """A step of the profiler."""
        self._add(f"ProfilerStep#{number}", "user_annotation", start_us, us, 100, 100, {})

    def _add(self, name: str, cat: str, ts: float, dur: float, pid: int, tid: int, args: dict[str, Any]) -> None:
        place = {"ts": 1e6 + ts, "dur": dur, "pid": pid, "tid": tid}
        self.events.append({"ph": "X", "cat": cat, "name": name, **place, "args": args})

    def text(self) -> str:
        """The file."""
        return json.dumps(
            {
                "schemaVersion": 1,
                "deviceProperties": [{"id": 0, "name": self.gpu, "totalGlobalMem": 85e9, "numSms": 132}],
                "distributedInfo": {"rank": self.rank, "world_size": self.world, "backend": "nccl"},
                "traceEvents": self.events,
            }
        )


def pipeline_traces(run: PipelineRun, steps: int = 3) -> list[str]:
    """One file a device of a simulated pipeline step; a receive lasts until its data is there."""
    world = len(run.devices)
    step_us, hand_us = run.step_s * 1e6, max(run.times.p2p_s * 1e6, 4.0)
    files = []
    for device, placed in enumerate(run.devices):
        trace = RankTrace(device, world)
        for number in range(steps):
            begin, free = number * (step_us + 50.0), 0.0
            for item in placed:
                start, end = item.start_s * 1e6, item.end_s * 1e6
                for op in item.slot:
                    ahead = op.kind is Pass.FORWARD
                    source, target = (device - 1, device + 1) if ahead else (device + 1, device - 1)
                    wraps = run.program.stages > world  # interleaved: the last device sends back to the first
                    if (0 <= source < world) or wraps:
                        asked = max(free, start - hand_us) if start - free < hand_us else free
                        peer = {"Src Rank": source % world}
                        trace.collective("recv", 1e7, begin + asked, max(start - asked, 2.0), 2, **peer)
                    trace.kernel(MATRIX.get(op.kind, MATRIX[Pass.INPUT_GRAD]), begin + start, end - start)
                    if (0 <= target < world) or wraps:
                        trace.collective("send", 1e7, begin + end, hand_us, 2, **{"Dst Rank": target % world})
                free = end
            # The norm of all gradients is agreed on before the optimizer: here every rank waits for the last one.
            trace.collective("allreduce", 8, begin + free, step_us - free + 20.0, world)
            trace.step(number, begin, step_us + 50.0)
        files.append(trace.text())
    return files
