"""Below this many operations per byte a kernel waits for memory, above it for arithmetic.

Decoding one token multiplies each weight once: two operations per weight, far below the ridge, until enough requests
share the read.
"""

from __future__ import annotations

from stallwise.units import Unit

EQUATION = "ridge = peak / bandwidth    batch at the ridge = ridge x element / 2"
SOURCE = "Williams et al. 2009 (roofline); H100 SXM: 989 TFLOP/s dense bf16, 3.35 TB/s."
FOLK = """
1,979 TFLOP/s is the sparse figure; dense is half. FP16 outside the tensor cores ends near 134 TFLOP/s on an H100, so a
kernel at 180 cannot be running on CUDA cores alone, however low its tensor utilisation is said to be.
"""
UNITS = {
    "peak_flop_per_s": Unit.FLOP_PER_S, "byte_per_s": Unit.BYTE_PER_S, "element": Unit.BYTE,
    "ridge_flop_per_byte": Unit.COUNT, "batch": Unit.COUNT,
}  # fmt: skip


def evaluate(peak_flop_per_s: float = 989e12, byte_per_s: float = 3.35e12, element: float = 2.0) -> dict[str, float]:
    """Operations per byte at the ridge, and the decode batch that reaches it."""
    ridge = peak_flop_per_s / byte_per_s
    return {"ridge_flop_per_byte": ridge, "batch": ridge * element / 2}
