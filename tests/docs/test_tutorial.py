"""The tutorial as a stranger goes through it: its commands as written, in order, in one folder; and the fix is measured at the end."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from stallwise.surfaces.cli import main
from tests.docs.blocks import REPO, blocks

pytest.importorskip("torch", reason="needs CPU PyTorch: pip install torch")
pytestmark = [pytest.mark.torch, pytest.mark.slow]
PAGE = REPO / "docs" / "tutorial.md"


def commands() -> list[str]:
    """Every line of every `sh` block, in order."""
    return [line for file, _, body in blocks("sh") if file == PAGE for line in body.splitlines() if line.strip()]


def found_in(printed: str) -> str:
    """The finding, as far as its reasons."""
    return printed[printed.index("FOUND") : printed.index("\nwhy ")]


def test_three_commands_lead_from_a_slow_script_to_a_measured_fix(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(REPO / "examples")
    written = commands()
    assert [line.split()[:2] for line in written if line.startswith("stallwise")][:3] == [
        ["stallwise", "run"], ["stallwise", "try"], ["stallwise", "diagnose"],
    ]  # fmt: skip
    path = os.pathsep.join(
        [str(Path(sys.executable).parent), os.environ["PATH"]]
    )  # `python` and `stallwise` of this environment
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(REPO / "src"), "NO_COLOR": "1", "OMP_NUM_THREADS": "1"}
    said = {}
    for line in written:
        done = subprocess.run(["bash", "-c", line], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, (line, done.stderr[-3000:])
        said[line] = done.stdout
    run, tried, diagnosed, _, fixed, compared = said.values()
    assert "input-starved" in found_in(run)
    assert re.search(r"last-batch-again .*faster", " ".join(tried.split()))
    assert "input-starved" in found_in(diagnosed) and "measured" in diagnosed
    assert fixed and "faster" in compared
    answer = json.loads((tmp_path / "tried" / "trials.json").read_text())
    gain = answer["trials"][0]
    assert gain["name"] == "last-batch-again" and gain["ratio_low"] > 1.2
    page = CliRunner().invoke(main, ["diagnose", str(tmp_path / "slow"), "--json"])
    assert json.loads(page.output)["ranked"][0] == "input-starved"
