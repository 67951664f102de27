"""The roofline: what a card allows at a given number of operations a byte, and what pipe counters say was computed.

Source: S. Williams, A. Waterman, D. Patterson, "Roofline", CACM 52(4), 2009.
"""

from __future__ import annotations

from stallwise.physics.specs.hardware import Gpu


def ceiling_flop_per_s(gpu: Gpu, dtype: str, intensity: float) -> float:
    """The lower of the arithmetic peak and intensity times bandwidth."""
    return min(gpu.peak(dtype), intensity * gpu.bandwidth_byte_per_s)


def rate_by_pipes(gpu: Gpu, tensor_share: float, tensor_dtype: str, fp32_share: float, fp64_share: float) -> float:
    """FLOP a second from how much of each pipe's peak was in use."""
    return (
        tensor_share * gpu.peak(tensor_dtype or "bf16")
        + fp32_share * gpu.peak("fp32")
        + fp64_share * gpu.peak("fp64")
    )  # fmt: skip
