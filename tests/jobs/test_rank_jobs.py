"""Real jobs of several ranks with one planted fault: their traces and their records name it, and what it costs."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.render.json import to_dict
from tests.jobs.planted import LONG, MICROBATCHES, SLOW, TOKEN_S

JOB = Path(__file__).with_name("ranks_job.py")
PASSES_S = 3 * TOKEN_S  # forward and backward of one microbatch
EXTRA_S = (SLOW - 1) * PASSES_S * MICROBATCHES  # on a slow rank or stage, a step

pytestmark = [
    pytest.mark.torch,
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch for CPU: pip install torch"),
]


def run(folder: Path, ranks: int, stages: int, fault: str, style: str, *, recorded: bool = False) -> Diagnosis:
    """Starts the job, traced by itself or recorded by us, and diagnoses what it leaves."""
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    job = [*launch, str(JOB), "-" if recorded else str(folder), str(stages), fault, style, "24" if recorded else "12"]
    ours = [sys.executable, "-m", "stallwise", "record", "--light", "-o", str(folder), "--"] if recorded else []
    done = subprocess.run([*ours, *job], env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return diagnose(str(folder), cache=False)


def cost_s(found: Diagnosis, kind: str) -> float:
    return next(f["cost_s"] for f in to_dict(found)["job"]["faults"] if f["kind"] == kind)


def test_traces_of_a_pipeline_name_its_slow_rank(tmp_path: Path) -> None:
    """Schedule of the library: passes have no names, hand-offs part them."""
    found = run(tmp_path, 4, 2, "worker", "library")
    assert found.ranked[0] == "straggler-rank"
    assert "rank 3 (pipeline stage 1)" in found.findings[0].headline
    assert abs(to_dict(found)["job"]["replay_error"]) < 0.05
    assert cost_s(found, "worker") == pytest.approx(EXTRA_S, rel=0.2)


def test_traces_of_a_pipeline_name_its_long_stage(tmp_path: Path) -> None:
    found = run(tmp_path, 4, 2, "stage", "spans")
    assert found.ranked[0] == "pipeline-stage-imbalance"
    assert "stage 1" in found.findings[0].headline
    assert cost_s(found, "stage") == pytest.approx(EXTRA_S, rel=0.2)


def test_traces_of_a_pipeline_show_long_sequences(tmp_path: Path) -> None:
    found = run(tmp_path, 4, 2, "sequence", "plain")
    assert found.ranked[0] == "sequence-length-imbalance"
    # Two stages: what the one computes longer than the other computes at the same time is waited for.
    bound = sum(abs(x - 1) for x in LONG) * PASSES_S
    assert 0.25 * bound < cost_s(found, "sequence") < bound


@pytest.mark.parametrize("style", ["plain", "ddp"])
def test_records_of_replicas_name_the_slow_rank(tmp_path: Path, style: str) -> None:
    """Gradients are exchanged after the backward pass, or inside of it, where the wait hides."""
    found = run(tmp_path, 3, 1, "worker", style, recorded=True)
    assert (found.ranked[0], found.findings[0].scope.rank) == ("straggler-rank", 2)
    assert cost_s(found, "worker") == pytest.approx(EXTRA_S, rel=0.2)
