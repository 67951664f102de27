"""What fusing a cheap operation into a matrix product can save: one write and one read of the product's input."""

from __future__ import annotations

from stallwise.physics.costs.gemm import matrix_rate, value_bytes
from stallwise.physics.specs.hardware import Gpu


def pass_over_gemm(outputs: float, gpu: Gpu, dtype: str = "bf16") -> float:
    """Time of one pass over an M x K input (a read and a write) over that of the product M x K x N.

    2 w M K / bandwidth over 2 M K N / rate: neither M nor K matters, only the outputs N that each element feeds.
    """
    pass_s = 2.0 * value_bytes(dtype) / gpu.achieved_byte_per_s
    return pass_s / (2.0 * outputs / matrix_rate(gpu, dtype))
