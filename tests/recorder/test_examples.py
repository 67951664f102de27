"""`stallwise run -- python examples/X.py` with no further argument names what is planted in X, and nothing in the healthy one.

The slow loader is gone through in tests/docs/test_tutorial.py.
"""

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
    "slow_checkpoint": {"checkpoint-stall"},
    "garbage": {"python-gc-pauses"},
    "eval_in_loop": {"eval-in-loop"},
}


@pytest.mark.parametrize("name", PLANTED if os.environ.get("STALLWISE_FULL") else ["slow_checkpoint"])
def test_the_planted_fault_is_named(name: str, tmp_path: Path) -> None:
    done = recorded(name, tmp_path)
    assert json.loads(done.stdout)["ranked"][0] in PLANTED[name], done.stdout[:2000]


def recorded(name: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stallwise", "run", "--json", "-o", str(tmp_path / "bundle"), "--"]
    environment = {**os.environ, "PYTHONPATH": str(REPO / "src"), "OMP_NUM_THREADS": "1"}
    script = REPO / "examples" / f"{name}.py"
    done = subprocess.run(
        [*command, sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return done


def test_a_loop_without_a_fault_is_not_called_sick(tmp_path: Path) -> None:
    answer = json.loads(recorded("healthy", tmp_path).stdout)
    assert answer["state"] != "sick", answer["ranked"]
