"""Profiles of sums and samples: top by own time, host against device, what kind of work; what is cut, mixed or foreign is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stallwise.doctor.findings.diagnosis import State
from stallwise.errors import StallwiseError
from tests.own_subject.asked import asked, words

CPROFILE = """         117224936 function calls (113074936 primitive calls) in 133.969 seconds

   Ordered by: cumulative time

   ncalls  tottime  percall  cumtime  percall filename:lineno(function)
     1000    0.118    0.000  133.968    0.134 /home/me/agent/loop.py:35(step)
     2000   57.262    0.029   57.262    0.029 {method 'run_backward' of 'torch._C._EngineBase' objects}
418000/3000    1.122    0.000   53.128    0.018 /opt/torch/nn/modules/module.py:1124(_call_impl)
   128000   16.362    0.000   18.541    0.000 /home/me/agent/env.py:4(occupancy)
    52000    9.145    0.000    9.145    0.000 {built-in method torch.lstm}
"""


def test_functions_are_told_by_their_own_time_and_by_kind(tmp_path: Path) -> None:
    answer = asked(tmp_path, "profile.txt", CPROFILE)
    said = words(answer)
    assert answer.state is State.UNCLEAR
    assert "run_backward: 57.3 s of 134.0 s (43%)" in said and "env.py:4(occupancy) 16.4 s (12.2%, 128,000x)" in said
    assert "backward 57.3 s (43%)" in said and "forward 53.1 s (40%)" in said
    assert "all_reduce_perf" not in said and "GPU did meanwhile is not in this file" in said


def operators(
    rows: list[tuple[str, float, float, float, int]], cpu_ms: float, cuda_ms: float, sums: bool = True
) -> str:
    rule = "  ".join(["-" * 55] + ["-" * 12] * 10)
    titles = ("Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "Self CUDA", "Self CUDA %", "CUDA total",
              "CUDA time avg", "# of Calls")  # fmt: skip
    lines = [rule, "  ".join(t.rjust(55 if t == "Name" else 12) for t in titles), rule]
    for name, own, held, cuda, calls in rows:
        cells = (f"{own / cpu_ms:.2%}", f"{own:.3f}ms", f"{held / cpu_ms:.2%}", f"{held:.3f}ms", f"{held / calls:.3f}ms", f"{cuda:.3f}ms",
                 f"{cuda / cuda_ms:.2%}", f"{cuda:.3f}ms", f"{cuda / calls:.3f}ms", str(calls))  # fmt: skip
        lines.append("  ".join([name.rjust(55), *(c.rjust(12) for c in cells)]))
    end = f"Self CPU time total: {cpu_ms:.3f}ms\nSelf CUDA time total: {cuda_ms:.3f}ms\n" if sums else ""
    return "\n".join([*lines, rule, end])


FP32 = [
    ("aten::mm", 6.3, 18.9, 107.7, 180),
    ("ampere_sgemm_128x64_tn", 0.0, 0.0, 107.6, 180),
    ("aten::mul", 3.6, 15.0, 3.2, 264),
]


def test_fp32_products_of_a_busy_device_are_named(tmp_path: Path) -> None:
    answer = asked(tmp_path, "table.txt", operators(FP32, 160.0, 124.2))
    said = words(answer)
    assert answer.state is State.SICK and answer.ranked[0] == "tensor-cores-unused"
    assert "ampere_sgemm_128x64_tn 107.6 ms (86.6%, 180x)" in said and "124.2 ms of the device" in said


def test_no_kernel_leads_where_the_device_waits(tmp_path: Path) -> None:
    rows = [("cudaLaunchKernel", 490.0, 490.0, 0.001, 5000), *FP32]
    answer = asked(tmp_path, "table.txt", operators(rows, 1400.0, 124.2))
    assert answer.state is State.UNCLEAR and "cudaLaunchKernel: 490.0 ms" in words(answer)


def test_a_loader_with_a_name_cut_short_is_a_loader(tmp_path: Path) -> None:
    rows = [("enumerate(DataLoader)#_SingleProcessDataLoaderIter._...", 88.0, 178.0, 0.0, 1), ("aten::select", 61.0, 71.0, 0.0, 24612),
            ("aten::bmm", 0.6, 1.0, 21.9, 24)]  # fmt: skip
    answer = asked(tmp_path, "table.txt", operators(rows, 398.5, 217.7))
    assert answer.ranked[0] == "input-starved" and "data loading 178.0 ms (45%)" in words(answer)


def test_two_tables_of_one_profile_are_one_and_single_events_add_up(tmp_path: Path) -> None:
    twice = operators(FP32, 160.0, 124.2) + "\n" + operators(FP32[::-1], 160.0, 124.2)
    assert words(asked(tmp_path, "table.txt", twice)).count("of the device, 78%") == 1
    loader = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter..."
    events = operators(
        [(loader, 600.0, 600.0, 0.0, 1) for _ in range(12)] + [("aten::mm", 5.0, 5.0, 5.0, 9)], 8000.0, 900.0
    )
    answer = asked(tmp_path, "bottleneck.txt", CPROFILE + "\n" + events)
    assert "data loading 7.20 s (90%)" in words(answer) and "run_backward" in words(answer)


def test_a_table_that_ends_early_is_said_to(tmp_path: Path) -> None:
    answer = asked(tmp_path, "table.txt", operators(FP32[2:], 400.0, 20.0, sums=False))
    assert answer.state is not State.HEALTHY and "may end inside the table" in words(answer)


PYINSTRUMENT = """
  _     ._   __/__   _ _  _  _ _/_   Recorded: 10:15:00  Samples:  1234
 /_//_/// /_\\ / //_// / //_'/ //     Duration: 5.678     CPU time: 4.501
/   _/                      v4.6.2

Program: train.py

5.678 <module>  train.py:1
├─ 3.200 tokenize  data.py:20
│  └─ 0.700 encode  tokenizer.py:9
└─ 2.100 backward  torch/_tensor.py:500
"""


def test_a_tree_of_frames(tmp_path: Path) -> None:
    said = words(asked(tmp_path, "pyinstrument.txt", PYINSTRUMENT))
    assert "data.py:20 tokenize: 2.50 s of 5.68 s (44%)" in said and "_tensor.py:500 backward 2.10 s (37.0%)" in said


def speedscope(main: float, worker: float) -> dict[str, Any]:
    frames = [
        {"name": "join", "file": "/py/threading.py", "line": 1095},
        {"name": "merge", "file": "/app/bpe.py", "line": 7},
    ]
    threads = [("MainThread", [[1, 0], [1]], [0.84 * main, 0.16 * main]), ("Thread-2", [[1]], [worker])]
    return {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": frames},
        "profiles": [
            {
                "type": "sampled",
                "name": name,
                "unit": "seconds",
                "startValue": 0,
                "endValue": main,
                "samples": s,
                "weights": w,
            }
            for name, s, w in threads
        ],
    }


def test_a_main_thread_that_waits_for_its_workers_asks_for_them(tmp_path: Path) -> None:
    answer = asked(tmp_path, "p.speedscope.json", json.dumps(speedscope(38.0, 31.0)))
    said = words(answer)
    assert "threading.py:1095 join: 31.9 s of 38.0 s (84%)" in said and "one of 2 threads" in said
    assert "--subprocesses" in answer.next[0].capture.command


def test_folded_stacks_and_what_is_no_stack(tmp_path: Path) -> None:
    text = "main (t.py:1);step (t.py:9);item (torch/_tensor.py:5) 60\nmain (t.py:1);step (t.py:9);load (d.py:3) 30\nmain (t.py:1);log (l.py:2) 10\n"
    said = words(asked(tmp_path, "stacks.txt", text))
    assert "item" in said and "60% of 100" in said
    damaged = asked(tmp_path, "cut.txt", text * 3 + "main (t.py:1);ste\n")
    assert damaged.state is not State.HEALTHY and "1 lines are no stacks" in words(damaged)


def test_scalene_tells_lines_and_the_gpu(tmp_path: Path) -> None:
    line = {"lineno": 12, "line": "x = tokenize(batch)", "n_cpu_percent_python": 60.0, "n_cpu_percent_c": 5.0, "n_sys_percent": 1.0,
            "n_gpu_percent": 4.0}  # fmt: skip
    said = words(
        asked(
            tmp_path,
            "scalene.json",
            json.dumps({"elapsed_time_sec": 20.0, "files": {"/app/train.py": {"lines": [line]}}}),
        )
    )
    assert "13.2 s of 20.0 s (66%)" in said and "800.0 ms of the device" in said


def proton(children: list[dict[str, Any]]) -> str:
    root = {"frame": {"name": "ROOT"}, "metrics": {"time (ns)": 0}, "children": children}
    return json.dumps([root, {"CUDA": {"0": {"arch": "90"}}}])


def scope(name: str, kernels: dict[str, float]) -> dict[str, Any]:
    leaves = [
        {"frame": {"name": k}, "metrics": {"time (ns)": ns, "count": 1}, "children": []} for k, ns in kernels.items()
    ]
    return {"frame": {"name": name}, "metrics": {}, "children": leaves}


def test_proton_tells_scopes_and_kernels_and_claims_no_health(tmp_path: Path) -> None:
    tree = proton(
        [
            scope("naive", {"_ZN2at6native13reduce_kernelILi512EEEvT_": 50_000, "exp": 27_600}),
            scope("fused", {"softmax": 14_100}),
        ]
    )
    answer = asked(tmp_path, "p.hatchet", tree)
    said = words(answer)
    assert (
        answer.state is State.UNCLEAR
        and "naive 77.6 us (85%)" in said
        and "fused 14.1 us (15%)" in said
        and "reduce_kernel 50.0 us" in said
    )
    assert "ncu" in answer.next[0].capture.command
    with pytest.raises(StallwiseError, match="damaged JSON"):
        asked(tmp_path, "cut.hatchet", tree[: 2 * len(tree) // 3])


def bandwidth(rates: list[float]) -> str:
    rows = [
        f"0.100ms    \t{rate / 1e4:.3f} GB \t {rate:.2f}GB/s \t 10.0% \t triton_poi_fused_{at}"
        for at, rate in enumerate(rates)
    ]
    return "====================\nTRITON KERNELS BANDWIDTH INFO (a.py)\n" + "\n".join(rows) + "\nSUMMARY (a.py)\n"


@pytest.mark.parametrize(
    ("rates", "state"), [([2800, 2600, 1900, 2000], State.HEALTHY), ([2800, 120, 90, 100, 80], State.UNCLEAR)]
)
def test_kernels_at_one_rate_are_in_line_and_others_are_not(tmp_path: Path, rates: list[float], state: State) -> None:
    answer = asked(tmp_path, "kernels.txt", bandwidth(rates))
    assert answer.state is state and "of the fastest kernel's rate" in words(answer)


START = """         1579076 function calls in 6.868 seconds

   Ordered by: cumulative time

   ncalls  tottime  percall  cumtime  percall filename:lineno(function)
      491    2.796    0.006    2.846    0.006 {method 'to' of 'torch._C._TensorBase' objects}
   1605/5    0.004    0.000    1.280    0.256 module.py:1096(_call_impl)
   1571/6    0.005    0.000    {imports:.3f}    0.170 <frozen importlib._bootstrap>:986(_find_and_load)
"""


@pytest.mark.parametrize(("imports", "found"), [(1.022, True), (0.2, False)])
def test_a_profile_that_is_mostly_start_says_so(tmp_path: Path, imports: float, found: bool) -> None:
    answer = asked(tmp_path, "profile.txt", START.replace("{imports:.3f}", f"{imports:.3f}"))
    assert ("cold-start" in answer.ranked[:1]) is found and "forward 1.28 s" in words(answer)
