"""One rank of a small real job on CPU (gloo) that may be slow, die, or call another collective than its peers.

python gloo_job.py RANK WORLD MODE FOLDER STORE        MODE: slow, killed, mismatch or well
"""

from __future__ import annotations

import os
import signal
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, schedule

ODD_ONE = 1
STEPS = 7
LOST_S = 0.06


def main(rank: int, world: int, mode: str, folder: str, store: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=world, timeout=timedelta(seconds=10)
    )
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def export(profiler: profile) -> None:
        profiler.export_chrome_trace(f"{folder}/rank{rank}.json.gz")

    plan = schedule(wait=1, warmup=1, active=STEPS - 2)
    with profile(
        activities=[ProfilerActivity.CPU], schedule=plan, on_trace_ready=export, record_shapes=True
    ) as profiler:
        for step in range(STEPS):
            print(f"rank {rank} step {step}", flush=True)
            batch = torch.randn(64, 256)
            if rank == ODD_ONE and mode == "slow":
                time.sleep(LOST_S)
            if rank == ODD_ONE and mode == "killed" and step == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            model(batch).sum().backward()
            for parameter in model.parameters():
                assert parameter.grad is not None
                if rank == ODD_ONE and mode == "mismatch" and step == 3:
                    dist.broadcast(parameter.grad, src=0)
                else:
                    dist.all_reduce(parameter.grad)
            optimizer.step()
            optimizer.zero_grad()
            profiler.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5])
