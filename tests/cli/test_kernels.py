"""`stallwise kernels` ranks by time at stake and feeds the same JSON as diagnose."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from stallwise.cli.kernels import command

FIXTURES = Path(__file__).parents[1] / "fixtures" / "kernels"


def test_the_kernel_with_most_at_stake_is_the_first_row() -> None:
    done = CliRunner().invoke(command, [str(FIXTURES / "kernels_details.csv.gz")])
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[1].startswith("gemm_cuda_cores") and "tensor-cores-unused" in lines[1]
    healthy = [line for line in lines if line.startswith(("fma_bound", "stream_triad"))]
    assert all(" - " in line for line in healthy)


def test_json_lists_every_kernel() -> None:
    done = CliRunner().invoke(command, [str(FIXTURES / "extra_raw.csv.gz"), "--json"])
    kernels = json.loads(done.stdout)["kernels"]
    assert len(kernels) == 14 and kernels[0]["ranked"][0] == "register-spills"


def test_a_sweep_says_that_no_configuration_wins() -> None:
    done = CliRunner().invoke(command, [str(FIXTURES / "triton_sweep.json.gz")])
    assert "no configuration wins" in done.stdout
    assert "BLOCK_N matters most" in done.stdout
    assert "at best" in done.stdout
