"""Real recorded jobs: the answer names the line of the user's that holds the time, in the loop's process and in its workers'."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs CPU PyTorch: pip install torch")
pytestmark = [pytest.mark.torch, pytest.mark.slow]
SOURCE = str(Path(__file__).parents[2] / "src")

LOADER = """
import os, time, torch
torch.set_num_threads(1)
class Pictures(torch.utils.data.Dataset):
    def __len__(self): return 1200
    def __getitem__(self, i):
        time.sleep(0.006)  # the line
        return torch.randn(32), i % 4
model = torch.nn.Linear(32, 4)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x, y in torch.utils.data.DataLoader(Pictures(), batch_size=16, num_workers=int(os.environ["WORKERS"])):
    loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""
BESIDE = """
import time, torch
torch.set_num_threads(1)
model = torch.nn.Linear(32, 4)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
def report(loss):
    text = ""
    for i in range(40):
        time.sleep(0.001)  # the line
    return text
for step in range(120):
    loss = torch.nn.functional.cross_entropy(model(torch.randn(16, 32)), torch.randint(0, 4, (16,)))
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    report(loss)
"""


def first_finding(script: str, folder: Path, **environment: str) -> dict[str, Any]:
    (folder / "train.py").write_text(script)
    command = [sys.executable, "-m", "stallwise", "run", "--json", "-o", "bundle", "--", sys.executable, "train.py"]
    env = {**os.environ, "PYTHONPATH": SOURCE, "OMP_NUM_THREADS": "1", **environment}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=240)
    assert done.returncode in (0, 1), done.stderr
    return dict(json.loads(done.stdout)["findings"][0])


def line_of(script: str) -> int:
    return next(n for n, text in enumerate(script.splitlines(), 1) if "# the line" in text)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_slow_sample_is_a_line_in_the_process_that_makes_it(workers: str, tmp_path: Path) -> None:
    found = first_finding(LOADER, tmp_path, WORKERS=workers)
    assert found["cause"] == "input-starved"
    line = found["code_line"]
    assert (line["file"], line["line"], line["share"] > 0.8) == ("train.py", line_of(LOADER), True), line
    assert line["function"].endswith("__getitem__")
    place = f"train.py:{line['line']}"
    assert place in found["headline"] and place in found["fixes"][0]["action"]


def test_work_beside_the_stages_is_a_line_too(tmp_path: Path) -> None:
    found = first_finding(BESIDE, tmp_path)
    assert found["cause"] == "host-work-unattributed"
    assert found["code_line"]["line"] == line_of(BESIDE), found["code_line"]


CYCLES = """
import gc, torch
torch.set_num_threads(1)
gc.set_threshold(700, 2, 2)
def cycle():
    x = []; x.append(x); return x  # the line
model = torch.nn.Linear(32, 4)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
kept = [[i] for i in range(200_000)]
loader = torch.utils.data.DataLoader([torch.randn(32)] * 3200, batch_size=16, pin_memory=False)
for x in loader:
    loss = model(x).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    trees = [cycle() for _ in range(3000)]
    marks = sorted(range(100))
"""


def test_a_collection_stands_at_the_line_that_allocates(tmp_path: Path) -> None:
    """No sampler can look while garbage is collected."""
    found = first_finding(CYCLES, tmp_path)
    assert found["cause"] == "python-gc-pauses", found["headline"]
    assert found["code_line"]["line"] == line_of(CYCLES) and found["code_line"]["share"] > 0.5, found["code_line"]


RECOMPILES = """
import torch
torch.set_num_threads(1)
model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(6)])
torch._dynamo.config.recompile_limit = torch._dynamo.config.cache_size_limit = 1000
net = torch.compile(model, backend="aot_eager", dynamic=False)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(60):
    loss = net(torch.randn(16 + step, 64)).square().mean()  # the line
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""


def test_a_shape_that_changes_is_a_recompilation_at_the_call(tmp_path: Path) -> None:
    found = first_finding(RECOMPILES, tmp_path)
    assert found["cause"] == "recompilation", found["headline"]
    assert found["code_line"]["line"] == line_of(RECOMPILES), found["code_line"]


LEAK = """
import torch
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
losses = []
for step in range(400):
    x, y = torch.randn(256, 256), torch.randint(0, 10, (256,))
    loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    losses.append({kept} + loss)  # the line
"""


def test_memory_that_grows_is_a_leak_at_the_line_that_keeps_it(tmp_path: Path) -> None:
    """The script is here, so its own line joins: what is kept holds the whole batch."""
    script = LEAK.replace("{kept}", "x.repeat(4, 1).sum(1).mean() * 0 + (x.repeat(4, 1) * loss).mean()")
    found = first_finding(script, tmp_path)
    assert found["cause"] == "memory-leak", found["headline"]
    assert (found["code_line"]["file"], found["code_line"]["line"]) == ("train.py", line_of(script))
    assert "MB a step" in " ".join(reason["text"] for reason in found["because"])
