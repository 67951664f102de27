"""An nsys export becomes the same timeline as a PyTorch trace: device work, its launches, ranges and gaps."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.gather import gather
from stallwise.evidence.catalog import step
from stallwise.evidence.ledger import Category

US = 1000
STEP = 20_000 * US
WAIT = 12_000 * US


def export(path: Path, steps: int = 6) -> Path:
    """Each step waits 12 ms for a batch, copies it, and runs kernels back to back for the rest."""
    names = ["gemm_kernel", "cudaLaunchKernel_v7000", "cudaMemcpyAsync_v3020"]
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        base.executemany("INSERT INTO StringIds VALUES (?, ?)", enumerate(names))
        base.execute("CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, totalMemory INTEGER, smCount INTEGER)")
        base.execute("INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H100 80GB HBM3', 85000000000, 132)")
        base.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,"
            " correlationId INTEGER, demangledName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER,"
            " blockY INTEGER, blockZ INTEGER, registersPerThread INTEGER, staticSharedMemory INTEGER,"
            " dynamicSharedMemory INTEGER)"
        )
        base.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,"
            " correlationId INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER)"
        )
        base.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER,"
            " correlationId INTEGER, nameId INTEGER)"
        )
        base.execute("CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, globalTid INTEGER, text TEXT)")
        thread, call = (77 << 24) | 88, 1
        for number in range(steps):
            began = number * STEP
            base.execute(
                "INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?)", (began, began + STEP - 1, thread, f"step {number}")
            )
            base.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?)", (began + US, began + WAIT, thread, "data_wait"))
            at, run = began + WAIT + 10 * US, began + WAIT + 20 * US
            base.execute(
                "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, 2)", (at, at + 5 * US, thread, call)
            )
            base.execute(
                "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, 0, 7, ?, 1000000, 1, 1, 2)",
                (run, run + 50 * US, call),
            )
            run += 52 * US
            for _ in range(7):
                at, call = at + 10 * US, call + 1
                base.execute(
                    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, 1)", (at, at + 5 * US, thread, call)
                )
                base.execute(
                    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 7, ?, 0, 64, 1, 1, 128, 1, 1, 32, 0, 0)",
                    (run, run + 1_100 * US, call),
                )
                run += 1_102 * US
            call += 1
    return path


def test_the_export_has_steps_a_ledger_and_a_gain(tmp_path: Path) -> None:
    path = export(tmp_path / "run.sqlite")
    evidence = gather([str(path)], cache=False)
    assert evidence.value(step.STEP_TIME) == pytest.approx(20e-3, rel=0.02)
    assert evidence.value(step.INPUT_WAIT) == pytest.approx(12e-3, rel=0.03)
    assert evidence.value(step.LAUNCHES) == pytest.approx(8, abs=0.5)
    diagnosis = diagnose(str(path), cache=False)
    assert diagnosis.first is not None and diagnosis.first.cause == "input-starved"
    assert diagnosis.first.gain is not None and diagnosis.first.gain.replayed
    assert diagnosis.first.gain.low_s <= 12e-3 and diagnosis.first.gain.high_s == pytest.approx(12e-3, rel=1e-3)
    assert diagnosis.ledger is not None
    assert diagnosis.ledger.seconds[Category.COMPUTE] == pytest.approx(7.7e-3, rel=0.03)


def test_a_view_in_the_place_of_a_table_is_not_asked(tmp_path: Path) -> None:
    from stallwise.evidence.fact import Source
    from stallwise.readers.native._nsys_timeline import timeline_of

    path = tmp_path / "view.sqlite"
    with sqlite3.connect(path) as base:
        base.execute(
            "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
            "SELECT x AS start, x AS end, 0 AS deviceId, 7 AS streamId, x AS correlationId, 0 AS demangledName FROM n"
        )
        assert timeline_of(base, Source("view.sqlite")) is None
