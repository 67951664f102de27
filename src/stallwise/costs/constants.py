"""The few constants that physics does not give: how far real jobs stay behind nominal rates.

Each has a prior (what data sheets, our H200 and kernel papers suggest, with its doubt) and is moved from there by the
published runs that ship with the product, as far as their number justifies. `stallwise plan calibrate` moves them
again by the user's own step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Prior:
    """A multiplier of nominal time (or a share), and the factor within which two thirds of the belief lies."""

    value: float
    sigma: float  # of its logarithm
    meaning: str


PRIORS: dict[str, Prior] = {
    "gemm.ampere": Prior(0.95, 0.06, "bf16 products against the tile model at the data sheet's clock"),
    "gemm.hopper": Prior(1.12, 0.08, "the same; Hopper holds 85-90% of its clock under sustained load at 700 W"),
    "gemm.blackwell": Prior(1.05, 0.08, "the same"),
    "gemm.other": Prior(1.10, 0.20, "the same on GPUs nobody measured"),
    "gemm8.hopper": Prior(1.20, 0.15, "fp8 products"),
    "gemm8.blackwell": Prior(1.10, 0.20, "fp8 products"),
    "gemm4.blackwell": Prior(1.30, 0.30, "fp4 products"),
    "attention.ampere": Prior(1.0, 0.15, "fused attention against the kernel papers"),
    "attention.hopper": Prior(1.1, 0.20, "the same"),
    "attention.blackwell": Prior(1.1, 0.20, "the same"),
    "attention.first": Prior(1.0, 0.20, "fused attention of the first generation"),
    "attention.unfused": Prior(1.0, 0.25, "batched products and softmax through memory"),
    "vector.fused": Prior(1.2, 0.25, "norms, activations, residuals against copies at full bandwidth"),
    "vector.eager": Prior(1.35, 0.15, "the same, one kernel per operation (our H200 runs)"),
    "quantise": Prior(1.0, 0.40, "making fp8 copies"),
    "tp.plain": Prior(1.0, 0.25, "share of tensor-parallel messages that nothing hides"),
    "tp.overlapped": Prior(0.6, 0.50, "the same with gather and product interleaved"),
    "ep": Prior(1.0, 0.35, "share of expert exchange that nothing hides, against the collective model"),
    "cp": Prior(0.4, 0.60, "share of context exchange that nothing hides"),
    "pp": Prior(0.7, 0.60, "share of stage-to-stage messages that nothing hides"),
    "dp.hidden": Prior(0.75, 0.25, "share of a pass that gradient and parameter traffic can hide behind"),
    "dp.contention": Prior(0.30, 0.50, "what a hidden collective still costs: it takes multiprocessors and bandwidth"),
    "launch.fused": Prior(6.0e-6, 0.40, "host time per kernel in a training framework"),
    "launch.eager": Prior(1.5e-5, 0.30, "host time per kernel in plain PyTorch, its Python included (our H200 runs)"),
    "launch.moe": Prior(7.0e-3, 0.50, "host time of one expert layer, forward and backward: routing, sorting, waiting"),
    "launch.moe.grace": Prior(7.0e-3, 0.40, "the same on NVL72 racks"),
    "scan": Prior(1.0, 0.40, "chunked state-space scans"),
    "experts.hopper": Prior(1.10, 0.15, "grouped products of experts against the tile model"),
    "experts.blackwell": Prior(1.35, 0.25, "the same; the newest GPU has the least mature kernels"),
    "drift": Prior(0.25, 0.60, "yearly fall of expert layers' overhead as software matures, share"),
    "jitter": Prior(0.010, 0.80, "step time per doubling of nodes lost to the slowest rank"),
}
NAMES = tuple(PRIORS)
INDEX = {name: i for i, name in enumerate(NAMES)}


def prior_values() -> Array:
    """All priors as one vector."""
    return np.array([p.value for p in PRIORS.values()])


def prior_sigmas() -> Array:
    """Their doubts."""
    return np.array([p.sigma for p in PRIORS.values()])


def products_name(architecture: str, precision: str) -> str:
    """Which constant scales the products of this GPU at this precision."""
    digits = {"fp8": "8", "mxfp8": "8", "nvfp4": "4"}.get(precision, "")
    for name in (f"gemm{digits}.{architecture}", f"gemm.{architecture}"):
        if name in INDEX:
            return name
    return "gemm.other"


def attention_name(architecture: str, kind: str) -> str:
    """Which constant scales attention: kind is fused, first or unfused."""
    if kind != "fused":
        return f"attention.{kind}"
    name = f"attention.{architecture}"
    return name if name in INDEX else "attention.hopper"
