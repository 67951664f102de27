"""A summary of kernels tells by their names how much time rows cost that do not align."""

from __future__ import annotations

import pytest

from stallwise.doctor.examine import diagnose

TITLES = (
    " Time (%)  Total Time (ns)  Instances  Avg (ns)  Name\n --------  ---------------  ---------  --------  ----\n"
)


def _table(*rows: tuple[str, str]) -> str:
    lines = (f" {10:8}  {total:>15}  {300:9}  {100:8}  {name}\n" for total, name in rows)
    return " ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):\n\n" + TITLES + "".join(lines)


@pytest.mark.parametrize("apart", ["", ",", " "])
def test_narrow_kernels_of_a_summary_are_misaligned_shapes(tmp_path, apart):
    def number(n: int) -> str:
        return f"{n:,}".replace(",", apart)

    page = _table(
        (number(4_410_220_110), "cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align2"),
        (number(1_438_402_200), "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nt"),
    )
    (tmp_path / "sum.txt").write_text(page)
    found = diagnose(str(tmp_path / "sum.txt"))
    assert found.ranked[0] == "misaligned-shapes"
    assert "75%" in found.first.headline


def test_aligned_kernels_are_not(tmp_path):
    page = _table(
        ("4410220110", "cutlass_80_tensorop_bf16_s16816gemm_bf16_128x256_32x3_tn_align8"),
        ("1438402200", "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nt"),
    )
    (tmp_path / "sum.txt").write_text(page)
    found = diagnose(str(tmp_path / "sum.txt")).findings  # suspected by a word of its name at most
    assert not [f for f in found if f.cause == "misaligned-shapes" and f.confidence >= 0.5]
