"""What binds a decode step: the bytes that are read longest, weights or the KV cache, never products at a few percent of a peak."""

from __future__ import annotations

from pathlib import Path

from tests.measures.scripted_run import ScriptedRun

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.evidence.catalog import roofline
from stallwise.render.text import to_text

GEMM, ATTENTION = "nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT", "pytorch_flash::flash_fwd_splitkv_kernel"
WEIGHT = [[16, 4096], [4096, 4096]]  # 33.6 MB in 16 bits: 7 us at the H200's 4.8 TB/s
CACHE = [[16, 32, 1, 128], [16, 8, 16384, 128], [16, 8, 16384, 128]]  # 1.07 GB: 224 us


def decoded(folder: Path, gemm_us: float, attention_us: float, gemm_dims: object = WEIGHT) -> Diagnosis:
    run = ScriptedRun()
    for _ in range(4):
        with run.step():
            for _ in range(32):
                run.op("aten::mm", (GEMM, gemm_us), host_us=3.0, dims=gemm_dims)
                run.op("aten::_scaled_dot_product_flash_attention", (ATTENTION, attention_us), host_us=3.0, dims=CACHE)
                run.op("aten::mm", (GEMM, gemm_us), host_us=3.0, dims=gemm_dims)
    return diagnose(run.write(folder), cache=False)


def test_attention_at_the_memory_s_rate_binds_and_not_the_products(tmp_path: Path) -> None:
    diagnosis = decoded(tmp_path, gemm_us=12.0, attention_us=238.0)
    assert diagnosis.evidence.value(roofline.ATTENTION_BYTES_SHARE) > 0.9
    first = diagnosis.first
    assert first is not None and first.cause == "decode-bandwidth-bound" and "reads the KV cache" in first.headline
    assert "KV cache" in first.fixes[0].action
    shown = to_text(diagnosis)
    assert "reads weights" not in shown and "reads its weights" not in shown and "of the dense peak" not in shown


def test_products_that_take_longer_are_what_reads(tmp_path: Path) -> None:
    first = decoded(tmp_path, gemm_us=400.0, attention_us=238.0).first
    assert first is not None and "reads weights" in first.headline


def test_attention_that_reads_slowly_is_no_ceiling(tmp_path: Path) -> None:
    diagnosis = decoded(tmp_path, gemm_us=12.0, attention_us=1200.0)
    assert not diagnosis.healthy
    assert not any("reads the KV cache" in f.headline for f in diagnosis.findings)


def test_without_rows_the_limit_is_still_that_of_the_bytes(tmp_path: Path) -> None:
    """Products of no known shape: nothing says that it decodes, and yet no matrix unit at 2% of its peak binds it."""
    diagnosis = decoded(tmp_path, gemm_us=8.0, attention_us=238.0, gemm_dims=None)
    assert "of the dense peak" not in to_text(diagnosis)
    assert diagnosis.limit is None or diagnosis.limit.what == "memory bandwidth"
