"""A real job of three processes, broken in three ways: the artifacts it leaves lead to the right answer."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import Diagnosis

WORLD = 3
ODD_ONE = 1
LONG = pytest.mark.skipif(not os.environ.get("STALLWISE_FULL"), reason="waits for time-outs: set STALLWISE_FULL=1")

pytestmark = [
    pytest.mark.torch,
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch for CPU: pip install torch"),
]


def run_job(folder: Path, mode: str) -> Diagnosis:
    """Starts the ranks, waits for all of them to end, and diagnoses what lies there."""
    job = Path(__file__).parent / "gloo_job.py"
    store = folder.parent / f"{mode}.store"
    # As one runs a job that hangs: the library then says which rank is in which collective.
    environment = {**os.environ, "TORCH_DISTRIBUTED_DEBUG": "OFF" if mode == "slow" else "DETAIL"}
    ranks = []
    for rank in range(WORLD):
        with (folder / f"rank-{rank}.log").open("wb") as log:
            command = [sys.executable, str(job), str(rank), str(WORLD), mode, str(folder), str(store)]
            ranks.append(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment))
    for rank in ranks:
        rank.wait(timeout=120)
    return diagnose(str(folder), cache=False)


def test_the_slow_rank_is_named(tmp_path: Path) -> None:
    diagnosis = run_job(tmp_path, "slow")
    assert diagnosis.ranked[0] == "straggler-rank"
    assert diagnosis.findings[0].scope.rank == ODD_ONE


@LONG
def test_the_killed_rank_is_named(tmp_path: Path) -> None:
    diagnosis = run_job(tmp_path, "killed")
    assert diagnosis.ranked[0] == "rank-died-first"
    assert f"Rank {ODD_ONE} " in diagnosis.findings[0].headline


@LONG
def test_another_collective_is_a_mismatch(tmp_path: Path) -> None:
    assert run_job(tmp_path, "mismatch").ranked[0] == "collective-mismatch"
