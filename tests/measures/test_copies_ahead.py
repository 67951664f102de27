"""A batch from pageable memory costs the host its staging and its stop; from pinned memory, ahead of its use, neither."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.evidence.catalog import gains
from tests.measures.scripted_run import ScriptedRun

COPIES, STAGING_US, STEPS = 40, 60.0, 4


def staged_copy(run: ScriptedRun) -> None:
    """The call itself moves the bytes to where the device can fetch them, and only then the device starts."""
    run.ids += 1
    start, own = run.now, run.ids
    run.now += STAGING_US
    begin = start + STAGING_US - 8.0
    run.free_at = begin + 12.0
    run._add("cuda_runtime", "cudaMemcpyAsync", start, run.now, correlation=own)
    ids = {"correlation": own, "device": 0, "stream": 7}
    run._add("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", begin, run.free_at, **ids, bytes=500_000)
    run.sync()


@pytest.fixture
def won_us(tmp_path: Path) -> float:
    run = ScriptedRun()
    for _ in range(STEPS):
        with run.step():
            for _ in range(COPIES):
                with run.span("aten::copy_", "cpu_op"):
                    staged_copy(run)
            for _ in range(200):
                run.op("aten::mm", ("nvjet_sm90_tst_64x64", 3.0), host_us=20)
    return 1e6 * diagnose(run.write(tmp_path), cache=False).evidence.value(gains.COPIES_AHEAD)


def test_staging_and_the_stop_after_it_go_though_the_device_copies_only_after_them(won_us: float) -> None:
    assert won_us > 0.85 * COPIES * STAGING_US


def test_no_more_goes_than_the_copies_held_the_host(won_us: float) -> None:
    assert won_us <= COPIES * (STAGING_US + 12.0)
