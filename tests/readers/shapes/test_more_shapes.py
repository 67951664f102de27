"""Markup, metric pages, configuration files, rows that were printed piece by piece, tables over a clock."""

from __future__ import annotations

import numpy as np

from stallwise.doctor.reading import read_artifact
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import hardware, run
from stallwise.evidence.fact import Series, Table
from stallwise.evidence.reading import Rows
from stallwise.evidence.skeletons import skeletons_of
from stallwise.readers.shapes import delimited, shapes_in
from stallwise.readers.shapes.clock import clock_of, clocks_at
from stallwise.readers.shapes.unwrap import unwrapped


def test_markup_is_a_tree_with_units() -> None:
    text = '<?xml version="1.0"?><run id="7"><rate unit="TFLOP/s">180</rate><deep><mfu>0.4</mfu></deep></run>'
    found = {r.path: (r.value, r.unit) for r in shapes_in("x", text) if not isinstance(r, Rows)}
    assert found["run", "rate"] == (180.0, "TFLOP/s")
    assert found["run", "deep", "mfu"][0] in (0.4, "0.4")


def test_markup_that_is_cut_or_hostile() -> None:
    cut = "<run><rate>180</rate><other>3"
    assert any(r.path[-1] == "rate" for r in shapes_in("x", cut) if not isinstance(r, Rows))
    bomb = '<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><r><rate>&b;</rate></r>'
    assert list(shapes_in("x", bomb)) == []


def test_a_metric_page_is_readings_or_rows() -> None:
    one = 'a_running{m="x"} 3\na_waiting{m="x"} 30\na_usage{m="x"} 0.97\na_time_bucket{m="x",le="1"} 4\n'
    assert [(r.path[0], r.value) for r in shapes_in("x", one)] == [
        ("a_running", 3.0),
        ("a_waiting", 30.0),
        ("a_usage", 0.97),
    ]
    several = "# TYPE temp gauge\n" + "".join(
        f'temp{{gpu="{g}"}} {60 + g}\npower{{gpu="{g}"}} {300 + g}\n' for g in range(4)
    )
    (rows,) = shapes_in("x", several)
    assert isinstance(rows, Rows) and rows.columns == ("gpu", "temp", "power") and len(rows) == 4


def test_sections_of_pairs() -> None:
    found = {
        r.path: r.value
        for r in shapes_in("x", "; mine\n[expected]\nspeedup = 1.5x\n[autotune]\nconfigs = 2\nblock_k = 32\n")
    }
    assert found == {("expected", "speedup"): "1.5x", ("autotune", "configs"): "2", ("autotune", "block_k"): "32"}


def test_a_row_that_others_interrupt_is_put_together() -> None:
    nccl = "node1:77:77 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x7"
    text = (
        f"{nccl}\n   8388608   2097152   float   sum   -1{nccl}\n{nccl}\n   82.1  102.1  102.1  0{nccl}\n{nccl}\n"
        "   80.9  103.5  103.5  0\n"
    )
    rows = [x.split() for x in unwrapped(text).splitlines() if "NCCL" not in x]
    assert rows == [
        ["8388608", "2097152", "float", "sum", "-1", "82.1", "102.1", "102.1", "0", "80.9", "103.5", "103.5", "0"]
    ]


def test_a_benchmark_among_the_lines_of_its_library() -> None:
    nccl = "node1:77:77 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x7"
    head = (
        "# nThread 1 nGpus 2\n#  Rank  0 Group  0 Pid  77 on  node1 device  0 [0000:17:00] NVIDIA H100 80GB HBM3\n"
        "#  size  count  type  redop  root  time\n"
    )
    body = "".join(
        f"   {8388608 << i}   {2097152 << i}   float   sum   -1{nccl}\n   82.1  102.{i}  102.{i}  0{nccl}\n   80.9  103.5  103.5  0\n"
        for i in range(4)
    )
    _, items = read_artifact(Artifact("nccl.log", content=f"{head}{nccl}\n{body}".encode()))
    (table,) = [i for i in items if isinstance(i, Table) and i.kind == "collective.bandwidth"]
    assert len(table) == 4 and table.columns["bus_bytes_per_s"][3] == 102.3e9


def test_a_table_over_a_clock_with_broken_cells() -> None:
    text = "elapsed_sec,gpu_util_pct,mem_used_mb,power_w\n" + "".join(
        f'{i}.5,{20 + i},4000,"70.{i}\n0"\n' for i in range(9)
    )
    _, items = read_artifact(Artifact("gpu_usage.csv", content=text.encode()))
    series = {i.quantity.name: i for i in items if isinstance(i, Series)}
    assert series[run.GPU_BUSY.name].over == "time_s" and len(series[run.GPU_BUSY.name].x) == 9
    assert hardware.GPU_POWER.name in series


def test_a_log_with_bars_or_commas_is_no_table() -> None:
    log = "".join(f'2020-12-16 20:11:0{n} | INFO | train_inner | {{"loss": "12.{n}"}}\n' for n in range(9))
    assert delimited.sign_of(log) is None
    assert delimited.sign_of("".join(f"worker 1{n}, batch {n}, took {n} ms\n" for n in range(9))) is None
    assert delimited.sign_of("".join(["worker, batch, took\n", *(f"{n}, {n}, {n}\n" for n in range(9))])) == ","


def test_clocks_of_many_lines_are_those_of_each() -> None:
    lines = [f"[07/{22 + n // 30}/2026-11:{n % 60:02d}:07] iter = {n}" for n in range(60)]
    lines += [f"2026-07-2{n % 3} 10:00:{n % 60:02d}.25 step {n}" for n in range(60)] + ["no clock at all"]
    text = skeletons_of(lines)
    one_by_one = [clock_of(line) for line in lines]
    assert np.array_equal(clocks_at(text, range(len(lines))), np.array(one_by_one, dtype=float), equal_nan=True)
    assert one_by_one[0] == clock_of("2026-07-22 11:00:07")
