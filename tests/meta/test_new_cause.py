"""`make new-cause` writes a pair that works before it is finished; `make rename-cause` moves one with everything that names it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOLD = "torch.compile recompiles every step because the shapes change"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What the two scripts touch of this repository."""
    leave = shutil.ignore_patterns("__pycache__")
    for folder in (".ci", "src"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=leave)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


def run(clone: Path, *words: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(clone / "src"), "STALLWISE_CACHE": "off"}
    done = subprocess.run([sys.executable, *words], cwd=clone, capture_output=True, text=True, env=env)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout + done.stderr


def test_a_new_cause_is_listed_explained_and_judged_at_once(clone: Path) -> None:
    run(clone, ".ci/new_cause.py", "late-gather", "distributed")
    assert "late-gather" in run(clone, "-m", "stallwise", "causes", "--family", "distributed")
    assert "## What else looks so" in run(clone, "-m", "stallwise", "explain", "late-gather")
    found = run(clone, "-m", "stallwise", "diagnose", "--json", "--fact", "run.data_share=0.6")
    assert '"late-gather"' in found
    assert "is there already" in run(clone, ".ci/new_cause.py", "late-gather", "distributed")
    assert "is no family" in run(clone, ".ci/new_cause.py", "late-gather", "nowhere")


@pytest.mark.parametrize(("old", "new"), [("straggler-rank", "slow-rank"), ("recompilation", "shape-changes")])
def test_a_renamed_cause_is_recognised_under_its_new_name(clone: Path, old: str, new: str) -> None:
    run(clone, ".ci/rename_cause.py", old, new)
    run(clone, ".ci/index.py")
    told = TOLD if old == "recompilation" else "one rank is slower than the others, which wait for it in the all-reduce"
    found = run(clone, "-m", "stallwise", "diagnose", "--json", told)
    assert f'"{new}"' in found and f'"{old}"' not in found
    names = [p.stem for p in (clone / "src" / "stallwise" / "causes").glob("*/*.*")]
    assert new.replace("-", "_") in names and old.replace("-", "_") not in names
