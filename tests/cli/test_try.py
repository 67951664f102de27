"""`stallwise try` from outside: a real job, its table, its JSON, its exit code, what it writes and what it does not."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from stallwise.errors import BadRequest
from stallwise.surfaces.cli import main
from tests.recorder.faithful.ways import Scripts, Started

REPO = Path(__file__).parents[2]
NEEDS_TORCH = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="needs CPU PyTorch: pip install torch"
)
JOB = """
import sys, time
import torch
from torch import nn
torch.set_num_threads(1)
torch.manual_seed(0)
class Slow(torch.utils.data.Dataset):
    def __len__(self): return 400
    def __getitem__(self, at):
        time.sleep(0.004)
        return torch.full((8,), at / 400), at % 2
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for n, (x, y) in enumerate(torch.utils.data.DataLoader(Slow(), batch_size=4)):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    if n % 10 == 0: torch.save(model.state_dict(), "model.pt")
print("reached its own end", float(loss.detach()))
"""


@pytest.fixture(scope="module")
def scripts() -> Iterator[Scripts]:
    """One process for all jobs of this module, but for those that a launcher starts."""
    server = Scripts()
    yield server
    server.close()


def start(scripts: Scripts, folder: Path, *options: str) -> Started:
    (folder / "job.py").write_text(JOB)
    return scripts.start(["stallwise", "try", "-o", "out", *options, "--", "python", "job.py"], folder)


@NEEDS_TORCH
@pytest.mark.torch
@pytest.mark.slow
def test_a_slow_loader_is_proven_in_a_rehearsal(scripts: Scripts, tmp_path: Path) -> None:
    done = start(scripts, tmp_path, "--only", "last-batch-again,tf32", "--seconds", "10", "--json").wait()
    assert done.returncode == 0, done.stderr
    assert "this is a rehearsal" in done.stderr and "reached its own end" not in done.stdout
    answer = json.loads(done.stdout)
    found = {t["name"]: t for t in answer["trials"]}
    assert found["tf32"]["state"] == "not applicable"
    assert found["last-batch-again"]["state"] == "faster" and found["last-batch-again"]["ratio"] > 1.5
    assert answer["rehearsal"] and answer["held_off"]["torch.save"] > 0
    assert not (tmp_path / "model.pt").exists()
    starved = next(f for f in answer["diagnosis"]["findings"] if f["cause"] == "input-starved")
    assert starved["gain"]["basis"].startswith("measured") and starved["tried"] == "last-batch-again"
    assert starved["predicted"] is None or starved["predicted"]["high_s"] > 0
    page = CliRunner().invoke(main, ["diagnose", str(tmp_path / "out"), "-o", str(tmp_path / "r.html")])
    assert "measured" in page.output and "What was tried" in (tmp_path / "r.html").read_text()
    rows = CliRunner().invoke(main, ["accuracy", "--from-trials", str(tmp_path), "--json"])
    assert json.loads(rows.output)["compared"] >= 1


SHORT_JOB = """
import time
import torch
from torch import nn
torch.set_num_threads(1)
torch.manual_seed(0)
class Slow(torch.utils.data.Dataset):
    def __len__(self): return 320
    def __getitem__(self, at):
        time.sleep(0.01)
        return torch.full((64,), at / 320), at % 2
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 2))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
batches = iter(torch.utils.data.DataLoader(Slow(), batch_size=4))
for step in range(80):
    x, y = next(batches)
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""


@NEEDS_TORCH
@pytest.mark.torch
@pytest.mark.slow
def test_eighty_steps_are_enough_to_prove_the_verdict_first(scripts: Scripts, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SHORT_JOB)
    done = scripts.start(["stallwise", "try", "-o", "out", "--json", "--", "python", "train.py"], tmp_path).wait()
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["verdict"]["causes"][0]["cause"] == "input-starved"  # of the steps before the first trial
    made = [t for t in answer["trials"] if t["state"] != "not applicable"]
    assert made[0]["name"] == "last-batch-again" and made[0]["state"] == "faster" and made[0]["ratio_low"] > 1.5
    assert all(t["why"] for t in made[1:] if t["state"] == "not reached")
    assert {t["name"] for t in answer["trials"]} >= {"tf32", "compile", "no-collector"}  # all are listed


@NEEDS_TORCH
@pytest.mark.torch
@pytest.mark.slow
def test_run_with_proof_is_record_diagnose_and_try_in_one(scripts: Scripts, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SHORT_JOB)
    done = scripts.start(["stallwise", "run", "--prove", "-o", "out", "--", "python", "train.py"], tmp_path).wait()
    assert done.returncode == 0, done.stderr
    assert "input-starved" in done.stdout and " proves" in done.stdout  # the cell may be broken
    assert done.stdout.index("input-starved") < done.stdout.index("last-batch-again  ")  # the diagnosis, then the table
    wrong = CliRunner().invoke(main, ["run", "--prove", "--light", "--", "true"])
    assert wrong.exit_code != 0


@NEEDS_TORCH
@pytest.mark.torch
@pytest.mark.slow
def test_a_dry_run_lists_and_leaves_and_harmless_trials_let_the_job_go_on(scripts: Scripts, tmp_path: Path) -> None:
    dry = start(scripts, tmp_path, "--dry-run").wait()
    assert dry.returncode == 0 and "last-batch-again" in dry.stdout and "would be tried" in dry.stdout
    assert "there is no device to wait for" in dry.stdout and not (tmp_path / "model.pt").exists()
    kept = start(scripts, tmp_path, "--keep-training", "--seconds", "1").wait()
    assert kept.returncode == 0 and "reached its own end" in kept.stdout and "rehearsal" not in kept.stderr
    assert (tmp_path / "model.pt").exists()


@NEEDS_TORCH
@pytest.mark.torch
@pytest.mark.slow
def test_an_interrupt_undoes_and_leaves_with_the_jobs_own_code(scripts: Scripts, tmp_path: Path) -> None:
    child = start(scripts, tmp_path, "--only", "last-batch-again,no-collector", "--seconds", "60")
    until = time.monotonic() + 120
    while not (tmp_path / "out" / "trials.json").exists() and time.monotonic() < until:
        time.sleep(0.1)
    os.kill(child.pid, signal.SIGINT)  # at once: the second trial may be conclusive soon
    child.wait()
    assert child.returncode in (130, -signal.SIGINT, 1)
    found = json.loads((tmp_path / "out" / "trials.json").read_text())
    assert found["ended"] == "interrupted"


RANKS_JOB = """
import os, time
import torch
import torch.distributed as dist
from torch import nn
torch.set_num_threads(1)
dist.init_process_group("gloo")
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
x = torch.randn(8, 64)
for n in range(100000):
    loss = model(x).pow(2).mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""


@NEEDS_TORCH
@pytest.mark.torch
@pytest.mark.slow
def test_ranks_try_together_and_end_together(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(RANKS_JOB)
    env = {**os.environ, "PYTHONPATH": str(REPO / "src"), "OMP_NUM_THREADS": "1"}
    launcher = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        "2",
        "--master-port",
        "29631",
        "job.py",
    ]
    ours = [sys.executable, "-m", "stallwise", "try", "-o", "out", "--only", "no-gradient-sync,last-batch-again"]
    done = subprocess.run(
        [*ours, "--seconds", "8", "--no-trace", "--json", "--", *launcher],
        cwd=tmp_path, env=env, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads(done.stdout)
    found = {t["name"]: t for t in answer["trials"]}
    assert answer["ranks"] == 2 and answer["ended"] == "done"
    assert found["no-gradient-sync"]["pairs"] >= 4
    assert found["last-batch-again"]["state"] == "not applicable"


def test_what_cannot_be_asked_for_is_said() -> None:
    run = CliRunner()
    assert "no trial 'compil'" in str(run.invoke(main, ["try", "--only", "compil", "--", "true"]).exception)
    assert "did you mean compile" in (run.invoke(main, ["try", "--only", "compil", "--", "true"]).exception.hint)  # type: ignore[union-attr]
    assert isinstance(run.invoke(main, ["try"]).exception, BadRequest)
    assert isinstance(run.invoke(main, ["try", "--seconds", "-1", "--", "true"]).exception, BadRequest)
    nothing_left = run.invoke(main, ["try", "--keep-training", "--only", "compile", "--", "true"])
    assert isinstance(nothing_left.exception, BadRequest)
    assert isinstance(run.invoke(main, ["accuracy", "--from-trials", str(REPO / "docs")]).exception, BadRequest)


def test_every_trial_is_listed() -> None:
    listed = CliRunner().invoke(main, ["try", "--list", "--json"])
    names = [row["name"] for row in json.loads(listed.output)]
    assert {"compile", "bf16-autocast", "last-batch-again", "stale-reads", "no-gradient-sync"} <= set(names)
