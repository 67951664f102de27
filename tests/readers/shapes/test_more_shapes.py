"""Markup, metric pages, configuration files, rows that were printed piece by piece, tables over a clock."""

from __future__ import annotations

import numpy as np
import pytest

from stallwise.doctor.measures import spread
from stallwise.doctor.reading import read_artifact
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import hardware, run
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Series, Table
from stallwise.evidence.reading import Rows
from stallwise.evidence.skeletons import skeletons_of
from stallwise.readers.shapes import delimited, keyed, shapes_in
from stallwise.readers.shapes.clock import clock_of, clocks_at
from stallwise.readers.shapes.unwrap import plain
from stallwise.readers.text.understand import understand


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
    rows = [x.split() for x in plain(Artifact("x.log", content=text.encode())).lines() if "NCCL" not in x]
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
    requests = "".join(f"<- {n} tokens [prefill: {n} tok/s, decode: 3 tok/s]\nloaded, ready\n" for n in range(9))
    assert delimited.sign_of(f"server 1.2, quiet\n{requests}") is None
    assert delimited.sign_of("".join(["worker, batch, took\n", *(f"{n}, {n}, {n}\n" for n in range(9))])) == ","


def test_clocks_of_many_lines_are_those_of_each() -> None:
    lines = [f"[07/{22 + n // 30}/2026-11:{n % 60:02d}:07] iter = {n}" for n in range(60)]
    lines += [f"2026-07-2{n % 3} 10:00:{n % 60:02d}.25 step {n}" for n in range(60)] + ["no clock at all"]
    text = skeletons_of(lines)
    one_by_one = [clock_of(line) for line in lines]
    assert np.array_equal(clocks_at(text, range(len(lines))), np.array(one_by_one, dtype=float), equal_nan=True)
    assert one_by_one[0] == clock_of("2026-07-22 11:00:07")


def test_the_heading_of_a_line_says_what_its_keys_are_of() -> None:
    found = list(keyed.pairs_in("Memory info: current: 0.18 GB, peak: 61.2 GB", "line 1"))
    assert [(r.path, r.value, r.unit) for r in found] == [
        (("Memory info", "current"), 0.18, "GB"), (("Memory info", "peak"), 61.2, "GB"),
    ]  # fmt: skip
    assert [r.path for r in keyed.pairs_in("loss: 2.1, lr: 0.1", "line 1")] == [("loss",), ("lr",)]


@pytest.mark.parametrize(
    ("line", "quantity", "value"),
    [
        ("KV cache: usage: 93 %, hit rate: 4 %", "serve.kv_max", 0.93),  # and not the card's
        ("Timing (ms): data: 812, forward: 91", "stage.forward", 0.091),
        ("TTFT: mean: 4200 ms, p99: 9800 ms", "serve.ttft_tail", 9.8),
    ],
)
def test_keys_are_named_with_their_heading(line: str, quantity: str, value: float) -> None:
    found = understand(keyed.pairs_in(line, "line 1"), line, "x.txt", written=True)
    assert [f.value for f in found.facts if f.quantity.name == quantity] == [pytest.approx(value)]
    assert not any(f.quantity.name == "run.gpu_busy" for f in found.facts)


@pytest.mark.parametrize(
    ("name", "text", "columns", "last"),
    [
        ("x.txt", "tokens per EP rank: [120, 910, 118, 125]\n", ("EP rank", "tokens"), 125.0),
        ("x.txt", "step time by rank (ms) = [410, 412, 980]\n", ("rank", "step time (ms)"), 980.0),
        ("x.json", '{"routing": {"tokens_per_expert": [7, 9, 800]}}', ("expert", "tokens"), 800.0),
    ],
)
def test_a_list_over_places_is_a_table_of_them(name: str, text: str, columns: tuple[str, str], last: float) -> None:
    (rows,) = [shape for shape in shapes_in(name, text) if isinstance(shape, Rows)]
    assert rows.columns == columns
    assert [cells[-1] for cells in rows.cells] == [len(rows) - 1.0, last]


@pytest.mark.parametrize("text", ["shape: [4, 8, 16]\n", "tokens per second: [4, 8, 16]\n"])
def test_other_lists_are_no_tables_of_places(text: str) -> None:
    assert not [shape for shape in shapes_in("x.txt", text) if isinstance(shape, Rows)]


def test_the_one_that_a_list_shows_behind_is_named() -> None:
    even = "Training on 8 ranks.\nstep time by rank (ms): [410, 412, 409, 411, 411, 413, 410, 412]\n"
    for text, ratio in ((even, []), (even.replace("413", "980"), [pytest.approx(2.38, rel=0.01)])):
        _, items = read_artifact(Artifact("mail.txt", content=text.encode()))
        evidence = Evidence()
        evidence.add(items)
        found = [item for item in spread.from_evidence(evidence) if item.quantity.name == "slow_rank_ratio"]
        assert [fact.value for fact in found] == ratio
