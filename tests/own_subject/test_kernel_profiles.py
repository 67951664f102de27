"""nsys and ncu: tables that were not captured, kernels without a value, the same from text and CSV."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import Diagnosis, State
from stallwise.errors import StallwiseError
from tests.own_subject.asked import asked, words


def export(path: Path, *, runtime: bool = True, kernels: int | None = None) -> Diagnosis:
    """An export with CUDA calls and perhaps kernels; None: no such table."""
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        names = {1: "cudaFree_v3020", 2: "cudaLaunchKernel_v7000", 3: "divergence(int)", 4: "poll"}
        database.executemany("INSERT INTO StringIds VALUES (?, ?)", names.items())
        database.execute("CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT)")
        calls = "CUPTI_ACTIVITY_KIND_RUNTIME" if runtime else "OSRT_API"
        database.execute(
            f"CREATE TABLE {calls} (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER)"
        )
        for start, end, name in ((0, 118_600_000, 1 if runtime else 4), (119_000_000, 119_020_000, 2)):
            database.execute(f"INSERT INTO {calls} VALUES (?, ?, 1, 1, ?)", (start, end, name))
        if kernels is not None:
            database.execute(
                "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER,"
                "demangledName INTEGER, shortName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER,"
                "blockZ INTEGER, registersPerThread INTEGER, staticSharedMemory INTEGER, dynamicSharedMemory INTEGER)"
            )
            for at in range(kernels):
                begin = 120_000_000 + at * 5_000_000_000
                database.execute(
                    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 7, 1, 3, 3, 64, 1, 1, 256, 1, 1, 32, 0, 0)",
                    (begin, begin + 4_999_000_000),
                )
    database.close()
    return diagnose(str(path), workers=1, cache=False)


def test_an_export_without_kernels_says_so_and_tells_the_calls(tmp_path: Path) -> None:
    answer = export(tmp_path / "run.sqlite")
    said = words(answer)
    assert (
        answer.state is State.UNCLEAR and "no kernel was captured" in said and "cudaFree: 118.6 ms of 118.6 ms" in said
    )
    assert "nsys profile" in answer.next[0].capture.command and "all_reduce_perf" not in said


def test_an_export_with_an_empty_table_or_without_cuda_says_so(tmp_path: Path) -> None:
    assert "no kernel was captured: its table is empty" in words(export(tmp_path / "empty.sqlite", kernels=0))
    assert "poll: 118.6 ms" in words(export(tmp_path / "system.sqlite", runtime=False))


def test_a_device_that_never_waits_is_told_so_and_asks_for_counters(tmp_path: Path) -> None:
    answer = export(tmp_path / "busy.sqlite", kernels=3)
    said = words(answer)
    assert "the device works 100.0% of the" in said and "waits for nothing" in said and "3 kernels of 5.00 s" in said
    assert answer.state is State.UNCLEAR and answer.next[0].capture.command.startswith("ncu ")


def test_a_damaged_export_is_no_health(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    export(path, kernels=3)
    raw = path.read_bytes()
    cut = tmp_path / "cut.sqlite"
    cut.write_bytes(raw[: len(raw) // 2])
    try:
        answer = diagnose(str(cut), workers=1, cache=False)
    except StallwiseError as error:
        assert "cut.sqlite" in str(error)
    else:
        assert answer.state is State.UNCLEAR and answer.notes


NSYS_STATS = """[3/8] Executing 'nvtx_sum' stats report

 Time (%)  Total Time (ns)  Instances  Avg (ns)  Style     Range
 --------  ---------------  ---------  --------  -------  -------
    100.0      900,000,000         10  90,000.0  PushPop  query

[5/8] Executing 'cuda_api_sum' stats report

 Time (%)  Total Time (ns)  Num Calls  Avg (ns)   Name
 --------  ---------------  ---------  ---------  ---------------------
     80.0   10,600,000,000     17,586  604,248.2  cudaStreamSynchronize
     20.0    2,650,000,000     20,556   76,171.0  cudaFree

[6/8] Executing 'cuda_gpu_kern_sum' stats report

 Time (%)  Total Time (ns)  Instances  Avg (ns)   Name
 --------  ---------------  ---------  ---------  --------------
     75.0    7,500,000,000      5,862  604,248.2  sum_doc_scores
     25.0    2,500,000,000      5,862   76,171.0  stage2_ip
"""


def test_ranges_of_the_program_are_no_kernels(tmp_path: Path) -> None:
    said = words(asked(tmp_path, "nsys.txt", NSYS_STATS))
    assert (
        "cudaStreamSynchronize 10.6 s (80.0%, 17,586x)" in said
        and "sum_doc_scores 7.50 s (75.0%, 5,862x)" in said
        and "query" not in said
    )


METRICS = {"Duration": ("usecond", "23.90"), "Compute (SM) Throughput": ("%", "55.4"), "DRAM Throughput": ("%", "18.2"),
           "Achieved Occupancy": ("%", "58.0")}  # fmt: skip


def ncu_text(values: dict[str, tuple[str, str]], head: str = "Metric Name") -> str:
    rows = "".join(f"    {name:<40} {unit:>14} {value:>20}\n" for name, (unit, value) in values.items())
    kernel = "  layer_norm(float *) (2048, 1, 1)x(128, 1, 1), Context 1, Stream 7, Device 0, CC 8.0\n"
    return f"==PROF== Connected to process 1\n[1] python@127.0.0.1\n{kernel}    Section: GPU Speed Of Light Throughput\n    {head}\n{rows}"


def ncu_csv(values: dict[str, tuple[str, str]]) -> str:
    head = '"ID","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"\n'
    return head + "".join(
        f'"0","layer_norm(float *)","1","7","(128, 1, 1)","(2048, 1, 1)","0","8.0","x","{n}","{u}","{v}"\n'
        for n, (u, v) in values.items()
    )


def test_text_and_csv_say_the_same(tmp_path: Path) -> None:
    text, table = asked(tmp_path, "ncu.txt", ncu_text(METRICS)), asked(tmp_path, "ncu.csv", ncu_csv(METRICS))
    assert text.state is table.state and text.ranked == table.ranked and text.why_unclear == table.why_unclear
    for said in (words(text), words(table)):
        assert "layer_norm: 1 launch of 23.9 us, SM 55%, DRAM 18%, occupancy 58%" in said


def test_an_old_page_without_titles_is_still_one_of_counters(tmp_path: Path) -> None:
    old = ncu_text(METRICS, head="-" * 60).replace(
        "(2048, 1, 1)x(128, 1, 1), Context 1, Stream 7, Device 0, CC 8.0", ", 2022-Dec-04 20:05:20, Context 1, Stream 7"
    )
    assert "1 launch of 23.9 us" in words(asked(tmp_path, "old.log", old.replace("*) ,", "*),")))


@pytest.mark.parametrize("nothing", ["n/a", "(!) nan", "(!) n/a"])
def test_kernels_without_one_value_are_told_and_asked_for_again(tmp_path: Path, nothing: str) -> None:
    answer = asked(
        tmp_path,
        "ncu.txt",
        "==ERROR== LaunchFailed\n" + ncu_text({name: (unit, nothing) for name, (unit, _) in METRICS.items()}),
    )
    said = words(answer)
    assert (
        answer.state is State.UNCLEAR
        and "LaunchFailed" in said
        and f"every metric {nothing}" in said
        and "layer_norm" in said
    )
    assert answer.next[0].capture.command.startswith("ncu --set full")


def test_without_throughputs_no_ceiling_is_named(tmp_path: Path) -> None:
    answer = asked(
        tmp_path, "ncu.csv", ncu_csv({k: v for k, v in METRICS.items() if k in ("Duration", "Achieved Occupancy")})
    )
    assert answer.state is State.UNCLEAR and "no ceiling can be named" in words(answer)
