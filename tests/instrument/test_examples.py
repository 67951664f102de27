"""`stallwise run -- python examples/X.py` with no further argument names what is planted in X, and nothing in the healthy one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs CPU PyTorch: pip install torch")
pytestmark = [pytest.mark.torch, pytest.mark.slow]
REPO = Path(__file__).parents[2]
PLANTED = {
    "slow_loader": {"input-starved"},
    "slow_checkpoint": {"checkpoint-stall"},
    "garbage": {"python-gc-pauses"},
    "eval_in_loop": {"eval-in-loop"},
    "healthy": {"none"},
}


@pytest.mark.parametrize("name", PLANTED)
def test_the_planted_fault_is_named(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "stallwise", "run", "--json", "-o", str(tmp_path / "bundle"), "--"]
    environment = {**os.environ, "PYTHONPATH": str(REPO / "src"), "OMP_NUM_THREADS": "1"}
    script = REPO / "examples" / f"{name}.py"
    done = subprocess.run(
        [*command, sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ranked"][0] in PLANTED[name], done.stdout[:2000]
