"""A matrix product costs two operations per multiply-add: time is that over the rate one reaches.

Its bytes are read once at best, so large products are bound by arithmetic and thin ones by memory.
"""

from __future__ import annotations

from stallwise.units import Unit

EQUATION = "FLOPs = 2 M N K    intensity = 2 M N K / ((M K + K N + M N) element)"
SOURCE = "Arithmetic; cuBLAS reaches about 650 to 750 of 989 TFLOP/s on an H100 at 4096."
FOLK = """
A kernel at 180 TFLOP/s against a library's 650 is 3.6 times slower, not 10: "tensor cores unused" cannot be the whole
story above 134 TFLOP/s, the ceiling of half precision outside them.
"""
UNITS = {
    "element": Unit.BYTE, "flop_per_s": Unit.FLOP_PER_S, "flop": Unit.FLOP, "seconds": Unit.SECOND,
    "flop_per_byte": Unit.COUNT,
}  # fmt: skip


def evaluate(
    m: int = 4096, n: int = 4096, k: int = 4096, element: float = 2.0, flop_per_s: float = 650e12
) -> dict[str, float]:
    """Operations, operations per byte, and the time at a rate."""
    flop = 2.0 * m * n * k
    return {"flop": flop, "flop_per_byte": flop / ((m * k + k * n + m * n) * element), "seconds": flop / flop_per_s}
