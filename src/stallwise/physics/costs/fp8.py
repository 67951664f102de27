"""What FP8 does to numbers: the E4M3 and E5M2 grids, the error of a scaling, and the cheapest scaling that repairs it.

E4M3 (OCP 8-bit floating point, 2023): 3 mantissa bits, largest 448, smallest normal 2^-6, subnormals in steps of 2^-9.
E5M2: 2 mantissa bits, largest 57344, smallest normal 2^-14, steps of 2^-16.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

E4M3_MAX = 448.0
BLOCK = 128  # elements that share a scale in block scaling


@dataclass(frozen=True, slots=True)
class Format:
    """An 8-bit floating-point grid."""

    name: str
    largest: float
    mantissa_bits: int
    smallest_exponent: int  # of normal numbers


E4M3 = Format("E4M3", E4M3_MAX, 3, -6)
E5M2 = Format("E5M2", 57344.0, 2, -14)
USEFUL_OCTAVES = E4M3.smallest_exponent * -1 + 8  # from 2^-6 to just under 2^9: outlier over bulk that one scale bears


def quantise(
    values: NDArray[np.float64], scale: NDArray[np.float64] | float, grid: Format = E4M3
) -> NDArray[np.float64]:
    """Values divided by the scale, rounded to the grid, clipped at its end, and multiplied back."""
    scaled = values / scale
    clipped = np.clip(scaled, -grid.largest, grid.largest)
    exponent = np.floor(np.log2(np.maximum(np.abs(clipped), 2.0**grid.smallest_exponent)))
    step = 2.0 ** (exponent - grid.mantissa_bits)
    return np.asarray(np.clip(np.round(clipped / step) * step, -grid.largest, grid.largest) * scale)


def relative_error(values: NDArray[np.float64], rounded: NDArray[np.float64]) -> float:
    """Root of the squared error over the squared values."""
    norm = float(np.sqrt(np.mean(values**2)))
    return float(np.sqrt(np.mean((values - rounded) ** 2))) / norm if norm else 0.0


def saturated_share(values: NDArray[np.float64], amax: float) -> float:
    """Part of the values beyond a calibrated range."""
    return float(np.mean(np.abs(values) > amax)) if amax else 0.0


def scales(values: NDArray[np.float64], how: str, calibrated: float | None = None) -> NDArray[np.float64] | float:
    """The scale of each element: "static" (calibrated), "tensor", "row" or "block" of 128 along the last axis."""
    if how == "static":
        return max(calibrated or float(np.max(np.abs(values))), 1e-30) / E4M3_MAX
    if how == "tensor":
        return max(float(np.max(np.abs(values))), 1e-30) / E4M3_MAX
    if how == "row":
        return np.asarray(np.maximum(np.max(np.abs(values), axis=-1, keepdims=True), 1e-30) / E4M3_MAX)
    width = values.shape[-1]
    padded = np.abs(np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, -width % BLOCK)]))
    blocks = padded.reshape(*values.shape[:-1], -1, BLOCK).max(axis=-1)
    return np.asarray(np.maximum(np.repeat(blocks, BLOCK, axis=-1)[..., :width], 1e-30) / E4M3_MAX)


def cheapest_repair(needed_amax: float, usual_amax: float, *, grows: bool) -> str:
    """Words for the cheapest scaling under which neither the outliers clip nor the bulk drowns."""
    octaves = np.log2(max(needed_amax, 1e-30) / max(usual_amax, 1e-30))
    if octaves > USEFUL_OCTAVES:
        return "per-block scales, or BF16 for this layer: one scale cannot hold both outliers and bulk"
    if octaves > USEFUL_OCTAVES / 2:
        return "per-row (dynamic) scales"
    if grows:
        return f"recalibrate with long inputs (amax {needed_amax:.3g}), or per-row (dynamic) scales that follow the context"
    return f"recalibrate: amax {needed_amax:.3g}"
