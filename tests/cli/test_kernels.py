"""`stallwise kernels` ranks by time at stake and feeds the same JSON as diagnose."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from stallwise.surfaces.cli.kernels import command

FIXTURES = Path(__file__).parents[1] / "fixtures" / "kernels"


def test_the_kernel_with_most_at_stake_is_the_first_row() -> None:
    done = CliRunner().invoke(command, [str(FIXTURES / "kernels_details.csv.gz")])
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    first = next(line for above, line in zip(lines, lines[1:], strict=False) if above.startswith("kernel "))
    assert first.startswith("gemm_cuda_cores") and "tensor-cores-unused" in first
    healthy = [line for line in lines if line.startswith(("fma_bound", "stream_triad"))]
    assert healthy and all(" -  " in line for line in healthy)


def test_json_lists_every_kernel() -> None:
    done = CliRunner().invoke(command, [str(FIXTURES / "extra_raw.csv.gz"), "--json"])
    kernels = json.loads(done.stdout)["kernels"]
    assert len(kernels) == 14 and kernels[0]["ranked"][0] == "register-spills"


def test_a_sweep_says_that_no_configuration_wins() -> None:
    done = CliRunner().invoke(command, [str(FIXTURES / "triton_sweep.json.gz")])
    assert "no configuration wins" in done.stdout
    assert "BLOCK_N matters most" in done.stdout
    assert "at best" in done.stdout


ATOMIC = """==PROF== Connected to process 1
  count_one(int *, int) (8192, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 9.0
    Section: GPU Speed Of Light Throughput
    ----------------------- ----------- ------------
    Metric Name             Metric Unit Metric Value
    ----------------------- ----------- ------------
    DRAM Throughput                   %         0.02
    Duration                         ms         9.80
    L1/TEX Cache Throughput           %         2.10
    L2 Cache Throughput               %         3.40
    Compute (SM) Throughput           %         1.10
    ----------------------- ----------- ------------
    Section: Compute Workload Analysis
    -------------------- ----------- ------------
    Metric Name          Metric Unit Metric Value
    -------------------- ----------- ------------
    Issue Slots Busy               %         0.30
    SM Busy                        %         1.10
    -------------------- ----------- ------------
"""


def test_a_kernel_without_a_finding_is_not_called_healthy(tmp_path: Path) -> None:
    page = tmp_path / "ncu.txt"
    page.write_text(ATOMIC)
    shown = CliRunner().invoke(command, [str(page), "-o", str(tmp_path / "report.html")]).stdout
    assert "healthy" not in shown.lower()
    flat = " ".join(shown.split())
    assert "no counter near its ceiling: the highest is L2 at 3.4%" in flat and "That is not health" in flat
    html = (tmp_path / "report.html").read_text()
    assert "healthy" not in html.split("<main")[-1].lower() and "no counter near its ceiling" in html
    told = json.loads(CliRunner().invoke(command, [str(page), "--json"]).stdout)["kernels"][0]
    assert told["ranked"] == [] and told["without_finding"]["state"] == "no counter near its ceiling"


def test_a_kernel_that_was_only_timed_says_so(tmp_path: Path) -> None:
    table = tmp_path / "kern_sum.csv"
    table.write_text(
        "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
        "99.0,990000,10,99000,99000,98000,100000,10,copy_kernel\n1.0,10000,10,1000,1000,900,1100,10,tiny\n"
    )
    shown = CliRunner().invoke(command, [str(table)]).stdout
    assert "only timed" in shown and "healthy" not in shown.lower()
