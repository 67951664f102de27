"""Readers of kernel tools: every page gives the same numbers, old columns are known, damage is said aloud."""

from __future__ import annotations

import gzip
import random
import sqlite3
from contextlib import suppress
from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.gather import gather
from stallwise.doctor.messages import log_metrics_of
from stallwise.errors import StallwiseError
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import autotune as a
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.fact import Fact
from stallwise.readers import autotune_log, nsys_stats
from stallwise.readers.native import ncu_csv, ncu_rep, ncu_text
from tests.shared_data import shared

FIXTURES = Path(__file__).parents[1] / "fixtures" / "kernels"


def test_the_text_page_gives_what_the_csv_gives() -> None:
    text, table = (gather([str(FIXTURES / name)]) for name in ("extra_text.txt.gz", "extra_details.csv.gz"))
    compared = 0
    for scope in table.scopes("kernel"):
        for quantity in (k.TIME, k.SM_SHARE, k.DRAM_SHARE, k.L1_SHARE, k.ACHIEVED_OCCUPANCY, k.ACTIVE_THREADS, k.WAVES,
                         k.REGISTERS, k.EXCESS_SECTORS, k.SHARED_BYTES):  # fmt: skip
            fact = table.get(quantity, kernel=scope.kernel)
            if fact is not None:
                other = text.get(quantity, kernel=scope.kernel)
                assert other is not None, (scope.kernel, quantity.name)
                assert other.number == pytest.approx(fact.number, rel=1e-3), (scope.kernel, quantity.name)
                compared += 1
    assert compared > 120


def test_columns_of_older_versions_are_known(tmp_path: Path) -> None:
    path = tmp_path / "old.csv"
    path.write_text(
        "==PROF== Connected to process 1\n"
        '"ID","Process ID","Process Name","Host Name","Kernel Name","Kernel Time","Context","Stream","Section Name","Metric Name",'
        '"Metric Unit","Metric Value"\n'
        + "".join(
            f'"0","1","app","127.0.0.1","triad(float*, float*)","2020-Jan-01 10:00:00","1","7","{s}","{m}","{u}","{v}"\n'
            for s, m, u, v in (
                ("GPU Speed Of Light", "Duration", "usecond", "1,234.56"),
                ("GPU Speed Of Light", "SOL SM", "%", "12.50"),
                ("GPU Speed Of Light", "SOL Memory", "%", "91.00"),
                ("GPU Speed Of Light", "SOL DRAM", "%", "91.00"),
            )
        )
    )
    diagnosis = diagnose(str(path))
    assert diagnosis.evidence.value(k.TIME) == pytest.approx(1.23456e-3)
    assert [f.cause for f in diagnosis.findings if f.scope.kernel] == ["dram-bandwidth-bound"]


def test_a_cut_report_is_noticed() -> None:
    path = shared("data", "h200", "kernels", "triton.ncu-rep.gz")
    data = gzip.decompress(path.read_bytes())
    assert ncu_rep.missing_bytes(data) == 0
    assert ncu_rep.missing_bytes(data[:-7]) == 7
    assert ncu_rep.missing_bytes(data[: len(data) // 2]) > 0


def test_the_report_file_agrees_with_the_csv_export() -> None:
    pytest.importorskip("ncu_report")
    report = diagnose(str(shared("data", "h200", "kernels", "triton.ncu-rep.gz")))
    assert report.ranked[0] == "tensor-cores-starved"
    assert report.evidence.value(k.TENSOR_SHARE, kernel="fused_rms_linear") == pytest.approx(0.226, abs=1e-3)


def test_nsys_sums_rank_kernels_by_time() -> None:
    text = (
        "Processing [x.sqlite] with [cuda_gpu_kern_sum.py]...\n\n"
        "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
        '80.0,8000000000,4,2000000000,1,1,1,0,"ampere_sgemm_128x64_nn"\n'
        '20.0,2000000000,4,500000000,1,1,1,0,"ampere_bf16_s16816gemm_bf16_128x128"\n'
    )
    artifact = Artifact("kern.csv", content=text.encode())
    assert nsys_stats.recognises("kern.csv", artifact.head)
    facts = {(f.quantity.name, f.scope.kernel): f.value for f in nsys_stats.read(artifact) if isinstance(f, Fact)}
    assert facts["kernel.total_time", "ampere_sgemm_128x64_nn"] == pytest.approx(8.0)
    assert facts["kernel.time_share", "ampere_sgemm_128x64_nn"] == pytest.approx(0.8)


def test_an_nsys_database_names_the_sgemm(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        database.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, demangledName INTEGER, gridX INTEGER, gridY INTEGER,"
            " gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER, registersPerThread INTEGER, staticSharedMemory INTEGER,"
            " dynamicSharedMemory INTEGER)"
        )
        database.execute("INSERT INTO StringIds VALUES (1, 'volta_sgemm_128x64_tn')")
        database.execute(
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0, 4000000, 1, 64, 64, 1, 128, 1, 1, 99, 0, 0)"
        )
    diagnosis = diagnose(str(path))
    assert diagnosis.ranked[0] == "tensor-cores-unused"
    assert diagnosis.evidence.value(k.TIME) == pytest.approx(4e-3)


def test_ptxas_spills_are_read() -> None:
    text = (
        "ptxas info    : Compiling entry function '_Z4tilePf' for 'sm_80'\n    16 bytes stack frame, 420 bytes spill stores, "
        "512 bytes "
        "spill loads\nptxas info    : Used 255 registers, 360 bytes cmem[0]\n"
    )
    facts = {
        f.quantity.name: f.value
        for f in [i for _, found in log_metrics_of(Artifact("build.log", content=text.encode())) for i in found]
    }
    assert facts == {"kernel.spill_bytes_per_thread": 512.0, "kernel.registers_per_thread": 255.0}


@pytest.mark.parametrize(
    "text",
    [
        "@triton.autotune(configs=[triton.Config({'BLOCK_M': 128, 'BLOCK_N': 64}, num_stages=3, num_warps=8),\n"
        "triton.Config({'BLOCK_M': 64, 'BLOCK_N': 64}, num_stages=3, num_warps=4)], key=['M'])\n",
        "x.py:694] Benchmark all input configs for k_0, get:\n"
        "x.py:697] BLOCK_M: 32, num_warps: 2, num_stages: 1: 1.33, nreg 255, nspill 0\n"
        "x.py:697] BLOCK_M: 32, num_warps: 4, num_stages: 1: 0.92, nreg 255, nspill 0\n",
        "Triton autotuning benchmark results for function f:\n  config=BLOCK_M: 32, num_warps: 2; p50=1.5000 ms, p20=1.4 ms\n",
    ],
)  # fmt: skip
def test_short_lists_are_called_too_small(text: str, tmp_path: Path) -> None:
    path = tmp_path / "tune.log"
    path.write_text(text)
    assert autotune_log.recognises("tune.log", text.encode())
    assert diagnose(str(path)).ranked[0] == "autotune-space-too-small"


def test_the_winner_alone_does_not_tell_how_many_were_tried(tmp_path: Path) -> None:
    path = tmp_path / "tune.log"
    path.write_text(
        "Triton autotuning for function matmul_kernel,\nwith key as (1024, 1024, 512),\nfinished after 1.01s,\n"
        "best config selected: BLOCK_M: 64, BLOCK_N: 128, num_warps: 4, num_stages: 4;\n"
    )
    diagnosis = diagnose(str(path))
    assert not any(f.cause == "autotune-space-too-small" and f.confidence >= 0.5 for f in diagnosis.findings)
    assert "BLOCK_M: 64" in diagnosis.evidence.text(a.BEST_CONFIG)


def test_the_sweep_measures_which_axis_matters() -> None:
    evidence = diagnose(str(FIXTURES / "triton_sweep.json.gz")).evidence
    assert evidence.value(a.CONFIGS) == 153 and evidence.value(a.TIMED) == 141
    assert evidence.text(a.AXIS) == "BLOCK_N"
    assert evidence.value(a.FUSION_LIMIT) < 0.2 * evidence.value(a.LIBRARY)


def test_a_wide_sweep_that_loses_is_not_called_too_small() -> None:
    diagnosis = diagnose(str(FIXTURES / "triton_sweep.json.gz"))
    assert diagnosis.ranked[0] == "fusion-not-worth-it"
    assert diagnosis.findings[0].confidence >= 0.85


@pytest.mark.parametrize("stem", ["kernels_details.csv.gz", "extra_raw.csv.gz", "extra_text.txt.gz"])
def test_mutated_bytes_raise_only_our_errors(stem: str) -> None:
    data = bytearray(gzip.decompress((FIXTURES / stem).read_bytes())[:60_000])
    chance = random.Random(7)
    for _ in range(20):
        broken = bytearray(data)
        for _ in range(200):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        artifact = Artifact("broken", content=bytes(broken[: chance.randrange(len(broken))]))
        for reader in (ncu_csv, ncu_text):
            if reader.recognises("broken", artifact.content or b""):
                with suppress(StallwiseError):
                    list(reader.read(artifact))
