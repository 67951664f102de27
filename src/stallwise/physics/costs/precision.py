"""What another arithmetic is worth on a card: ratios of its peaks, and what code reaches of them."""

from __future__ import annotations

from stallwise.physics.specs.hardware import Gpu

# Where the card is unknown: every card with matrix units since 2017 has a 16-bit rate of 8 to 16 times its fp32 rate,
# and TF32 (where present) half of that.
USUAL_MATRIX_RATIO = (4.0, 12.0)
REACHED = 0.5  # a switched kernel reaches at least half of the ratio of the peaks: shapes, epilogues, casts


def matrix_unit_ratio(gpu: Gpu | None) -> tuple[float, float] | None:
    """How many times faster matrix units are than CUDA cores, low and high; None without such units."""
    if gpu is None:
        return USUAL_MATRIX_RATIO
    plain = gpu.peak_flop_per_s.get("fp32", 0.0)
    half = max(gpu.peak_flop_per_s.get("fp16", 0.0), gpu.peak_flop_per_s.get("bf16", 0.0))
    easy = gpu.peak_flop_per_s.get("tf32", 0.0) or half
    if not plain or half <= 2.5 * plain:  # twice the rate comes from packed halves, not from matrix units
        return None
    return max(REACHED * easy / plain, 1.2), half / plain


def half_width_ratio(gpu: Gpu | None) -> tuple[float, float]:
    """How many times faster 16-bit matrix work runs than TF32 or fp32 on the same units."""
    if gpu is None:
        return 1.4, 2.0
    wide = gpu.peak_flop_per_s.get("tf32", 0.0) or gpu.peak_flop_per_s.get("fp32_matrix", 0.0)
    half = max(gpu.peak_flop_per_s.get("fp16", 0.0), gpu.peak_flop_per_s.get("bf16", 0.0))
    if not wide or half <= wide:
        return 1.4, 2.0
    return max(1.3, 0.7 * half / wide), half / wide
