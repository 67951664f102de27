"""Real jobs on CPU PyTorch: they end exactly as without us, and their records are whole up to the last second."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.recorder.faithful.ways import Scripts, Started

from stallwise.doctor.live import load, look
from stallwise.readers.records.rank_record import RankRecord, parse

pytest.importorskip("torch", reason="needs CPU PyTorch: pip install torch")
pytestmark = [pytest.mark.torch, pytest.mark.slow]

SOURCE = str(Path(__file__).parents[2] / "src")
LOOP = """
import os, sys, time, torch
from torch import nn
torch.set_num_threads(1)
steps = int(os.environ.get("STEPS", "14"))
class Data(torch.utils.data.Dataset):
    def __len__(self): return steps * 8
    def __getitem__(self, i): return torch.randn(16), i % 4
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.AdamW(model.parameters())
workers = int(os.environ.get("WORKERS", "0"))
for x, y in torch.utils.data.DataLoader(Data(), batch_size=8, num_workers=workers):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    time.sleep(float(os.environ.get("PAUSE", "0")))
print("last loss finite", bool(torch.isfinite(loss)))
sys.exit(int(os.environ.get("CODE", "0")))
"""
RANKS = """
import os, sys, time, torch, torch.distributed as dist
from torch import nn
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(nn.Linear(8, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.utils.data.TensorDataset(torch.randn(240, 8), torch.randint(0, 4, (240,)))
for step, (x, y) in enumerate(torch.utils.data.DataLoader(data, batch_size=8)):
    if rank == 1 and os.environ.get("FAULT") == "slow":
        time.sleep(0.15)  # more than a busy machine takes from a process now and then
    if os.environ.get("FAULT") == "kill":
        time.sleep(0.1)
    if rank == 1 and os.environ.get("FAULT") == "kill" and step == 20:
        os.kill(os.getpid(), 9)
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def scripts() -> Iterator[Scripts]:
    """One process for all jobs of this module, but for those that a launcher starts."""
    server = Scripts()
    yield server
    server.close()


def start(scripts: Scripts, tmp_path: Path, code: str, *options: str, **env: str) -> Started:
    (tmp_path / "train.py").write_text(code)
    command = ["stallwise", "record", "-o", str(tmp_path / "bundle"), *options, "--", "python", "train.py"]
    return scripts.start(command, tmp_path, **env)


def record_of(tmp_path: Path, rank: int = 0) -> RankRecord:
    return parse((tmp_path / "bundle" / f"rank-{rank:05d}.jsonl").read_text().splitlines())


def test_a_plain_loop_is_recorded_and_its_exit_code_kept(scripts: Scripts, tmp_path: Path) -> None:
    job = start(scripts, tmp_path, LOOP, "--steps", "5:6", CODE="7")
    assert job.wait().returncode == 7 and "last loss finite True" in job.stdout
    record = record_of(tmp_path)
    assert record.step == list(range(14)) and record.ended == "exit" and record.lost_lines == 0
    for stage in ("batch_wait", "forward", "backward", "optimizer"):
        assert (record.stage(stage)[2:] > 0).all(), stage
    assert (tmp_path / "bundle" / "rank-00000" / "trace_full.json.gz").stat().st_size > 1000
    assert "last loss finite" in (tmp_path / "bundle" / "log.txt").read_text()
    assert json.loads((tmp_path / "bundle" / "bundle.json").read_text())["stallwise_bundle"] == 2


def test_loader_workers_by_fork_leave_one_clean_record(scripts: Scripts, tmp_path: Path) -> None:
    job = start(scripts, tmp_path, LOOP, "--light", WORKERS="2")
    assert job.wait().returncode == 0
    assert record_of(tmp_path).step == list(range(14))
    assert sorted(p.name for p in (tmp_path / "bundle").glob("*.jsonl")) == ["processes.jsonl", "rank-00000.jsonl"]


def test_sigterm_ends_the_job_as_ever_and_loses_at_most_a_second(scripts: Scripts, tmp_path: Path) -> None:
    job = start(scripts, tmp_path, LOOP, "--light", STEPS="10000", PAUSE="0.02")
    file = tmp_path / "bundle" / "rank-00000.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not file.exists() or file.read_text().count('"step"') < 20):
        time.sleep(0.1)
    killed_at = time.time()
    os.kill(job.pid, signal.SIGTERM)
    assert job.wait().returncode == -signal.SIGTERM
    record = record_of(tmp_path)
    assert record.ended == "" and killed_at - record.time_s[-1] < 1.0


def test_an_unwritable_folder_changes_nothing_for_the_job(scripts: Scripts, tmp_path: Path) -> None:
    (tmp_path / "bundle").write_text("a file where the folder should be")
    job = start(scripts, tmp_path, LOOP, "--light", CODE="3").wait()
    assert job.returncode == 3 and "last loss finite True" in job.stdout
    assert "the job goes on" in job.stderr


def test_a_crash_of_the_job_is_the_jobs_own(scripts: Scripts, tmp_path: Path) -> None:
    job = start(scripts, tmp_path, LOOP.replace("sys.exit(", "raise RuntimeError('boom')  # "), "--light")
    plain = scripts.run(["python", "train.py"], tmp_path)
    assert job.wait().returncode == plain.returncode == 1


def ranks(tmp_path: Path, count: int, fault: str) -> subprocess.Popen[str]:
    script = tmp_path / "train.py"
    script.write_text(RANKS)
    command = [sys.executable, "-m", "stallwise", "record", "--light", "-o", str(tmp_path / "bundle"), "--"]
    launcher = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        str(count),
        str(script),
    ]
    environment = {**os.environ, "PYTHONPATH": SOURCE, "FAULT": fault, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [*command, *launcher], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_a_slow_rank_among_two_is_named_with_its_stage(tmp_path: Path) -> None:
    job = ranks(tmp_path, 2, "slow")
    _, said = job.communicate(timeout=180)
    assert job.returncode == 0, said[-3000:]
    view = look(load(tmp_path / "bundle"))
    assert view.ranks == 2 and view.late is not None
    assert view.late.rank == 1 and view.late.stage == "side"
    assert 0.1 < view.late.seconds < 0.3


def test_a_killed_rank_among_four_leaves_its_last_step(tmp_path: Path) -> None:
    job = ranks(tmp_path, 4, "kill")
    job.communicate(timeout=180)
    assert job.returncode != 0
    records = load(tmp_path / "bundle")
    assert sorted(r.rank for r in records) == [0, 1, 2, 3]
    dead = next(r for r in records if r.rank == 1)
    assert dead.ended == "" and 10 <= dead.step[-1] <= 20  # two seconds in, at most the last one is lost


TRAINER = """
import torch
from torch import nn
from types import SimpleNamespace
from stallwise.recorder.callbacks.hf import StallwiseCallback
torch.set_num_threads(1)
callback = StallwiseCallback("bundle")
state, model = SimpleNamespace(global_step=0, epoch=0.0), nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.utils.data.TensorDataset(torch.randn(96, 16), torch.randint(0, 4, (96,)))
callback.on_train_begin(None, state, None)          # the calls that a Trainer makes, in its order
callback.on_epoch_begin(None, state, None)
for x, y in torch.utils.data.DataLoader(data, batch_size=8):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    state.global_step += 1
    if state.global_step % 4 == 0:
        callback.on_log(None, state, None, logs={"loss": float(loss), "learning_rate": 0.1})
    if state.global_step == 8:
        callback.on_save(None, state, None)
callback.on_train_end(None, state, None)
"""


def test_a_trainers_callback_records_stages_marks_and_numbers(scripts: Scripts, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINER)
    done = scripts.run(["python", "train.py"], tmp_path)
    assert done.returncode == 0, done.stderr
    record = record_of(tmp_path)
    assert record.step == list(range(12)) and record.ended == "exit"
    assert ("save", "global step 8") in [(name, note) for _, name, note in record.marks]
    assert any("loss" in gauges for gauges in record.gauges)
    assert (record.stage("backward")[1:] > 0).all()


def test_a_full_disk_changes_nothing_for_the_job(scripts: Scripts, tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / "rank-00000.jsonl").symlink_to("/dev/full")
    job = start(scripts, tmp_path, LOOP, "--light", CODE="5", PAUSE="0.1", RANK="0", WORLD_SIZE="1").wait()
    assert job.returncode == 5 and "last loss finite True" in job.stdout
    assert job.stderr.count("recording stopped") == 1
