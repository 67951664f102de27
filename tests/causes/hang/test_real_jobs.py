"""Real jobs of two processes over gloo: one slow, one killed, one in another collective; the artifacts they leave."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import Diagnosis

pytest.importorskip("torch", reason="real jobs need CPU PyTorch")
pytestmark = [pytest.mark.torch, pytest.mark.slow]

JOB = """
import datetime, faulthandler, os, signal, time
import torch, torch.distributed as dist

rank, fault = int(os.environ["RANK"]), os.environ["FAULT"]
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=6))


def read_batch(step):
    if fault == "slow" and rank == 1 and step == 3:
        time.sleep(4)


def save():
    dist.barrier()


def train():
    gradient = torch.ones(1024)
    for step in range(6):
        if step == 3:
            faulthandler.dump_traceback_later(2, file=stacks)
        read_batch(step)
        if fault == "killed" and rank == 1 and step == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "mismatch" and rank == 1 and step == 3:
            save()
        dist.all_reduce(gradient)
        print(f"[rank {rank}] step {step} done", flush=True)


stacks = open(os.environ["STACKS"], "w")
train()
"""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def run(folder: Path, fault: str) -> Diagnosis:
    (folder / "train.py").write_text(JOB)
    artifacts = folder / "artifacts"
    artifacts.mkdir()
    port, ranks = str(free_port()), []
    for rank in range(2):
        environment = {
            **os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "FAULT": fault,
            "STACKS": str(artifacts / f"rank{rank}_stack.txt"), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo",
        }  # fmt: skip
        with (artifacts / f"rank{rank}.log").open("wb") as log:
            ranks.append(
                subprocess.Popen([sys.executable, "train.py"], cwd=folder, env=environment, stdout=log, stderr=log)
            )
    for process in ranks:
        process.wait(timeout=120)
    return diagnose(str(artifacts))


def test_a_slow_rank_is_named_with_what_it_does(tmp_path: Path) -> None:
    found = run(tmp_path, "slow")
    assert found.ranked[0] == "straggler-rank"
    assert "rank 1" in found.findings[0].headline and "read_batch" in str(found.findings[0].because)


def test_a_killed_rank_is_the_cause_not_the_error_of_its_peer(tmp_path: Path) -> None:
    assert run(tmp_path, "killed").ranked[0] == "rank-died-first"


def test_another_collective_is_named_with_both_lines(tmp_path: Path) -> None:
    found = run(tmp_path, "mismatch")
    assert found.ranked[0] == "collective-mismatch"
    assert "save" in str(found.findings[0].because)
